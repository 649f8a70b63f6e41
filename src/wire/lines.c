/* SPDX-License-Identifier: MIT */
#include "wire/lines.h"

#include "base/macros.h"

#include <string.h>

/* With this much in one read, or that much in all, copies cost more than a ring. */
#define FLOW_FROM ((size_t)128 * 1024)
#define COPY_MAX ((size_t)1024 * 1024)
/* An unfinished line of this many bytes goes to the ring, where it is not moved any more, and so does a shorter one
 * that came in so many small pieces that more bytes than CARRY_MAX were moved for it: the work for a line stays bounded
 * by its length. */
#define GROW_FROM ((size_t)64 * 1024)
#define CARRY_MAX (4 * GROW_FROM)
#define READ_FROM GROW_FROM                /* no read goes where less than this is free */
#define KEEPS ((size_t)1024 * 1024)        /* for a reader with short-lived lines, at first */
#define KEEPS_MAX (8 * KEEPS)              /* the same, once they have lived longer */
#define RING_MORE ((size_t)3 * LINES_READ) /* the read in hand, the unfinished line, pieces that are held up */

void lines_init(struct lines *l, struct lines_pool *pool, size_t max) {
	*l = (struct lines){.pool = pool, .max = max, .keeps = KEEPS};
	list_init(&l->node);
}

void lines_keep(struct lines *l, size_t bytes) {
	l->keeps = MAX(bytes, KEEPS);
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

static void close_ring(struct lines *l) {
	ring_close(l->ring);
	l->ring = NULL;
	list_del(&l->node);
}

/* The shared block goes back to the pool, a long line's is freed. */
static void drop_block(struct lines *l) {
	if (!l->owned && !l->pool->scratch)
		l->pool->scratch = l->block;
	else
		block_unref(l->block);
	l->block = NULL;
	l->owned = false;
}

void lines_free(struct lines *l) {
	close_ring(l);
	block_unref(l->block);
	chunk_drop(&l->batch);
	chunk_drop(&l->partial);
	chunk_drop(&l->head);
	chunk_drop(&l->back);
	*l = (struct lines){.pool = l->pool, .max = l->max, .keeps = l->keeps};
	list_init(&l->node);
}

void lines_pool_free(struct lines_pool *pool) {
	struct list *n, *next;
	for (n = pool->flowing.next; n && n != &pool->flowing; n = next) {
		next = n->next;
		close_ring(LIST_OF(n, struct lines, node));
	}
	block_unref(pool->scratch);
	pool->scratch = NULL;
}

static void rest(struct lines *l) {
	if (l->end == 0 && ring_unused(l->ring))
		close_ring(l);
	else
		ring_trim(l->ring, l->end);
}

bool lines_pool_trim(struct lines_pool *pool, bool all) {
	struct lines *l;
	pool->busy = false;
	if (pool->flowing.next) {
		LIST_FOR_EACH (l, &pool->flowing, struct lines, node) {
			pool->busy |= l->flowed;
			if (all || !l->flowed) rest(l);
			l->flowed = false;
		}
	}
	if (pool->busy && !all) return true;
	block_unref(pool->scratch);
	pool->scratch = NULL;
	return pool->busy;
}

static char *data(const struct lines *l) {
	return l->ring ? ring_data(l->ring) : block_data(l->block);
}

/* These bytes are in hand from now on, in a block of their own that has room for as many. */
static bool own_block(struct lines *l, const char *from, size_t n) {
	struct block *b = block_new(MIN(MAX(2 * n, LINES_BLOCK), l->max + LINES_BLOCK));
	if (!b) return false;
	memcpy(block_data(b), from, n);
	if (l->block) drop_block(l);
	close_ring(l);
	l->block = b;
	l->owned = true;
	l->end = n;
	return true;
}

static void be_busy(struct lines *l) {
	struct lines_pool *pool = l->pool;
	bool before = pool->busy;
	l->flowed = pool->busy = true;
	if (!before && pool->on_busy) pool->on_busy(pool);
}

/* The same, in a new ring; false: they do not fit, or it cannot be had. */
static bool new_ring(struct lines *l, const char *from, size_t n) {
	struct list *flowing = &l->pool->flowing;
	struct ring *r = n > l->keeps / 2 ? NULL : ring_new(l->keeps + RING_MORE);
	if (!r) return false;
	(void)ring_room(r, 0, n);
	memcpy(ring_data(r), from, n);
	if (l->block) drop_block(l);
	close_ring(l);
	l->ring = r;
	if (!flowing->next) list_init(flowing);
	list_add_tail(flowing, &l->node);
	l->end = n;
	l->copied = 0;
	be_busy(l);
	return true;
}

/* The same, for an unfinished line. */
static bool take_up(struct lines *l, const char *from, size_t n) {
	return new_ring(l, from, n) || own_block(l, from, n);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static bool scratch_space(struct lines *l) {
	l->block = l->pool->scratch ? l->pool->scratch : block_new(LINES_BLOCK);
	l->pool->scratch = NULL;
	if (!l->block) return false;
	l->end = l->partial.len;
	if (l->end) memcpy(data(l), l->partial.data, l->end);
	return true;
}

/* More room in the ring: around lines that are held longer than others, or in a new one, which is larger. */
static bool ring_space(struct lines *l) {
	if (ring_room(l->ring, l->end, LINES_READ) >= READ_FROM || ring_skip(l->ring, l->end, READ_FROM)) return true;
	l->keeps = MAX(l->keeps, MIN(2 * l->keeps, KEEPS_MAX));
	return take_up(l, data(l), l->end);
}

static bool grow_block(struct lines *l) {
	if (l->block->cap - l->end >= READ_FROM) return true;
	struct block *b = block_resize(l->block, MIN(l->end * 2, l->max + LINES_BLOCK));
	if (b) l->block = b;
	return b != NULL;
}

char *lines_space(struct lines *l, size_t *room) {
	if (l->ring && !ring_space(l)) return NULL;
	if (l->owned && !grow_block(l)) return NULL;
	if (!l->ring && !l->block && !scratch_space(l)) return NULL;
	*room = l->ring ? ring_room(l->ring, l->end, LINES_READ) : l->block->cap - l->end;
	*room = MIN(*room, LINES_READ);
	return data(l) + l->end;
}

static void begin_skip(struct lines *l, const char *from, size_t n) {
	chunk_drop(&l->head);
	l->head = chunk_copy(from, MIN(n, (size_t)LINES_HEAD));
	l->skipping = true;
	l->skipped = n;
	l->end = l->searched = 0;
	if (l->owned) drop_block(l);
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
}

void lines_commit(struct lines *l, size_t n) {
	l->end += n;
	if (l->skipping) skip(l);
	if (l->ring && n) be_busy(l);
}

/* --- a small read ------------------------------------------------------------------------------------------------- */

/* What lies behind the whole lines: a short rest is copied back before the next read, a long one is not moved again. */
static bool keep_rest(struct lines *l, const char *from, size_t n) {
	if (n > l->max) begin_skip(l, from, n);
	if (n == 0 || l->skipping) return true;
	l->carried += n;
	if (n >= GROW_FROM || l->carried >= CARRY_MAX) return take_up(l, from, n);
	l->partial = chunk_copy(from, n);
	return l->partial.data != NULL;
}

/* Move the reader's bytes out of the shared block, so that the next reader can use it. */
static bool settle(struct lines *l) {
	size_t end = l->end;
	l->copied += end - l->partial.len;
	bool much = end - l->partial.len >= FLOW_FROM || l->copied >= COPY_MAX;
	l->end = 0;
	if (end == l->partial.len) { /* nothing came */
		drop_block(l);
		return true;
	}
	chunk_drop(&l->partial);
	if (much && new_ring(l, block_data(l->block), end)) return true;
	const char *from = block_data(l->block), *lf = memrchr(from + l->searched, '\n', end - l->searched);
	size_t ready = lf ? (size_t)(lf - from) + 1 : 0;
	if (ready) {
		l->batch = chunk_copy(from, ready);
		l->cut = l->carried = 0;
		l->first = l->searched;
	}
	l->searched = end - ready;
	bool ok = (!ready || l->batch.data) && keep_rest(l, from + ready, end - ready);
	if (l->block && !l->owned) drop_block(l);
	return ok;
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

/* A view of an over-long line's head would keep all of it in memory. */
static enum lines_result hand_out(const struct lines *l, struct chunk *line, size_t *size) {
	*size = line->len - 1;
	if (*size <= l->max) return LINES_LINE;
	struct chunk head = chunk_copy(line->data, MIN(line->len, (size_t)LINES_HEAD));
	chunk_drop(line);
	*line = head;
	return LINES_LONG;
}

static enum lines_result cut_batch(struct lines *l, struct chunk *line, size_t *size) {
	const char *from = l->batch.data + l->cut;
	size_t known = l->cut ? 0 : l->first;
	const char *lf = memchr(from + known, '\n', l->batch.len - l->cut - known);
	size_t len = (size_t)(lf - from) + 1;
	*line = chunk_view(l->batch, l->cut, len);
	l->cut += len;
	if (l->cut == l->batch.len) chunk_drop(&l->batch);
	return hand_out(l, line, size);
}

/* The line takes over the block of a long line; the bytes behind it are treated like a small read. */
static bool take_block(struct lines *l, struct chunk *line, size_t len) {
	struct block *b = l->block;
	size_t n = l->end - len;
	l->block = NULL;
	l->owned = false;
	l->searched = 0;
	bool ok = n == 0 || scratch_space(l);
	if (ok && n) memcpy(block_data(l->block), block_data(b) + len, n);
	l->end = ok ? n : 0;
	struct block *less = block_resize(b, len);
	if (less) b = less;
	*line = (struct chunk){b, block_data(b), len};
	return ok;
}

static enum lines_result cut_flow(struct lines *l, struct chunk *line, size_t *size) {
	const char *from = data(l), *lf = memchr(from + l->searched, '\n', l->end - l->searched);
	if (!lf) {
		l->searched = l->end;
		if (l->end > l->max) begin_skip(l, from, l->end);
		return LINES_MORE;
	}
	size_t len = (size_t)(lf - from) + 1;
	l->searched = l->carried = 0;
	if (l->owned) {
		if (!take_block(l, line, len)) {
			chunk_drop(line);
			return LINES_OOM;
		}
	} else {
		*line = ring_take(l->ring, len);
		l->end -= len;
	}
	return hand_out(l, line, size);
}

enum lines_result lines_next(struct lines *l, struct chunk *line, size_t *size) {
	if (l->back.data) {
		*line = l->back;
		*size = line->len - 1;
		l->back = CHUNK_NONE;
		return LINES_LINE;
	}
	if (l->skip_done) {
		l->skip_done = false;
		*line = l->head;
		*size = l->skipped;
		l->head = CHUNK_NONE;
		return LINES_LONG;
	}
	if (l->batch.data) return cut_batch(l, line, size);
	if (l->block && !l->owned && !settle(l)) return LINES_OOM;
	if (l->batch.data) return cut_batch(l, line, size);
	if (l->ring || l->owned) return cut_flow(l, line, size);
	return LINES_MORE;
}

void lines_put_back(struct lines *l, struct chunk line) {
	l->back = line;
}

bool lines_rest(struct lines *l, struct chunk *rest) {
	if (l->skipping || (l->partial.len == 0 && l->end == 0)) return false;
	*rest = l->partial.len ? l->partial : chunk_copy(data(l), l->end);
	l->partial = CHUNK_NONE;
	l->end = l->searched = 0;
	if (l->block) drop_block(l);
	return rest->data != NULL;
}

bool lines_cut(const struct lines *l, size_t *size) {
	*size = l->skipped;
	return l->skipping;
}

static size_t unfinished(const struct lines *l) {
	return l->partial.len + l->end;
}

void lines_skip(struct lines *l) {
	if (l->skipping || unfinished(l) == 0) return;
	if (l->partial.len)
		begin_skip(l, l->partial.data, l->partial.len);
	else
		begin_skip(l, data(l), l->end);
	chunk_drop(&l->partial);
}

size_t lines_held(const struct lines *l) {
	return unfinished(l) + l->back.len;
}

void lines_suspend(const struct lines *l, struct lines_state *state) {
	*state = (struct lines_state){.back = l->back,
								  .whole = l->batch.data ? l->batch.data + l->cut : NULL,
								  .n_whole = l->batch.data ? l->batch.len - l->cut : 0,
								  .data = l->end ? data(l) : l->partial.data,
								  .len = unfinished(l),
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
	bool whole = state->len && memchr(state->data, '\n', state->len);
	l->searched = whole ? 0 : state->len;
	if (whole || state->len >= GROW_FROM) return take_up(l, state->data, state->len);
	if (state->len) l->partial = chunk_copy(state->data, state->len);
	return !state->len || l->partial.data;
}
