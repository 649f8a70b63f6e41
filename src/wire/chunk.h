/* SPDX-License-Identifier: MIT
 *
 * Counted bytes. A block is a piece of memory with a reference count; a chunk is a view of some bytes of one block and
 * owns one reference to it. Lines read together share one block, so a line costs no allocation and lines that follow
 * each other lie beside each other in memory. Bytes are never changed once a chunk shows them.
 *
 * Not thread safe: one thread uses it. Allocation failure is fatal in the caller: functions that allocate
 * return false or a chunk with a NULL data pointer.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shelf;

struct block {
	uint32_t refs;
	struct shelf *home; /* where it goes when its last reference is gone; NULL: nowhere */
	size_t cap;
	char data[];
};

struct chunk {
	struct block *block; /* NULL: static bytes that nobody frees */
	const char *data;
	size_t len;
};

#define CHUNK_NONE ((struct chunk){0})
#define CHUNK_STATIC(s) ((struct chunk){NULL, (s), sizeof(s) - 1})

struct block *block_new(size_t cap);                     /* one reference, NULL without memory */
struct block *block_resize(struct block *b, size_t cap); /* only with one reference; NULL: b is unchanged */
void block_unref(struct block *b);                       /* NULL is allowed */
/* Nothing shows what lies behind the first `used` bytes, nor will: the kernel may have the pages. */
void block_cut(struct block *b, size_t used);

/* Blocks of one size that come and go all the time. The few that are free are kept: memory that went back to the kernel
 * must be faulted in anew. Taken blocks may outlive shelf_close(). A resized one does not come back. */
struct shelf *shelf_new(size_t cap);
struct block *shelf_take(struct shelf *s); /* one reference, NULL without memory */
void shelf_clear(struct shelf *s);         /* keeps none; NULL is allowed */
void shelf_close(struct shelf *s);         /* NULL is allowed */

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
