/* SPDX-License-Identifier: MIT */
#include "io/manager.h"

#include "harness.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

static char folder[32];

/* The socket of a service manager; a path with a leading @ is abstract. */
static int manager(const char *path) {
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	strcpy(at.sun_path, path);
	if (*path == '@') at.sun_path[0] = 0;
	ck_assert_int_eq(
		bind(fd, (struct sockaddr *)&at, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path))), 0);
	return fd;
}

static void hears(int fd, const char *want) {
	char text[100];
	ssize_t n = recv(fd, text, sizeof text - 1, 0);
	ck_assert_int_eq(n, want ? (ssize_t)strlen(want) : -1);
	if (want) ck_assert_mem_eq(text, want, strlen(want));
}

static void hears_at(const char *path) {
	struct manager n;
	int fd = manager(path);
	setenv("NOTIFY_SOCKET", path, 1);
	manager_init(&n);
	ck_assert_ptr_null(getenv("NOTIFY_SOCKET")); /* not inherited by children */
	manager_send(&n, "READY=1\nSTATUS=x");
	hears(fd, "READY=1\nSTATUS=x");
	close(fd);
	manager_send(&n, "nobody hears"); /* has no effect */
	manager_close(&n);
	ck_assert_int_eq(n.fd, -1);
	manager_send(&n, "nor this");
	manager_close(&n);
}

START_TEST(messages) {
	char path[64];
	strcpy(folder, "/tmp/pl-XXXXXX");
	ck_assert(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/notify", folder);
	hears_at(path);
	unlink(path);
	snprintf(path, sizeof path, "@plenum-test-%d", (int)getpid());
	hears_at(path);
	rmdir(folder);
}
END_TEST

/* A process that reads messages up to the wanted one: exit status 0 if it comes. */
static pid_t reader_until(int fd, const char *want) {
	pid_t pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid > 0) return pid;
	char text[100];
	ssize_t n;
	fcntl(fd, F_SETFL, 0);
	do n = recv(fd, text, sizeof text, 0);
	while (n >= 0 && (n != (ssize_t)strlen(want) || memcmp(text, want, (size_t)n) != 0));
	_exit(n < 0);
}

/* The manager is busy and its socket full: repeated messages are dropped, others wait for room. */
START_TEST(a_full_socket) {
	struct manager n;
	char path[64];
	int status;
	snprintf(path, sizeof path, "@plenum-test-full-%d", (int)getpid());
	int fd = manager(path);
	setenv("NOTIFY_SOCKET", path, 1);
	manager_init(&n);
	while (send(n.fd, "x", 1, MSG_DONTWAIT) == 1)
		;
	manager_send(&n, "WATCHDOG=1");
	pid_t reader = reader_until(fd, "READY=1");
	manager_send_once(&n, "READY=1");
	ck_assert_int_eq(waitpid(reader, &status, 0), reader);
	ck_assert_int_eq(status, 0);
	manager_close(&n);
	close(fd);
}
END_TEST

START_TEST(nobody_listens) {
	static const char *const paths[] = {NULL, "", "relative", "/does/not/exist", "@plenum-nobody-is-there"};
	struct manager n;
	char path[200];
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		if (paths[i]) setenv("NOTIFY_SOCKET", paths[i], 1);
		manager_init(&n);
		ck_assert_int_eq(n.fd, -1);
		manager_send(&n, "READY=1");
		manager_close(&n);
	}
	memset(path, 'x', sizeof path);
	path[0] = '/';
	path[sizeof path - 1] = 0;
	setenv("NOTIFY_SOCKET", path, 1);
	manager_init(&n);
	ck_assert_int_eq(n.fd, -1);
}
END_TEST

static int64_t watchdog(const char *usec, const char *pid) {
	struct manager n;
	setenv("WATCHDOG_USEC", usec, 1);
	if (pid)
		setenv("WATCHDOG_PID", pid, 1);
	else
		unsetenv("WATCHDOG_PID");
	manager_init(&n);
	ck_assert(!getenv("WATCHDOG_USEC") && !getenv("WATCHDOG_PID"));
	manager_close(&n);
	return n.watchdog;
}

START_TEST(watchdogs) {
	char me[20], other[20];
	snprintf(me, sizeof me, "%d", (int)getpid());
	snprintf(other, sizeof other, "%d", (int)getppid());
	ck_assert_int_eq(watchdog("30000000", NULL), 15000); /* twice as often as required */
	ck_assert_int_eq(watchdog("30000000", me), 15000);
	ck_assert_int_eq(watchdog("30000000", other), 0);
	ck_assert_int_eq(watchdog("30000000", "x"), 0);
	ck_assert_int_eq(watchdog("0", NULL), 0);
	ck_assert_int_eq(watchdog("-5", NULL), 0);
	ck_assert_int_eq(watchdog("x", NULL), 0);
	struct manager n;
	manager_init(&n);
	ck_assert_int_eq(n.watchdog, 0);
}
END_TEST

/* --- socket activation: in a process of its own, with descriptors from 3 set as by systemd ------------------------ */

enum passed { LISTENS, CONNECTED, DATAGRAM, A_FILE, NOTHING };

static int make(enum passed what) {
	int pair[2], fd;
	if (what == A_FILE) return open("/dev/null", O_RDWR);
	if (what == CONNECTED) return socketpair(AF_UNIX, SOCK_STREAM, 0, pair) ? -1 : pair[0];
	fd = socket(AF_UNIX, what == DATAGRAM ? SOCK_DGRAM : SOCK_STREAM, 0);
	struct sockaddr_un any = {.sun_family = AF_UNIX}; /* autobind: the kernel chooses the name */
	if (what == LISTENS && (bind(fd, (struct sockaddr *)&any, sizeof(sa_family_t)) < 0 || listen(fd, 1) < 0)) return -1;
	return fd;
}

/* In the child: the exit status is the result, 0 for -1. */
static int activated(const enum passed *what, const char *fds, bool me) {
	char pid[20];
	snprintf(pid, sizeof pid, "%d", (int)(me ? getpid() : getppid()));
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", fds, 1);
	setenv("LISTEN_FDNAMES", "x", 1);
	int made[3];
	for (int i = 0; i < 3; i++) made[i] = what[i] == NOTHING ? -1 : fcntl(make(what[i]), F_DUPFD, 50);
	for (int i = 0; i < 3; i++) {
		close(3 + i);
		if (made[i] >= 0) dup2(made[i], 3 + i);
	}
	int found = manager_listen_fd();
	if (getenv("LISTEN_PID") || getenv("LISTEN_FDS") || getenv("LISTEN_FDNAMES")) return 100;
	if (found >= 0 && !(fcntl(found, F_GETFD) & FD_CLOEXEC)) return 101;
	return found + 1;
}

static int found(enum passed a, enum passed b, enum passed c, const char *fds, bool me) {
	int status;
	pid_t pid = fork();
	if (pid == 0) _exit(activated((const enum passed[]){a, b, c}, fds, me));
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status) - 1;
}

START_TEST(the_socket_that_was_passed) {
	ck_assert_int_eq(found(LISTENS, NOTHING, NOTHING, "1", true), 3);
	ck_assert_int_eq(found(LISTENS, LISTENS, NOTHING, "2", true), 3);
	ck_assert_int_eq(found(A_FILE, CONNECTED, LISTENS, "3", true), 5);
	ck_assert_int_eq(found(DATAGRAM, LISTENS, NOTHING, "2", true), 4);
	ck_assert_int_eq(found(A_FILE, CONNECTED, LISTENS, "2", true), -1);
	ck_assert_int_eq(found(LISTENS, NOTHING, NOTHING, "1", false), -1); /* for another process */
	ck_assert_int_eq(found(LISTENS, NOTHING, NOTHING, "0", true), -1);
	ck_assert_int_eq(found(LISTENS, NOTHING, NOTHING, "x", true), -1);
	ck_assert_int_eq(found(LISTENS, NOTHING, NOTHING, "99999999", true), -1);
	ck_assert_int_eq(manager_listen_fd(), -1);
}
END_TEST

RUN_TESTS("manager", messages, a_full_socket, nobody_listens, watchdogs, the_socket_that_was_passed)
