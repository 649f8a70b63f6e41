/* SPDX-License-Identifier: MIT */
#include "ctl/turn.h"

#include "dialect/claude/claude.h"

enum names { NAMES_NOBODY, NAMES_OTHERS, NAMES_US };

static enum names names_in(const struct envelope *e, const char *uuid) {
	size_t at = 0, n = 0;
	struct span one;
	if (span_equals(e->user_message_uuid, uuid)) return NAMES_US;
	for (; span_is_array(e->user_message_uuids) && span_next(e->user_message_uuids, &at, &one); n++)
		if (span_equals(one, uuid)) return NAMES_US;
	if (n >= CLAUDE_NAMES_MAX) return NAMES_NOBODY; /* there was no room for all */
	return span_is_string(e->user_message_uuid) || at ? NAMES_OTHERS : NAMES_NOBODY;
}

/* A turn that the child started by itself (the end of a background task) names no prompt; see `origin`. */
static bool is_ours(const struct turn *t, struct span line, enum names names) {
	struct span kind = span_member(span_member(line, "origin"), "kind");
	if (names != NAMES_NOBODY) return names == NAMES_US;
	return t->ours && (!span_is_string(kind) || span_equals(kind, "human"));
}

bool turn_feed(struct turn *t, struct span line, const struct envelope *e) {
	enum names names = names_in(e, t->uuid);
	if (span_equals(e->type, "result")) {
		bool end = is_ours(t, line, names);
		t->ours = false;
		return end;
	}
	if (span_equals(e->type, "user") && span_is_true(e->is_replay) && span_equals(e->uuid, t->uuid)) t->ours = true;
	if (names != NAMES_NOBODY) t->ours = names == NAMES_US;
	return false;
}
