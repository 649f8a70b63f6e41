/* SPDX-License-Identifier: MIT */
#include "fakeagent/toolserver.h"

#include "fakeagent/query.h"

#define TIMEOUT 60000

static json_t *servers; /* name -> {status, next, tools, serverInfo} */

static json_t *server_of(const char *name) {
	if (!servers) servers = js_make("{}");
	return json_object_get(servers, name);
}

/* Takes params. Without a server: a notification; else the message has the next id of it. */
static struct query *send(const char *name, const char *method, json_t *params, json_t *server, int64_t timeout) {
	json_t *id = server ? json_integer(js_number(server, "next")) : NULL;
	if (server) js_put(server, "next", json_integer(json_integer_value(id) + 1));
	return query_send(js_make("{subtype:mcp_message,server_name:%s,message:{jsonrpc:%s,method:%s,params:%o,id:%o}}",
							  name, "2.0", method, params, id),
					  timeout);
}

static void on_tools(struct query *q) {
	json_t *server = server_of(js_get(q->request, "server_name"));
	json_t *tools = js_at(query_payload(q), "mcp_response.result.tools");
	if (!server || q->end != QUERY_ANSWERED) return;
	js_put(server, "status", js_make("connected"));
	if (json_is_array(tools)) json_object_set(server, "tools", tools);
}

static void on_hello(struct query *q) {
	const char *name = js_get(q->request, "server_name");
	json_t *server = server_of(name), *result = js_at(query_payload(q), "mcp_response.result");
	if (!server || q->end != QUERY_ANSWERED) return;
	if (!result) {
		js_put(server, "status", js_make("failed"));
		return;
	}
	js_put(server, "serverInfo", json_incref(json_object_get(result, "serverInfo")));
	query_then(send(name, "notifications/initialized", NULL, NULL, TIMEOUT), NULL, NULL);
	query_then(send(name, "tools/list", NULL, server, TIMEOUT), on_tools, NULL);
}

bool toolserver_connect(const char *name) {
	json_t *server = server_of(name);
	if (!server) return false;
	js_put(server, "status", js_make("pending"));
	json_t *hello = js_make("{protocolVersion:%s,capabilities:{},clientInfo:{name:claude-code,version:%s}}",
							"2025-11-25", agent.compat);
	query_then(send(name, "initialize", hello, server, TIMEOUT), on_hello, NULL);
	return true;
}

bool toolserver_add(const char *name) {
	if (!name || server_of(name)) return false;
	js_put(servers, name, js_make("{status:pending,next:0,tools:[]}"));
	return toolserver_connect(name);
}

json_t *toolserver_configure(json_t *configs) {
	json_t *one, *added = js_make("[]");
	const char *name;
	json_object_foreach(configs, name, one) {
		if (js_is(one, "type", "sdk") && toolserver_add(name)) js_add(added, js_string(name));
	}
	return added;
}

json_t *toolserver_replace(json_t *wanted) {
	json_t *one, *removed = js_make("[]");
	const char *name;
	void *next;
	json_object_foreach_safe(servers, next, name, one) {
		if (json_object_get(wanted, name)) continue;
		js_add(removed, js_string(name));
		json_object_del(servers, name);
	}
	return js_make("{added:%o,removed:%o,errors:{}}", toolserver_configure(wanted), removed);
}

json_t *toolserver_list(bool whole) {
	json_t *list = js_make("[]"), *server;
	const char *name;
	json_object_foreach(servers, name, server) {
		json_t *one = js_view(server, "{name:%s,status:$status}", name);
		if (whole)
			js_merge(one,
					 js_view(server, "{tools:$tools,transport:sdk,scope:dynamic,source:sdk,serverInfo:$serverInfo}"));
		js_add(list, one);
	}
	return list;
}

json_t *toolserver_tools(void) {
	json_t *list = js_make("[]"), *server;
	const char *name;
	json_object_foreach(servers, name, server) {
		JS_EACH (tool, json_object_get(server, "tools"))
			if (js_get(tool.v, "name")) js_add(list, js_printf("mcp__%s__%s", name, js_get(tool.v, "name")));
	}
	return list;
}

static json_t *take_result(const struct query *q) {
	const json_t *reply = json_object_get(query_payload(q), "mcp_response"), *result = json_object_get(reply, "result");
	const char *error = query_error(q) ? query_error(q) : js_get(reply, "error.message");
	json_t *content = json_object_get(result, "content");
	if (!error && !result) error = "the server gave no result";
	if (error || !content)
		return js_make("{content:%s,failed:%b}", error ? error : "", error || js_true(result, "isError"));
	return js_make("{content:%O,failed:%b}", content, js_true(result, "isError"));
}

json_t *toolserver_call(const json_t *use) {
	const char *tool = js_get(use, "name"), *end = strstr(tool + 5, "__"), *limit = getenv("MCP_TOOL_TIMEOUT");
	_cleanup_free_ char *name = end ? strndup(tool + 5, (size_t)(end - tool) - 5) : NULL;
	json_t *server = server_of(name), *out;
	if (!server) return js_make("{content:%o,failed:true}", js_printf("Error: No such tool available: %s", tool));
	json_int_t rpc = js_number(server, "next");
	json_t *params = js_view(use, "{name:%s,arguments:$input,_meta:{claudecode/toolUseId:$id,progressToken:%I}}",
							 end + 2, rpc);
	struct query *q = send(name, "tools/call", params, server, limit && atol(limit) > 0 ? atol(limit) : 100000000);
	query_wait(q);
	if (q->end == QUERY_ANSWERED) {
		out = take_result(q);
	} else {
		out = js_make("{content:%o,failed:true,aborted:%b}", js_printf("The call of %s was not answered", tool),
					  q->end == QUERY_CANCELLED);
		if (q->end != QUERY_CLOSED)
			query_then(
				send(name, "notifications/cancelled", js_make("{requestId:%I,reason:no answer}", rpc), NULL, TIMEOUT),
				NULL, NULL);
	}
	query_free(q);
	return out;
}
