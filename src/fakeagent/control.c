/* SPDX-License-Identifier: MIT */
#include "fakeagent/control.h"

#include "fakeagent/background.h"
#include "fakeagent/backlog.h"
#include "fakeagent/callback.h"
#include "fakeagent/conversation.h"
#include "fakeagent/model.h"
#include "fakeagent/out.h"
#include "fakeagent/permission.h"
#include "fakeagent/query.h"
#include "fakeagent/toolserver.h"

static bool again;             /* again: by the running request, not for the first time */
static const char *error_code; /* of the running request, "" without one; NULL: it has not failed */

/* Each of these takes the body of a request and returns the payload of its answer, NULL for none, or a refusal. */

/* Takes text. */
static json_t *refuse(const char *code, json_t *text) {
	error_code = code;
	return text;
}

static json_t *initialize(const json_t *body) {
	json_t *hooks = json_object_get(body, "hooks");
	const char *config = agent_flag("mcp-config");
	again = agent.initialized;
	if (json_is_null(hooks) || (again && agent.old)) hooks = NULL;
	if (hooks && !callback_replace(hooks))
		return refuse("", js_string("initialize: hooks must map hook events to arrays of matchers carrying "
									"hookCallbackIds arrays and string matchers"));
	agent.initialized = true;
	model_dialogs(json_object_get(body, "supportedDialogKinds"));
	JS_EACH (name, json_object_get(body, "sdkMcpServers")) toolserver_add(json_string_value(name.v));
	if (!again && config) {
		_cleanup_json_ json_t *all = *config == '{' ? json_loads(config, 0, NULL) : json_load_file(config, 0, NULL);
		json_decref(toolserver_configure(json_object_get(all, "mcpServers")));
	}
	json_t *p = js_make(
		"{commands:[{name:clear,description:Forget the conversation,argumentHint:%s},"
		"{name:compact,description:Summarise the conversation,argumentHint:%s}],"
		"agents:[{name:general-purpose,description:A helper}],output_style:default,available_output_styles:[default],"
		"models:[{value:default,displayName:Default,description:The scripted model}],"
		"account:{tokenSource:none,apiKeySource:none},pid:%i,fast_mode_state:off}",
		"", "", (int)getpid());
	if (!agent.old)
		js_merge(p, js_make("{claude_code_version:%s,current_permission_mode:%s,session_state:%s,hooks_applied:%t,"
							"hook_on_failure_supported:true,capabilities:[msg_lifecycle_v1]}",
							agent.compat, agent.mode, agent.state, hooks != NULL));
	json_object_update(p, json_object_get(agent.script, "initialize"));
	return p;
}

static json_t *interrupt(const json_t *body) {
	if (!agent.aborted) query_end_turn(ABORT_INTERRUPT);
	json_t *gone = js_true(body, "cancel_queued") && !agent.old ? backlog_clear() : NULL;
	return agent.old ? NULL : js_make("{cancelled:%o,still_queued:%o}", gone, backlog_uuids());
}

static json_t *set_mode(const json_t *body) {
	const char *code = permission_set_mode(js_get(body, "mode"));
	if (!code) return js_make("{mode:%s}", agent.mode);
	return refuse(code, js_printf("Cannot set permission mode%s",
								  strcmp(code, "invalid_mode") == 0
									  ? ": must be one of acceptEdits, auto, bypassPermissions, default, dontAsk, plan"
									  : " to bypassPermissions because the session was not launched with "
										"--dangerously-skip-permissions"));
}

static json_t *run(const char *name, const json_t *body) {
	const char *model = js_get(body, "model"), *server = js_get(body, "serverName"),
			   *uuid = js_get(body, "message_uuid");
	int tokens = (int)json_array_size(agent.messages) * 10;
	if (js_same(name, "initialize")) return initialize(body);
	if (js_same(name, "interrupt")) return interrupt(body);
	if (js_same(name, "cancel_async_message")) {
		bool gone = uuid && backlog_cancel(uuid);
		return js_make("{cancelled:%b,message_uuid:%z}", gone, gone && !agent.old ? uuid : NULL);
	}
	if (js_same(name, "set_permission_mode")) return set_mode(body);
	if (js_same(name, "set_model")) {
		conversation_set_model(js_same(model, "default") ? NULL : model);
		return agent.old ? NULL : js_make("{model:%s}", agent.model);
	}
	if (js_same(name, "apply_flag_settings") && !json_is_object(json_object_get(body, "settings")))
		return refuse("invalid_request", js_string("apply_flag_settings: settings is no object"));
	if (js_same(name, "rename_session") && !js_get(body, "title"))
		return refuse("invalid_request", js_string("rename_session: title is missing"));
	if (js_same(name, "stop_task")) background_stop(js_get(body, "task_id"));
	if (js_word(name, "stop_task background_tasks")) return json_object();
	if (js_same(name, "mcp_status")) return js_make("{mcpServers:%o}", toolserver_list(true));
	if (js_same(name, "mcp_set_servers")) return toolserver_replace(json_object_get(body, "servers"));
	if (js_same(name, "mcp_reconnect") && !toolserver_connect(server))
		return refuse("", js_printf("Server not found: %s", server ? server : "undefined"));
	if (js_same(name, "get_context_usage"))
		return js_make("{categories:[{name:Messages,tokens:%i,color:blue}],totalTokens:%i,maxTokens:200000,"
					   "rawMaxTokens:200000,percentage:%f,model:%s}",
					   tokens, tokens, tokens / 2000.0, agent.model);
	if (js_same(name, "rewind_files") && !js_same(getenv("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING"), "true"))
		return refuse("", js_string("File rewinding is not enabled."));
	if (js_same(name, "rewind_files")) return js_make("{canRewind:true,filesChanged:[],insertions:0,deletions:0}");
	if (js_word(name, "apply_flag_settings rename_session mcp_reconnect end_session keep_alive mcp_message "
					  "set_has_subscribers set_max_thinking_tokens"))
		return NULL;
	return refuse("unsupported_request", js_printf("Unsupported control request subtype: %s", name));
}

/* Print the consequences of a request, after its answer. */
static void go_on(const char *subtype, const json_t *body) {
	if (js_same(subtype, "end_session")) exit(0);
	if (js_same(subtype, "initialize") && again) background_changed();
	if (js_same(subtype, "set_permission_mode")) out_mode();
	if (js_same(subtype, "rename_session"))
		out_frame(js_view(body, "{type:system,subtype:session_title_changed,title:$title}"));
}

/* The id may be inside `request`, its old place: such a request is run and answered without an id. */
void control_take(const json_t *line) {
	const json_t *body = json_object_get(line, "request");
	const char *name = js_get(body, "subtype") ? js_get(body, "subtype") : "undefined";
	bool first = strcmp(name, "initialize") == 0;
	error_code = NULL;
	json_t *payload = run(name, body), *response;
	if (error_code)
		response = js_view(line, "{subtype:error,request_id:$request_id,error:%o,error_code:%z}", payload,
						   *error_code && !agent.old ? error_code : NULL);
	else
		response = js_view(line, "{subtype:success,request_id:$request_id,response:%o}", payload);
	if (first && !error_code && (again || !agent.old))
		js_merge(response, js_make("{pending_permission_requests:%o,pending_user_dialog_requests:%o}",
								   query_list("can_use_tool"), query_list("request_user_dialog")));
	out_answer(js_make("{type:control_response,response:%o}", response), !first, true);
	if (!error_code) go_on(name, body);
}
