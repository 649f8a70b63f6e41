/* SPDX-License-Identifier: MIT */
#include "dialect/dialect_ask.h"

#include <string.h>

enum dialect_kept dialect_ask_may_begin(const struct dialect_ask *ask, bool begun, const char **error) {
	if (ask->may_begin) return !ask->waits || ask->conversation || begun ? KEPT_ANOTHER : KEPT_LATER;
	*error = "only an own peer chooses the conversation of a session: attach to one that has it (_plenum/attach)";
	return KEPT_FORBIDDEN;
}

bool dialect_ask_names_own(const struct dialect_ask *ask) {
	_cleanup_free_ char *id = span_dup(ask->e->session_id, NULL);
	return id && ask->conversation && strcmp(id, ask->conversation) == 0;
}
