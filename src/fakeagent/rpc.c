/* SPDX-License-Identifier: MIT */
#include "fakeagent/rpc.h"

#include "base/fd.h"
#include "fakeagent/backlog.h"
#include "fakeagent/out.h"
#include "fakeagent/query.h"

#include <stdio.h>

static const struct rpc_protocol *spoken;
static json_t *asks; /* by the request_id of the control_request: {id, request} */
static json_int_t next_id;
static bool ready;            /* initialize was received */
static const json_t *current; /* the id of the request that runs, unless it is initialize */

void rpc_speak(const struct rpc_protocol *protocol) {
	spoken = protocol;
	asks = js_make("{}");
	out_divert(protocol->frame);
}

/* ---- messages to the client ------------------------------------------------------------------------------------ */

static json_t *id_of(const json_t *id) {
	return id ? json_incref((json_t *)(uintptr_t)id) : json_null();
}

void rpc_reply(const json_t *id, json_t *result) {
	json_t *m = js_make("{jsonrpc:%z,id:%o,result:%o}", spoken->version, id_of(id), result);
	if (id)
		out_answer(m, id == current, id == current);
	else
		json_decref(m);
}

/* The id comes last, as with codex: a reader must not rely on the order. */
bool rpc_fail(const json_t *id, int code, json_t *text) {
	bool now = id && id == current;
	out_answer(js_make("{jsonrpc:%z,error:{code:%i,message:%o},id:%o}", spoken->version, code, text, id_of(id)), now,
			   now);
	return false;
}

void rpc_notify(const char *method, json_t *params) {
	out_message(js_make("{jsonrpc:%z,method:%s,params:%o,emittedAtMs:%o}", spoken->version, method, params,
						spoken->version ? NULL : json_integer(now_real_ms())));
}

/* Every second request has its id at the end. */
void rpc_ask(const json_t *control, const char *method, json_t *params) {
	json_t *m = js_make("{jsonrpc:%z}", spoken->version), *id = json_integer(next_id);
	js_put(asks, js_get(control, "request_id"), js_make("{id:%O,request:%O}", id, json_object_get(control, "request")));
	if (next_id++ % 2 == 0) json_object_set(m, "id", id);
	js_merge(m, js_make("{method:%s,params:%o,id:%o}", method, params, id));
	out_message(m);
}

json_t *rpc_withdraw(const char *request_id) {
	json_t *id = json_incref(json_object_get(json_object_get(asks, request_id), "id"));
	json_object_del(asks, request_id);
	return id;
}

/* ---- messages of the client ------------------------------------------------------------------------------------ */

bool rpc_may_open(const json_t *id, const char *cwd) {
	if (agent.running || !backlog_empty()) return rpc_fail(id, RPC_INVALID, js_string(spoken->busy));
	return !cwd || chdir(cwd) == 0 || rpc_fail(id, RPC_INTERNAL, js_printf("%scannot enter %s", spoken->internal, cwd));
}

json_t *rpc_prompt(const json_t *blocks) {
	json_t *uuid = js_uuid(), *content = js_make("[]");
	JS_EACH (block, blocks) {
		const char *uri = js_get(block.v, "uri") ? js_get(block.v, "uri") : js_get(block.v, "resource.uri");
		json_t *text = json_incref(json_object_get(block.v, "text"));
		if (!json_is_string(text)) js_set(&text, js_printf("[%s]", uri ? uri : js_get(block.v, "type")));
		js_add(content, js_make("{type:text,text:%o}", text));
	}
	return js_make("{type:user,uuid:%o,message:{role:user,content:%o}}", uuid, content);
}

json_t *rpc_answer(json_t *result, json_t *error) {
	const char *text = js_get(error, "message");
	return error ? js_make("{subtype:error,error:%s}", text ? text : "unknown error")
				 : js_make("{subtype:success,response:%O}", result);
}

static void refuse(int code, const char *text) {
	if (spoken->version)
		rpc_fail(NULL, code, js_string(text));
	else
		fprintf(stderr, "plenum-fakeagent: line ignored: %s\n", text);
}

static void take_answer(const json_t *line) {
	json_t *id = json_object_get(line, "id"), *ask;
	const char *name;
	json_object_foreach(asks, name, ask) {
		if (!json_equal(json_object_get(ask, "id"), id)) continue;
		json_t *response = spoken->answer(id, json_object_get(ask, "request"), json_object_get(line, "result"),
										  json_object_get(line, "error"));
		js_put(response, "request_id", js_string(name));
		_cleanup_json_ json_t *control = js_make("{type:control_response,response:%o}", response);
		json_object_del(asks, name);
		query_answer(control);
		return;
	}
}

static void take_call(const char *method, json_t *id, json_t *params) {
	bool first = strcmp(method, "initialize") == 0;
	if (!ready && !first) {
		if (id) rpc_fail(id, RPC_INVALID, js_string(spoken->unready));
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
		refuse(RPC_PARSE, "Parse error");
	else if (!json_is_object(line) || (spoken->version && !js_is(line, "jsonrpc", spoken->version)) ||
			 (odd_id && !spoken->version) || (method && !json_is_string(method)))
		refuse(RPC_INVALID, "Invalid request");
	else if (method)
		take_call(json_string_value(method), id, json_object_get(line, "params"));
	else
		take_answer(line);
}
