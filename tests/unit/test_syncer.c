/* SPDX-License-Identifier: MIT */
#include "io/syncer.h"

#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static int calls, last;

static void on_done(void *arg, int error) {
	calls++;
	last = error;
	if (arg) loop_stop(arg);
}

static int temporary(void) {
	char path[] = "/tmp/plenum-syncer-XXXXXX";
	int fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(write(fd, "x", 1), 1);
	calls = 0;
	return fd;
}

START_TEST(the_loop_hears_of_it) {
	struct loop *loop = loop_new();
	struct syncer *s = syncer_new(loop, on_done, loop);
	int fd = temporary();
	ck_assert(syncer_start(s, fd));
	loop_run(loop);
	ck_assert_int_eq(calls, 1);
	ck_assert_int_eq(last, 0);
	syncer_free(s);
	close(fd);
	loop_free(loop);
}
END_TEST

START_TEST(one_at_a_time) {
	struct loop *loop = loop_new();
	struct syncer *s = syncer_new(loop, on_done, NULL);
	int fd = temporary();
	ck_assert(!syncer_wait(s));
	ck_assert(syncer_start(s, fd));
	ck_assert(!syncer_start(s, fd)); /* also when it is done but not yet reported */
	ck_assert(syncer_wait(s));
	ck_assert_int_eq(calls, 1);
	ck_assert(!syncer_wait(s));
	ck_assert(syncer_start(s, fd));
	syncer_free(s); /* waits, without a report */
	ck_assert_int_eq(calls, 1);
	close(fd);
	loop_free(loop);
}
END_TEST

START_TEST(an_error_is_told) {
	struct loop *loop = loop_new();
	struct syncer *s = syncer_new(loop, on_done, NULL);
	int pipes[2], fd = temporary();
	ck_assert_int_eq(pipe2(pipes, O_CLOEXEC), 0);
	ck_assert(syncer_start(s, pipes[0]));
	ck_assert(syncer_wait(s));
	ck_assert_int_eq(last, EINVAL);
	ck_assert(syncer_start(s, fd)); /* it continues */
	ck_assert(syncer_wait(s));
	ck_assert_int_eq(last, 0);
	syncer_free(s);
	syncer_free(NULL);
	close(pipes[0]);
	close(pipes[1]);
	close(fd);
	loop_free(loop);
}
END_TEST

/* Any number of descriptors, also at the end and beside an fsync. */
START_TEST(it_closes) {
	struct loop *loop = loop_new();
	struct syncer *s = syncer_new(loop, on_done, NULL);
	int fd = temporary(), pipes[2], ends[40];
	char c;
	ck_assert_int_eq(pipe2(pipes, O_CLOEXEC), 0);
	ck_assert(syncer_start(s, fd));
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		ends[i] = fcntl(pipes[1], F_DUPFD_CLOEXEC, 3);
		ck_assert_int_ge(ends[i], 0);
		syncer_close(s, ends[i]);
	}
	close(pipes[1]);
	ck_assert_int_eq(read(pipes[0], &c, 1), 0); /* its end is seen when the last one is closed */
	ck_assert(syncer_wait(s));
	int last_one = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	syncer_close(s, last_one);
	syncer_free(s);
	ck_assert_int_eq(fcntl(last_one, F_GETFD), -1);
	close(fd);
	close(pipes[0]);
	loop_free(loop);
}
END_TEST

RUN_TESTS("syncer", the_loop_hears_of_it, one_at_a_time, an_error_is_told, it_closes)
