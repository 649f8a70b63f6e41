/* SPDX-License-Identifier: MIT
 *
 * Counted bytes. A block is memory with a reference count: of its own, or a piece of a ring (wire/ring). A chunk is a
 * view of bytes that begin in one block, and owns one reference to it. Lines read together share a block, so a line
 * costs no allocation and lines that follow each other lie beside each other in memory. Bytes are never changed once a
 * chunk shows them.
 *
 * Not thread safe: one thread uses it. Allocation failure is fatal in the caller: functions that allocate
 * return false or a chunk with a NULL data pointer.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring;

struct block {
	uint32_t refs;
	uint32_t reach;    /* the ring's */
	struct ring *home; /* it is a piece of this ring; NULL: it is freed with its last reference */
	size_t cap;
};

struct chunk {
	struct block *block; /* NULL: static bytes that nobody frees */
	const char *data;
	size_t len;
};

#define CHUNK_NONE ((struct chunk){0})
#define CHUNK_STATIC(s) ((struct chunk){NULL, (s), sizeof(s) - 1})

struct block *block_new(size_t cap); /* one reference, NULL without memory */
struct block *block_resize(struct block *b,
						   size_t cap); /* only with one reference, no piece of a ring; NULL: b is unchanged */
void block_unref(struct block *b);      /* NULL is allowed */
/* Where the bytes of a block lie that is no piece of a ring. */
static inline char *block_data(struct block *b) {
	return (char *)(b + 1);
}

static inline struct block *block_ref(struct block *b) {
	if (b) b->refs++;
	return b;
}

struct chunk chunk_copy(const void *data, size_t len);
/* The bytes of all parts in one new chunk; data is NULL without memory. */
struct chunk chunk_join(const struct chunk *parts, size_t n);
void chunk_drop(struct chunk *c); /* gives the reference back and makes *c empty */

/* One more reference to len bytes from off on. */
static inline struct chunk chunk_view(struct chunk c, size_t off, size_t len) {
	return (struct chunk){block_ref(c.block), c.data + off, len};
}

static inline struct chunk chunk_ref(struct chunk c) {
	return chunk_view(c, 0, c.len);
}
