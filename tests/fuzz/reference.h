/* SPDX-License-Identifier: MIT
 *
 * scan_envelope() once more, as plainly as it can be written: one byte after the other, no intrinsics, no memchr(), no
 * short cuts. The unit test and the fuzz target compare the two on every input, good or bad.
 */
#pragma once

#include "base/macros.h"
#include "dialect/envelope.h"
#include "wire/lengths.h"
#include "wire/scan.h"

#include <string.h>

struct ref {
	const char *s;
	size_t n, i;
};

static inline int ref_peek(const struct ref *r) {
	return r->i < r->n ? (unsigned char)r->s[r->i] : -1;
}

static inline void ref_blanks(struct ref *r) {
	while (ref_peek(r) == ' ' || ref_peek(r) == '\t' || ref_peek(r) == '\n' || ref_peek(r) == '\r') r->i++;
}

static inline bool ref_string(struct ref *r) {
	if (ref_peek(r) != '"') return false;
	for (r->i++; r->i < r->n; r->i++) {
		if (r->s[r->i] == '\\')
			r->i++;
		else if (r->s[r->i] == '"') {
			r->i++;
			return true;
		}
	}
	return false;
}

static inline bool ref_container(struct ref *r) {
	long depth = 0;
	while (r->i < r->n) {
		int c = ref_peek(r);
		if (c == '"') {
			if (!ref_string(r)) return false;
			continue;
		}
		r->i++;
		if (c == '{' || c == '[') depth++;
		if (c == '}' || c == ']') depth--;
		if (depth == 0) return true;
	}
	return false;
}

static inline bool ref_value(struct ref *r, struct span *value) {
	size_t from = r->i;
	bool ok = true;
	int c = ref_peek(r);
	if (c == '"')
		ok = ref_string(r);
	else if (c == '{' || c == '[')
		ok = ref_container(r);
	else
		while (ref_peek(r) >= 0 && !(ref_peek(r) > 0 && strchr(",\":{}[] \t\r\n", ref_peek(r)))) r->i++;
	*value = (struct span){r->s + from, r->i - from};
	return ok && r->i > from;
}

struct ref_member {
	const char *name;
	struct span *to;
};

static inline struct span *ref_find(const struct ref_member *table, size_t n, struct span key) {
	for (size_t i = 0; i < n; i++)
		if (key.n == strlen(table[i].name) + 2 && memcmp(key.p + 1, table[i].name, key.n - 2) == 0) return table[i].to;
	return NULL;
}

struct ref_inner {
	struct span subtype, request_id, response;
};

static inline bool ref_object(struct ref *r, const struct ref_member *table, size_t n, struct envelope *e,
							  struct ref_inner *request, struct ref_inner *response);

static inline bool ref_inner_object(struct ref *r, struct ref_inner *in) {
	const struct ref_member table[] = {
		{"subtype", &in->subtype}, {"request_id", &in->request_id}, {"response", &in->response}};
	return ref_object(r, table, 3, NULL, NULL, NULL);
}

static inline bool ref_member_value(struct ref *r, struct span *to, struct envelope *e, struct ref_inner *request,
									struct ref_inner *response) {
	struct span ignored;
	struct ref_inner *in = e && to == &e->request ? request : e && to == &e->response ? response : NULL;
	if (in) *in = (struct ref_inner){0};
	if (!in || ref_peek(r) != '{') return ref_value(r, to ? to : &ignored);
	size_t from = r->i;
	if (!ref_inner_object(r, in)) return false;
	*to = (struct span){r->s + from, r->i - from};
	return true;
}

static inline bool ref_object(struct ref *r, const struct ref_member *table, size_t n, struct envelope *e,
							  struct ref_inner *request, struct ref_inner *response) {
	if (ref_peek(r) != '{') return false;
	r->i++;
	ref_blanks(r);
	if (ref_peek(r) == '}') {
		r->i++;
		return true;
	}
	for (;;) {
		struct span key;
		size_t from = r->i;
		if (!ref_string(r)) return false;
		key = (struct span){r->s + from, r->i - from};
		ref_blanks(r);
		if (ref_peek(r) != ':') return false;
		r->i++;
		ref_blanks(r);
		if (!ref_member_value(r, ref_find(table, n, key), e, request, response)) return false;
		ref_blanks(r);
		int c = ref_peek(r);
		r->i++;
		if (c == '}') return true;
		if (c != ',') return false;
		ref_blanks(r);
	}
}

static inline bool ref_envelope(const char *s, size_t n, struct envelope *e) {
	struct ref r = {s, n, 0};
	struct ref_inner request = {0}, response = {0};
	*e = (struct envelope){0};
	const struct ref_member table[] = {
		{"type", &e->type},
		{"subtype", &e->subtype},
		{"request_id", &e->request_id},
		{"uuid", &e->uuid},
		{"session_id", &e->session_id},
		{"request", &e->request},
		{"response", &e->response},
		{"message", &e->message},
		{"isReplay", &e->is_replay},
		{"is_error", &e->is_error},
		{"user_message_uuid", &e->user_message_uuid},
		{"user_message_uuids", &e->user_message_uuids},
		{"parent_tool_use_id", &e->parent_tool_use_id},
	};
	ref_blanks(&r);
	if (!ref_object(&r, table, ARRAY_SIZE(table), e, &request, &response)) return false;
	ref_blanks(&r);
	const struct ref_inner *in = e->request.p ? &request : &response;
	e->inner_subtype = in->subtype;
	e->inner_request_id = in->request_id;
	e->inner_response = response.response;
	return r.i >= n;
}

/* The name of the first member that differs, or NULL. */
static inline const char *ref_difference(const struct envelope *a, const struct envelope *b) {
#define REF_DIFFERS(m)                                                                                                 \
	if (a->m.p != b->m.p || a->m.n != b->m.n) return #m;
	REF_DIFFERS(type)
	REF_DIFFERS(subtype)
	REF_DIFFERS(request_id)
	REF_DIFFERS(uuid)
	REF_DIFFERS(session_id)
	REF_DIFFERS(request)
	REF_DIFFERS(response)
	REF_DIFFERS(message)
	REF_DIFFERS(is_replay)
	REF_DIFFERS(is_error)
	REF_DIFFERS(user_message_uuid)
	REF_DIFFERS(user_message_uuids)
	REF_DIFFERS(parent_tool_use_id)
	REF_DIFFERS(inner_subtype)
	REF_DIFFERS(inner_request_id)
	REF_DIFFERS(inner_response)
#undef REF_DIFFERS
	return NULL;
}

/* A number of all that is found in the value, some levels deep. */
static inline size_t ref_walk(struct span s, const char *base, int levels) {
	struct span key, value;
	size_t sum = 1, at;
	if (!levels) return 0;
	for (at = 0; span_next_member(s, &at, &key, &value);)
		sum = 31 * sum + (size_t)(key.p - base) + 7 * (size_t)(value.p - base) + 17 * value.n +
			  ref_walk(value, base, levels - 1);
	for (at = 0; span_next(s, &at, &value);)
		sum = 37 * sum + (size_t)(value.p - base) + 19 * value.n + ref_walk(value, base, levels - 1);
	return sum;
}

/* The line measured in pieces: what differs from the plain scan, or NULL. */
static inline const char *ref_measured(const char *s, size_t n, size_t piece, size_t least, bool want,
									   const struct envelope *plain) {
	struct span all = {s, n};
	struct envelope e;
	size_t walked = ref_walk(all, s, 5), steps = 0;
	struct lengths *l = lengths_new(s, n, least);
	if (!l) return NULL;
	while (!lengths_step(l, piece))
		if (steps++ > n) break;
	lengths_use(l);
	bool ok = scan_envelope(s, n, &e), same = ref_walk(all, s, 5) == walked;
	lengths_use(NULL);
	lengths_free(l);
	if (steps > n) return "the number of steps";
	if (ok != want) return "the result";
	return !same ? "a walk" : ok ? ref_difference(&e, plain) : NULL;
}
