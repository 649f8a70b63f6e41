/* SPDX-License-Identifier: MIT
 *
 * Memory for lines that come one after the other and go in about the same order: a child's, which its tape drops from
 * the oldest on. It is mapped once and filled round and round, so a steady flow asks the kernel for nothing. The memory
 * is mapped a second time behind itself: bytes that pass its end go on at its beginning, and each line is contiguous.
 *
 * A ring has one writer, which owns it. At its head the writer holds unfinished bytes (`held`, the writer's count) and
 * reads more behind them; ring_take() makes a line of the first of them. The ring counts in pieces: the block of a line
 * is the piece in which the line begins. A piece with a reference is never written to: the writer stops before it, or
 * goes round it with ring_skip(). Sizes in bytes. (VmRSS counts what was seen through both mappings twice.)
 */
#pragma once

#include "wire/chunk.h"

struct ring *ring_new(size_t size); /* room for at least so much; NULL without memory */
/* The lines may outlive it: each piece goes back to the kernel with its last line. NULL is allowed. */
void ring_close(struct ring *r);
bool ring_unused(const struct ring *r); /* no line of it is left */
/* Gives back the pieces without lines, but for those of the unfinished bytes. */
void ring_trim(struct ring *r, size_t held);

char *ring_data(const struct ring *r); /* the unfinished bytes */
/* Free bytes behind them, in one stretch. No search beyond `want`: it may be more. */
size_t ring_room(struct ring *r, size_t held, size_t want);
/* Moves the unfinished bytes behind the lines in the way, where `want` bytes more are free. False: nowhere. */
bool ring_skip(struct ring *r, size_t held, size_t want);
/* The first len of the unfinished bytes as a line. */
struct chunk ring_take(struct ring *r, size_t len);

/* For block_unref(): the last reference to a piece is gone. */
void ring_released(struct ring *r);
