/* SPDX-License-Identifier: MIT */
#include "wire/survive.h"

#include "base/macros.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool PRINTF_LIKE(3, 4) refuse(char *error, size_t size, const char *fmt, ...) {
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(error, size, fmt, ap);
	va_end(ap);
	return false;
}

/* A name that is compared byte by byte here and by the child after unescaping must have no escapes. */
static bool is_plain(struct span s) {
	return span_is_string(s) && !memchr(s.p, '\\', s.n);
}

/* Words that decide where a line goes: there must be one reading of them. */
static bool check_word(struct span s, const char *where, const char *example, char *error, size_t size) {
	if (!s.p) return refuse(error, size, "%s is missing: write %s", where, example);
	if (!span_is_string(s)) return refuse(error, size, "%s is not a string: write %s", where, example);
	if (!is_plain(s)) return refuse(error, size, "%s is spelled with escapes: write its letters as they are", where);
	return true;
}

static bool check_id(struct span id, const char *where, const char *example, char *error, size_t size) {
	if (!id.p) return refuse(error, size, "%s is missing: write %s", where, example);
	if (!span_is_string(id)) return refuse(error, size, "%s is not a string: write %s", where, example);
	return true;
}

static bool check_user(const struct message *m, char *error, size_t size) {
	struct span message = m->env.message;
	if (!span_is_object(message))
		return refuse(error, size,
					  "`message` of a user line is not an object: write {\"role\":\"user\",\"content\":\"...\"}");
	struct span role = span_member(message, "role"), content = span_member(message, "content");
	if (!span_equals(role, "user"))
		return refuse(error, size, "message.role of a user line is %s: write \"role\":\"user\"",
					  role.p ? "not \"user\"" : "missing");
	if (!content.p)
		return refuse(error, size, "message.content is missing: write a string, or an array of content blocks");
	if (!span_is_string(content) && !span_is_array(content))
		return refuse(error, size, "message.content is neither a string nor an array: the agent would never answer it");
	return true;
}

#define REQUEST_EXAMPLE "{\"type\":\"control_request\",\"request_id\":\"1\",\"request\":{\"subtype\":\"...\"}}"
#define ANSWER_EXAMPLE                                                                                                 \
	"{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"...\",\"response\":{...}}}"
#define CANCEL_EXAMPLE "{\"type\":\"control_cancel_request\",\"request_id\":\"...\"}"

static bool check_request(const struct message *m, char *error, size_t size) {
	const struct envelope *e = &m->env;
	if (!e->request.p && e->subtype.p)
		return refuse(error, size, "`request` is missing: the subtype stands inside it, as in " REQUEST_EXAMPLE);
	if (!e->request.p) return refuse(error, size, "`request` is missing: write " REQUEST_EXAMPLE);
	if (!span_is_object(e->request)) return refuse(error, size, "`request` is not an object: write " REQUEST_EXAMPLE);
	return check_id(e->request_id, "request_id", REQUEST_EXAMPLE, error, size) &&
		   check_word(e->inner_subtype, "request.subtype", REQUEST_EXAMPLE, error, size);
}

static bool check_answer(const struct message *m, char *error, size_t size) {
	const struct envelope *e = &m->env;
	if (e->request.p) return refuse(error, size, "a control_response has no `request`: write " ANSWER_EXAMPLE);
	if (!span_is_object(e->response))
		return refuse(error, size, "`response` is %s: write " ANSWER_EXAMPLE,
					  e->response.p ? "not an object" : "missing");
	if (!e->inner_request_id.p && e->request_id.p)
		return refuse(error, size, "request_id stands beside `response`, it belongs inside: write " ANSWER_EXAMPLE);
	if (!check_id(e->inner_request_id, "response.request_id", ANSWER_EXAMPLE, error, size)) return false;
	if (!span_equals(e->inner_subtype, "success") && !span_equals(e->inner_subtype, "error"))
		return refuse(error, size, "response.subtype is neither \"success\" nor \"error\": write " ANSWER_EXAMPLE);
	return true;
}

bool survive_check(const struct message *m, char *error, size_t size) {
	if (!m->env.type.p && m->env.subtype.p)
		return refuse(error, size, "`type` is missing: to send a request write " REQUEST_EXAMPLE);
	if (!check_word(m->env.type, "`type`", "\"type\":\"user\" or another message type", error, size)) return false;
	switch (m->kind) {
	case MESSAGE_USER:
		return check_user(m, error, size);
	case MESSAGE_REQUEST:
		return check_request(m, error, size);
	case MESSAGE_ANSWER:
		return check_answer(m, error, size);
	case MESSAGE_CANCEL:
		return check_id(m->env.request_id, "request_id", CANCEL_EXAMPLE, error, size);
	case MESSAGE_OTHER:
		return true;
	}
	return true;
}
