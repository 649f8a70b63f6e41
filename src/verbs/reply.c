/* SPDX-License-Identifier: MIT */
#include "verbs/reply.h"

#include "base/str.h"
#include "core/notify.h"
#include "core/trust.h"
#include "plenum/protocol.h"
#include "wire/limits.h"
#include "wire/parse.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The members before the end of an answer without any, without a copy of them: they may be many. */
static struct chunk join(const struct dialect *d, struct span id, const struct buf *members) {
	struct buf b = NOTICE_INIT;
	d->put_success(&b, id, "{}");
	if (b.failed || members->failed) {
		buf_free(&b);
		return CHUNK_NONE;
	}
	size_t comma = members->len > 0;
	struct chunk parts[] = {{NULL, b.data, b.len - strlen(d->success_end)},
							{NULL, members->data + comma, members->len - comma},
							{NULL, d->success_end, strlen(d->success_end)}};
	struct chunk line = chunk_join(parts, ARRAY_SIZE(parts));
	buf_free(&b);
	return line;
}

void reply(struct request *q, struct buf *members) {
	struct chunk line = join(q->client->dialect, q->id, members);
	buf_free(members);
	if (line.data)
		client_post(q->client, line);
	else
		reply_error(q, PLENUM_E_INTERNAL, "the answer could not be made");
}

bool reply_error(struct request *q, const char *code, const char *fmt, ...) {
	char text[1024];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	notify_fail(q->client, q->id, code, "%s", text);
	return false;
}

void reply_in_use(struct request *q, const struct session *holder, bool ending) {
	struct buf b = NOTICE_INIT;
	struct error why;
	char text[ERROR_TEXT_MAX + 64];
	router_in_use_text(&why, trust_is_closed_to(holder, q->client) ? NULL : holder->name);
	snprintf(text, sizeof text, "this conversation is in use: %s%s", why.text,
			 ending ? "; it is ending: ask again" : "");
	q->client->dialect->put_error(&b, q->id, PLENUM_E_CONVERSATION_IN_USE, text, ending ? ",\"ending\":true" : "");
	client_post(q->client, notice_chunk(&b));
}

void reply_no_session(struct request *q, const char *name) {
	reply_error(q, PLENUM_E_NO_SUCH_SESSION, "session %s: does not exist (`plenumctl ls` lists them)", name);
}

void reply_private(struct request *q, const char *name) {
	if (trust_of(q->router, q->client) == TRUST_AGENT)
		reply_error(q, PLENUM_E_NOT_ALLOWED, TRUST_AGENT_TEXT);
	else
		reply_error(q, PLENUM_E_NOT_ALLOWED, TRUST_PRIVATE_TEXT, name);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

#define DEPTH_MAX 16 /* levels; no verb takes more than three */

static void lose(json_t **whole) {
	json_decref(*whole);
	*whole = NULL;
}

/* An invalid value has its own error, or there is no memory. */
static json_t *read_error(const char **error, const char *text) {
	*error = text;
	return NULL;
}

static json_t *read_value(struct span text, int depth, const char **error);

static json_t *read_string(struct span text, const char **error) {
	size_t n;
	_cleanup_free_ char *plain = span_dup(text, &n);
	if (!plain) return read_error(error, "a string holds \\u0000");
	return json_stringn_nocheck(plain, n);
}

static json_t *read_array(struct span text, int depth, const char **error) {
	json_t *array = json_array();
	struct span item;
	for (size_t at = 0; array && span_next(text, &at, &item);)
		if (json_array_insert_new(array, json_array_size(array), read_value(item, depth, error)) < 0) lose(&array);
	return array;
}

static json_t *read_object(struct span text, int depth, const char **error) {
	json_t *object = json_object();
	struct span raw, value;
	for (size_t at = 0; object && span_next_member(text, &at, &raw, &value);) {
		_cleanup_free_ char *key = span_dup(raw, NULL);
		bool twice = key && json_object_get(object, key);
		if (!key) *error = "a key holds \\u0000";
		if (twice) *error = "a key stands twice in one object";
		bool good = key && !twice;
		if (!good || json_object_set_new_nocheck(object, key, read_value(value, depth, error)) < 0) lose(&object);
	}
	return object;
}

/* Parse other numbers than int64 with jansson: their text is short. */
static json_t *read_number(struct span text, const char **error) {
	int64_t number;
	if (span_int(text, &number)) return json_integer(number);
	struct parse_error why;
	json_t *value = parse_json(text.p, text.n, JSON_DECODE_ANY, &why);
	return value || why.no_memory ? value : read_error(error, "a number is too large");
}

static json_t *read_value(struct span text, int depth, const char **error) {
	if (depth == DEPTH_MAX) return read_error(error, "it is nested deeper than 16 levels");
	switch (text.n ? *text.p : 0) {
	case '"':
		return read_string(text, error);
	case '[':
		return read_array(text, depth + 1, error);
	case '{':
		return read_object(text, depth + 1, error);
	case 't':
		return json_true();
	case 'f':
		return json_false();
	case 'n':
		return json_null();
	default:
		return read_number(text, error);
	}
}

json_t *reply_read(struct span text, const char **error) {
	*error = NULL;
	return read_value(text, 0, error);
}

/* --- checking ----------------------------------------------------------------------------------------------------- */

static bool is_type(const json_t *value, char type) {
	const json_t *item;
	size_t i;
	switch (type) {
	case 's':
		return json_is_string(value) && strlen(json_string_value(value)) == json_string_length(value);
	case 'b':
		return json_is_boolean(value);
	case 'i':
		return json_is_integer(value);
	case 'o':
		return json_is_object(value);
	case 'a':
		json_array_foreach(value, i, item) if (!is_type(item, 's')) return false;
		return json_is_array(value);
	default:
		return false;
	}
}

static const char *type_name(char type) {
	switch (type) {
	case 's':
		return "a string";
	case 'b':
		return "true or false";
	case 'i':
		return "a whole number";
	case 'o':
		return "an object";
	default:
		return "an array of strings";
	}
}

static bool has_type(struct request *q, const struct member *m, const json_t *value) {
	for (const char *t = m->types; *t; t++)
		if (is_type(value, *t)) return true;
	return reply_error(q, PLENUM_E_BAD_REQUEST, "`%s` must be %s%s%s", m->name, type_name(m->types[0]),
					   m->types[1] ? " or " : "", m->types[1] ? type_name(m->types[1]) : "");
}

static bool is_at_least(struct request *q, enum least least) {
	struct router *r = q->router;
	struct client *c = q->client;
	switch (least) {
	case LEAST_ANY:
		return true;
	case LEAST_AGENT:
		return trust_of(r, c) != TRUST_AGENT || trust_home(r, c);
	case LEAST_FREE:
		return trust_is_free(r, c);
	case LEAST_OURS:
		break;
	}
	return trust_is_free(r, c) && client_is_ours(c);
}

bool reply_peer_ok(struct request *q, enum least least, const char *what) {
	if (is_at_least(q, least)) return true;
	if (least == LEAST_AGENT)
		reply_error(q, PLENUM_E_NOT_ALLOWED, "%s: %s; its session is not known, is gone, or has agent_peers = none",
					what, trust_why(q->router, q->client));
	else
		reply_error(q, PLENUM_E_NOT_ALLOWED, "%s: %s", what, trust_why(q->router, q->client));
	return false;
}

bool reply_list_ok(struct request *q, const char *member, size_t n) {
	if (n <= LIMITS_WORDS) return true;
	return reply_error(q, PLENUM_E_TOO_MANY, "`%s` may have %zu entries, this one has %zu", member, LIMITS_WORDS, n);
}

bool reply_members_ok(struct request *q, const struct member *members) {
	const char *key;
	json_t *value;
	void *next;
	json_object_foreach_safe(q->body, next, key, value) {
		if (strcmp(key, "subtype") == 0 || strcmp(key, "request_id") == 0) continue;
		const struct member *m = members;
		while (m->name && strcmp(m->name, key) != 0) m++;
		if (!m->name)
			return reply_error(q, PLENUM_E_BAD_REQUEST,
							   "`%.100s` is no member of this request (plenum-protocol(7) lists them)", key);
		if (json_is_null(value)) { /* like an absent one */
			json_object_del(q->body, key);
			continue;
		}
		if (!has_type(q, m, value) || !reply_peer_ok(q, m->least, m->name)) return false;
		if (!reply_list_ok(q, key, json_array_size(value) + json_object_size(value))) return false;
	}
	return true;
}

void reply_put_peer(struct buf *b, const struct client *c) {
	struct client *who = (struct client *)(uintptr_t)c; /* its origin may be checked again */
	struct router *r = c->world;
	const struct attachment *a = c->attachment;
	enum trust t = a ? trust_in(r, a) : trust_of(r, who);
	const char *why = t == TRUST_OWN || t == TRUST_OBSERVER ? NULL : trust_why(r, who);
	const struct session *s = trust_session(r, who);
	notice_text(b, "peer", trust_name(t));
	if (why) notice_text(b, "why", why);
	if (s && s->name) notice_text(b, "agent_of", s->name);
}

void reply_put_client(struct buf *b, const struct client *c) {
	const struct attachment *a = c->attachment;
	notice_number(b, "client", (int64_t)c->id);
	notice_text(b, "name", c->name);
	notice_number(b, "uid", c->peer.uid);
	notice_number(b, "pid", c->peer.pid);
	notice_text(b, "program", c->program);
	reply_put_peer(b, c);
	if (!a) return;
	notice_text(b, "role", a->observer ? "observer" : "driver");
	notice_flag(b, "approve", a->approve);
}

void reply_put_pid(struct buf *b, const struct session *s) {
	if (session_pid(s))
		notice_number(b, "pid", session_pid(s));
	else
		notice_text(b, "pid", NULL);
}

size_t reply_begin_object(struct buf *b, const char *name) {
	buf_printf(b, ",\"%s\":", name);
	return b->len;
}

void reply_end_object(struct buf *b, size_t from) {
	if (!b->failed) b->data[from] = '{'; /* was the comma before its first member */
	buf_putc(b, '}');
}

void reply_begin_list(struct buf *b, const char *name) {
	buf_printf(b, ",\"%s\":[", name);
}

void reply_end_entry(struct buf *b, size_t from) {
	reply_end_object(b, from);
	buf_putc(b, ',');
}

void reply_item(struct buf *b, const char *text) {
	str_put_json(b, text, strlen(text));
	buf_putc(b, ',');
}

void reply_end_list(struct buf *b) {
	if (!b->failed && b->data[b->len - 1] == ',') b->len--;
	buf_putc(b, ']');
}
