/* SPDX-License-Identifier: MIT
 *
 * Faults on demand, to test clients against them. plenum-fakeagent(1) describes each.
 */
#pragma once

#include <stdbool.h>

/* The name, and the default number. The command line uses - for _. */
#define FAULTS(X)                                                                                                      \
	X(partial, 7)                                                                                                      \
	X(huge, 5L * 1024 * 1024)                                                                                          \
	X(garbage, 1)                                                                                                      \
	X(stderr, 300)                                                                                                     \
	X(flood, 100000)                                                                                                   \
	X(close_stdout, 0)                                                                                                 \
	X(deaf, 0)                                                                                                         \
	X(die, 3)                                                                                                          \
	X(start_exit, 1)                                                                                                   \
	X(start_delay, 500)                                                                                                \
	X(refuse_initialize, 1)                                                                                            \
	X(refuse_load, 1)                                                                                                  \
	X(late, 500)                                                                                                       \
	X(split, 146L * 1024)                                                                                              \
	X(ignore_sigterm, 1)                                                                                               \
	X(ignore_eof, 1)                                                                                                   \
	X(grandchild, 1)                                                                                                   \
	X(mute, 1)                                                                                                         \
	X(no_newline, 1)                                                                                                   \
	X(no_result, 1)

#define FAULTS_ID(name, number) FAULT_##name,
enum fault { FAULTS(FAULTS_ID) FAULTS_COUNT };

bool faults_set(const char *text); /* NAME or NAME=N; false: unknown fault */
long faults_get(enum fault fault); /* -1: off */
bool faults_has(enum fault fault); /* its number is over 0 */
