/* SPDX-License-Identifier: MIT
 *
 * Lines of JSON-RPC: a checked line has the same members for the check, at once and in pieces, and for the scanner; an
 * id that is replaced changes nothing else, and comes back byte for byte; no name of the daemon is left in a line of a
 * child, and an update is found whatever stands around it. The first byte chooses the size of the pieces and the frame.
 */
#include "dialect/acp/acp.h"
#include "dialect/jsonrpc.h"
#include "dialect/jsonrpc_check.h"
#include "dialect/jsonrpc_head.h"
#include "target.h"
#include "wire/splice.h"
#include "wire/valid.h"

#include <string.h>

static const struct jsonrpc_rules strict = {.versioned = true, .conversation = "sessionId", .prompt = "prompt"};
static const struct jsonrpc_rules loose = {.conversation = "threadId", .prompt = "input"};

static bool same(const struct envelope *a, const struct envelope *b) {
	return span_same(a->type, b->type) && span_same(a->request_id, b->request_id) &&
		   span_same(a->session_id, b->session_id) && span_same(a->request, b->request) &&
		   span_same(a->response, b->response) && span_same(a->is_error, b->is_error) &&
		   span_same(a->inner_subtype, b->inner_subtype) && span_same(a->inner_request_id, b->inner_request_id) &&
		   span_same(a->inner_response, b->inner_response);
}

/* The bytes around the id stay. */
static void replace_id(const char *p, size_t n, struct span id, const struct jsonrpc_rules *rules) {
	struct envelope e;
	size_t before = (size_t)(id.p - p);
	struct chunk out = splice_replace(p, n, id, "4711", 4);
	INSIST(out.data && out.len == n - id.n + 4 && memcmp(out.data, p, before) == 0);
	INSIST(memcmp(out.data + before + 4, id.p + id.n, n - before - id.n) == 0);
	INSIST(jsonrpc_scan(out.data, out.len, &e, rules->conversation));
	struct span own = e.request_id.p ? e.request_id : e.inner_request_id;
	INSIST(own.p == out.data + before && own.n == 4);
	struct chunk back = splice_replace(out.data, out.len, own, id.p, id.n);
	INSIST(back.data && back.len == n && memcmp(back.data, p, n) == 0);
	chunk_drop(&back);
	chunk_drop(&out);
}

static void check_taken(const char *p, size_t n, const struct message *m, struct span id,
						const struct jsonrpc_rules *rules) {
	struct envelope e;
	struct head head;
	struct span object = {p, n};
	int64_t number;
	while (span_blank(*object.p)) object.p++, object.n--;
	INSIST(valid_span((struct span){p, n}));
	INSIST(jsonrpc_scan(p, n, &e, rules->conversation) && same(&e, &m->env));
	INSIST(jsonrpc_head_is_frame((struct span){p, n}) || span_member(object, "type").p);
	jsonrpc_head_read((struct chunk){NULL, p, n}, "/ask\"", &head);
	if (m->kind == MESSAGE_REQUEST || m->kind == MESSAGE_USER) {
		INSIST(span_same(id, e.request_id) && (span_is_string(id) || span_int(id, &number)));
		INSIST(head.kind == LINE_REQUEST && span_same(head.id, id));
		replace_id(p, n, id, rules);
	}
	if (m->kind == MESSAGE_ANSWER) replace_id(p, n, e.inner_request_id, rules);
}

static void check_line(const char *p, size_t n, size_t bytes, const struct jsonrpc_rules *rules) {
	struct message m, again;
	struct chunk rewritten;
	struct span id, id_again;
	struct error error = {""};
	const char *text = "";
	bool ok = jsonrpc_check(rules, p, n, &m, &rewritten, &error, &id);
	INSIST(!rewritten.data && (ok || (error.text[0] && m.code)));
	INSIST(!id.p || valid_span(id));
	struct message_check *k = jsonrpc_check_new(rules, p, n);
	INSIST(k);
	while (!jsonrpc_check_step(k, bytes)) {}
	INSIST(jsonrpc_check_result(k, &again, &rewritten, &text, &id_again) == ok);
	INSIST(strcmp(text, error.text) == 0 && again.code == m.code && again.kind == m.kind);
	INSIST(span_same(id, id_again) && same(&again.env, &m.env) && span_same(again.content, m.content));
	if (ok) check_taken(p, n, &m, id, rules);
	jsonrpc_check_free(k);
}

/* The subtype of an update is found in the pass over the line; here by a walk over the objects. */
static void update(const char *p, size_t n) {
	struct envelope e;
	struct span key, value, last = SPAN_NONE;
	if (!acp_dialect.scan(p, n, &e)) return;
	bool updates = span_equals(e.type, "session/update");
	for (size_t at = 0; updates && span_next_member(e.request, &at, &key, &value);)
		if (span_spells(key, "update", true)) last = value;
	INSIST(span_same(e.subtype, span_member(last, "sessionUpdate")));
	if (e.type.p) INSIST(span_same(e.session_id, span_member(e.request, "sessionId")));
}

static void disown(const char *p, size_t n) {
	struct envelope e, own;
	struct chunk line = {NULL, p, n};
	if (!acp_dialect.scan(p, n, &e)) return;
	struct chunk out = jsonrpc_frame.disown(line), answer = jsonrpc_frame.disown_answer(line, false);
	INSIST(out.data && answer.data);
	INSIST(e.reserved ? out.data != p : out.data == p || !e.request.p); /* without a method it is no update */
	INSIST(acp_dialect.scan(out.data, out.len, &own) && !own.reserved);
	INSIST(jsonrpc_scan(answer.data, answer.len, &own, "sessionId"));
	chunk_drop(&out);
	chunk_drop(&answer);
}

/* What is said of an ask and its answer, whatever the bytes are. */
static void ask(const char *p, size_t n) {
	const struct dialect *d = &acp_dialect;
	struct envelope e;
	struct changes changes;
	if (!d->scan(p, n, &e) || d->kind(&e) != LINE_REQUEST) return;
	enum ask_kind kind = d->ask_kind(&e);
	(void)d->summary(e.request);
	for (int part = ASK_PART_TOOL; part <= ASK_PART_SUBJECT; part++)
		(void)d->ask_part(kind, e.request, (enum ask_part)part);
	if (d->check_answer(kind, e.request, e.request)) return;
	INSIST(d->decision(kind, e.request, e.request));
	d->read_changes(kind, e.request, e.request, &changes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	if (size == 0) return 0;
	const char *p = (const char *)data + 1;
	check_line(p, size - 1, 1 + data[0] / 2, data[0] & 1 ? &loose : &strict);
	update(p, size - 1);
	disown(p, size - 1);
	ask(p, size - 1);
	return 0;
}
