/* SPDX-License-Identifier: MIT */
#include "wire/rope.h"

struct rope rope_of(struct chunk line) {
	return line.data ? (struct rope){.n = 1, .len = line.len, .parts = {line}} : (struct rope){0};
}

void rope_drop(struct rope *r) {
	for (size_t i = 0; i < r->n; i++) chunk_drop(&r->parts[i]);
	r->n = r->len = 0;
}

struct rope rope_ref(const struct rope *r) {
	struct rope copy = {.n = r->n, .len = r->len};
	for (size_t i = 0; i < r->n; i++) copy.parts[i] = chunk_ref(r->parts[i]);
	return copy;
}

struct chunk rope_join(const struct rope *r) {
	return r->n == 1 ? chunk_ref(r->parts[0]) : r->n ? chunk_join(r->parts, r->n) : CHUNK_NONE;
}

struct chunk rope_keep(struct chunk line) {
	return line.block && line.len >= ROPE_FROM ? chunk_ref(line) : chunk_copy(line.data, line.len);
}

/* Take over the piece. False: there is no room or no memory for it. */
static bool add(struct rope *r, struct chunk piece) {
	if (!piece.data || r->n == ROPE_PARTS) {
		chunk_drop(&piece);
		return false;
	}
	r->parts[r->n++] = piece;
	r->len += piece.len;
	return true;
}

static size_t length(const struct chunk *parts, size_t n) {
	size_t len = 0;
	for (size_t i = 0; i < n; i++) len += parts[i].len;
	return len;
}

/* Add a view of each long part, and a copy of all parts between two of them. False: no room or no memory for it. */
static bool add_parts(struct rope *r, const struct chunk *parts, size_t n) {
	size_t from = 0;
	for (size_t i = 0; i <= n; i++) {
		bool view = i < n && parts[i].block && parts[i].len >= ROPE_VIEW;
		if (i < n && !view) continue;
		if (length(parts + from, i - from) && !add(r, chunk_join(parts + from, i - from))) return false;
		if (view && !add(r, chunk_ref(parts[i]))) return false;
		from = i + 1;
	}
	return true;
}

struct rope rope_make(const struct chunk *parts, size_t n) {
	struct rope r = {0};
	if (length(parts, n) >= ROPE_FROM && add_parts(&r, parts, n)) return r;
	rope_drop(&r);
	return rope_of(chunk_join(parts, n));
}
