/* SPDX-License-Identifier: MIT */
#include "io/peer.h"

#include "harness.h"
#include "io/proc.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

struct place {
	struct sockaddr_un at;
	int fd;
};

static void begin(struct place *p) {
	static int n;
	*p = (struct place){.at = {.sun_family = AF_UNIX}};
	snprintf(p->at.sun_path + 1, sizeof p->at.sun_path - 1, "plenum-test-%d-%d", (int)getpid(), n++); /* not a file */
	p->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(p->fd, (struct sockaddr *)&p->at, sizeof p->at), 0);
	ck_assert_int_eq(listen(p->fd, 8), 0);
}

/* A process that connects with a shared socket; it stays, or ends. */
static pid_t connect_to(const struct place *p, int sock, bool stays) {
	pid_t pid = fork();
	if (pid == 0) {
		if (connect(sock, (const struct sockaddr *)&p->at, sizeof p->at) < 0) _exit(1);
		while (stays) pause();
		_exit(0);
	}
	return pid;
}

static int take(const struct place *p, struct peer *peer) {
	int conn = accept4(p->fd, NULL, NULL, SOCK_CLOEXEC);
	ck_assert(conn >= 0 && fd_peer(conn, peer) == 0);
	return conn;
}

static void end(pid_t pid) {
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

START_TEST(the_process_that_stays) {
	struct place p;
	struct peer peer;
	begin(&p);
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pid_t pid = connect_to(&p, sock, true);
	int conn = take(&p, &peer);
	ck_assert_int_eq(peer.pid, pid);
	ck_assert_int_eq(peer_holds(conn, pid), 1);
	int fd = peer_pidfd(conn, &peer, peer_now()), other = peer_pidfd_by_number(conn, &peer, 0);
	ck_assert(fd_pidfd_alive(fd) && fd_pidfd_alive(other));
	end(pid);
	ck_assert(!fd_pidfd_alive(fd) && !fd_pidfd_alive(other));
	close(fd);
	close(other);
	close(conn);
	close(sock);
	close(p.fd);
}
END_TEST

START_TEST(one_that_has_ended) {
	struct place p;
	struct peer peer;
	begin(&p);
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); /* kept open */
	pid_t pid = connect_to(&p, sock, false);
	waitpid(pid, NULL, 0);
	int conn = take(&p, &peer);
	int fd = peer_pidfd(conn, &peer, 0);
	ck_assert(fd < 0 ? errno == ESRCH : !fd_pidfd_alive(fd));
	if (fd >= 0) close(fd);
	ck_assert(peer_pidfd_by_number(conn, &peer, 0) == -1 && errno == ESRCH);
	ck_assert_int_eq(peer_holds(conn, pid), 0);
	close(conn);
	close(sock);
	close(p.fd);
}
END_TEST

/* A reused number: the process holds no end of the connection. An old enough process must have made it. */
START_TEST(a_number_that_is_used_again) {
	struct place p;
	struct peer peer;
	uint64_t start;
	begin(&p);
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pid_t pid = connect_to(&p, sock, false);
	waitpid(pid, NULL, 0);
	int conn = take(&p, &peer);
	pid_t other = fork();
	if (other == 0) {
		close(sock);
		close(conn);
		for (;;) pause();
	}
	peer.pid = other;
	while (peer_holds(conn, other) == 1) {} /* until it has closed its copy */
	ck_assert(proc_stat(other, NULL, NULL, &start));
	ck_assert(peer_pidfd_by_number(conn, &peer, start) == -1 && errno == ESRCH);
	int fd = peer_pidfd_by_number(conn, &peer, start + 1);
	ck_assert_int_ge(fd, 0);
	close(fd);
	end(other);
	close(conn);
	close(sock);
	close(p.fd);
}
END_TEST

START_TEST(times) {
	uint64_t start, now;
	pid_t pid = fork();
	if (pid == 0)
		for (;;) pause();
	ck_assert(proc_stat(pid, NULL, NULL, &start));
	now = peer_now();
	ck_assert(start <= now && now - start < 100 * (uint64_t)sysconf(_SC_CLK_TCK));
	end(pid);
}
END_TEST

/* valgrind 3.19 does not know pidfd_open(2) */
RUN_TESTS("peer", NOT_IN_VALGRIND(the_process_that_stays), NOT_IN_VALGRIND(one_that_has_ended),
		  NOT_IN_VALGRIND(a_number_that_is_used_again), times)
