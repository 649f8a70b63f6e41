/* SPDX-License-Identifier: MIT
 *
 * The last lines that a session's child has written to its stderr, each as a C string without its newline; long lines
 * are cut. They are kept until the next child starts. The tail owns its lines; without memory a line is dropped.
 * Source: docs/contract.md 8.
 */
#pragma once

#include "core/carry.h"

#define TAIL_LINES 40
#define TAIL_LINE_MAX 1024
#define TAIL_WORDS_LINES 4
#define TAIL_WORDS_MAX 512 /* earlier lines are left out if the text would be longer */

struct tail {
	char **lines; /* TAIL_LINES; NULL until the first line */
	size_t first, count;
	struct buf part; /* an unfinished line */
};

void tail_init(struct tail *t);
void tail_clear(struct tail *t); /* also frees all memory */
void tail_take(struct tail *t, const char *data, size_t n);
void tail_end(struct tail *t); /* end of input: an unfinished line becomes a line */
/* Return the number of lines, including the unfinished one: it is often the question for which the child waits. */
size_t tail_count(const struct tail *t);
/* Return a line, from the oldest, 0, on. Borrowed until the next call that changes the tail. */
const char *tail_line(const struct tail *t, size_t index);
/* Join the last non-empty lines: the very last line of a program often only names a place or a version. The caller
 * frees; NULL: none, or no memory. */
char *tail_words(const struct tail *t);
void tail_carry(struct carry *c, struct tail *t);
