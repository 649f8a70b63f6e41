/* SPDX-License-Identifier: MIT */
#include "fakeagent/rpc.h"

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

void rpc_reply(const struct rpc_call *c, json_t *result) {
	bool now = c->id == current;
	json_t *m = js_make("{jsonrpc:%z,id:%O,result:%o}", spoken->version, c->id, result);
	if (c->id)
		out_answer(m, now, now);
	else
		json_decref(m);
}

/* The id comes last, as with codex: a reader must not rely on the order. */
bool rpc_fail(const struct rpc_call *c, int code, const char *fmt, ...) {
	bool now = c->id && c->id == current;
	va_list ap;
	va_start(ap, fmt);
	_cleanup_free_ char *text = str_vprintf(fmt, ap);
	va_end(ap);
	out_answer(js_make("{jsonrpc:%z,error:{code:%i,message:%s},id:%o}", spoken->version, code, text,
					   c->id ? json_incref(c->id) : json_null()),
			   now, now);
	return false;
}

void rpc_notify(const char *method, json_t *params) {
	out_message(js_make("{jsonrpc:%z,method:%s,params:%o,emittedAtMs:%o}", spoken->version, method, params,
						spoken->version ? NULL : json_integer(now_real_ms())));
}

/* Every second request has its id at the end. */
void rpc_ask(const json_t *control, const char *method, json_t *params) {
	bool last = next_id % 2;
	_cleanup_json_ json_t *id = json_integer(next_id++);
	js_put(asks, js_get(control, "request_id"), js_view(control, "{id:%O,request:$request}", id));
	out_message(js_make("{jsonrpc:%z,id:%O,method:%s,params:%o,id:%O}", spoken->version, last ? NULL : id, method,
						params, last ? id : NULL));
}

json_t *rpc_withdraw(const char *request_id) {
	json_t *id = json_incref(json_object_get(json_object_get(asks, request_id), "id"));
	json_object_del(asks, request_id);
	return id;
}

bool rpc_may_open(const struct rpc_call *c) {
	const char *cwd = js_get(c->params, "cwd");
	if (agent.running || !backlog_empty()) return rpc_fail(c, RPC_INVALID, "%s", spoken->busy);
	return !cwd || chdir(cwd) == 0 || rpc_fail(c, RPC_INTERNAL, "%scannot enter %s", spoken->internal, cwd);
}

json_t *rpc_prompt(const json_t *blocks) {
	json_t *content = js_make("[]");
	JS_EACH (block, blocks) {
		const char *uri = js_get(block.v, "uri") ? js_get(block.v, "uri") : js_get(block.v, "resource.uri");
		json_t *text = js_get(block.v, "text") ? js_view(block.v, "$text")
											   : js_printf("[%s]", uri ? uri : js_get(block.v, "type"));
		js_add(content, js_make("{type:text,text:%o}", text));
	}
	return js_make("{type:user,uuid:%u,message:{role:user,content:%o}}", content);
}

json_t *rpc_answer(json_t *result, json_t *error) {
	const char *text = js_get(error, "message");
	return error ? js_make("{subtype:error,error:%s}", text ? text : "unknown error")
				 : js_make("{subtype:success,response:%O}", result);
}

json_t *rpc_allow(const json_t *request, bool always) {
	return js_view(request, always ? "{subtype:success,response:{behavior:allow,updatedInput:$input,"
									 "updatedPermissions:$permission_suggestions}}"
								   : "{subtype:success,response:{behavior:allow,updatedInput:$input}}");
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

static void take_call(const struct rpc_call *c) {
	bool first = strcmp(c->method, "initialize") == 0;
	bool reopens = js_word(c->method, "session/load session/resume thread/resume");
	const struct rpc_method *m = spoken->methods;
	while (m->name && strcmp(m->name, c->method) != 0) m++;
	ready |= first;
	current = first || !m->name || !ready ? NULL : c->id;
	if ((first && agent_has("refuse-initialize")) || (reopens && agent_has("refuse-load")))
		rpc_fail(c, RPC_INTERNAL, "%sa fault refuses it", spoken->internal);
	else if (ready && m->name)
		m->run(c);
	else if (c->id && !ready)
		rpc_fail(c, RPC_INVALID, "%s", spoken->unready);
	else if (c->id && spoken->version)
		rpc_fail(c, RPC_METHOD, "\"Method not found\": %s", c->method);
	else if (c->id)
		rpc_fail(c, RPC_INVALID, "Invalid request: unknown variant `%s`", c->method);
	current = NULL;
}

void rpc_take(enum js_result r, json_t *line) {
	json_t *id = json_object_get(line, "id"), *method = json_object_get(line, "method");
	struct rpc_call c = {json_string_value(method), id, json_object_get(line, "params")}, none = {0};
	bool odd_id = id && !json_is_string(id) && !json_is_integer(id);
	bool odd = !json_is_object(line) || (spoken->version && !js_is(line, "jsonrpc", spoken->version)) ||
			   (odd_id && !spoken->version) || (method && !c.method);
	const char *why = r == JS_OK ? "Invalid request" : "Parse error";
	if (odd && spoken->version)
		rpc_fail(&none, r == JS_OK ? RPC_INVALID : RPC_PARSE, "%s", why);
	else if (odd)
		fprintf(stderr, "plenum-fakeagent: line ignored: %s\n", why);
	else if (method)
		take_call(&c);
	else
		take_answer(line);
}
