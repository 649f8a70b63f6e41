/* SPDX-License-Identifier: MIT */
#include "fakeagent/control.h"

#include "fakeagent/background.h"
#include "fakeagent/backlog.h"
#include "fakeagent/callback.h"
#include "fakeagent/conversation.h"
#include "fakeagent/model.h"
#include "fakeagent/out.h"
#include "fakeagent/permission.h"
#include "fakeagent/poller.h"
#include "fakeagent/query.h"
#include "fakeagent/toolserver.h"

struct request {
	const json_t *body;
	json_t *id; /* any JSON value; NULL: none */
};

static bool initialized;

bool control_initialized(void) {
	return initialized;
}

/* ---- answering ------------------------------------------------------------------------------------------------- */

static void answer(const struct request *r, json_t *response) {
	out_answer(js_make("{type:control_response,response:%o}", response), !js_is(r->body, "subtype", "initialize"),
			   true);
}

static void succeed(const struct request *r, json_t *payload) {
	answer(r, js_make("{subtype:success,request_id:%O,response:%o}", r->id, payload));
}

/* Return NULL for the old CLI, which omits it. */
static json_t *unless_old(json_t *payload) {
	if (!agent.old) return payload;
	json_decref(payload);
	return NULL;
}

static void fail(const struct request *r, const char *code, json_t *text) {
	answer(r, js_make("{subtype:error,request_id:%O,error:%o,error_code:%z}", r->id, text, agent.old ? NULL : code));
}

/* ---- initialize ------------------------------------------------------------------------------------------------ */

static json_t *describe(bool applied) {
	static const char *const dated[] = {"current_permission_mode",   "session_state",
										"claude_code_version",       "hooks_applied",
										"hook_on_failure_supported", "capabilities"};
	json_t *p = js_make(
		"{commands:[{name:clear,description:Forget the conversation,argumentHint:%s},"
		"{name:compact,description:Summarise the conversation,argumentHint:%s}],"
		"agents:[{name:general-purpose,description:A helper}],output_style:default,available_output_styles:[default],"
		"models:[{value:default,displayName:Default,description:The scripted model}],"
		"account:{tokenSource:none,apiKeySource:none},claude_code_version:%s,pid:%i,current_permission_mode:%s,"
		"session_state:%s,fast_mode_state:off,hooks_applied:%o,hook_on_failure_supported:true,"
		"capabilities:[msg_lifecycle_v1]}",
		"", "", agent.compat, (int)getpid(), agent.mode, agent.state, applied ? json_true() : NULL);
	for (size_t i = 0; agent.old && i < ARRAY_SIZE(dated); i++) json_object_del(p, dated[i]);
	json_object_update(p, json_object_get(agent.script, "initialize"));
	return p;
}

static void do_initialize(const struct request *r) {
	bool again = initialized;
	json_t *hooks = json_object_get(r->body, "hooks");
	if (json_is_null(hooks) || (again && agent.old)) hooks = NULL;
	if (hooks && !callback_replace(hooks)) {
		fail(r, NULL,
			 js_string("initialize: hooks must map hook events to arrays of matchers carrying hookCallbackIds arrays "
					   "and string matchers"));
		return;
	}
	initialized = true;
	model_dialogs(json_object_get(r->body, "supportedDialogKinds"));
	JS_EACH (name, json_object_get(r->body, "sdkMcpServers")) toolserver_add(json_string_value(name.v));
	if (!again && agent_flag("mcp-config")) {
		const char *config = agent_flag("mcp-config");
		_cleanup_json_ json_t *all = *config == '{' ? json_loads(config, 0, NULL) : json_load_file(config, 0, NULL);
		toolserver_configure(json_object_get(all, "mcpServers"));
	}
	json_t *response = js_make("{subtype:success,request_id:%O,response:%o}", r->id, describe(hooks));
	if (again || !agent.old) {
		js_put(response, "pending_permission_requests", query_list("can_use_tool"));
		js_put(response, "pending_user_dialog_requests", query_list("request_user_dialog"));
	}
	answer(r, response);
	if (again) background_changed();
}

/* ---- the turn -------------------------------------------------------------------------------------------------- */

static void do_interrupt(const struct request *r) {
	if (!agent.aborted) query_end_turn(ABORT_INTERRUPT);
	json_t *gone = js_true(r->body, "cancel_queued") && !agent.old ? backlog_clear() : NULL;
	succeed(r, unless_old(js_make("{cancelled:%o,still_queued:%o}", gone, backlog_uuids())));
}

static void do_cancel_message(const struct request *r) {
	const char *uuid = js_get(r->body, "message_uuid");
	bool gone = uuid && backlog_cancel(uuid);
	succeed(r, js_make("{cancelled:%b,message_uuid:%z}", gone, gone && !agent.old ? uuid : NULL));
}

static void do_end_session(const struct request *r) {
	succeed(r, NULL);
	exit(0);
}

static void do_stop_task(const struct request *r) {
	background_stop(js_get(r->body, "task_id"));
	succeed(r, json_object());
}

/* ---- settings -------------------------------------------------------------------------------------------------- */

static void do_mode(const struct request *r) {
	const char *code = permission_set_mode(js_get(r->body, "mode"));
	if (code) {
		fail(r, code,
			 js_printf("Cannot set permission mode%s",
					   strcmp(code, "invalid_mode") == 0
						   ? ": must be one of acceptEdits, auto, bypassPermissions, default, dontAsk, plan"
						   : " to bypassPermissions because the session was not launched with "
							 "--dangerously-skip-permissions"));
		return;
	}
	succeed(r, js_make("{mode:%s}", agent.mode));
	out_mode();
}

static void do_model(const struct request *r) {
	const char *model = js_get(r->body, "model");
	conversation_set_model(js_same(model, "default") ? NULL : model);
	succeed(r, unless_old(js_make("{model:%s}", agent.model)));
}

static void do_flags(const struct request *r) {
	if (json_is_object(json_object_get(r->body, "settings")))
		succeed(r, NULL);
	else
		fail(r, "invalid_request", js_printf("apply_flag_settings: settings is no object"));
}

static void do_rename(const struct request *r) {
	const char *title = js_get(r->body, "title");
	if (!title) {
		fail(r, "invalid_request", js_printf("rename_session: title is missing"));
		return;
	}
	succeed(r, NULL);
	out_emit("{type:system,subtype:session_title_changed,title:%s}", title);
}

/* ---- MCP ------------------------------------------------------------------------------------------------------- */

static void do_mcp_status(const struct request *r) {
	succeed(r, js_make("{mcpServers:%o}", toolserver_list(true)));
}

static void do_set_servers(const struct request *r) {
	succeed(r, toolserver_replace(json_object_get(r->body, "servers")));
}

static void do_reconnect(const struct request *r) {
	const char *name = js_get(r->body, "serverName");
	if (toolserver_connect(name))
		succeed(r, NULL);
	else
		fail(r, NULL, js_printf("Server not found: %s", name ? name : "undefined"));
}

/* ---- the rest -------------------------------------------------------------------------------------------------- */

static void do_context(const struct request *r) {
	int n = (int)json_array_size(agent.messages) * 10;
	succeed(r, js_make("{categories:[{name:Messages,tokens:%i,color:blue}],totalTokens:%i,maxTokens:200000,"
					   "rawMaxTokens:200000,percentage:%f,model:%s}",
					   n, n, n / 2000.0, agent.model));
}

static void do_background(const struct request *r) {
	succeed(r, json_object());
}

static void do_rewind(const struct request *r) {
	if (js_same(getenv("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING"), "true"))
		succeed(r, js_make("{canRewind:true,filesChanged:[],insertions:0,deletions:0}"));
	else
		fail(r, NULL, js_printf("File rewinding is not enabled."));
}

static const struct handler {
	const char *subtype;
	void (*run)(const struct request *r); /* NULL: accepted without effect */
} HANDLERS[] = {
	{"initialize", do_initialize},
	{"interrupt", do_interrupt},
	{"cancel_async_message", do_cancel_message},
	{"end_session", do_end_session},
	{"set_permission_mode", do_mode},
	{"set_model", do_model},
	{"set_max_thinking_tokens", NULL},
	{"apply_flag_settings", do_flags},
	{"rename_session", do_rename},
	{"set_has_subscribers", NULL},
	{"mcp_status", do_mcp_status},
	{"mcp_set_servers", do_set_servers},
	{"mcp_reconnect", do_reconnect},
	{"mcp_message", NULL},
	{"get_context_usage", do_context},
	{"rewind_files", do_rewind},
	{"stop_task", do_stop_task},
	{"background_tasks", do_background},
	{"keep_alive", NULL},
};

/* The id may be inside `request`, its old place: such a request is run and answered without an id. */
void control_take(const json_t *line) {
	struct request r = {json_object_get(line, "request"), json_object_get(line, "request_id")};
	const char *subtype = js_get(r.body, "subtype");
	for (size_t i = 0; i < ARRAY_SIZE(HANDLERS); i++) {
		if (!js_same(HANDLERS[i].subtype, subtype)) continue;
		if (HANDLERS[i].run)
			HANDLERS[i].run(&r);
		else
			succeed(&r, NULL);
		return;
	}
	fail(&r, "unsupported_request",
		 js_printf("Unsupported control request subtype: %s", subtype ? subtype : "undefined"));
}
