/* SPDX-License-Identifier: MIT */
#include "fakeagent/rpc.h"

#include "base/fd.h"
#include "fakeagent/faults.h"
#include "fakeagent/out.h"
#include "fakeagent/poller.h"
#include "fakeagent/query.h"

#include <stdio.h>

static const struct rpc_protocol *spoken;
static json_t *asks; /* by the request_id of the control_request: {id, request} */
static json_int_t next_id;
static bool ready;            /* initialize was received */
static const json_t *current; /* the id of the request that runs, unless it is initialize */

void rpc_speak(const struct rpc_protocol *protocol) {
	spoken = protocol;
	asks = js_need(json_object());
	out_divert(protocol->frame);
}

bool rpc_spoken(void) {
	return spoken;
}

/* ---- messages to the client ------------------------------------------------------------------------------------ */

static json_t *begin(void) {
	return js_make("{jsonrpc:%z}", spoken->version);
}

static json_t *copy(const json_t *id) {
	return id ? json_incref((json_t *)(uintptr_t)id) : json_null();
}

static void print_late(json_t *message) {
	out_message(json_incref(message));
}

/* Print the answer to a request; faults are for those that are answered at once. */
static void answer(const json_t *id, json_t *message) {
	bool now = id && id == current;
	if (now && faults_has(FAULT_mute))
		json_decref(message);
	else if (now && faults_has(FAULT_late))
		poller_after(faults_get(FAULT_late), print_late, message);
	else
		out_message(message);
}

void rpc_reply(const json_t *id, json_t *result) {
	json_t *m = begin();
	js_put(m, "id", copy(id));
	js_put(m, "result", result);
	if (id)
		answer(id, m);
	else
		json_decref(m);
}

/* The id comes last, as with codex: a reader must not rely on the order. */
void rpc_fail(const json_t *id, int code, json_t *text) {
	json_t *m = begin();
	js_put(m, "error", js_make("{code:%i,message:%o}", code, text));
	js_put(m, "id", copy(id));
	answer(id, m);
}

void rpc_notify(const char *method, json_t *params) {
	json_t *m = begin();
	js_put(m, "method", js_make("%s", method));
	js_put(m, "params", params);
	if (!spoken->version) js_put(m, "emittedAtMs", json_integer(now_real_ms()));
	out_message(m);
}

/* Every second request has its id at the end. */
void rpc_ask(const json_t *control, const char *method, json_t *params) {
	json_t *m = begin(), *id = json_integer(next_id);
	json_object_set_new(asks, js_get(control, "request_id"),
						js_make("{id:%O,request:%O}", id, json_object_get(control, "request")));
	if (next_id % 2 == 0) js_put(m, "id", json_incref(id));
	js_put(m, "method", js_make("%s", method));
	js_put(m, "params", params);
	js_put(m, "id", id);
	next_id++;
	out_message(m);
}

json_t *rpc_withdraw(const char *request_id) {
	json_t *id = json_incref(json_object_get(json_object_get(asks, request_id), "id"));
	json_object_del(asks, request_id);
	return id;
}

/* ---- messages of the client ------------------------------------------------------------------------------------ */

static void refuse(const json_t *id, int code, const char *text) {
	if (spoken->version)
		rpc_fail(id, code, js_make("%s", text));
	else
		fprintf(stderr, "plenum-fakeagent: line ignored: %s\n", text);
}

static void take_answer(const json_t *line) {
	json_t *id = json_object_get(line, "id"), *error = json_object_get(line, "error"), *ask;
	const char *name;
	json_object_foreach(asks, name, ask) {
		if (!json_equal(json_object_get(ask, "id"), id)) continue;
		json_t *response = spoken->answer(id, json_object_get(ask, "request"), json_object_get(line, "result"), error);
		js_put(response, "request_id", js_make("%s", name));
		_cleanup_json_ json_t *control = js_make("{type:control_response,response:%o}", response);
		json_object_del(asks, name);
		query_answer(control);
		return;
	}
}

static void take_call(const char *method, json_t *id, json_t *params) {
	bool first = strcmp(method, "initialize") == 0;
	if (!ready && !first) {
		if (id) rpc_fail(id, RPC_INVALID, js_make("%s", spoken->unready));
		return;
	}
	ready = true;
	for (size_t i = 0; i < spoken->n; i++) {
		if (strcmp(spoken->methods[i].name, method) != 0) continue;
		current = first ? NULL : id;
		spoken->methods[i].run(id, params);
		current = NULL;
		return;
	}
	if (id && spoken->version)
		rpc_fail(id, RPC_METHOD, js_printf("\"Method not found\": %s", method));
	else if (id)
		rpc_fail(id, RPC_INVALID, js_printf("Invalid request: unknown variant `%s`", method));
}

void rpc_take(enum js_result r, json_t *line) {
	json_t *id = json_object_get(line, "id"), *method = json_object_get(line, "method");
	bool odd_id = id && !json_is_string(id) && !json_is_integer(id);
	if (r != JS_OK)
		refuse(NULL, RPC_PARSE, "Parse error");
	else if (!json_is_object(line) || (spoken->version && !js_is(line, "jsonrpc", spoken->version)) ||
			 (odd_id && !spoken->version) || (method && !json_is_string(method)))
		refuse(NULL, RPC_INVALID, "Invalid request");
	else if (method)
		take_call(json_string_value(method), id, json_object_get(line, "params"));
	else
		take_answer(line);
}
