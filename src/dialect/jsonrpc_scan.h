/* SPDX-License-Identifier: MIT
 *
 * The scan of a JSON-RPC line. All inline, for a dialect that has nearly all of its lines with the same keys: they are
 * compared in place with its constants. All others call jsonrpc_scan() (dialect/jsonrpc.h: the result).
 */
#pragma once

#include "dialect/jsonrpc.h"
#include "plenum/protocol.h"
#include "wire/cursor.h"

#include <string.h>

/* --- keys --------------------------------------------------------------------------------------------------------- */

/* In any spelling. */
static inline bool jsonrpc_scan_is_method(struct span key) {
	return span_spells(key, "method", true);
}

static inline bool jsonrpc_scan_is_reserved(struct span key) {
	return span_spells(key, PLENUM_VERB_PREFIX, false);
}

/* The first byte distinguishes nearly all keys and methods from names of the daemon. */
static inline bool jsonrpc_scan_may_be_name(struct span key) {
	char first = key.n > 2 ? key.p[1] : 0;
	return UNLIKELY(first == '\\' || (first | 0x20) == 'p' || (first | 0x20) == 'm');
}

static inline bool jsonrpc_scan_may_be_own(struct span method) {
	return UNLIKELY(method.n > 2 && (method.p[1] == '_' || method.p[1] == '\\'));
}

static inline bool jsonrpc_scan_is(struct span key, const char *name, size_t n) {
	return key.n == n + 2 && memcmp(key.p + 1, name, n) == 0;
}

/* Move past this key to its value, if the line has it here without spaces. first: behind the brace. */
static inline bool jsonrpc_scan_pass(struct cursor *c, bool first, const char *likely, size_t n, struct span *key) {
	const char *from = c->p + !first, *name = from + 1;
	if (c->end - c->p <= (ptrdiff_t)n + 4 || (!first && *c->p != ',') || *from != '"' || memcmp(name, likely, n) != 0 ||
		name[n] != '"' || name[n + 1] != ':')
		return false;
	*key = (struct span){from, n + 2};
	c->p = name + n + 2;
	cursor_skip_blanks(c);
	return true;
}

/* As cursor_next_key(), with a short way to the end of the object and to the key that nearly all lines have here. */
static inline enum cursor_step jsonrpc_scan_next(struct cursor *c, bool first, const char *likely, size_t n,
												 struct span *key) {
	if (c->p < c->end && *c->p == '}') {
		c->p++;
		return CURSOR_END;
	}
	if (!jsonrpc_scan_pass(c, first, likely, n, key)) return cursor_next_key(c, first, key);
	return c->p < c->end ? CURSOR_MEMBER : CURSOR_BAD;
}

/* --- members ------------------------------------------------------------------------------------------------------ */

static inline bool jsonrpc_scan_enters(const struct cursor *c) {
	return *c->p == '{' && !cursor_is_wide(c->p);
}

/* The cursor is at the brace of params.update. */
static inline bool jsonrpc_scan_update(struct cursor *c, struct envelope *e) {
	struct span key, ignored = SPAN_NONE;
	enum cursor_step step;
	c->p++;
	step = jsonrpc_scan_next(c, true, "sessionUpdate", 13, &key);
	for (; step == CURSOR_MEMBER; step = jsonrpc_scan_next(c, false, "content", 7, &key)) {
		struct span *value = jsonrpc_scan_is(key, "sessionUpdate", 13) ? &e->subtype : &ignored;
		if (!cursor_skip_value(c, value)) return false;
		if (jsonrpc_scan_may_be_own(key) && span_spells(key, "_meta", true)) e->reserved |= jsonrpc_is_marked(*value);
	}
	return step == CURSOR_END;
}

static inline bool jsonrpc_scan_is_update(struct span key) {
	char first = key.n > 2 ? key.p[1] : 0;
	if (first != '\\' && (first | 0x20) != 'u') return false;
	return jsonrpc_scan_is(key, "update", 6) || span_spells(key, "update", true);
}

/* The cursor is at the brace of params. */
static inline bool jsonrpc_scan_params(struct cursor *c, struct envelope *e, struct span conversation, bool updates) {
	const char *from = c->p;
	struct span key, ignored = SPAN_NONE;
	enum cursor_step step;
	c->p++;
	step = jsonrpc_scan_next(c, true, conversation.p, conversation.n, &key);
	for (; step == CURSOR_MEMBER; step = jsonrpc_scan_next(c, false, "update", 6, &key)) {
		struct span *value = jsonrpc_scan_is(key, conversation.p, conversation.n) ? &e->session_id : &ignored;
		bool is_update = updates && jsonrpc_scan_is_update(key);
		if (is_update) e->subtype = SPAN_NONE;
		if (is_update && jsonrpc_scan_enters(c) ? !jsonrpc_scan_update(c, e) : !cursor_skip_value(c, value))
			return false;
	}
	e->request = (struct span){from, (size_t)(c->p - from)};
	return step == CURSOR_END;
}

/* Each member has the place that it has in a request; jsonrpc_settle() is for all other lines. */
static inline struct span *jsonrpc_scan_slot(struct envelope *e, struct span key) {
	switch (key.n) {
	case 4:
		return jsonrpc_scan_is(key, "id", 2) ? &e->request_id : NULL;
	case 7:
		return jsonrpc_scan_is(key, "error", 5) ? &e->is_error : NULL;
	case 8:
		return jsonrpc_scan_is(key, "method", 6)   ? &e->type
			   : jsonrpc_scan_is(key, "params", 6) ? &e->request
			   : jsonrpc_scan_is(key, "result", 6) ? &e->inner_response
												   : NULL;
	default:
		return NULL;
	}
}

static inline bool jsonrpc_scan_member(struct cursor *c, struct span key, struct envelope *e, struct span conversation,
									   bool updates) {
	struct span *slot = jsonrpc_scan_slot(e, key), ignored = SPAN_NONE, *value = slot ? slot : &ignored;
	bool is_params = slot == &e->request;
	if (is_params) e->session_id = e->subtype = SPAN_NONE; /* the last duplicate counts */
	if (is_params && jsonrpc_scan_enters(c) ? !jsonrpc_scan_params(c, e, conversation, updates)
											: !cursor_skip_value(c, value))
		return false;
	if (slot) {
		if (slot == &e->type && jsonrpc_scan_may_be_own(*value)) e->reserved |= jsonrpc_is_own(*value);
		return true;
	}
	e->escaped |= memchr(key.p, '\\', key.n) != NULL;
	if (jsonrpc_scan_may_be_name(key))
		e->reserved |= jsonrpc_scan_is_reserved(key) || (jsonrpc_scan_is_method(key) && jsonrpc_is_own(*value));
	return true;
}

/* Move over the text if the line has it here. */
static inline bool jsonrpc_scan_text(struct cursor *c, const char *text, size_t n) {
	if ((size_t)(c->end - c->p) <= n || memcmp(c->p, text, n) != 0) return false;
	c->p += n;
	return true;
}

/* Nearly every line of the child starts like this: with its method. */
static inline bool jsonrpc_scan_start(struct cursor *c, struct envelope *e) {
	struct cursor at = *c;
	static const char head[] = JSONRPC_HEAD "\"method\":\"", bare[] = JSONRPC_BARE_HEAD "\"method\":\"";
	if (!jsonrpc_scan_text(&at, head, sizeof head - 1) && !jsonrpc_scan_text(&at, bare, sizeof bare - 1)) return false;
	at.p--;
	if (!cursor_skip_value(&at, &e->type)) return false;
	if (jsonrpc_scan_may_be_own(e->type)) e->reserved = jsonrpc_is_own(e->type);
	c->p = at.p;
	return true;
}

/* --- the line ----------------------------------------------------------------------------------------------------- */

/* As jsonrpc_scan(). updates: the subtype is params.update.sessionUpdate, whatever the method; an update with the mark
 * of an echo (jsonrpc_is_marked) is reserved, in any spelling of both. */
static inline bool jsonrpc_scan_line(const char *p, size_t n, struct envelope *e, struct span conversation,
									 bool updates) {
	struct cursor c = {p, p + n, wide_here()};
	struct span key;
	enum cursor_step step;
	*e = (struct envelope){0};
	cursor_skip_blanks(&c);
	const char *from = c.p;
	if (c.p >= c.end || cursor_is_wide(c.p)) return false;
	bool first = !jsonrpc_scan_start(&c, e);
	if (first && *c.p++ != '{') return false;
	for (; (step = jsonrpc_scan_next(&c, first, "params", 6, &key)) == CURSOR_MEMBER; first = false)
		if (!jsonrpc_scan_member(&c, key, e, conversation, updates)) return false;
	if (step != CURSOR_END) return false;
	jsonrpc_settle(e, (struct span){from, (size_t)(c.p - from)});
	cursor_skip_blanks(&c);
	return c.p == c.end;
}
