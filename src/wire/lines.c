/* SPDX-License-Identifier: MIT */
#include "wire/lines.h"

#include "base/macros.h"

#include <string.h>

/* A batch of this many bytes is handed out as views of the block that it was read to. With fewer bytes a copy is
 * cheaper than a fresh block for the pool, and whoever keeps a line would keep a block that is mostly empty. */
#define VIEW_FROM ((size_t)128 * 1024)
/* An unfinished line of this many bytes gets a block of its own, and so does a shorter one that came in so many small
 * pieces that more bytes than CARRY_MAX were moved for it: the work for a line stays bounded by its length. */
#define GROW_FROM ((size_t)64 * 1024)
#define CARRY_MAX (4 * GROW_FROM)

void lines_init(struct lines *l, struct lines_pool *pool, size_t max) {
	*l = (struct lines){.pool = pool, .max = max};
}

void lines_free(struct lines *l) {
	block_unref(l->block);
	chunk_drop(&l->batch);
	chunk_drop(&l->partial);
	chunk_drop(&l->head);
	*l = (struct lines){.pool = l->pool, .max = l->max};
}

void lines_pool_free(struct lines_pool *pool) {
	block_unref(pool->spare);
	pool->spare = NULL;
}

static struct block *take_spare(struct lines_pool *pool) {
	struct block *b = pool->spare;
	pool->spare = NULL;
	return b ? b : block_new(LINES_BLOCK);
}

static void give_back(struct lines *l) {
	struct block *b = l->block;
	if (b && !l->owned && b->refs == 1 && !l->pool->spare)
		l->pool->spare = b;
	else
		block_unref(b);
	l->block = NULL;
	l->owned = false;
	l->end = l->ready = 0;
}

static bool start_block(struct lines *l) {
	l->block = take_spare(l->pool);
	if (!l->block) return false;
	l->owned = false;
	l->end = l->partial.len;
	l->ready = 0;
	if (l->end) memcpy(l->block->data, l->partial.data, l->end);
	chunk_drop(&l->partial);
	return true;
}

static bool grow_block(struct lines *l) {
	size_t cap = l->block->cap * 2;
	if (cap > l->max + LINES_BLOCK) cap = l->max + LINES_BLOCK;
	if (cap <= l->block->cap) return true;
	struct block *b = block_resize(l->block, cap);
	if (b) l->block = b;
	return b != NULL;
}

char *lines_space(struct lines *l, size_t *room) {
	if (!l->block && !start_block(l)) return NULL;
	if (l->owned && l->block->cap - l->end < LINES_BLOCK / 2 && !grow_block(l)) return NULL;
	*room = l->block->cap - l->end;
	return l->block->data + l->end;
}

/* While skipping: everything up to the LF is thrown away. */
static void skip(struct lines *l) {
	const char *lf = memchr(l->block->data, '\n', l->end);
	size_t gone = lf ? (size_t)(lf - l->block->data) : l->end;
	l->skipped += gone;
	if (!lf) {
		l->end = 0;
		return;
	}
	l->skipping = false;
	l->skip_done = true;
	l->end -= gone + 1;
	memmove(l->block->data, lf + 1, l->end);
	l->searched = 0;
}

void lines_commit(struct lines *l, size_t n) {
	l->end += n;
	if (l->skipping) skip(l);
	if (l->skipping) return;
	size_t from = l->ready + l->searched;
	const char *lf = memrchr(l->block->data + from, '\n', l->end - from);
	if (lf) {
		if (l->ready == 0) l->first = l->searched;
		l->ready = (size_t)(lf - l->block->data) + 1;
	}
	l->searched = l->end - l->ready;
}

static void begin_skip(struct lines *l, size_t from) {
	size_t have = l->end - from;
	chunk_drop(&l->head);
	l->head = chunk_copy(l->block->data + from, MIN(have, (size_t)LINES_HEAD));
	l->skipping = true;
	l->skipped = have;
	l->searched = 0;
}

/* What lies behind the whole lines moves to where the next read finds it. */
static bool keep_rest(struct lines *l) {
	size_t rest = l->end - l->ready;
	if (l->ready) l->carried = 0;
	if (rest > l->max) {
		begin_skip(l, l->ready);
		rest = 0;
	}
	if (rest == 0) return true;
	l->carried += rest;
	if (rest < GROW_FROM && l->carried < CARRY_MAX) {
		l->partial = chunk_copy(l->block->data + l->ready, rest);
		return l->partial.data != NULL;
	}
	struct block *own = block_new(MAX(rest * 2, 2 * LINES_BLOCK));
	if (!own) return false;
	memcpy(own->data, l->block->data + l->ready, rest);
	give_back(l);
	l->block = own;
	l->owned = true;
	l->end = rest;
	return true;
}

/* Nothing whole is left: settle what is unfinished, so that the pool's block is free for the next reader. */
static enum lines_result settle(struct lines *l) {
	if (!l->block) return LINES_MORE;
	if (l->owned && l->end <= l->max) return LINES_MORE;
	bool ok = keep_rest(l);
	if (!l->owned || l->skipping) give_back(l);
	return ok ? LINES_MORE : LINES_OOM;
}

/* Takes the whole lines out of the block, as views where that pays, and settles the rest. */
static bool make_batch(struct lines *l) {
	bool views = l->owned || l->ready >= VIEW_FROM;
	if (!views) {
		const struct block *pooled = l->block;
		l->batch = chunk_copy(l->block->data, l->ready);
		bool kept = keep_rest(l);
		if (l->block == pooled) give_back(l); /* else the rest is in a block of its own already */
		return l->batch.data && kept;
	}
	struct block *b = block_ref(l->block);
	size_t ready = l->ready;
	bool owned = l->owned;
	bool kept = keep_rest(l);
	if (l->block == b) give_back(l); /* our reference keeps it */
	if (owned && b->refs == 1) {
		struct block *less = block_resize(b, ready);
		if (less) b = less;
	}
	l->batch = (struct chunk){b, b->data, ready};
	return kept;
}

static enum lines_result long_line(struct lines *l, struct chunk *line, size_t *size) {
	l->skip_done = false;
	*line = l->head;
	l->head = CHUNK_NONE;
	*size = l->skipped;
	return LINES_LONG;
}

static enum lines_result cut_line(struct lines *l, struct chunk *line, size_t *size) {
	const char *from = l->batch.data + l->cut;
	size_t known = l->cut ? 0 : l->first;
	const char *lf = memchr(from + known, '\n', l->batch.len - l->cut - known);
	size_t len = (size_t)(lf - from) + 1;
	bool too_long = len - 1 > l->max;
	/* A view of an over-long line's head would keep all of it in memory. */
	*line = too_long ? chunk_copy(from, MIN(len, (size_t)LINES_HEAD)) : chunk_view(l->batch, l->cut, len);
	*size = len - 1;
	l->cut += len;
	if (l->cut == l->batch.len) chunk_drop(&l->batch);
	return too_long ? LINES_LONG : LINES_LINE;
}

enum lines_result lines_next(struct lines *l, struct chunk *line, size_t *size) {
	if (l->skip_done) return long_line(l, line, size);
	if (l->batch.data) return cut_line(l, line, size);
	if (l->block && l->ready) {
		l->cut = 0;
		if (!make_batch(l)) return LINES_OOM;
		return cut_line(l, line, size);
	}
	return settle(l);
}

bool lines_rest(struct lines *l, struct chunk *rest) {
	if (l->skipping || (l->partial.len == 0 && l->end == 0)) return false;
	*rest = l->partial;
	l->partial = CHUNK_NONE;
	if (l->block) {
		*rest = chunk_copy(l->block->data + l->ready, l->end - l->ready);
		give_back(l);
	}
	return rest->data != NULL;
}

bool lines_cut(const struct lines *l, size_t *size) {
	*size = l->skipped;
	return l->skipping;
}

size_t lines_held(const struct lines *l) {
	return l->partial.len + l->end;
}

void lines_suspend(const struct lines *l, struct lines_state *state) {
	const char *data = l->block ? l->block->data + l->ready : l->partial.data;
	size_t len = l->block ? l->end - l->ready : l->partial.len;
	*state = (struct lines_state){.data = data,
								  .len = len,
								  .carried = l->carried,
								  .skipping = l->skipping,
								  .skipped = l->skipped,
								  .head = l->head};
}

bool lines_resume(struct lines *l, const struct lines_state *state) {
	l->skipping = state->skipping;
	l->skipped = state->skipped;
	l->head = state->head;
	l->carried = state->carried;
	l->searched = state->len;
	if (state->len == 0) return true;
	if (state->len < GROW_FROM) {
		l->partial = chunk_copy(state->data, state->len);
		return l->partial.data != NULL;
	}
	l->block = block_new(MAX(state->len * 2, 2 * LINES_BLOCK));
	if (!l->block) return false;
	memcpy(l->block->data, state->data, state->len);
	l->owned = true;
	l->end = state->len;
	return true;
}
