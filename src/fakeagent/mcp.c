/* SPDX-License-Identifier: MIT */
#include "fakeagent/mcp.h"

#include "fakeagent/asks.h"

#include <string.h>

static json_t *server_of(const struct agent *a, const char *name) {
	return json_object_get(a->servers, name);
}

static int next_id(json_t *server) {
	int id = (int)json_integer_value(json_object_get(server, "next"));
	json_object_set_new(server, "next", json_integer(id + 1));
	return id;
}

/* id < 0: a notification. */
static struct ask *send(struct agent *a, const char *name, const char *method, json_t *params, int id,
						int64_t timeout) {
	json_t *message = js_need(json_pack("{s:s,s:s,s:o*}", "jsonrpc", "2.0", "method", method, "params", params));
	if (id >= 0) json_object_set_new(message, "id", json_integer(id));
	return asks_send(a, json_pack("{s:s,s:s,s:o}", "subtype", "mcp_message", "server_name", name, "message", message),
					 timeout);
}

static void nothing(struct agent *a, struct ask *ask) {
	(void)a;
	(void)ask;
}

static void notify(struct agent *a, const char *name, const char *method, json_t *params) {
	asks_then(a, send(a, name, method, params, -1, 60000), nothing, NULL);
}

static json_t *result_of(const struct ask *ask) {
	return json_object_get(json_object_get(asks_payload(ask), "mcp_response"), "result");
}

static void set_status(struct agent *a, const struct ask *ask, const char *status) {
	json_t *server = server_of(a, js_get(ask->request, "server_name"));
	if (server) json_object_set_new(server, "status", json_string(status));
}

static void on_tools(struct agent *a, struct ask *ask) {
	json_t *server = server_of(a, js_get(ask->request, "server_name"));
	json_t *tools = json_object_get(result_of(ask), "tools");
	if (!server || ask->how != ASK_ANSWERED) return;
	set_status(a, ask, "connected");
	if (json_is_array(tools)) json_object_set(server, "tools", tools);
}

static void on_hello(struct agent *a, struct ask *ask) {
	const char *name = js_get(ask->request, "server_name");
	json_t *server = server_of(a, name), *result = result_of(ask);
	if (!server || ask->how != ASK_ANSWERED) return;
	if (!result) {
		set_status(a, ask, "failed");
		return;
	}
	json_t *info = json_object_get(result, "serverInfo");
	if (info) json_object_set(server, "serverInfo", info);
	notify(a, name, "notifications/initialized", NULL);
	struct ask *list = send(a, name, "tools/list", NULL, next_id(server), 60000);
	list->of_turn = false;
	asks_then(a, list, on_tools, NULL);
}

void mcp_connect(struct agent *a, const char *name) {
	json_t *server = server_of(a, name);
	json_object_set_new(server, "status", json_string("pending"));
	struct ask *ask = send(a, name, "initialize",
						   json_pack("{s:s,s:{},s:{s:s,s:s}}", "protocolVersion", "2025-11-25", "capabilities",
									 "clientInfo", "name", "claude-code", "version", a->opt->version_name),
						   next_id(server), 60000);
	ask->of_turn = false;
	asks_then(a, ask, on_hello, NULL);
}

void mcp_add(struct agent *a, const char *name) {
	if (!name || server_of(a, name)) return;
	json_object_set_new(a->servers, name, json_pack("{s:s,s:i,s:[]}", "status", "pending", "next", 0, "tools"));
	mcp_connect(a, name);
}

void mcp_add_all(struct agent *a, const json_t *names) {
	size_t i;
	json_t *name;
	json_array_foreach(names, i, name) mcp_add(a, json_string_value(name));
}

void mcp_configure(struct agent *a, const char *config) {
	json_error_t err;
	_cleanup_json_ json_t *all = *config == '{' ? json_loads(config, 0, &err) : json_load_file(config, 0, &err);
	const char *name;
	json_t *one;
	json_object_foreach(json_object_get(all, "mcpServers"), name, one) {
		const char *type = js_get(one, "type");
		if (type && strcmp(type, "sdk") == 0) mcp_add(a, name);
	}
}

/* ---- calls ----------------------------------------------------------------------------------------------------- */

/* mcp__NAME__TOOL: the length of NAME, and TOOL. */
static const char *split(const char *tool, size_t *n) {
	if (strncmp(tool, "mcp__", 5) != 0) return NULL;
	const char *at = strstr(tool + 5, "__");
	if (!at) return NULL;
	*n = (size_t)(at - tool) - 5;
	return at + 2;
}

json_t *mcp_source(const char *tool) {
	size_t n;
	if (!split(tool, &n)) return NULL;
	return json_pack("{s:s%,s:s}", "name", tool + 5, n, "source", "sdk");
}

static int64_t call_timeout(void) {
	const char *ms = getenv("MCP_TOOL_TIMEOUT");
	return ms && atol(ms) > 0 ? atol(ms) : 100000000;
}

static void fail(struct tool_output *o, json_t *text) {
	o->content = text;
	o->failed = true;
}

static void take_result(struct tool_output *o, const struct ask *ask) {
	json_t *reply = json_object_get(asks_payload(ask), "mcp_response");
	json_t *result = json_object_get(reply, "result"), *content = json_object_get(result, "content");
	const char *error = asks_error(ask), *message = js_get(json_object_get(reply, "error"), "message");
	if (error || message || !result) {
		fail(o, js_printf("%s", error ? error : message ? message : "the server gave no result"));
		return;
	}
	o->content = content ? json_incref(content) : js_printf("%s", "");
	o->failed = js_true(result, "isError");
}

void mcp_call(struct agent *a, const char *tool, json_t *input, const char *id, struct tool_output *o) {
	size_t n;
	const char *of = split(tool, &n);
	_cleanup_free_ char *name = of ? strndup(tool + 5, n) : NULL;
	json_t *server = name ? server_of(a, name) : NULL;
	if (!server) {
		fail(o, js_printf("Error: No such tool available: %s", tool));
		return;
	}
	int rpc = next_id(server);
	struct ask *ask = send(a, name, "tools/call",
						   json_pack("{s:s,s:O,s:{s:s,s:i}}", "name", of, "arguments", input, "_meta",
									 "claudecode/toolUseId", id, "progressToken", rpc),
						   rpc, call_timeout());
	asks_wait(a, ask);
	if (ask->how == ASK_ANSWERED) {
		take_result(o, ask);
	} else {
		fail(o, js_printf("The call of %s was not answered", tool));
		o->aborted = ask->how == ASK_CANCELLED;
		if (ask->how != ASK_CLOSED)
			notify(a, name, "notifications/cancelled", json_pack("{s:i,s:s}", "requestId", rpc, "reason", "no answer"));
	}
	asks_free(ask);
}
