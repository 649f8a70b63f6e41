/* SPDX-License-Identifier: MIT
 *
 * Errors in the configuration: one line each, "FILE:LINE: cause and remedy", safe for logs and terminals. Parsing
 * continues after an error, so that one run reports all. {0} is an empty list.
 */
#pragma once

#include "base/error.h"
#include "base/macros.h"
#include "base/words.h"

struct place {
	const char *file; /* NULL: no file */
	int line;         /* from 1 on; 0: the whole file */
};

struct errors {
	struct words list;
	size_t n; /* of all; more than are in the list if memory was short */
};

/* Always returns false, so that a check can return its result. */
bool errors_add(struct errors *m, struct place at, const char *fmt, ...) PRINTF_LIKE(3, 4);
bool errors_add_memory(struct errors *m);
const char *errors_text(const struct errors *m, size_t i); /* i < n */
/* Write a summary for an answer: the first error, and the number of others. There must be one. */
void errors_sum_up(const struct errors *m, struct error *out);
void errors_free(struct errors *m);
