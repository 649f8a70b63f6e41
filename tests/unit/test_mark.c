/* SPDX-License-Identifier: MIT */
#include "io/mark.h"

#include "harness.h"

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define NUMBER UINT64_C(0x123456789abcdef)
#define LARGEST ((UINT64_C(1) << MARK_BITS) - 1)

/* Runs in a process of its own: lowered limits cannot be raised again. */
static pid_t begin(uint64_t number, void (*change)(void)) {
	int p[2];
	char byte;
	ck_assert_int_eq(pipe(p), 0);
	pid_t pid = fork();
	if (pid == 0) {
		mark_set(number);
		if (change) change();
		(void)!write(p[1], "x", 1);
		for (;;) pause();
	}
	close(p[1]);
	ck_assert_int_eq(read(p[0], &byte, 1), 1);
	close(p[0]);
	return pid;
}

static enum mark_state state_of(uint64_t number, void (*change)(void), uint64_t *have) {
	pid_t pid = begin(number, change);
	enum mark_state state = mark_read(pid, have);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return state;
}

START_TEST(a_number_is_told_again) {
	static const uint64_t all[] = {0, 1, NUMBER, LARGEST};
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		uint64_t have = 7;
		ck_assert_int_eq(state_of(all[i], NULL, &have), MARK_WHOLE);
		ck_assert(have == all[i]);
	}
}
END_TEST

START_TEST(who_has_none) {
	uint64_t have = 7;
	ck_assert(mark_possible());
	ck_assert_int_eq(mark_read(getpid(), &have), MARK_NONE);
	ck_assert_int_eq(mark_read(0x3ffffffe, &have), MARK_NONE);
	ck_assert_uint_eq(have, 7);
}
END_TEST

static void set(__rlimit_resource_t which, rlim_t value) {
	setrlimit(which, &(struct rlimit){value, value});
}

static rlim_t get(__rlimit_resource_t which) {
	struct rlimit r;
	getrlimit(which, &r);
	return r.rlim_max;
}

static void lower_one(void) {
	set(RLIMIT_RSS, get(RLIMIT_RSS) - 1);
}

static void lower_the_other(void) {
	set(RLIMIT_LOCKS, get(RLIMIT_LOCKS) - 1);
}

static void lower_both(void) {
	lower_one();
	lower_the_other();
}

static void drop_one(void) {
	set(RLIMIT_RSS, 1000);
}

static void drop_both(void) {
	set(RLIMIT_RSS, 1000);
	set(RLIMIT_LOCKS, 1000);
}

/* A lowered limit does not turn it into another mark. */
START_TEST(a_changed_one_is_broken) {
	uint64_t have = 7;
	void (*const all[])(void) = {lower_one, lower_the_other, lower_both, drop_one};
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) ck_assert_int_eq(state_of(NUMBER, all[i], &have), MARK_BROKEN);
	ck_assert_int_eq(state_of(NUMBER, drop_both, &have), MARK_NONE);
	ck_assert_uint_eq(have, 7);
}
END_TEST

/* A process that is marked itself, or limited, cannot mark others. */
static void mark_again(void) {
	mark_set(1);
}

START_TEST(only_the_first_counts) {
	uint64_t have;
	ck_assert_int_eq(state_of(NUMBER, mark_again, &have), MARK_WHOLE);
	ck_assert(have == NUMBER);
}
END_TEST

RUN_TESTS("mark", a_number_is_told_again, who_has_none, a_changed_one_is_broken, only_the_first_counts)
