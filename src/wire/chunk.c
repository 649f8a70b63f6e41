/* SPDX-License-Identifier: MIT */
#include "wire/chunk.h"

#include "wire/ring.h"

#include <stdlib.h>
#include <string.h>

/* So that a header can be added and a pointer difference be taken. */
static bool fits(size_t cap) {
	return cap <= PTRDIFF_MAX - sizeof(struct block);
}

struct block *block_new(size_t cap) {
	if (!fits(cap)) return NULL;
	struct block *b = malloc(sizeof *b + cap);
	if (b) *b = (struct block){.refs = 1, .cap = cap};
	return b;
}

struct block *block_resize(struct block *b, size_t cap) {
	if (!fits(cap)) return NULL;
	struct block *moved = realloc(b, sizeof *b + cap);
	if (!moved) return NULL;
	moved->cap = cap;
	return moved;
}

void block_unref(struct block *b) {
	if (!b || --b->refs) return;
	if (b->home) {
		ring_released(b->home);
		return;
	}
	free(b->outside);
	free(b);
}

struct chunk chunk_copy(const void *data, size_t len) {
	struct block *b = block_new(len);
	if (!b) return CHUNK_NONE;
	if (len) memcpy(block_data(b), data, len);
	return (struct chunk){b, block_data(b), len};
}

struct chunk chunk_next_line(struct chunk c, size_t *at) {
	size_t from = *at;
	const char *end = from < c.len ? memchr(c.data + from, '\n', c.len - from) : NULL;
	if (!end) return CHUNK_NONE;
	*at = (size_t)(end - c.data) + 1;
	return chunk_view(c, from, *at - from);
}

struct chunk chunk_adopt(char *data, size_t len) {
	struct block *b = data ? block_new(0) : NULL;
	if (!b) {
		free(data);
		return CHUNK_NONE;
	}
	b->outside = data;
	return (struct chunk){b, data, len};
}

struct chunk chunk_join(const struct chunk *parts, size_t n) {
	size_t len = 0;
	for (size_t i = 0; i < n; i++) len += parts[i].len;
	struct block *b = block_new(len);
	if (!b) return CHUNK_NONE;
	char *p = block_data(b);
	for (size_t i = 0; i < n; i++) {
		if (parts[i].len) memcpy(p, parts[i].data, parts[i].len);
		p += parts[i].len;
	}
	return (struct chunk){b, block_data(b), len};
}

void chunk_drop(struct chunk *c) {
	block_unref(c->block);
	*c = CHUNK_NONE;
}
