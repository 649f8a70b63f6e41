/* SPDX-License-Identifier: MIT */
#include "wire/ring.h"

#include "base/macros.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PIECE_MIN ((size_t)64 * 1024) /* a whole number of pages of any kernel */
#define PIECES_MAX 512                /* a larger ring has larger pieces: no walk over them grows with it */
#define TOUCH ((size_t)64 * 1024)     /* bytes that are in memory already and mapped by one read */

struct ring {
	char *base;
	size_t size, piece;
	size_t head;     /* where the unfinished bytes begin */
	size_t mirrored; /* bytes of the second mapping that were touched */
	size_t n, taken; /* pieces; those with a reference */
	bool closed;
	struct block pieces[];
};

/* A block's `reach` is the number of pieces behind it that its last line goes on into. */
#define REACH_GONE UINT32_MAX /* without a reference: the kernel has its memory */

static char *map_twice(size_t size) {
	static const int prot = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE;
	char *p = mmap(NULL, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED) return NULL;
	/* the length 0 means another mapping of the same memory, see mremap(2) */
	if (mmap(p, size, prot, flags | MAP_FIXED, -1, 0) == p &&
		mremap(p, 0, size, MREMAP_MAYMOVE | MREMAP_FIXED, p + size) == p + size)
		return p;
	munmap(p, 2 * size);
	return NULL;
}

struct ring *ring_new(size_t size) {
	size_t piece = PIECE_MIN;
	if (size > SIZE_MAX / 8) return NULL;
	while (size / piece >= PIECES_MAX) piece *= 2;
	size_t n = size / piece + 1;
	struct ring *r = calloc(1, sizeof *r + n * sizeof r->pieces[0]);
	if (!r) return NULL;
	*r = (struct ring){.base = map_twice(n * piece), .size = n * piece, .piece = piece, .n = n};
	if (!r->base) {
		free(r);
		return NULL;
	}
	for (size_t i = 0; i < n; i++) r->pieces[i] = (struct block){.home = r, .reach = REACH_GONE, .cap = piece};
	return r;
}

static void free_ring(struct ring *r) {
	munmap(r->base, 2 * r->size);
	free(r);
}

/* Of the piece where a position of either mapping lies. */
static struct block *piece_at(struct ring *r, size_t at) {
	return &r->pieces[at % r->size / r->piece];
}

static size_t round_up(const struct ring *r, size_t at) {
	return (at + r->piece - 1) / r->piece * r->piece;
}

/* The beginning of the head's piece, one round on: lines of this round may lie before the head. */
static size_t round_end(const struct ring *r) {
	return r->head / r->piece * r->piece + r->size;
}

/* Behind the lines that begin in this piece; the next ones may begin where they end. */
static size_t behind(struct ring *r, size_t at) {
	size_t last = at + piece_at(r, at)->reach * r->piece;
	return last > at && piece_at(r, last)->refs ? last : last + r->piece;
}

void ring_trim(struct ring *r, size_t held) {
	size_t at = round_up(r, r->head + held), end = r->closed ? at + r->size : round_end(r);
	while (at < end) {
		struct block *b = piece_at(r, at);
		at = b->refs ? behind(r, at) : at + r->piece;
		if (b->refs || b->reach == REACH_GONE) continue;
		madvise(r->base + (size_t)(b - r->pieces) * r->piece, r->piece,
				MADV_REMOVE); /* a refusal costs memory, nothing else */
		b->reach = REACH_GONE;
	}
	if (r->mirrored) madvise(r->base + r->size, r->size, MADV_DONTNEED); /* the bytes stay, in the first mapping */
	r->mirrored = 0;
}

void ring_close(struct ring *r) {
	if (!r) return;
	r->closed = true;
	if (r->taken)
		ring_trim(r, 0);
	else
		free_ring(r);
}

bool ring_unused(const struct ring *r) {
	return !r->taken;
}

void ring_released(struct ring *r) {
	r->taken--;
	if (r->closed && r->taken)
		ring_trim(r, 0);
	else if (r->closed)
		free_ring(r);
}

char *ring_data(const struct ring *r) {
	return r->base + r->head;
}

/* A read of memory that is there maps many pages at once, a write each for itself. */
static void touch_mirror(struct ring *r, size_t end) {
	for (; end > r->size + r->mirrored; r->mirrored += TOUCH) (void)*(volatile char *)(r->base + r->size + r->mirrored);
}

size_t ring_room(struct ring *r, size_t held, size_t want) {
	size_t at = r->head + held, to = round_up(r, at), end = round_end(r);
	while (to < at + want && to < end && !piece_at(r, to)->refs) {
		piece_at(r, to)->reach = 0;
		to += r->piece;
	}
	touch_mirror(r, MIN(to, at + want));
	return to - at;
}

bool ring_skip(struct ring *r, size_t held, size_t want) {
	size_t at = round_up(r, r->head + held), run = at, end = round_end(r);
	while (at < end && at - run < held + want) {
		bool free = !piece_at(r, at)->refs;
		at = free ? at + r->piece : behind(r, at);
		if (!free) run = at;
	}
	if (at - run < held + want) return false;
	for (size_t i = run; i < at; i += r->piece) piece_at(r, i)->reach = 0;
	run %= r->size;
	touch_mirror(r, run + held);
	memcpy(r->base + run, ring_data(r), held);
	r->head = run;
	return true;
}

struct chunk ring_take(struct ring *r, size_t len) {
	struct block *b = piece_at(r, r->head);
	struct chunk line = {b, ring_data(r), len};
	if (b->refs++ == 0) r->taken++;
	b->reach = (uint32_t)((r->head % r->piece + MAX(len, (size_t)1) - 1) / r->piece);
	r->head = (r->head + len) % r->size;
	return line;
}
