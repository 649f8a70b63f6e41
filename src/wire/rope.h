/* SPDX-License-Identifier: MIT
 *
 * A rope is a line in pieces, which are sent one after the other. A long line that is passed on with other bytes in a
 * few places is a rope: its long pieces are views of the lines that they come from, so that no turn of the loop copies
 * them. Any other line is a rope of one piece.
 *
 * A rope owns its pieces. Functions that take a rope over leave it empty.
 */
#pragma once

#include "wire/chunk.h"

#define ROPE_PARTS 8
#define ROPE_FROM                                                                                                      \
	((size_t)256 * 1024)              /* shorter lines are copied: a view would keep the memory of their neighbours    \
									   */
#define ROPE_VIEW ((size_t)64 * 1024) /* and so are shorter parts */

struct rope {
	size_t n, len; /* pieces, and their bytes; n 0: none, or no memory */
	struct chunk parts[ROPE_PARTS];
};

/* Take over the reference. */
struct rope rope_of(struct chunk line);
/* Make a rope of these parts, in this order. Parts without a block, and short ones, are copied. */
struct rope rope_make(const struct chunk *parts, size_t n);
struct rope rope_ref(const struct rope *r); /* another rope of the same pieces */
void rope_drop(struct rope *r);
/* Return the line in one piece, which is a copy if the rope has more; data NULL without memory. */
struct chunk rope_join(const struct rope *r);
/* Return the line for a longer time: a view of a long one, a copy of a short one. */
struct chunk rope_keep(struct chunk line);
