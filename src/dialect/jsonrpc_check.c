/* SPDX-License-Identifier: MIT */
#include "dialect/jsonrpc_check.h"

#include "base/macros.h"
#include "dialect/jsonrpc.h"
#include "plenum/protocol.h"
#include "wire/limits.h"
#include "wire/valid.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct members {
	struct span id, method, params, result, error, conversation;
};

struct message_check {
	const struct jsonrpc_rules *rules;
	const char *p;
	size_t n;
	bool over, good;
	const char *error; /* static */
	size_t at;         /* of the error, from 1; 0: it is about the whole line */
	const char *code;
	struct span request_id;
	struct message m;
	struct members found;
	struct span version, content; /* the content is in params */
	struct span *slot[3];         /* of the members being read at levels 1 and 2, if wanted */
	size_t keys[3];               /* number of keys seen */
	bool in_params;               /* level 2 is in params */
	struct error text;
	struct valid json; /* not zeroed from here */
};

/* --- the pass ----------------------------------------------------------------------------------------------------- */

static bool is(const char *key, size_t n, const char *name) {
	return n == strlen(name) && memcmp(key, name, n) == 0;
}

static struct span *slot_of(struct message_check *k, const char *key, size_t n) {
	struct members *m = &k->found;
	return is(key, n, "jsonrpc")  ? &k->version
		   : is(key, n, "id")     ? &m->id
		   : is(key, n, "method") ? &m->method
		   : is(key, n, "params") ? &m->params
		   : is(key, n, "result") ? &m->result
		   : is(key, n, "error")  ? &m->error
								  : NULL;
}

static struct span *param_slot(struct message_check *k, const char *key, size_t n) {
	struct members *m = &k->found;
	if (!k->in_params) return NULL;
	return is(key, n, k->rules->conversation) ? &m->conversation : is(key, n, k->rules->prompt) ? &k->content : NULL;
}

static bool refuse_key(struct message_check *k, const char *code, const char *why) {
	k->code = code;
	k->json.error = why;
	return false;
}

/* In the body of an answer only the spelling counts: a decision must not be hidden from code that checks and logs it.
 */
static bool note_key(struct valid *v, const char *key, size_t n) {
	struct message_check *k = CONTAINER_OF(v, struct message_check, json);
	size_t depth = v->depth;
	if (valid_hides_key(key, n)) return refuse_key(k, PLENUM_E_INVALID_REQUEST, VALID_HIDDEN_KEY);
	if (depth == 3) return true;
	if (++k->keys[depth] > LIMITS_MEMBERS)
		return refuse_key(k, PLENUM_E_TOO_MANY, "an object that routing reads has more than 4,096 members");
	struct span *slot = depth == 1 ? slot_of(k, key, n) : param_slot(k, key, n);
	if (slot && slot->p)
		return refuse_key(k, PLENUM_E_INVALID_REQUEST,
						  "a key that routing reads stands twice in one object: write it once");
	k->slot[depth] = slot;
	v->wants[depth] = slot != NULL;
	if (depth == 2) return true;
	k->in_params = slot == &k->found.params;
	k->keys[2] = 0;
	v->keys[2] = v->keys[3] = k->in_params || slot == &k->found.result || slot == &k->found.error;
	v->wants[2] = false;
	return true;
}

static void note_value(struct valid *v, struct span value) {
	*CONTAINER_OF(v, struct message_check, json)->slot[v->depth] = value;
}

static const struct valid_watch watch = {.key = note_key, .value = note_value};

/* --- the verdict -------------------------------------------------------------------------------------------------- */

static bool refuse(struct message_check *k, const char *code, const char *why) {
	k->code = code;
	k->error = why;
	return false;
}

static bool check_id(struct message_check *k) {
	const struct members *f = &k->found;
	if (!f->id.p || jsonrpc_is_id(f->id)) return true;
	if (*f->id.p != 'n')
		return refuse(k, PLENUM_E_INVALID_REQUEST, "`id` must be a string or a whole number of at most 64 bits");
	if (f->method.p)
		return refuse(k, PLENUM_E_INVALID_REQUEST,
					  "`id` is null, and so would be those of other requests: use a string or a whole number");
	return true; /* an answer to a line without a readable id */
}

static bool check_method(struct message_check *k) {
	const struct members *f = &k->found;
	if (!span_is_string(f->method) || f->method.n == 2 || memchr(f->method.p, '\\', f->method.n))
		return refuse(k, PLENUM_E_INVALID_REQUEST, "`method` must be a string, without escapes");
	if (f->result.p || f->error.p)
		return refuse(k, PLENUM_E_INVALID_REQUEST, "a line has a `method`, or else a `result` or an `error`");
	if (f->params.p && !span_is_object(f->params))
		return refuse(k, PLENUM_E_BAD_REQUEST, "`params` must be an object: {...}");
	return true;
}

static bool check_answer(struct message_check *k) {
	const struct members *f = &k->found;
	if (!f->result.p && !f->error.p)
		return refuse(k, PLENUM_E_INVALID_REQUEST,
					  "the line is no JSON-RPC: a request has `method` and `id`, an answer `id` and `result`");
	if (f->result.p && f->error.p)
		return refuse(k, PLENUM_E_INVALID_REQUEST, "an answer has a `result` or an `error`, not both");
	if (f->error.p && !span_is_object(f->error))
		return refuse(k, PLENUM_E_INVALID_REQUEST, "`error` must be an object: {\"code\":...,\"message\":...}");
	return f->id.p || refuse(k, PLENUM_E_INVALID_REQUEST, "an answer needs the `id` of its request");
}

static bool check_frame(struct message_check *k) {
	const struct members *f = &k->found;
	if (k->rules->versioned && !span_equals(k->version, "2.0"))
		return refuse(k, PLENUM_E_INVALID_REQUEST, "the line needs \"jsonrpc\":\"2.0\"");
	return check_id(k) && (f->method.p ? check_method(k) : check_answer(k));
}

/* The daemon takes no notification but those of the protocol, and no other methods of its prefix. */
static bool check_own(struct message_check *k) {
	const struct envelope *e = &k->m.env;
	if (!jsonrpc_is_own(e->type)) return true;
	if (!e->request_id.p)
		return refuse(k, PLENUM_E_INVALID_REQUEST,
					  "a request to the daemon needs an `id`: a notification has no answer");
	if (!span_same(e->inner_subtype, e->type)) return true;
	return refuse(k, PLENUM_E_UNKNOWN_METHOD, "the daemon has no such method (plenum-protocol(7) lists its verbs)");
}

static void fill(struct message_check *k) {
	struct message *m = &k->m;
	const struct members *f = &k->found;
	const char *end = k->p + k->n;
	while (span_blank(end[-1])) end--;
	m->env = (struct envelope){.type = f->method,
							   .request_id = f->id,
							   .request = f->params,
							   .session_id = f->conversation,
							   .inner_response = f->result,
							   .is_error = f->error};
	jsonrpc_settle(&m->env, (struct span){k->json.first, (size_t)(end - k->json.first)});
	m->kind = !f->method.p ? MESSAGE_ANSWER : f->id.p ? MESSAGE_REQUEST : MESSAGE_OTHER;
	m->content = f->method.p ? k->content : SPAN_NONE;
	if (m->kind == MESSAGE_REQUEST) k->request_id = f->id;
}

/* The line is one JSON object. */
static bool check_object(struct message_check *k) {
	if (!check_frame(k)) {
		if (k->found.method.p && jsonrpc_is_id(k->found.id)) { /* a request: it is refused under its id */
			k->request_id = k->found.id;
			k->m.kind = MESSAGE_REQUEST;
		}
		return false;
	}
	fill(k);
	if (!check_own(k)) return false;
	if (jsonrpc_is_own(k->m.env.type) || !k->rules->read) return true;
	const char *why = k->rules->read(&k->m);
	return !why || refuse(k, PLENUM_E_BAD_REQUEST, why);
}

/* A refused line may still be answered under its id, if that is valid JSON. */
static void salvage(struct message_check *k) {
	struct envelope e;
	if (k->n > LIMITS_REFUSED || !jsonrpc_scan(k->p, k->n, &e, k->rules->conversation)) return;
	if (!jsonrpc_is_id(e.request_id) || !valid_span(e.request_id)) return;
	k->request_id = e.request_id;
	if (e.type.p) k->m.kind = MESSAGE_REQUEST;
}

/* The pass is over. */
static bool judge(struct message_check *k) {
	if (k->json.state == VALID_BAD) {
		k->at = (size_t)(k->json.p - k->p) + 1;
		salvage(k);
		return refuse(k, k->code ? k->code : PLENUM_E_BAD_LINE, k->json.error);
	}
	if (*k->json.first == '[')
		return refuse(k, PLENUM_E_INVALID_REQUEST, "a batch is not supported: write one object on each line");
	if (*k->json.first != '{')
		return refuse(k, PLENUM_E_INVALID_REQUEST, "the line is JSON but no object: write one {...} on each line");
	return check_object(k);
}

/* --- the outside -------------------------------------------------------------------------------------------------- */

static void begin(struct message_check *k, const struct jsonrpc_rules *rules, const char *p, size_t n) {
	memset(k, 0, offsetof(struct message_check, json));
	k->rules = rules;
	k->p = p;
	k->n = n;
	valid_begin(&k->json, p, n, &watch);
}

struct message_check *jsonrpc_check_new(const struct jsonrpc_rules *rules, const char *p, size_t n) {
	struct message_check *k = malloc(sizeof *k);
	if (k) begin(k, rules, p, n);
	return k;
}

void jsonrpc_check_free(struct message_check *k) {
	free(k);
}

bool jsonrpc_check_step(struct message_check *k, size_t bytes) {
	if (k->over || !valid_run(&k->json, bytes)) return k->over;
	k->over = true;
	k->good = judge(k);
	return true;
}

bool jsonrpc_check_result(struct message_check *k, struct message *m, struct chunk *rewritten, const char **error,
						  struct span *request_id) {
	*m = k->m;
	*rewritten = CHUNK_NONE;
	*request_id = k->request_id;
	if (k->good) return true;
	m->code = k->code;
	if (k->at)
		error_set(&k->text, "%s (byte %zu of the line)", k->error, k->at);
	else
		error_set(&k->text, "%s", k->error);
	*error = k->text.text;
	return false;
}

bool jsonrpc_check(const struct jsonrpc_rules *rules, const char *p, size_t n, struct message *m,
				   struct chunk *rewritten, struct error *error, struct span *request_id) {
	struct message_check k;
	const char *text = "";
	begin(&k, rules, p, n);
	jsonrpc_check_step(&k, n);
	if (jsonrpc_check_result(&k, m, rewritten, &text, request_id)) return true;
	error_set(error, "%s", text);
	return false;
}

const char *jsonrpc_check_form(struct span response) {
	static const char *const actions[] = {"accept", "decline", "cancel", NULL};
	return span_is_one_of(span_member(span_member(response, "result"), "action"), actions)
			   ? NULL
			   : "`result.action` must be \"accept\", \"decline\" or \"cancel\"";
}
