/* SPDX-License-Identifier: MIT
 *
 * A dialect in JSON-RPC through its table, for the fuzz target that defines `target`: a client's line never passes the
 * gate for a lesser peer than its plain spelling does; an answer that is taken is one, as jansson reads it, too; a line
 * of the child is read without harm, and the values noted of it are JSON.
 */
#pragma once

#include "core/gate.h"
#include "dialect/dialect.h"
#include "target.h"

#include <jansson.h>
#include <string.h>

struct target {
	const struct dialect *d;
	const char *asked; /* the body of an ask of ASK_TOOL */
	/* Return true for an answer to it. */
	bool (*is_valid)(const json_t *answer);
};

static const struct target target;

/* The answer as another parser reads it. */
static bool is_valid_answer(struct span line) {
	json_t *root = json_loadb(line.p, line.n, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
	if (!root) return true; /* of a kind that jansson does not take: lone surrogates, great depth */
	bool good = json_object_get(root, "error") || target.is_valid(root);
	json_decref(root);
	return good;
}

static void answer(const struct message *m) {
	struct span request = span_of(target.asked);
	struct changes ch;
	if (m->kind != MESSAGE_ANSWER || target.d->check_answer(ASK_TOOL, request, m->env.response)) return;
	INSIST(is_valid_answer(m->env.response));
	target.d->read_changes(ASK_TOOL, request, m->env.response, &ch);
	INSIST(target.d->decision(ASK_TOOL, request, m->env.response) && ch.n_grants <= 1);
}

/* -1: no line that is taken. */
static int passes(enum trust who, const char *p, size_t n) {
	struct gate gate;
	struct gate_verdict v;
	struct message m;
	struct chunk rewritten;
	struct span id;
	struct error error;
	gate_init(&gate, target.d);
	gate.n = GATE_SEEN_MAX; /* logs nothing */
	if (!target.d->check(p, n, &m, &rewritten, &error, &id)) return -1;
	gate_judge(&gate, who, &m, (struct span){p, n}, &v);
	INSIST(v.row && v.passes == !v.thing[0] && !rewritten.data);
	answer(&m);
	return v.passes;
}

static void of_client(const char *p, size_t size) {
	int own = passes(TRUST_OWN, p, size), driver = passes(TRUST_DRIVER, p, size);
	INSIST(own != 0);
	INSIST(driver == passes(TRUST_AGENT, p, size));
	INSIST(passes(TRUST_OBSERVER, p, size) <= driver);
	if (own < 0 || !driver) return;
	json_t *root = json_loadb(p, size, JSON_ALLOW_NUL, NULL);
	char *plain = root ? json_dumps(root, JSON_COMPACT) : NULL;
	if (plain) INSIST(passes(TRUST_DRIVER, plain, strlen(plain)) != 0);
	free(plain);
	json_decref(root);
}

static void put_all(const struct envelope *e, struct memo *memo) {
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	struct dialect_start start = {.cwd = "/", .conversation = "c", .memo = memo};
	if (target.d->put_echo) target.d->put_echo(&b, e, "c", (struct span){"{}", 2});
	target.d->put_noted(&b, memo, "c");
	target.d->put_interrupt(&b, "1", "c", memo);
	target.d->put_cancel(&b, (struct span){"1", 1}, e->request);
	target.d->put_tool_deny(&b, e->request, "");
	target.d->put_tool_allow(&b, e->request);
	for (unsigned n = 0; n < 3; n++) target.d->put_step(&b, "1", n, &start);
	buf_free(&b);
}

static void of_child(const char *p, size_t size) {
	struct envelope e;
	struct memo memo = {0};
	struct report r = {0};
	struct buf why = BUF_INIT(SIZE_MAX / 4);
	if (!target.d->scan(p, size, &e)) return;
	enum line_kind kind = target.d->kind(&e);
	target.d->read((struct chunk){NULL, p, size}, kind, &e, &r);
	target.d->read_result((struct span){p, size});
	target.d->remember(&memo, &e);
	for (unsigned n = 0; n < 3 && kind == LINE_RESPONSE; n++) target.d->take_step(n, &e, &memo, &why);
	put_all(&e, &memo);
	char *text = memo_text(&memo, true);
	json_error_t error = {0};
	json_t *root = text ? json_loads(text, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &error) : NULL;
	bool refuses = json_error_code(&error) == json_error_numeric_overflow;          /* 1e400 is JSON */
	INSIST(!text || root || refuses || strstr(text, "\\u") || strlen(text) > 2048); /* lone surrogates, depth */
	json_decref(root);
	free(text);
	buf_free(&why);
	memo_free(&memo);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	const char *p = (const char *)data;
	of_client(p, size);
	of_child(p, size);
	return 0;
}
