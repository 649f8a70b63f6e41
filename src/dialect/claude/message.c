/* SPDX-License-Identifier: MIT */
#include "dialect/claude/message.h"

#include "base/buf.h"
#include "base/macros.h"
#include "dialect/claude/survive.h"
#include "plenum/protocol.h"
#include "wire/limits.h"
#include "wire/valid.h"

#include <stddef.h>
#include <string.h>

/* The members of `request`, `response` and `message` that routing reads, to find duplicates. */
struct inner {
	struct span subtype, request_id, response, role, content;
};

struct check {
	struct envelope *env;
	struct span *slot[3]; /* of the members being read at levels 1 and 2, if wanted */
	size_t keys[3];       /* number of keys seen */
	struct span *place;   /* which of `request`, `response`, `message` encloses level 2, or NULL */
	struct inner request, response, message;
	struct valid json;
};

/* --- Members that routing reads ----------------------------------------------------------------------------------- */

static bool is_key(const char *key, size_t n, const char *name) {
	return n == strlen(name) && memcmp(key, name, n) == 0;
}

static struct span *inner_slot(struct check *c, const char *key, size_t n) {
	struct inner *in = c->place == &c->env->request    ? &c->request
					   : c->place == &c->env->response ? &c->response
													   : &c->message;
	bool message = in == &c->message;
	if (!message && is_key(key, n, "subtype")) return &in->subtype;
	if (!message && is_key(key, n, "request_id")) return &in->request_id;
	if (in == &c->response && is_key(key, n, "response")) return &in->response;
	if (message && is_key(key, n, "role")) return &in->role;
	if (message && is_key(key, n, "content")) return &in->content;
	return NULL;
}

/* Of other members the last duplicate counts, for the child and for us; no decision depends on them. */
static bool may_repeat(const struct envelope *e, const struct span *slot) {
	return slot == &e->is_replay || slot == &e->is_error || slot == &e->user_message_uuid ||
		   slot == &e->user_message_uuids || slot == &e->parent_tool_use_id;
}

static const char too_many_members[] = "an object that routing reads has more than 4,096 members";

/* Note a key at level 1, or at level 2 within one of the three places. In the body of an answer only the spelling
 * counts: "behavior" must not be hidden from code that checks and logs the decision. */
static bool note_key(struct valid *v, const char *key, size_t n) {
	struct check *c = CONTAINER_OF(v, struct check, json);
	size_t depth = v->depth;
	if (valid_hides_key(key, n)) {
		v->error = VALID_HIDDEN_KEY;
		return false;
	}
	if (depth == 3) return true;
	if (++c->keys[depth] > LIMITS_MEMBERS) {
		v->error = too_many_members;
		return false;
	}
	struct span *slot = depth == 1 ? envelope_slot(c->env, key, n) : inner_slot(c, key, n);
	if (slot && slot->p && !may_repeat(c->env, slot)) {
		v->error = "a key that routing reads stands twice in one object: write it once";
		return false;
	}
	c->slot[depth] = slot;
	v->wants[depth] = slot != NULL;
	if (depth == 1) {
		bool place = slot && (slot == &c->env->request || slot == &c->env->response || slot == &c->env->message);
		c->place = place ? slot : NULL;
		c->keys[2] = 0;
		v->keys[2] = c->place != NULL;
		v->wants[2] = false;
	}
	v->keys[3] = depth == 2 && slot == &c->response.response; /* the decision */
	return true;
}

static void note_value(struct valid *v, struct span value) {
	*CONTAINER_OF(v, struct check, json)->slot[v->depth] = value;
}

static const struct valid_watch watch = {.key = note_key, .value = note_value};

/* --- The pass ----------------------------------------------------------------------------------------------------- */

static void begin_scan(struct check *c, const char *p, size_t n, struct envelope *env) {
	memset(c, 0, offsetof(struct check, json));
	*env = (struct envelope){0};
	c->env = env;
	valid_begin(&c->json, p, n, &watch);
}

static bool fail(const char *p, const struct check *c, const char **error, size_t *at) {
	*error = c->json.error;
	*at = (size_t)(c->json.p - p);
	return false;
}

static bool end_scan(const char *p, struct check *c, const char **error, size_t *at) {
	struct envelope *env = c->env;
	if (c->json.state == VALID_BAD) return fail(p, c, error, at);
	if (*c->json.first != '{') {
		c->json.p = c->json.first;
		c->json.error = "the line is JSON but no object: write one {...} on each line";
		return fail(p, c, error, at);
	}
	const struct inner *in = env->request.p ? &c->request : &c->response;
	env->inner_subtype = in->subtype;
	env->inner_request_id = in->request_id;
	env->inner_response = c->response.response;
	return true;
}

bool message_scan(const char *p, size_t n, struct envelope *env, const char **error, size_t *at) {
	struct check c;
	begin_scan(&c, p, n, env);
	valid_run(&c.json, n);
	return end_scan(p, &c, error, at);
}

/* --- The old forms ------------------------------------------------------------------------------------------------ */

/* Keep the bytes of the value and around it: "prompt":V becomes "message":{"role":"user","content":V}. */
static struct chunk wrap_prompt(const char *p, size_t n, struct span key, struct span value) {
	static const char open[] = "\"message\":{\"role\":\"user\",\"content\"";
	const char *after_key = key.p + key.n, *after = value.p + value.n;
	const struct chunk parts[] = {
		{NULL, p, (size_t)(key.p - p)},
		CHUNK_STATIC(open),
		{NULL, after_key, (size_t)(after - after_key)},
		CHUNK_STATIC("}"),
		{NULL, after, (size_t)(p + n - after)},
	};
	return chunk_join(parts, ARRAY_SIZE(parts));
}

/* Find the `prompt` or `content` of a `user` line without `message`, if it has exactly one of them. */
static bool find_prompt(struct span line, struct span *key, struct span *value, struct error *error) {
	struct span k, v;
	size_t at = 0, found = 0;
	while (span_next_member(line, &at, &k, &v)) {
		if (!span_equals(k, "prompt") && !span_equals(k, "content")) continue;
		*key = k;
		*value = v;
		found++;
	}
	if (found == 0) return error_set(error, "a user line needs \"message\":{\"role\":\"user\",\"content\":\"...\"}");
	if (found > 1)
		return error_set(
			error, "a user line has more than one prompt: write one \"message\":{\"role\":\"user\",\"content\":...}");
	return true;
}

/* From the opening brace. */
static struct span object_of(const char *p, size_t n) {
	struct span line = {p, n};
	while (line.n && *line.p != '{') line.p++, line.n--;
	return line;
}

static bool modernise(const char *p, size_t n, struct message *m, struct chunk *rewritten, struct error *error) {
	struct span key = SPAN_NONE, value = SPAN_NONE;
	if (!find_prompt(object_of(p, n), &key, &value, error)) return false;
	struct chunk c = wrap_prompt(p, n, key, value);
	if (!c.data) return error_set(error, "out of memory");
	if (!scan_envelope(c.data, c.len, &m->env)) {
		chunk_drop(&c);
		return error_set(error, "the line cannot be brought into the form with \"message\"");
	}
	m->role = span_member(m->env.message, "role");
	m->content = span_member(m->env.message, "content");
	*rewritten = c;
	return true;
}

/* --- The whole check ---------------------------------------------------------------------------------------------- */

static enum message_kind kind_of(struct span type) {
	if (span_equals(type, "user")) return MESSAGE_USER;
	if (span_equals(type, "control_request")) return MESSAGE_REQUEST;
	if (span_equals(type, "control_response")) return MESSAGE_ANSWER;
	if (span_equals(type, "control_cancel_request")) return MESSAGE_CANCEL;
	return MESSAGE_OTHER;
}

static bool is_id(struct span s) {
	int64_t number;
	return span_is_string(s) || span_int(s, &number);
}

static struct span readable_id(const struct envelope *e) {
	if (is_id(e->request_id)) return e->request_id;
	return is_id(e->inner_request_id) ? e->inner_request_id : SPAN_NONE;
}

struct message_check {
	const char *p;
	size_t n;
	bool is_json, over, good;
	struct message m;
	struct chunk rewritten;
	struct span request_id;
	struct survive survive;
	struct check json; /* not zeroed from here */
	struct error error;
};

static void begin(struct message_check *k, const char *p, size_t n) {
	memset(k, 0, offsetof(struct message_check, json));
	k->p = p;
	k->n = n;
	k->rewritten = CHUNK_NONE;
	begin_scan(&k->json, p, n, &k->m.env);
}

struct message_check *message_check_new(const char *p, size_t n) {
	struct message_check *k = malloc(sizeof *k);
	if (k) begin(k, p, n);
	return k;
}

void message_check_free(struct message_check *k) {
	if (k) chunk_drop(&k->rewritten);
	free(k);
}

/* If the line is refused, error has the reason. */
static bool give_verdict(struct message_check *k, bool good) {
	k->over = true;
	k->good = good;
	k->m.command = span_is_string(k->m.text) && k->m.text.n > 2 && k->m.text.p[1] == '/';
	if (good) {
		k->request_id = readable_id(&k->m.env);
		return true;
	}
	if (k->rewritten.data) k->m = (struct message){.kind = k->m.kind, .code = k->m.code}; /* drop its spans */
	chunk_drop(&k->rewritten);
	return true;
}

static bool refuse_json(struct message_check *k, const char *text, size_t at) {
	bool too_many = text == too_many_members;
	error_set(&k->error, "%s (byte %zu of the line)", text, at + 1);
	/* it may still be answered under its id, if that is valid JSON */
	if (k->n <= LIMITS_REFUSED && scan_envelope(k->p, k->n, &k->m.env)) {
		k->m.kind = kind_of(k->m.env.type);
		k->request_id = readable_id(&k->m.env);
		if (k->request_id.p && !valid_span(k->request_id)) k->request_id = SPAN_NONE;
	} else {
		k->m.env = (struct envelope){0};
	}
	if (too_many) k->m.code = PLENUM_E_TOO_MANY;
	return give_verdict(k, false);
}

/* The line is valid JSON: check its content. True: the check is over. */
static bool begin_survive(struct message_check *k) {
	struct message *m = &k->m;
	k->is_json = true;
	m->kind = kind_of(m->env.type);
	m->role = k->json.message.role;
	m->content = k->json.message.content;
	k->request_id = readable_id(&m->env);
	if (m->kind == MESSAGE_USER && !m->env.message.p && !modernise(k->p, k->n, m, &k->rewritten, &k->error))
		return give_verdict(k, false);
	/* An old form, which the child would answer without an id: the router moves the id to its place. */
	if (m->kind == MESSAGE_REQUEST && !m->env.request_id.p) m->env.request_id = m->env.inner_request_id;
	struct chunk new = k->rewritten;
	struct span line = new.data ? object_of(new.data, new.len) : object_of(k->p, k->n);
	if (m->kind == MESSAGE_USER && span_is_string(m->content)) m->text = m->content;
	bool good = survive_begin(&k->survive, m, line, &k->error);
	return (!good || !k->survive.n) && give_verdict(k, good);
}

bool message_check_step(struct message_check *k, size_t bytes) {
	const char *text;
	size_t at;
	if (k->over) return true;
	if (!k->is_json) {
		if (!valid_run(&k->json.json, bytes)) return false;
		return end_scan(k->p, &k->json, &text, &at) ? begin_survive(k) : refuse_json(k, text, at);
	}
	bool good = survive_step(&k->survive, bytes, &k->error);
	if (k->survive.too_many) k->m.code = PLENUM_E_TOO_MANY;
	if (k->m.kind == MESSAGE_USER && !k->m.text.p) k->m.text = k->survive.first_text;
	return (!good || !k->survive.n) && give_verdict(k, good);
}

bool message_check_result(struct message_check *k, struct message *m, struct chunk *rewritten, const char **error,
						  struct span *request_id) {
	*m = k->m;
	*rewritten = k->rewritten;
	*error = k->error.text;
	*request_id = k->request_id;
	k->rewritten = CHUNK_NONE;
	return k->good;
}

bool message_check(const char *p, size_t n, struct message *m, struct chunk *rewritten, struct error *error,
				   struct span *request_id) {
	struct message_check k;
	const char *text;
	begin(&k, p, n);
	while (!message_check_step(&k, n + 1)) {}
	bool good = message_check_result(&k, m, rewritten, &text, request_id);
	if (!good) error_set(error, "%s", text);
	return good;
}

/* --- Lines that only the child takes ------------------------------------------------------------------------------ */

bool message_is_skipped(struct span line) {
	struct envelope e = {0};
	if (!valid_span(line)) return false;
	while (line.n && span_blank(*line.p)) line.p++, line.n--;
	if (*line.p != '{') return *line.p != 'n'; /* null ends it */
	if (!scan_envelope(line.p, line.n, &e)) return false;
	return !span_is_string(e.type) || (span_equals(e.type, "control_cancel_request") && !e.request_id.p);
}

bool message_is_fatal_request(const struct envelope *e) {
	return span_equals(e->type, "control_request") && (!e->request.p || *e->request.p == 'n'); /* null */
}

struct span message_after_mark(struct span line) {
	bool marked = line.n > 3 && memcmp(line.p, "\xef\xbb\xbf", 3) == 0;
	return marked ? (struct span){line.p + 3, line.n - 3} : line;
}
