/* SPDX-License-Identifier: MIT */
#include "base/fd.h"

#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

START_TEST(nonblocking) {
	int p[2];
	char byte;
	ck_assert_int_eq(pipe2(p, O_CLOEXEC), 0);
	ck_assert_int_eq(fd_nonblock(p[0]), 0);
	ck_assert_int_eq(fd_read(p[0], &byte, 1), -1);
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert_int_eq(fcntl(p[1], F_GETFL) & O_NONBLOCK, 0);
	close(p[1]);
	ck_assert_int_eq(fd_read(p[0], &byte, 1), 0);
	close(p[0]);
	ck_assert_int_eq(fd_nonblock(-1), -1);
	ck_assert_int_eq(errno, EBADF);
}
END_TEST

START_TEST(peers) {
	int s[2];
	struct peer p;
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s), 0);
	ck_assert_int_eq(fd_peer(s[0], &p), 0);
	ck_assert(p.pid == getpid() && p.uid == geteuid() && p.gid == getegid());
	close(s[0]);
	close(s[1]);
	_cleanup_close_ int file = memfd_create("x", MFD_CLOEXEC);
	ck_assert_int_eq(fd_peer(file, &p), -1);
}
END_TEST

START_TEST(connects_to_a_path) {
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	char path[sizeof at.sun_path + 1];
	snprintf(at.sun_path, sizeof at.sun_path, "/tmp/plenum-test-fd-%d", (int)getpid());
	ck_assert_int_eq(fd_connect(at.sun_path, 0), -1);
	ck_assert_int_eq(errno, ENOENT);
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
	ck_assert_int_eq(fd_connect(at.sun_path, 0), -1);
	ck_assert_int_eq(errno, ECONNREFUSED);
	ck_assert_int_eq(listen(listener, 2), 0);
	int waits = fd_connect(at.sun_path, 0), does_not = fd_connect(at.sun_path, SOCK_NONBLOCK);
	ck_assert_int_eq(fcntl(waits, F_GETFL) & O_NONBLOCK, 0);
	ck_assert_int_ne(fcntl(does_not, F_GETFL) & O_NONBLOCK, 0);
	ck_assert_int_eq(fcntl(waits, F_GETFD), FD_CLOEXEC);
	close(waits);
	close(does_not);
	close(listener);
	unlink(at.sun_path);
	memset(path, 'x', sizeof path - 1);
	path[sizeof path - 1] = 0; /* a NUL too many for the address */
	ck_assert_int_eq(fd_connect(path, 0), -1);
	ck_assert_int_eq(errno, ENAMETOOLONG);
}
END_TEST

START_TEST(vectors) {
	int s[2], p[2];
	char have[10] = "";
	struct iovec iov[] = {{(char[]){"ab"}, 2}, {NULL, 0}, {(char[]){"cde"}, 3}};
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s), 0);
	ck_assert_int_eq(pipe2(p, O_CLOEXEC), 0);
	ck_assert_int_eq(fd_sendv(s[0], iov, 3), 5);
	ck_assert_int_eq(fd_read(s[1], have, sizeof have), 5);
	ck_assert_str_eq(have, "abcde");
	ck_assert_int_eq(fd_writev(p[1], iov, 2), 2);
	ck_assert_int_eq(fd_read(p[0], have, sizeof have), 2);
	/* a full blocking socket does not block; one without a reader raises no signal */
	static char much[4096];
	struct iovec more = {much, sizeof much};
	ssize_t n;
	while ((n = fd_sendv(s[0], &more, 1)) > 0) {}
	ck_assert_int_eq(errno, EAGAIN);
	close(s[1]);
	ck_assert_int_eq(fd_sendv(s[0], &more, 1), -1);
	ck_assert(errno == EPIPE || errno == ECONNRESET);
	close(s[0]);
	close(p[0]);
	close(p[1]);
}
END_TEST

/* --- signals at a high rate --------------------------------------------------------------------------------------- */

static volatile sig_atomic_t alarms;

static void on_alarm(int signo) {
	(void)signo;
	alarms++;
}

static void ring(bool on) {
	struct sigaction act = {.sa_handler = on ? on_alarm : SIG_IGN}; /* no SA_RESTART */
	struct itimerval often = {{0, on ? 1000 : 0}, {0, on ? 1000 : 0}};
	if (on) sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	if (!on) sigaction(SIGALRM, &act, NULL);
}

#define MUCH 300000

struct other {
	pthread_t thread;
	int fd;
	char data[MUCH];
	size_t got;
};

static void wait_for_alarms(void) {
	sig_atomic_t before = alarms;
	while (alarms < before + 3) poll(NULL, 0, 1);
}

/* Another thread: it blocks all signals and lets the first thread be interrupted several times. */
static void *write_late(void *arg) {
	struct other *o = arg;
	wait_for_alarms();
	(void)!write(o->fd, "late", 4);
	return NULL;
}

static void *read_late(void *arg) {
	struct other *o = arg;
	ssize_t n;
	wait_for_alarms();
	while ((n = read(o->fd, o->data + o->got, sizeof o->data - o->got)) > 0) {
		o->got += (size_t)n;
		if (o->got < 100000) wait_for_alarms();
	}
	return NULL;
}

static void start(struct other *o, void *(*fn)(void *)) {
	sigset_t alarm, before;
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarm, &before);
	ck_assert_int_eq(pthread_create(&o->thread, NULL, fn, o), 0);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

START_TEST(interrupted_calls_go_on) {
	static struct other o;
	static char much[MUCH];
	int p[2];
	char have[10] = "";
	ck_assert_int_eq(pipe2(p, O_CLOEXEC), 0);
	ring(true);
	o.fd = p[1];
	start(&o, write_late);
	ck_assert_int_eq(fd_read(p[0], have, sizeof have), 4);
	ck_assert_str_eq(have, "late");
	pthread_join(o.thread, NULL);
	o.fd = p[0];
	for (size_t i = 0; i < sizeof much; i++) much[i] = (char)(i * 7 % 251);
	start(&o, read_late);
	ck_assert_int_eq(fd_write_all(p[1], much, sizeof much), 0);
	close(p[1]);
	pthread_join(o.thread, NULL);
	ring(false);
	ck_assert_uint_eq(o.got, sizeof much);
	ck_assert_mem_eq(o.data, much, sizeof much);
	close(p[0]);
}
END_TEST

START_TEST(writing_everything_can_fail) {
	_cleanup_close_ int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	ck_assert_int_eq(fd_write_all(full, "x", 1), -1);
	ck_assert_int_eq(errno, ENOSPC);
	ck_assert_int_eq(fd_write_all(full, "x", 0), 0);
}
END_TEST

/* --- processes ---------------------------------------------------------------------------------------------------- */

/* A process that ends when the write end of *hold is closed. */
static pid_t idle_process(int *hold) {
	int p[2];
	char byte;
	ck_assert_int_eq(pipe2(p, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		close(p[1]);
		_exit((int)read(p[0], &byte, 1));
	}
	close(p[0]);
	*hold = p[1];
	return pid;
}

START_TEST(a_pidfd_tells_who_is_alive) {
	int hold;
	pid_t pid = idle_process(&hold);
	_cleanup_close_ int pidfd = fd_pidfd(pid);
	ck_assert_int_ge(pidfd, 0);
	ck_assert(fd_pidfd_alive(pidfd));
	close(hold);
	siginfo_t info;
	ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	ck_assert(!fd_pidfd_alive(pidfd)); /* a zombie is not alive */
	waitpid(pid, NULL, 0);
	ck_assert(!fd_pidfd_alive(pidfd));
	ck_assert_int_eq(fd_pidfd(pid), -1);
	ck_assert_int_eq(errno, ESRCH);
	ck_assert(!fd_pidfd_alive(-1));
}
END_TEST

START_TEST(signals_are_read) {
	struct signalfd_siginfo info;
	sigset_t before;
	sigprocmask(SIG_SETMASK, NULL, &before);
	_cleanup_close_ int fd = fd_signals((const int[]){SIGUSR1, SIGHUP, 0});
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fd_read(fd, &info, sizeof info), -1);
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert_int_eq(kill(getpid(), SIGHUP), 0);
	ck_assert_int_eq(fd_read(fd, &info, sizeof info), sizeof info);
	ck_assert_uint_eq(info.ssi_signo, SIGHUP);
	sigprocmask(SIG_SETMASK, &before, NULL);
}
END_TEST

START_TEST(the_limit_on_descriptors) {
	struct rlimit old, now;
	uint64_t before;
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
	now = (struct rlimit){MIN(old.rlim_cur, (rlim_t)100), old.rlim_max};
	setrlimit(RLIMIT_NOFILE, &now);
	ck_assert_int_eq(fd_raise_nofile(&before), 0);
	ck_assert_uint_eq(before, now.rlim_cur);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &now), 0);
	ck_assert_uint_eq(now.rlim_cur, old.rlim_max);
	setrlimit(RLIMIT_NOFILE, &old);
}
END_TEST

/* 1: a closed descriptor was left closed; 2: it is usable; 3: an open one was changed. */
static int fill_in_child(void) {
	int pipe_ends[2];
	char c;
	if (pipe(pipe_ends) < 0 || dup2(pipe_ends[1], STDERR_FILENO) < 0) return 9;
	close(STDIN_FILENO);
	close(STDOUT_FILENO);
	fd_fill_standard();
	if (open("/dev/null", O_RDWR) <= STDERR_FILENO) return 1;
	if (read(STDIN_FILENO, &c, 1) >= 0 || write(STDOUT_FILENO, "x", 1) >= 0) return 2;
	return write(STDERR_FILENO, "x", 1) == 1 && read(pipe_ends[0], &c, 1) == 1 ? 0 : 3;
}

START_TEST(standard_descriptors_are_filled) {
	int status;
	pid_t pid = fork();
	if (pid == 0) _exit(fill_in_child());
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(clocks) {
	int64_t ms = now_ms(), us = now_us();
	ck_assert(us / 1000 - ms >= 0 && us / 1000 - ms < 10000);
	for (int i = 0; i < 1000; i++) {
		int64_t next = now_us();
		ck_assert_int_ge(next, us);
		us = next;
	}
	int64_t off = now_real_ms() - (int64_t)time(NULL) * 1000;
	ck_assert(off > -2000 && off < 10000);
}
END_TEST

RUN_TESTS("fd", nonblocking, peers, connects_to_a_path, vectors, interrupted_calls_go_on, writing_everything_can_fail,
		  NOT_IN_VALGRIND(a_pidfd_tells_who_is_alive), signals_are_read, the_limit_on_descriptors,
		  standard_descriptors_are_filled, clocks)
