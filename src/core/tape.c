/* SPDX-License-Identifier: MIT */
#include "core/tape.h"

#include "base/macros.h"
#include "base/str.h"

#include <string.h>

#define PACK ((size_t)1024 * 1024) /* a block of packed lines; outside of the heap, so that a free returns it */
#define SHORT_LINE ((size_t)64)    /* lines of a child are rarely shorter; if six times shorter, a piece still fits */
#define PIECE_MIN ((size_t)1024)   /* a tape may be smaller than a useful read */

void tape_init(struct tape *t, size_t max_bytes, size_t max_lines) {
	*t = (struct tape){.max_bytes = max_bytes, .max_lines = MAX(max_lines, (size_t)1)};
	tape_begin(t, 1, true);
}

uint64_t tape_fresh_number(int64_t real_ms, uint64_t above) {
	return MAX((uint64_t)MAX(real_ms, (int64_t)0) * 1000, above + 1);
}

void tape_begin(struct tape *t, uint64_t seq, bool anew) {
	t->oldest = t->next = seq;
	t->began = anew ? seq : 0;
}

void tape_free(struct tape *t) {
	for (size_t i = 0; i < t->count; i++) chunk_drop(&t->ring[tape_place(t, i)].line);
	free(t->ring);
	t->ring = NULL;
	t->cap = t->first = t->count = t->bytes = 0;
	t->oldest = t->next;
}

/* Return the charged bytes. A line longer than half the tape is charged as half: it must not drop all lines before
 * it. */
static size_t charge(const struct tape *t, size_t len) {
	return MIN(len, t->max_bytes / 2 + 1);
}

size_t tape_piece(const struct tape *t) {
	return MAX(MIN(t->max_bytes / 8, t->max_lines * SHORT_LINE / 8), PIECE_MIN);
}

static bool resize(struct tape *t, size_t cap) {
	struct tape_entry *ring = malloc(cap * sizeof *ring);
	if (!ring) return false;
	for (size_t i = 0; i < t->count; i++) ring[i] = t->ring[tape_place(t, i)];
	free(t->ring);
	t->ring = ring;
	t->cap = cap;
	t->first = 0;
	return true;
}

static void drop_oldest(struct tape *t) {
	struct tape_entry *e = &t->ring[t->first];
	t->bytes -= charge(t, e->line.len);
	chunk_drop(&e->line);
	t->first = tape_place(t, 1);
	t->count--;
	t->oldest++;
}

void tape_reserve(struct tape *t, size_t len) {
	size_t cost = charge(t, len);
	while (t->count && t->bytes + cost > t->max_bytes) drop_oldest(t);
}

bool tape_append(struct tape *t, struct chunk line, enum line_kind kind, unsigned flags) {
	size_t cost = charge(t, line.len);
	while (t->count && (t->bytes + cost > t->max_bytes || t->count >= t->max_lines)) drop_oldest(t);
	if (t->count == t->cap && !resize(t, MAX(t->cap * 2, (size_t)16))) {
		if (!t->count) {
			chunk_drop(&line);
			return false;
		}
		drop_oldest(t); /* no memory for a longer index: a gap is reported, a lost line would not be */
	}
	t->total += line.len;
	t->bytes += cost;
	t->ring[tape_place(t, t->count)] = (struct tape_entry){
		.line = line, .end = t->total & 0xffffffffffff, .kind = kind, .flags = flags & 0xff};
	t->count++;
	t->next++;
	return true;
}

uint64_t tape_behind(const struct tape *t, uint64_t seq) {
	if (seq < t->oldest) seq = t->oldest;
	if (seq >= t->next) return 0; /* the tape may be empty */
	const struct tape_entry *e = tape_at(t, seq);
	return t->total - e->end + e->line.len;
}

uint64_t tape_after_uuid(const struct tape *t, const struct dialect *d, const char *uuid) {
	struct buf spelled = BUF_INIT(SIZE_MAX / 4);
	uint64_t after = 0;
	str_put_json(&spelled, uuid, strlen(uuid));
	for (uint64_t seq = t->next; !spelled.failed && !after && seq-- > t->oldest;) {
		struct chunk line = tape_at(t, seq)->line;
		struct envelope e;
		if (!memmem(line.data, line.len, spelled.data, spelled.len) || !d->scan(line.data, line.len, &e)) continue;
		if (span_same(e.uuid, (struct span){spelled.data, spelled.len})) after = seq + 1;
	}
	buf_free(&spelled);
	return after;
}

/* Packs lines that are loaded into shared blocks, like those of a child. */
struct packer {
	struct block *block;
	size_t used, left; /* used bytes of the block; bytes still to come */
};

static struct chunk pack(struct packer *p, const char *data, size_t n) {
	if (!p->block || p->block->cap - p->used < n) {
		block_unref(p->block);
		p->used = 0;
		p->block = block_new(MAX(n, MIN(p->left, PACK)));
		if (!p->block) return CHUNK_NONE;
	}
	char *at = block_data(p->block) + p->used;
	memcpy(at, data, n);
	p->used += n;
	p->left -= MIN(n, p->left);
	return (struct chunk){block_ref(p->block), at, n};
}

void tape_pack(struct tape *t) {
	struct packer p = {.left = t->bytes};
	for (size_t i = 0; i < t->count; i++) {
		struct tape_entry *e = &t->ring[tape_place(t, i)];
		struct chunk own = pack(&p, e->line.data, e->line.len);
		if (!own.data) break; /* keep the line as it is */
		chunk_drop(&e->line);
		e->line = own;
	}
	block_unref(p.block);
	if (t->count && t->count < t->cap) (void)resize(t, t->count);
}

static void save_entry(struct carry *c, const struct tape_entry *e) {
	uint64_t flags = e->flags, kind = e->kind;
	struct chunk line = e->line;
	carry_chunk(c, &line);
	CARRY(c, flags);
	CARRY(c, kind);
}

static void load_entry(struct carry *c, struct tape *t, struct packer *p) {
	uint64_t flags = 0, kind = 0;
	size_t n;
	const char *data = carry_borrow(c, &n);
	CARRY(c, flags);
	CARRY_UPTO(c, kind, LINE_OTHER);
	if (carry_ok(c) && (!n || data[n - 1] != '\n')) carry_fail(c, "a line of the tape has no end");
	if (!carry_ok(c)) return;
	struct chunk line = pack(p, data, n);
	if (!line.data || !tape_append(t, line, (enum line_kind)kind, (unsigned)flags)) carry_fail(c, "out of memory");
}

void tape_carry(struct carry *c, struct tape *t) {
	struct packer p = {0};
	uint64_t before = t->total;
	carry_mark(c, "tape");
	for (size_t i = 0; i < t->count; i++) before -= t->ring[tape_place(t, i)].line.len;
	p.left = (size_t)(t->total - before);
	CARRY(c, t->oldest);
	CARRY(c, t->began);
	CARRY(c, before);
	CARRY(c, p.left);
	size_t n = carry_count(c, t->count);
	if (c->saving) {
		for (size_t i = 0; i < n && carry_ok(c); i++) save_entry(c, &t->ring[tape_place(t, i)]);
		return;
	}
	t->next = t->oldest;
	t->total = before;
	for (size_t i = 0; i < n && carry_ok(c); i++) load_entry(c, t, &p);
	block_unref(p.block);
}
