/* SPDX-License-Identifier: MIT */
#include "dialect/envelope.h"

#include "wire/cursor.h"
#include "wire/disown.h"

static inline bool is(const char *key, const char *name, size_t n) {
	return memcmp(key, name, n) == 0;
}

static inline struct span *member_slot(struct envelope *e, const char *k, size_t n) {
	switch (n) {
	case 4:
		return is(k, "type", 4) ? &e->type : is(k, "uuid", 4) ? &e->uuid : NULL;
	case 7:
		return is(k, "subtype", 7)   ? &e->subtype
			   : is(k, "request", 7) ? &e->request
			   : is(k, "message", 7) ? &e->message
									 : NULL;
	case 8:
		return is(k, "response", 8)   ? &e->response
			   : is(k, "is_error", 8) ? &e->is_error
			   : is(k, "isReplay", 8) ? &e->is_replay
									  : NULL;
	case 10:
		return is(k, "session_id", 10) ? &e->session_id : is(k, "request_id", 10) ? &e->request_id : NULL;
	case 17:
		return is(k, "user_message_uuid", 17) ? &e->user_message_uuid : NULL;
	case 18:
		return is(k, "parent_tool_use_id", 18)   ? &e->parent_tool_use_id
			   : is(k, "user_message_uuids", 18) ? &e->user_message_uuids
												 : NULL;
	default:
		return NULL;
	}
}

struct span *envelope_slot(struct envelope *e, const char *key, size_t n) {
	return member_slot(e, key, n);
}

/* The members inside `request` and `response` that routing reads. */
struct inner {
	struct span subtype, request_id, response;
	bool reserved;
};

/* The first byte distinguishes nearly all keys from the daemon's names. */
static inline bool may_be_name(struct span s) {
	switch (s.n > 2 ? s.p[1] : 0) {
	case 'p':
	case 'P':
	case 's':
	case 'S':
	case 'r':
	case 'R':
	case '\xc5':
	case '\\':
		return true;
	default:
		return false;
	}
}

static inline bool is_reserved_key(struct span key) {
	return UNLIKELY(may_be_name(key)) && disown_is_key(key);
}

static inline bool is_reserved_value(struct span value) {
	return UNLIKELY(may_be_name(value)) && disown_is_value(value);
}

static bool scan_inner(struct cursor *c, struct inner *in) {
	struct span key, value;
	enum cursor_step step;
	c->p++;
	for (bool first = true; (step = cursor_next_key(c, first, &key)) == CURSOR_MEMBER; first = false) {
		if (!cursor_skip_value(c, &value)) return false;
		if (key.n == 9 && is(key.p + 1, "subtype", 7)) {
			in->subtype = value;
			in->reserved |= is_reserved_value(value);
		} else {
			in->reserved |= is_reserved_key(key);
		}
		if (key.n == 12 && is(key.p + 1, "request_id", 10)) in->request_id = value;
		if (key.n == 10 && is(key.p + 1, "response", 8)) in->response = value;
	}
	return step == CURSOR_END;
}

static bool scan_member(struct cursor *c, struct span key, struct envelope *e, struct inner *request,
						struct inner *response) {
	struct span ignored = SPAN_NONE, *slot = member_slot(e, key.p + 1, key.n - 2);
	struct inner *in = slot == &e->request ? request : slot == &e->response ? response : NULL;
	if (LIKELY(!in)) {
		struct span *value = slot ? slot : &ignored;
		if (!cursor_skip_value(c, value)) return false;
		if (slot ? slot == &e->subtype && is_reserved_value(*slot) : is_reserved_key(key)) e->reserved = true;
		return true;
	}
	*in = (struct inner){0};
	if (*c->p != '{' || cursor_is_wide(c->p)) return cursor_skip_value(c, slot);
	const char *from = c->p;
	if (!scan_inner(c, in)) return false;
	e->reserved |= in == request && in->reserved;
	*slot = (struct span){from, (size_t)(c->p - from)};
	return true;
}

/* Nearly every line of the child starts like this. */
static inline bool scan_type_first(struct cursor *c, struct envelope *e) {
	static const char start[] = "{\"type\":\"";
	const size_t n = sizeof start - 1;
	if ((size_t)(c->end - c->p) <= n || memcmp(c->p, start, n) != 0) return false;
	struct cursor value = {c->p + n - 1, c->end, false};
	if (!cursor_skip_string(&value)) return false;
	e->type = (struct span){c->p + n - 1, (size_t)(value.p - (c->p + n - 1))};
	c->p = value.p;
	return true;
}

static inline bool scan(const char *p, size_t n, struct envelope *e, bool wide) {
	struct cursor c = {p, p + n, wide};
	struct inner request = {0}, response = {0};
	struct span key;
	enum cursor_step step;
	*e = (struct envelope){0};
	cursor_skip_blanks(&c);
	if (c.p < c.end && cursor_is_wide(c.p)) return false;
	bool first = !scan_type_first(&c, e);
	if (first && (c.p >= c.end || *c.p++ != '{')) return false;
	for (; (step = cursor_next_key(&c, first, &key)) == CURSOR_MEMBER; first = false)
		if (!scan_member(&c, key, e, &request, &response)) return false;
	cursor_skip_blanks(&c);
	e->inner_subtype = e->request.p ? request.subtype : response.subtype;
	e->inner_request_id = e->request.p ? request.request_id : response.request_id;
	e->inner_response = response.response;
	return step == CURSOR_END && c.p == c.end;
}

bool scan_envelope(const char *p, size_t n, struct envelope *e) {
	return scan(p, n, e, wide_here());
}

bool scan_envelope_plain(const char *p, size_t n, struct envelope *e) {
	return scan(p, n, e, false);
}
