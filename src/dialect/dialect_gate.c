/* SPDX-License-Identifier: MIT */
#include "dialect/dialect_gate.h"

#include "base/macros.h"

#define HASH_BEGIN 0xcbf29ce484222325u

/* FNV-1a: the rows are ours, so a client cannot make their chains long. */
static uint64_t hash(uint64_t h, const char *p, size_t n) {
	for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)p[i]) * 0x100000001b3u;
	return h;
}

static size_t bucket(enum gate_kind kind, uint64_t h) {
	return (size_t)((h ^ h >> 32 ^ kind) % GATE_BUCKETS);
}

void gate_index_init(struct gate_index *ix, const struct gate_row *rows, size_t n) {
	*ix = (struct gate_index){.rows = rows};
	for (size_t i = n; i-- > 0;) {
		uint16_t *first = &ix->first[bucket(rows[i].kind, hash(HASH_BEGIN, rows[i].name, rows[i].len))];
		ix->next[i] = *first;
		*first = (uint16_t)(i + 1);
		if (rows[i].len > ix->longest) ix->longest = rows[i].len;
	}
}

const struct gate_row *dialect_gate_row(const struct gate_index *ix, enum gate_kind kind, const char *name,
										size_t len) {
	if (len > ix->longest) return NULL;
	for (size_t i = ix->first[bucket(kind, hash(HASH_BEGIN, name, len))]; i; i = ix->next[i - 1]) {
		const struct gate_row *row = &ix->rows[i - 1];
		if (row->len == len && row->kind == kind && memcmp(row->name, name, len) == 0) return row;
	}
	return NULL;
}

static const struct gate_row *member_of(const struct gate_index *ix, const char *parent, size_t n, const char *name,
										size_t len) {
	if (n + 1 + len > ix->longest) return NULL;
	uint64_t h = hash(hash(hash(HASH_BEGIN, parent, n), ".", 1), name, len);
	for (size_t i = ix->first[bucket(GATE_MEMBER, h)]; i; i = ix->next[i - 1]) {
		const struct gate_row *row = &ix->rows[i - 1];
		if (row->kind != GATE_MEMBER || row->len != n + 1 + len || row->name[n] != '.') continue;
		if (memcmp(row->name, parent, n) == 0 && memcmp(row->name + n + 1, name, len) == 0) return row;
	}
	return NULL;
}

const struct gate_row *dialect_gate_member(const struct gate_index *ix, const char *parent, size_t parent_len,
										   const char *name, size_t len) {
	const struct gate_row *row = member_of(ix, parent, parent_len, name, len);
	if (row) return row;
	return memchr(name, '.', len) ? NULL : dialect_gate_row(ix, GATE_MEMBER, name, len);
}

bool dialect_gate_opens(const struct gate_row *rows, size_t n, const char *member) {
	for (size_t i = 0; i < n; i++) {
		bool opens = rows[i].act == ACT_OPENS || rows[i].act == ACT_RUNS;
		if (opens && strcmp(rows[i].member, member) == 0) return true;
	}
	return false;
}

const char *dialect_gate_what(const struct gate_row *rows, size_t n, const char *what) {
	for (size_t i = 0; what && i < n; i++) {
		enum act_kind act = rows[i].act;
		bool named = act == ACT_CHANGE || act == ACT_MCP_SET_SERVERS || act == ACT_OPENS || act == ACT_RUNS;
		if (named && strcmp(rows[i].what, what) == 0) return rows[i].what;
	}
	return NULL;
}
