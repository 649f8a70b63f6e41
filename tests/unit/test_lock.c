/* SPDX-License-Identifier: MIT */
#include "io/lock.h"

#include "base/fd.h"
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static int open_lock(const char *path, pid_t holder) {
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, 0), 0);
	if (holder) dprintf(fd, "%d\n", (int)holder);
	return fd;
}

static void *close_it(void *arg) {
	close(*(int *)arg);
	return NULL;
}

static void refuses(const char *path, pid_t holder) {
	int fd = open_lock(path, holder);
	ck_assert_int_eq(lock_take(fd), -1);
	ck_assert_int_eq(errno, EWOULDBLOCK);
	close(fd);
}

START_TEST(locks) {
	char path[] = "/tmp/pl-XXXXXX";
	close(mkstemp(path));
	int a = open_lock(path, 0);
	ck_assert_int_eq(lock_take(a), 0);
	ck_assert_int_eq(lock_take(a), 0);
	int64_t took = INT64_MAX;
	for (int i = 0; took >= 900 && i < 5; i++) { /* no waiting, but this process may have been suspended */
		int64_t before = now_ms();
		refuses(path, getpid()); /* its holder is alive */
		refuses(path, 0);        /* it names no process */
		took = now_ms() - before;
	}
	ck_assert_int_lt(took, 900);
	/* its holder is dead, and a child of the holder keeps the lock for a moment */
	pid_t dead = fork();
	if (dead == 0) _exit(0);
	waitpid(dead, NULL, 0);
	int b = open_lock(path, dead);
	pthread_t closer;
	ck_assert_int_eq(pthread_create(&closer, NULL, close_it, &a), 0);
	ck_assert_int_eq(lock_take(b), 0);
	pthread_join(closer, NULL);
	close(b);
	unlink(path);
}
END_TEST

static pid_t holder_of(const char *path) {
	int ready[2];
	char byte;
	ck_assert_int_eq(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		int fd = open_lock(path, getpid());
		if (lock_take(fd) == 0 && write(ready[1], "x", 1) == 1) pause();
		_exit(1);
	}
	close(ready[1]);
	ck_assert_int_eq(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

/* A daemon started right after another was killed is not refused as the second one. */
START_TEST(the_lock_of_who_was_killed_just_now) {
	char path[] = "/tmp/pl-XXXXXX";
	close(mkstemp(path));
	for (int i = 0; i < 100; i++) {
		pid_t pid = holder_of(path);
		int fd = open(path, O_RDWR | O_CLOEXEC);
		kill(pid, SIGKILL);
		ck_assert_int_eq(lock_take(fd), 0);
		close(fd);
		waitpid(pid, NULL, 0);
	}
	unlink(path);
}
END_TEST

RUN_TESTS("lock", locks, NOT_IN_VALGRIND(the_lock_of_who_was_killed_just_now))
