/* SPDX-License-Identifier: MIT
 *
 * A ring buffer for lines that are freed in about their order of arrival, such as a child's lines, which its tape drops
 * from the oldest on. It is mapped once, so a steady flow needs no system call for memory. The memory is mapped twice,
 * one after the other, so a line that passes the end is contiguous.
 *
 * A ring has one writer, which owns it. The writer has unfinished bytes at the head (`held`, counted by the writer) and
 * appends to them; ring_take() turns the first of them into a line. The ring is divided into pieces: the block of a
 * line is the piece of its first byte. A piece with a reference is never overwritten: the writer stops before it, or
 * skips it with ring_skip(). Sizes in bytes. (VmRSS counts pages used through both mappings twice.)
 */
#pragma once

#include "wire/chunk.h"

struct ring *ring_new(size_t size); /* at least this size; NULL without memory */
/* Lines may outlive the ring: each piece is returned to the kernel with its last line. NULL is allowed. */
void ring_close(struct ring *r);
bool ring_unused(const struct ring *r); /* it has no lines */
/* Return the memory of pieces without lines and unfinished bytes to the kernel. */
void ring_trim(struct ring *r, size_t held);

char *ring_data(const struct ring *r); /* the unfinished bytes */
/* Return the contiguous free bytes behind them. The search stops at `want`, so there may be more. */
size_t ring_room(struct ring *r, size_t held, size_t want);
/* Move the unfinished bytes behind the blocking lines, to a place with `want` more free bytes. False: there is none. */
bool ring_skip(struct ring *r, size_t held, size_t want);
/* Turn the first len unfinished bytes into a line. */
struct chunk ring_take(struct ring *r, size_t len);

/* For block_unref(): the last reference to a piece is gone. */
void ring_released(struct ring *r);
