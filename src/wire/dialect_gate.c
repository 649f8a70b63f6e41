/* SPDX-License-Identifier: MIT */
#include "wire/dialect_gate.h"

#include "base/macros.h"

#define ROW(kind, name, least, affects, act, what, member, show)                                                       \
	{GATE_##kind, name, sizeof name - 1, GATE_##least, GATE_##affects, ACT_##act, what, member, GATE_##show},

static const struct gate_row rows[] = {
#include "wire/dialect_gate.def"
};

#undef ROW

const struct gate_row *dialect_gate_rows(size_t *n) {
	*n = ARRAY_SIZE(rows);
	return rows;
}

const struct gate_row *dialect_gate_row(enum gate_kind kind, const char *name, size_t len) {
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].len == len && rows[i].kind == kind && memcmp(rows[i].name, name, len) == 0) return &rows[i];
	return NULL;
}

const struct gate_row *dialect_gate_member(const char *parent, size_t parent_len, const char *name, size_t len) {
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct gate_row *row = &rows[i];
		if (row->kind != GATE_MEMBER || row->len != parent_len + 1 + len || row->name[parent_len] != '.') continue;
		if (memcmp(row->name, parent, parent_len) == 0 && memcmp(row->name + parent_len + 1, name, len) == 0)
			return row;
	}
	return memchr(name, '.', len) ? NULL : dialect_gate_row(GATE_MEMBER, name, len);
}

const char *dialect_what(const char *what) {
	for (size_t i = 0; what && i < ARRAY_SIZE(rows); i++) {
		bool changes = rows[i].act == ACT_CHANGE || rows[i].act == ACT_MCP_SET_SERVERS;
		if (changes && strcmp(rows[i].what, what) == 0) return rows[i].what;
	}
	return NULL;
}
