/* SPDX-License-Identifier: MIT
 *
 * Shared by the unit tests: a main() for one table of tests, a check without the cost of ck_assert() for long loops,
 * and pseudo-random numbers, the same in every run (a failed test prints the seed).
 */
#pragma once

#include "base/macros.h"

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* ck_assert() writes to a pipe each time it passes; this one costs nothing. */
#define REQUIRE(cond, fmt, ...)                                                                                        \
	do                                                                                                                 \
		if (UNLIKELY(!(cond))) ck_abort_msg("%s: " fmt, #cond, ##__VA_ARGS__);                                         \
	while (0)

static inline uint64_t rng_next(uint64_t *state) {
	uint64_t z = (*state += 0x9e3779b97f4a7c15u); /* splitmix64 */
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* 0 .. n-1 */
static inline size_t rng_below(uint64_t *state, size_t n) {
	return (size_t)(rng_next(state) % n);
}

/* Valgrind lacks some features of the kernel: a test that needs them is neither run nor counted there. */
static inline bool in_valgrind(void) {
	const char *preload = getenv("LD_PRELOAD");
	return preload && strstr(preload, "vgpreload");
}
/* The number of rounds of a loop over random input: a twentieth under valgrind, which is fifty times slower and detects
 * a wrong access in any round. */
static inline int rounds(int n) {
	return in_valgrind() ? (n + 19) / 20 : n;
}

#define NOT_IN_VALGRIND(test) (in_valgrind() ? NULL : (test))

/* setup and teardown surround each test; NULL: none. */
static inline int run_tests(const char *name, SFun setup, SFun teardown, const TTest *const *tests, size_t n) {
	Suite *suite = suite_create(name);
	TCase *tcase = tcase_create(name);
	tcase_set_timeout(tcase, 400);
	tcase_add_checked_fixture(tcase, setup, teardown);
	for (size_t i = 0; i < n; i++)
		if (tests[i]) tcase_add_test(tcase, tests[i]);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#define RUN_TESTS(name, ...) RUN_TESTS_WITH(NULL, NULL, name, __VA_ARGS__)

/* An errand of the tested code would run this program with arguments: it fails. */
#define RUN_TESTS_WITH(setup, teardown, name, ...)                                                                     \
	int main(int argc, char **argv) {                                                                                  \
		(void)argv;                                                                                                    \
		if (argc > 1) return EXIT_FAILURE;                                                                             \
		const TTest *const tests[] = {__VA_ARGS__};                                                                    \
		return run_tests(name, setup, teardown, tests, ARRAY_SIZE(tests));                                             \
	}
