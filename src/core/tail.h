/* SPDX-License-Identifier: MIT
 *
 * The last lines that a session's child has written to its stderr, each as a C string without its LF; the rest of a
 * long one is cut. They stay when the child has ended, until the next one starts. The tail owns its lines; without
 * memory a line is left out. Source: DESIGN 8.
 */
#pragma once

#include "core/carry.h"

#define TAIL_LINES 40
#define TAIL_LINE_MAX 1024
#define TAIL_WORDS_LINES 4
#define TAIL_WORDS_MAX 512 /* lines before the last one are left out where they would make it more */

struct tail {
	char **lines; /* TAIL_LINES; NULL until there is one */
	size_t first, count;
	struct buf part; /* a line that has not ended */
};

void tail_init(struct tail *t);
void tail_clear(struct tail *t); /* gives back all memory, too */
void tail_take(struct tail *t, const char *data, size_t n);
void tail_end(struct tail *t); /* no more comes: what has not ended is a line */
/* How many there are, with the one that has not ended yet: often the question that the child waits with. */
size_t tail_count(const struct tail *t);
/* From the oldest, 0, on. Borrowed until the next call that changes something. */
const char *tail_line(const struct tail *t, size_t index);
/* The last lines that are not blank, joined to one: a program's very last line is often but where or with which version
 * it ended. The caller's; NULL: there is none, or no memory. */
char *tail_words(const struct tail *t);
void tail_carry(struct carry *c, struct tail *t);
