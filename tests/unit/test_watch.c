/* SPDX-License-Identifier: MIT */
#include "io/watch.h"

#include "base/fd.h"
#include "harness.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* A process that sleeps until end(), or until a failed test has ended. */
static pid_t begin(void) {
	pid_t pid = fork();
	if (pid == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (pid == 0)
		for (;;) pause();
	return pid;
}

static void end(pid_t pid) {
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

static struct watch *take(struct watches *all, pid_t number, pid_t p) {
	int fd = fd_pidfd(p);
	struct watch *w = watch_take(all, number, fd);
	ck_assert_ptr_nonnull(w);
	ck_assert_int_eq(w->fd, fd);
	return w;
}

static bool is_open(int fd) {
	return fcntl(fd, F_GETFD) >= 0;
}

START_TEST(it_is_shared_until_the_last_one_drops_it) {
	struct watches all = {0};
	pid_t p = begin();
	ck_assert_ptr_null(watch_share(&all, p));
	struct watch *w = take(&all, p, p);
	int fd = w->fd;
	ck_assert_ptr_eq(watch_share(&all, p), w);
	ck_assert_ptr_eq(watch_take(&all, p, fd), w); /* like a new binary, with a number for each client */
	watch_drop(w);
	watch_drop(w);
	ck_assert(is_open(fd) && watch_alive(w));
	watch_drop(w);
	ck_assert(!is_open(fd));
	ck_assert(!all.by_pid && !all.by_fd);
	end(p);
}
END_TEST

START_TEST(each_process_has_its_own) {
	struct watches all = {0};
	pid_t p = begin(), q = begin();
	struct watch *one = take(&all, p, p), *two = take(&all, q, q);
	ck_assert_ptr_ne(one, two);
	ck_assert_ptr_eq(watch_share(&all, q), two);
	end(q);
	ck_assert(watch_alive(one) && !watch_alive(two));
	watch_drop(two);
	watch_drop(two);
	ck_assert_ptr_eq(watch_share(&all, p), one);
	watch_drop(one);
	watch_drop(one);
	end(p);
}
END_TEST

START_TEST(a_number_that_is_used_again_is_another_process) {
	struct watches all = {0};
	pid_t p = begin(), later = begin();
	struct watch *old = take(&all, p, p);
	end(p);
	ck_assert_ptr_null(watch_share(&all, p));
	struct watch *new = take(&all, p, later);
	ck_assert_ptr_eq(watch_share(&all, p), new);
	ck_assert(!watch_alive(old) && watch_alive(new));
	watch_drop(old); /* does not remove the new one from the table */
	ck_assert_ptr_eq(watch_share(&all, p), new);
	for (int i = 0; i < 3; i++) watch_drop(new);
	ck_assert(!all.by_pid && !all.by_fd);
	end(later);
}
END_TEST

/* The dead one's clients may come before or after those of the process that has its number now. */
START_TEST(both_come_from_the_binary_before) {
	for (int dead_first = 0; dead_first < 2; dead_first++) {
		struct watches all = {0};
		pid_t p = begin(), later = begin();
		int fd[2] = {fd_pidfd(p), fd_pidfd(later)};
		end(p);
		struct watch *first = watch_take(&all, p, fd[!dead_first]);
		struct watch *second = watch_take(&all, p, fd[dead_first]);
		struct watch *lives = dead_first ? second : first;
		ck_assert_ptr_eq(watch_take(&all, p, first->fd), first);
		ck_assert_ptr_eq(watch_take(&all, p, second->fd), second);
		ck_assert_ptr_eq(watch_share(&all, p), lives);
		for (int i = 0; i < 2; i++) watch_drop(first);
		for (int i = 0; i < 2; i++) watch_drop(second);
		ck_assert(is_open(fd[1]) && !is_open(fd[0]));
		watch_drop(lives);
		ck_assert(!is_open(fd[1]) && !all.by_pid && !all.by_fd);
		end(later);
	}
}
END_TEST

START_TEST(it_is_looked_at_once_in_a_turn) {
	struct watches all = {0};
	pid_t p = begin();
	struct watch *w = take(&all, p, p);
	ck_assert(watch_alive_in(w, 1));
	end(p);
	ck_assert(watch_alive_in(w, 1) && !watch_alive_in(w, 2) && !watch_alive_in(w, 1) && !watch_alive(w));
	watch_drop(w);
}
END_TEST

START_TEST(nothing_is_no_watch) {
	ck_assert(!watch_alive(NULL) && !watch_alive_in(NULL, 1));
	watch_drop(NULL);
}
END_TEST

RUN_TESTS("watch", NOT_IN_VALGRIND(it_is_shared_until_the_last_one_drops_it), NOT_IN_VALGRIND(each_process_has_its_own),
		  NOT_IN_VALGRIND(a_number_that_is_used_again_is_another_process),
		  NOT_IN_VALGRIND(both_come_from_the_binary_before), NOT_IN_VALGRIND(it_is_looked_at_once_in_a_turn),
		  nothing_is_no_watch)
