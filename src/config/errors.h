/* SPDX-License-Identifier: MIT
 *
 * What is wrong in the configuration: one line a mistake, "FILE:LINE: what, and what to write instead", safe for logs
 * and terminals. Reading goes on after each, so that all are told in one run. {0} is an empty list.
 */
#pragma once

#include "base/macros.h"
#include "base/words.h"

struct place {
	const char *file; /* NULL: in no file */
	int line;         /* from 1 on; 0: the file as a whole */
};

struct errors {
	struct words list;
	size_t n; /* of all; more than the list holds where memory was short */
};

/* Always false, so that a check can return it. */
bool errors_add(struct errors *m, struct place at, const char *fmt, ...) PRINTF_LIKE(3, 4);
bool errors_add_memory(struct errors *m);
const char *errors_text(const struct errors *m, size_t i); /* the one of number i < n */
/* For an answer: the first of at least one, and how many more there are. */
void errors_sum_up(const struct errors *m, char *out, size_t size);
void errors_free(struct errors *m);
