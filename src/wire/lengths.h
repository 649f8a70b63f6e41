/* SPDX-License-Identifier: MIT
 *
 * The lengths of the long values of a long line, measured over many turns of the loop before the line is handed out.
 * While they are in use, the scanner (scan.h) and so every reader of the line steps over these values, so that none of
 * them reads the whole line in one turn. Results are the same with and without them.
 *
 * Measured are arrays, objects and strings in the first levels of the line. A value without an end is remembered, too:
 * a line that is no JSON is then found to be none as fast.
 *
 * An object with more strings in it, keys and values, than LIMITS_CHILD_MEMBERS is wide: for the scanner it has no
 * members, because a walk over millions of short ones would take too long, and readers walk several times. The owner of
 * the line must know it from lengths_is_wide().
 */
#pragma once

#include "wire/chunk.h"

#include <stdbool.h>
#include <stddef.h>

#define LENGTHS_FROM ((size_t)256 * 1024) /* shorter lines are read whole: faster than a look at the clock pays */
#define LENGTHS_VALUE ((size_t)4096)      /* shorter values are read again: `least` of the daemon */

struct lengths;

/* Borrows p[0..n). Values shorter than `least` are not remembered. NULL without memory. */
struct lengths *lengths_new(const char *p, size_t n, size_t least);
/* The same for a line whose members were counted before: none of its objects is wide. */
struct lengths *lengths_new_checked(const char *p, size_t n, size_t least);
void lengths_free(struct lengths *l); /* NULL is allowed; it is not in use any more */
/* Measure about this many bytes more. True: all is measured. */
bool lengths_step(struct lengths *l, size_t bytes);

/* Use these lengths, and no others; NULL: none. The bytes of the line must not change meanwhile. */
void lengths_use(struct lengths *l);
/* Those of another line, too; NULL is allowed. Return the ones in use before, for lengths_use_again(). */
struct lengths *lengths_use_also(struct lengths *l);
void lengths_use_again(struct lengths *before);
/* A line in use was copied, with other bytes in place of the `cut` bytes at `at`. Return the lengths of the copy;
 * NULL: none are in use, or no memory. */
struct lengths *lengths_of_copy(const char *at, size_t cut, struct chunk copy);

extern struct lengths *lengths_in_use;
/* p is on the first byte of a value. True: its length is known, *n is set; 0: it does not end. */
bool lengths_find(const char *p, const char *end, size_t *n);
/* p is on the opening bracket of an object. */
bool lengths_is_wide(const char *p);
bool lengths_line_is_wide(void); /* the object that is the line in use */
