/* SPDX-License-Identifier: MIT */
#include "wire/lines.h"

#include "base/macros.h"

#include <string.h>

/* A batch of this many bytes is handed out as views of the block that it was read to. With fewer bytes a copy is
 * cheaper than a fresh block for the pool, and whoever keeps a line would keep a block that is mostly empty. */
#define VIEW_FROM ((size_t)128 * 1024)
/* An unfinished line of this many bytes stays in its block, which is this reader's until the line ends, and so does a
 * shorter one that came in so many small pieces that more bytes than CARRY_MAX were moved for it: the work for a line
 * stays bounded by its length. */
#define GROW_FROM ((size_t)64 * 1024)
#define CARRY_MAX (4 * GROW_FROM)
#define READ_FROM GROW_FROM /* no read goes to the end of a block where less than this is left */

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
	shelf_close(pool->shelf);
	pool->shelf = NULL;
}

void lines_pool_trim(struct lines_pool *pool) {
	if (pool->spare && pool->spare->refs == 1) {
		block_unref(pool->spare);
		pool->spare = NULL;
	}
	shelf_clear(pool->shelf);
}

static struct block *new_block(struct lines_pool *pool, size_t cap) {
	if (cap != LINES_BLOCK) return block_new(cap);
	if (!pool->shelf) pool->shelf = shelf_new(LINES_BLOCK);
	return pool->shelf ? shelf_take(pool->shelf) : NULL;
}

static char *data(const struct lines *l) {
	return l->block->data + l->base;
}

static size_t room_of(const struct lines *l) {
	return l->block->cap - l->base - l->end;
}

/* The block goes back to the pool; of this reader's bytes, `kept` are held by views. */
static void give_back(struct lines *l, size_t kept) {
	struct block *b = l->block;
	if (b && b->cap == LINES_BLOCK && !l->pool->spare) {
		l->pool->spare = b;
		l->pool->used = l->base + kept;
	} else {
		block_unref(b);
	}
	l->block = NULL;
	l->owned = false;
	l->base = l->end = l->ready = 0;
}

/* The pool's block, where enough of it is left. */
static bool take_block(struct lines *l) {
	struct lines_pool *pool = l->pool;
	struct block *b = pool->spare;
	pool->spare = NULL;
	l->base = b && b->refs > 1 ? pool->used : 0;
	if (b && b->cap - l->base < l->partial.len + READ_FROM) {
		block_cut(b, l->base);
		block_unref(b);
		b = NULL;
		l->base = 0;
	}
	l->block = b ? b : new_block(pool, LINES_BLOCK);
	return l->block != NULL;
}

static bool start_block(struct lines *l) {
	if (!take_block(l)) return false;
	l->owned = false;
	l->end = l->partial.len;
	l->ready = 0;
	if (l->end) memcpy(data(l), l->partial.data, l->end);
	chunk_drop(&l->partial);
	return true;
}

/* More room for a long line, in a block of its own. */
static bool grow_block(struct lines *l) {
	size_t cap = MIN(MAX(l->end * 2, LINES_BLOCK), l->max + LINES_BLOCK);
	if (l->base == 0 && l->block->refs == 1) {
		struct block *b = cap > l->block->cap ? block_resize(l->block, cap) : l->block;
		if (b) l->block = b;
		return b != NULL;
	}
	struct block *b = new_block(l->pool, cap);
	if (!b) return false;
	memcpy(b->data, data(l), l->end);
	block_cut(l->block, l->base);
	block_unref(l->block);
	l->block = b;
	l->base = 0;
	return true;
}

char *lines_space(struct lines *l, size_t *room) {
	if (!l->block && !start_block(l)) return NULL;
	if (l->owned && room_of(l) < READ_FROM && !grow_block(l)) return NULL;
	*room = MIN(room_of(l), LINES_READ);
	return data(l) + l->end;
}

/* While skipping: everything up to the LF is thrown away. */
static void skip(struct lines *l) {
	const char *lf = memchr(data(l), '\n', l->end);
	size_t gone = lf ? (size_t)(lf - data(l)) : l->end;
	l->skipped += gone;
	if (!lf) {
		l->end = 0;
		return;
	}
	l->skipping = false;
	l->skip_done = true;
	l->end -= gone + 1;
	memmove(data(l), lf + 1, l->end);
	l->searched = 0;
}

void lines_commit(struct lines *l, size_t n) {
	l->end += n;
	if (l->skipping) skip(l);
	if (l->skipping) return;
	size_t from = l->ready + l->searched;
	const char *lf = memrchr(data(l) + from, '\n', l->end - from);
	if (lf) {
		if (l->ready == 0) l->first = l->searched;
		l->ready = (size_t)(lf - data(l)) + 1;
	}
	l->searched = l->end - l->ready;
}

static void begin_skip(struct lines *l, size_t from) {
	size_t have = l->end - from;
	chunk_drop(&l->head);
	l->head = chunk_copy(data(l) + from, MIN(have, (size_t)LINES_HEAD));
	l->skipping = true;
	l->skipped = have;
	l->searched = 0;
}

/* What lies behind the whole lines is kept: a short rest where the next read finds it, a long one where it is. True in
 * *stays: the block is still this reader's. */
static bool keep_rest(struct lines *l, bool *stays) {
	size_t rest = l->end - l->ready;
	*stays = false;
	if (l->ready) l->carried = 0;
	if (rest > l->max) {
		begin_skip(l, l->ready);
		return true;
	}
	if (rest == 0) return true;
	l->carried += rest;
	if (rest < GROW_FROM && l->carried < CARRY_MAX) {
		l->partial = chunk_copy(data(l) + l->ready, rest);
		return l->partial.data != NULL;
	}
	l->base += l->ready;
	l->end = rest;
	l->ready = 0;
	l->owned = *stays = true;
	/* a block that was made for one long line is not kept for the next */
	return l->base == 0 || l->block->cap == LINES_BLOCK || grow_block(l);
}

/* Nothing whole is left: settle what is unfinished, so that the pool's block is free for the next reader. */
static enum lines_result settle(struct lines *l) {
	bool stays;
	if (!l->block) return LINES_MORE;
	if (l->owned && l->end <= l->max) return LINES_MORE;
	bool ok = keep_rest(l, &stays);
	if (!stays) give_back(l, 0);
	return ok ? LINES_MORE : LINES_OOM;
}

/* The whole lines of a block; the room behind a long line that nobody else gets goes back. */
static struct chunk last_view(struct block *b, size_t base, size_t ready) {
	if (b->refs == 1 && base == 0) {
		struct block *less = block_resize(b, ready);
		if (less) b = less;
	}
	return (struct chunk){b, b->data + base, ready};
}

/* Takes the whole lines out of the block, as views where that pays, and settles the rest. */
static bool make_batch(struct lines *l) {
	bool stays, views = l->ready >= VIEW_FROM;
	size_t base = l->base, ready = l->ready;
	struct block *b = l->block;
	l->batch = views ? (struct chunk){block_ref(b), data(l), ready} : chunk_copy(data(l), ready);
	bool kept = keep_rest(l, &stays);
	if (!stays) give_back(l, views ? ready : 0);
	if (views) l->batch = last_view(b, base, ready);
	return l->batch.data && kept;
}

static enum lines_result long_line(struct lines *l, struct chunk *line, size_t *size) {
	l->skip_done = false;
	*line = l->head;
	l->head = CHUNK_NONE;
	*size = l->skipped;
	return LINES_LONG;
}

/* Short lines that came behind a long one: as views they would keep its memory when it is long gone. */
static void leave_block(struct lines *l) {
	struct chunk rest = chunk_copy(l->batch.data + l->cut, l->batch.len - l->cut);
	if (!rest.data) return;
	chunk_drop(&l->batch);
	l->batch = rest;
	l->cut = l->first = 0;
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
	if (l->cut == l->batch.len)
		chunk_drop(&l->batch);
	else if (l->batch.block->cap > LINES_BLOCK)
		leave_block(l);
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
		*rest = chunk_copy(data(l) + l->ready, l->end - l->ready);
		give_back(l, 0);
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
	const char *bytes = l->block ? data(l) + l->ready : l->partial.data;
	size_t len = l->block ? l->end - l->ready : l->partial.len;
	*state = (struct lines_state){.data = bytes,
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
	l->block = block_new(MAX(state->len * 2, LINES_BLOCK));
	if (!l->block) return false;
	memcpy(data(l), state->data, state->len);
	l->owned = true;
	l->end = state->len;
	return true;
}
