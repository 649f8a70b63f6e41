/* SPDX-License-Identifier: MIT
 *
 * Reference-counted bytes. A block is memory with a reference count: allocated, or a piece of a ring (wire/ring). A
 * chunk is a view of bytes that begin in one block, and owns one reference to it. Lines of one read share a block, so a
 * line costs no allocation, and consecutive lines are adjacent in memory. The bytes of a chunk are immutable.
 *
 * Not thread safe. Functions that allocate return NULL or a chunk with data NULL without memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring;

struct block {
	uint32_t refs;
	uint32_t reach;    /* used by the ring */
	struct ring *home; /* the ring of this piece; NULL: freed with its last reference */
	char *outside;     /* its bytes, if they do not follow it; freed with it */
	size_t cap;
};

struct chunk {
	struct block *block; /* NULL: static bytes, never freed */
	const char *data;
	size_t len;
};

#define CHUNK_NONE ((struct chunk){0})
#define CHUNK_STATIC(s) ((struct chunk){NULL, (s), sizeof(s) - 1})

struct block *block_new(size_t cap); /* one reference, NULL without memory */
struct block *block_resize(struct block *b,
						   size_t cap); /* needs a single reference, and not a piece of a ring; NULL: b is unchanged */
void block_unref(struct block *b);      /* NULL is allowed */
/* Return the bytes of a block that is not a piece of a ring. */
static inline char *block_data(struct block *b) {
	return (char *)(b + 1);
}

static inline struct block *block_ref(struct block *b) {
	if (b) b->refs++;
	return b;
}

struct chunk chunk_copy(const void *data, size_t len);
/* Take over malloc()ed bytes without a copy; they are freed without memory. */
struct chunk chunk_adopt(char *data, size_t len);
/* Copy all parts into one new chunk; data is NULL without memory. */
struct chunk chunk_join(const struct chunk *parts, size_t n);
void chunk_drop(struct chunk *c); /* drop the reference and set *c to CHUNK_NONE */

/* Take a reference to len bytes at off. */
static inline struct chunk chunk_view(struct chunk c, size_t off, size_t len) {
	return (struct chunk){block_ref(c.block), c.data + off, len};
}

/* Iterate over whole lines: start with *at = 0. Take a reference to the next one, with its LF; data NULL: the end. */
struct chunk chunk_next_line(struct chunk c, size_t *at);

static inline struct chunk chunk_ref(struct chunk c) {
	return chunk_view(c, 0, c.len);
}
