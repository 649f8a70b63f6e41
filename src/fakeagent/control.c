/* SPDX-License-Identifier: MIT */
#include "fakeagent/control.h"

#include "base/str.h"
#include "fakeagent/asks.h"
#include "fakeagent/background.h"
#include "fakeagent/frames.h"
#include "fakeagent/hooks.h"
#include "fakeagent/mcp.h"
#include "fakeagent/permission.h"
#include "fakeagent/pump.h"
#include "fakeagent/queue.h"
#include "fakeagent/scenario.h"

#include <string.h>

struct request {
	struct agent *a;
	json_t *body;
	json_t *id; /* any JSON value; NULL: none */
};

/* ---- answering ------------------------------------------------------------------------------------------------- */

static void print_late(struct agent *a, json_t *frame) {
	out_json(&a->out, json_incref(frame));
}

static void print(struct agent *a, json_t *frame) {
	if (a->faults.late > 0)
		pump_after(a, a->faults.late, print_late, frame);
	else
		out_json(&a->out, frame);
}

static void answer(struct request *r, json_t *response) {
	const char *subtype = js_get(r->body, "subtype");
	json_t *frame = js_need(json_pack("{s:s,s:o}", "type", "control_response", "response", response));
	if (r->a->faults.mute && subtype && strcmp(subtype, "initialize") != 0)
		json_decref(frame);
	else
		print(r->a, frame);
}

static json_t *begin(struct request *r, const char *subtype) {
	json_t *response = js_need(json_pack("{s:s}", "subtype", subtype));
	if (r->id) json_object_set(response, "request_id", r->id);
	return response;
}

static void succeed(struct request *r, json_t *payload) {
	json_t *response = begin(r, "success");
	js_put(response, "response", payload);
	answer(r, response);
}

static void fail(struct request *r, const char *code, json_t *text) {
	json_t *response = begin(r, "error");
	json_object_set_new(response, "error", text);
	if (code && !r->a->opt->old) json_object_set_new(response, "error_code", json_string(code));
	answer(r, response);
}

/* ---- initialize ------------------------------------------------------------------------------------------------ */

static json_t *initialize_payload(struct request *r, bool applied) {
	struct agent *a = r->a;
	json_t *p = json_pack(
		"{s:[{s:s,s:s,s:s},{s:s,s:s,s:s}],s:[{s:s,s:s}],s:s,s:[s],s:[{s:s,s:s,s:s}],s:{s:s,s:s},s:s,s:i,s:s,s:s,s:s}",
		"commands", "name", "clear", "description", "Forget the conversation", "argumentHint", "", "name", "compact",
		"description", "Summarise the conversation", "argumentHint", "", "agents", "name", "general-purpose",
		"description", "A helper", "output_style", "default", "available_output_styles", "default", "models", "value",
		"default", "displayName", "Default", "description", "The scripted model", "account", "tokenSource", "none",
		"apiKeySource", "none", "claude_code_version", a->opt->version_name, "pid", (int)getpid(),
		"current_permission_mode", a->mode, "session_state", a->state ? a->state : "idle", "fast_mode_state", "off");
	js_need(p);
	if (applied && !a->opt->old) json_object_set_new(p, "hooks_applied", json_true());
	if (!a->opt->old) json_object_set_new(p, "hook_on_failure_supported", json_true());
	if (!a->opt->old) json_object_set_new(p, "capabilities", json_pack("[s]", "msg_lifecycle_v1"));
	if (a->opt->old) {
		json_object_del(p, "current_permission_mode");
		json_object_del(p, "session_state");
		json_object_del(p, "claude_code_version");
	}
	scenario_merge(a->scenario, "initialize", p);
	return p;
}

/* False: the table is malformed and the request was refused. */
static bool take_hooks(struct request *r, bool *applied) {
	json_t *hooks = json_object_get(r->body, "hooks");
	*applied = false;
	if (!hooks || json_is_null(hooks) || (r->a->initialized && r->a->opt->old)) return true;
	if (!hooks_valid(hooks)) {
		fail(r, NULL,
			 js_printf(
				 "initialize: hooks must map hook events to arrays of matchers carrying hookCallbackIds arrays and "
				 "string matchers"));
		return false;
	}
	hooks_replace(r->a, hooks);
	*applied = true;
	return true;
}

static void put_pending(struct agent *a, json_t *response) {
	json_object_set_new(response, "pending_permission_requests", asks_open(a, "can_use_tool"));
	json_object_set_new(response, "pending_user_dialog_requests", asks_open(a, "request_user_dialog"));
	json_t *elicitations = asks_open(a, "elicitation");
	if (json_array_size(elicitations)) json_object_set(response, "pending_elicitation_requests", elicitations);
	json_decref(elicitations);
}

static void do_initialize(struct request *r) {
	struct agent *a = r->a;
	bool applied, again = a->initialized;
	json_t *kinds = json_object_get(r->body, "supportedDialogKinds");
	if (!take_hooks(r, &applied)) return;
	a->initialized = true;
	if (json_is_array(kinds) && !a->dialogs) a->dialogs = json_incref(kinds);
	mcp_add_all(a, json_object_get(r->body, "sdkMcpServers"));
	if (!again && a->opt->mcp_config) mcp_configure(a, a->opt->mcp_config);
	json_t *response = begin(r, "success");
	json_object_set_new(response, "response", initialize_payload(r, applied));
	if (again || !a->opt->old) put_pending(a, response);
	answer(r, response);
	if (again && !a->opt->old) background_changed(a);
}

/* ---- the turn -------------------------------------------------------------------------------------------------- */

static json_t *cancel_queue(struct agent *a) {
	json_t *gone = queue_uuids(a), *uuid;
	size_t i;
	json_array_foreach(gone, i, uuid) queue_cancel(a, json_string_value(uuid));
	return gone;
}

static void do_interrupt(struct request *r) {
	struct agent *a = r->a;
	json_t *p = js_need(json_object());
	if (a->turn && !a->abort) {
		a->abort = ABORT_INTERRUPT;
		asks_settle_turn(a, ASK_CANCELLED);
	}
	if (!a->opt->old) {
		if (js_true(r->body, "cancel_queued")) json_object_set_new(p, "cancelled", cancel_queue(a));
		json_object_set_new(p, "still_queued", queue_uuids(a));
	}
	if (a->opt->old) {
		json_decref(p);
		p = NULL;
	}
	succeed(r, p);
}

static void do_cancel_message(struct request *r) {
	const char *uuid = js_get(r->body, "message_uuid");
	bool gone = uuid && queue_cancel(r->a, uuid);
	bool said = gone && !r->a->opt->old;
	succeed(r, json_pack("{s:b,s:s*}", "cancelled", gone, "message_uuid", said ? uuid : NULL));
}

static void do_end_session(struct request *r) {
	succeed(r, NULL);
	agent_exit(r->a, 0);
}

/* ---- settings -------------------------------------------------------------------------------------------------- */

static void do_mode(struct request *r) {
	const char *code, *mode = js_get(r->body, "mode");
	if (!permission_mode(r->a, mode, &code)) {
		bool unknown = strcmp(code, "invalid_mode") == 0;
		fail(r, code,
			 js_printf("Cannot set permission mode%s", unknown ? ": must be one of acceptEdits, auto, "
																 "bypassPermissions, default, dontAsk, plan"
															   : " to bypassPermissions because the session was "
																 "not launched with --dangerously-skip-permissions"));
		return;
	}
	succeed(r, json_pack("{s:s}", "mode", r->a->mode));
	frames_status(r->a, NULL, NULL);
}

static void do_model(struct request *r) {
	const char *model = js_get(r->body, "model");
	bool reset = !model || strcmp(model, "default") == 0;
	free(r->a->model);
	r->a->model = str_dup(reset ? "fake-model" : model);
	succeed(r, r->a->opt->old ? NULL : json_pack("{s:s}", "model", r->a->model));
}

static void do_nothing(struct request *r) {
	succeed(r, NULL);
}

static void do_empty(struct request *r) {
	succeed(r, json_object());
}

static void do_flags(struct request *r) {
	if (json_is_object(json_object_get(r->body, "settings")))
		succeed(r, NULL);
	else
		fail(r, "invalid_request", js_printf("apply_flag_settings: settings is no object"));
}

static void do_rename(struct request *r) {
	const char *title = js_get(r->body, "title");
	if (!title) {
		fail(r, "invalid_request", js_printf("rename_session: title is missing"));
		return;
	}
	succeed(r, NULL);
	frames_emit(r->a, json_pack("{s:s,s:s,s:s}", "type", "system", "subtype", "session_title_changed", "title", title));
}

/* ---- MCP ------------------------------------------------------------------------------------------------------- */

static void do_mcp_status(struct request *r) {
	json_t *list = frames_servers(r->a), *one;
	size_t i;
	json_array_foreach(list, i, one) {
		json_t *server = json_object_get(r->a->servers, js_get(one, "name"));
		json_object_set(one, "tools", json_object_get(server, "tools"));
		json_object_set_new(one, "transport", json_string("sdk"));
		json_object_set_new(one, "scope", json_string("dynamic"));
		json_object_set_new(one, "source", json_string("sdk"));
		json_t *info = json_object_get(server, "serverInfo");
		if (info) json_object_set(one, "serverInfo", info);
	}
	succeed(r, json_pack("{s:o}", "mcpServers", list));
}

static json_t *drop_servers(struct agent *a, const json_t *wanted) {
	json_t *gone = js_need(json_array()), *server;
	const char *name;
	void *next;
	json_object_foreach_safe(a->servers, next, name, server) {
		if (json_object_get(wanted, name)) continue;
		json_array_append_new(gone, json_string(name));
		json_object_del(a->servers, name);
	}
	return gone;
}

static void do_set_servers(struct request *r) {
	json_t *wanted = json_object_get(r->body, "servers"), *config, *added = js_need(json_array());
	const char *name;
	json_t *removed = drop_servers(r->a, wanted);
	json_object_foreach(wanted, name, config) {
		const char *type = js_get(config, "type");
		if (json_object_get(r->a->servers, name) || !type || strcmp(type, "sdk") != 0) continue;
		json_array_append_new(added, json_string(name));
		mcp_add(r->a, name);
	}
	succeed(r, json_pack("{s:o,s:o,s:{}}", "added", added, "removed", removed, "errors"));
}

static bool find_server(struct request *r) {
	const char *name = js_get(r->body, "serverName");
	if (name && json_object_get(r->a->servers, name)) return true;
	fail(r, NULL, js_printf("Server not found: %s", name ? name : "undefined"));
	return false;
}

static void do_reconnect(struct request *r) {
	if (!find_server(r)) return;
	mcp_connect(r->a, js_get(r->body, "serverName"));
	succeed(r, NULL);
}

static void do_toggle(struct request *r) {
	if (!find_server(r)) return;
	const char *name = js_get(r->body, "serverName");
	json_t *server = json_object_get(r->a->servers, name);
	if (js_true(r->body, "enabled"))
		mcp_connect(r->a, name);
	else
		json_object_set_new(server, "status", json_string("disabled"));
	succeed(r, NULL);
}

/* ---- the rest -------------------------------------------------------------------------------------------------- */

static void do_context(struct request *r) {
	int n = (int)json_array_size(r->a->conv.messages);
	succeed(r, json_pack("{s:[{s:s,s:i,s:s}],s:i,s:i,s:i,s:f,s:s}", "categories", "name", "Messages", "tokens", n * 10,
						 "color", "blue", "totalTokens", n * 10, "maxTokens", 200000, "rawMaxTokens", 200000,
						 "percentage", n * 10 / 2000.0, "model", r->a->model));
}

static void do_rewind(struct request *r) {
	const char *on = getenv("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING");
	if (!on || strcmp(on, "true") != 0) {
		fail(r, NULL, js_printf("File rewinding is not enabled."));
		return;
	}
	succeed(r, json_pack("{s:b,s:[],s:i,s:i}", "canRewind", 1, "filesChanged", "insertions", 0, "deletions", 0));
}

static void do_stop_task(struct request *r) {
	background_stop(r->a, js_get(r->body, "task_id"));
	succeed(r, json_object());
}

static const struct handler {
	const char *subtype;
	void (*run)(struct request *r);
} HANDLERS[] = {
	{"initialize", do_initialize},
	{"interrupt", do_interrupt},
	{"cancel_async_message", do_cancel_message},
	{"end_session", do_end_session},
	{"set_permission_mode", do_mode},
	{"set_model", do_model},
	{"set_max_thinking_tokens", do_nothing},
	{"apply_flag_settings", do_flags},
	{"rename_session", do_rename},
	{"set_has_subscribers", do_nothing},
	{"mcp_status", do_mcp_status},
	{"mcp_set_servers", do_set_servers},
	{"mcp_reconnect", do_reconnect},
	{"mcp_toggle", do_toggle},
	{"mcp_message", do_nothing},
	{"get_context_usage", do_context},
	{"rewind_files", do_rewind},
	{"stop_task", do_stop_task},
	{"background_tasks", do_empty},
	{"keep_alive", do_nothing},
};

/* The old place of the id, inside `request`, is executed and answered without one. */
void control_take(struct agent *a, json_t *line) {
	struct request r = {a, json_object_get(line, "request"), json_object_get(line, "request_id")};
	const char *subtype = js_get(r.body, "subtype");
	for (size_t i = 0; subtype && i < ARRAY_SIZE(HANDLERS); i++) {
		if (strcmp(HANDLERS[i].subtype, subtype) != 0) continue;
		HANDLERS[i].run(&r);
		return;
	}
	fail(&r, "unsupported_request",
		 js_printf("Unsupported control request subtype: %s", subtype ? subtype : "undefined"));
}

void control_cancel(struct agent *a, json_t *line) {
	(void)a;
	(void)line;
}
