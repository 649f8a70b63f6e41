/* SPDX-License-Identifier: MIT */
#include "wire/chunk.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define KEEP 1 /* a tape that is full gives one back for each one it takes */

struct shelf {
	size_t cap, taken;
	struct block *free[KEEP];
	unsigned n_free;
	bool closed;
};

/* One block less will come back. */
static void leave(struct shelf *s) {
	if (--s->taken == 0 && s->closed) free(s);
}

static void put_back(struct shelf *s, struct block *b) {
	if (s->n_free < KEEP && !s->closed)
		s->free[s->n_free++] = b;
	else
		free(b);
	leave(s);
}

/* So that a header can be added and a pointer difference be taken. */
static bool fits(size_t cap) {
	return cap <= PTRDIFF_MAX - sizeof(struct block);
}

struct block *block_new(size_t cap) {
	if (!fits(cap)) return NULL;
	struct block *b = malloc(sizeof *b + cap);
	if (!b) return NULL;
	b->refs = 1;
	b->home = NULL;
	b->cap = cap;
	return b;
}

struct block *block_resize(struct block *b, size_t cap) {
	if (!fits(cap)) return NULL;
	struct block *bigger = realloc(b, sizeof *b + cap);
	if (!bigger) return NULL;
	bigger->cap = cap;
	if (bigger->home) leave(bigger->home);
	bigger->home = NULL;
	return bigger;
}

void block_unref(struct block *b) {
	if (!b || --b->refs) return;
	if (b->home)
		put_back(b->home, b);
	else
		free(b);
}

void block_cut(struct block *b, size_t used) {
	static const uintptr_t page = 4096;
	uintptr_t from = ((uintptr_t)b->data + used + page - 1) & ~(page - 1);
	uintptr_t to = ((uintptr_t)b->data + b->cap) & ~(page - 1);
	if (from < to) madvise((void *)from, to - from, MADV_DONTNEED); /* a refusal costs memory, nothing else */
}

struct shelf *shelf_new(size_t cap) {
	struct shelf *s = calloc(1, sizeof *s);
	if (s) s->cap = cap;
	return s;
}

struct block *shelf_take(struct shelf *s) {
	struct block *b = s->n_free ? s->free[--s->n_free] : block_new(s->cap);
	if (!b) return NULL;
	b->refs = 1;
	b->home = s;
	s->taken++;
	return b;
}

void shelf_clear(struct shelf *s) {
	while (s && s->n_free) free(s->free[--s->n_free]);
}

void shelf_close(struct shelf *s) {
	if (!s) return;
	shelf_clear(s);
	s->closed = true;
	if (!s->taken) free(s);
}

struct chunk chunk_copy(const void *data, size_t len) {
	struct block *b = block_new(len);
	if (!b) return CHUNK_NONE;
	if (len) memcpy(b->data, data, len);
	return (struct chunk){b, b->data, len};
}

struct chunk chunk_join(const struct chunk *parts, size_t n) {
	size_t len = 0;
	for (size_t i = 0; i < n; i++) len += parts[i].len;
	struct block *b = block_new(len);
	if (!b) return CHUNK_NONE;
	char *p = b->data;
	for (size_t i = 0; i < n; i++) {
		if (parts[i].len) memcpy(p, parts[i].data, parts[i].len);
		p += parts[i].len;
	}
	return (struct chunk){b, b->data, len};
}

void chunk_drop(struct chunk *c) {
	block_unref(c->block);
	*c = CHUNK_NONE;
}
