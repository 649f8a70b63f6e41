/* SPDX-License-Identifier: MIT */
#include "fakeagent/acp.h"

#include "fakeagent/acp_update.h"
#include "fakeagent/backlog.h"
#include "fakeagent/conversation.h"
#include "fakeagent/faults.h"
#include "fakeagent/phase.h"
#include "fakeagent/policy.h"
#include "fakeagent/query.h"
#include "fakeagent/rpc.h"

#define NOT_FOUND (-32002)

static bool opened;     /* a session is open; its id is conversation_id() */
static bool named;      /* its title was printed */
static json_t *prompts; /* without a reply, oldest first: {id, uuid} */

/* ---- the session ----------------------------------------------------------------------------------------------- */

static json_t *modes(void) {
	return js_make("{currentModeId:%s,availableModes:[{id:default,name:Always Ask},{id:acceptEdits,name:Accept Edits},"
				   "{id:plan,name:Plan Mode},{id:dontAsk,name:Don't Ask}]}",
				   policy_mode());
}

static json_t *options(void) {
	return js_make("[{id:mode,name:Mode,category:mode,type:select,currentValue:%s,options:[{value:default,name:Always "
				   "Ask},{value:acceptEdits,name:Accept Edits},{value:plan,name:Plan Mode},{value:dontAsk,name:Don't "
				   "Ask}]},{id:model,name:Model,category:model,type:select,currentValue:%s,options:[{value:fake-model,"
				   "name:Fake},{value:fake-small,name:Fake small}]}]",
				   policy_mode(), conversation_model());
}

static json_t *state(void) {
	return js_make("{modes:%o,configOptions:%o}", modes(), options());
}

static void put_commands(void) {
	acp_update_put(js_make("{sessionUpdate:available_commands_update,availableCommands:[{name:compact,description:"
						   "Summarise the conversation,input:null}]}"));
}

static void put_options(void) {
	acp_update_state(js_make("{sessionUpdate:config_option_update,configOptions:%o}", options()));
}

/* Check the members that every opening has, and enter the directory. Return false if it was answered by an error. */
static bool enter(json_t *id, const json_t *params) {
	const char *cwd = js_get(params, "cwd");
	if (!cwd || *cwd != '/' || !json_is_array(json_object_get(params, "mcpServers")))
		rpc_fail(id, RPC_PARAMS, js_make("%s", "Invalid params: cwd (an absolute path) and mcpServers are required"));
	else if (phase_running() || !backlog_empty())
		rpc_fail(id, RPC_INVALID, js_make("%s", "A turn is running in another session"));
	else if (chdir(cwd) < 0)
		rpc_fail(id, RPC_INTERNAL, js_printf("Internal error: cannot enter %s", cwd));
	else
		return opened = true;
	return false;
}

static void run_new(json_t *id, json_t *params) {
	char made[37];
	if (!enter(id, params)) return;
	js_uuid(made);
	conversation_reset(made);
	named = false;
	json_t *result = state(), *first = js_make("{sessionId:%s}", made);
	json_object_update(first, result);
	json_decref(result);
	rpc_reply(id, first);
	put_commands();
}

static bool reopen(json_t *id, const json_t *params) {
	const char *name = js_get(params, "sessionId");
	if (faults_has(FAULT_refuse_load)) {
		rpc_fail(id, RPC_INTERNAL, js_make("Internal error: a fault refuses it"));
		return false;
	}
	if (!enter(id, params)) return false;
	if (name && conversation_open(name)) return named = true;
	rpc_fail(id, NOT_FOUND, js_printf("Resource not found: %s", name ? name : "no sessionId"));
	return false;
}

static void run_load(json_t *id, json_t *params) {
	if (!reopen(id, params)) return;
	acp_update_history();
	rpc_reply(id, state());
	put_commands();
}

static void run_resume(json_t *id, json_t *params) {
	if (!reopen(id, params)) return;
	rpc_reply(id, state());
	put_commands();
}

static void run_list(json_t *id, json_t *params) {
	(void)params;
	rpc_reply(id, js_make("{sessions:%o}", conversation_list()));
}

static bool is_open(json_t *id, const json_t *params) {
	const char *name = js_get(params, "sessionId");
	if (opened && js_same(name, conversation_id())) return true;
	if (id) rpc_fail(id, NOT_FOUND, js_printf("Resource not found: %s", name ? name : "no sessionId"));
	return false;
}

/* ---- modes and options ----------------------------------------------------------------------------------------- */

static bool set_mode(json_t *id, const char *mode) {
	if (!policy_set_mode(mode)) return true;
	rpc_fail(id, RPC_PARAMS, js_printf("Invalid params: no such mode: %s", mode ? mode : "none"));
	return false;
}

static void run_set_mode(json_t *id, json_t *params) {
	if (!is_open(id, params) || !set_mode(id, js_get(params, "modeId"))) return;
	put_options();
	rpc_reply(id, js_need(json_object()));
}

static void run_set_option(json_t *id, json_t *params) {
	const char *name = js_get(params, "configId"), *value = js_get(params, "value");
	bool mode = js_same(name, "mode"), model = js_same(name, "model") && value;
	if (!is_open(id, params)) return;
	if (!mode && !model) {
		rpc_fail(id, RPC_PARAMS, js_printf("Invalid params: no such option: %s", name ? name : "none"));
		return;
	}
	if (mode && !set_mode(id, value)) return;
	if (model) conversation_set_model(value);
	if (mode) acp_update_state(js_make("{sessionUpdate:current_mode_update,currentModeId:%s}", policy_mode()));
	rpc_reply(id, js_make("{configOptions:%o}", options()));
}

/* ---- prompts --------------------------------------------------------------------------------------------------- */

/* Reply to the oldest prompts that `which` names (NULL: all): with a stop reason, or an error text. */
static void end_prompts(const json_t *which, const char *stop_reason, const json_t *usage, const char *error) {
	size_t i = 0;
	while (i < json_array_size(prompts)) {
		json_t *prompt = json_array_get(prompts, i), *id = json_object_get(prompt, "id");
		if (which && !js_has(which, js_get(prompt, "uuid"))) {
			i++;
			continue;
		}
		if (error)
			rpc_fail(id, RPC_INTERNAL, js_printf("Internal error: %s", error));
		else
			rpc_reply(id, js_make("{stopReason:%s,usage:%O}", stop_reason, usage));
		json_array_remove(prompts, i);
	}
}

static json_t *block_of(const json_t *block) {
	const char *text = js_get(block, "text"), *uri = js_get(block, "uri");
	if (!uri) uri = js_get(json_object_get(block, "resource"), "uri");
	return text ? js_make("{type:text,text:%O}", json_object_get(block, "text"))
				: js_make("{type:text,text:%o}", js_printf("[%s]", uri ? uri : js_get(block, "type")));
}

/* A prompt within a turn is accepted, and the earlier ones return at once. */
static void run_prompt(json_t *id, json_t *params) {
	char uuid[37];
	json_t *list = json_object_get(params, "prompt"), *block, *content;
	size_t i;
	if (!is_open(id, params)) return;
	if (!json_is_array(list)) {
		rpc_fail(id, RPC_PARAMS, js_make("Invalid params: prompt is no array"));
		return;
	}
	content = js_need(json_array());
	json_array_foreach(list, i, block) json_array_append_new(content, block_of(block));
	end_prompts(NULL, "end_turn", NULL, NULL);
	js_uuid(uuid);
	json_array_append_new(prompts, js_make("{id:%O,uuid:%s}", id, uuid));
	_cleanup_json_ json_t *line = js_make("{type:user,uuid:%s,message:{role:user,content:%o}}", uuid, content);
	backlog_add(line);
}

static void interrupt(void) {
	size_t i;
	json_t *uuid;
	_cleanup_json_ json_t *held = backlog_uuids();
	json_array_foreach(held, i, uuid) backlog_cancel(json_string_value(uuid));
	end_prompts(held, "cancelled", NULL, NULL);
	if (!phase_running()) return;
	phase_abort(PHASE_INTERRUPT);
	query_end_turn();
}

static void run_cancel(json_t *id, json_t *params) {
	if (!id && is_open(NULL, params)) interrupt();
}

/* Of all requests only a prompt can be open. */
static void run_cancel_request(json_t *id, json_t *params) {
	size_t i;
	json_t *prompt;
	(void)id;
	json_array_foreach(prompts, i, prompt) {
		if (!json_equal(json_object_get(prompt, "id"), json_object_get(params, "requestId"))) continue;
		interrupt();
		return;
	}
}

static void finish(const json_t *result) {
	json_t *usage = json_object_get(result, "usage"), *text = json_object_get(result, "result");
	json_int_t in = json_integer_value(json_object_get(usage, "input_tokens"));
	json_int_t out = json_integer_value(json_object_get(usage, "output_tokens"));
	bool api = js_is(result, "terminal_reason", "api_error");
	const char *stop = js_is(result, "subtype", "error_during_execution") ? "cancelled"
					   : js_is(result, "subtype", "error_max_turns")      ? "max_turn_requests"
																		  : "end_turn";
	acp_update_state(js_make("{sessionUpdate:usage_update,used:%I,size:200000,cost:{amount:%O,currency:USD}}", in + out,
							 json_object_get(result, "total_cost_usd")));
	if (!named) acp_update_put(js_make("{sessionUpdate:session_info_update,title:A scripted session}"));
	named = true;
	_cleanup_json_ json_t *used = js_make("{inputTokens:%I,outputTokens:%I,totalTokens:%I}", in, out, in + out);
	const json_t *uuids = json_object_get(result, "user_message_uuids");
	if (uuids) end_prompts(uuids, stop, used, api ? json_string_value(text) : NULL);
}

/* ---- the connection -------------------------------------------------------------------------------------------- */

static void run_initialize(json_t *id, json_t *params) {
	(void)params;
	if (faults_has(FAULT_refuse_initialize)) {
		rpc_fail(id, RPC_INTERNAL, js_make("Internal error: a fault refuses it"));
		return;
	}
	rpc_reply(id, js_make("{protocolVersion:1,agentCapabilities:{loadSession:true,promptCapabilities:{image:true,"
						  "embeddedContext:true},mcpCapabilities:{http:true,sse:true},sessionCapabilities:{list:{},"
						  "resume:{},close:{}}},agentInfo:{name:plenum-fakeagent,title:Fake agent,version:%s},"
						  "authMethods:[]}",
						  PLENUM_VERSION));
}

static void run_nothing(json_t *id, json_t *params) {
	(void)params;
	rpc_reply(id, js_need(json_object()));
}

static void run_close(json_t *id, json_t *params) {
	if (!is_open(id, params)) return;
	interrupt();
	opened = false;
	rpc_reply(id, js_need(json_object()));
}

static void take_frame(json_t *frame) {
	if (!acp_update_frame(frame) && js_is(frame, "type", "result")) finish(frame);
	json_decref(frame);
}

void acp_start(void) {
	static const struct rpc_method methods[] = {
		{"initialize", run_initialize},
		{"authenticate", run_nothing},
		{"logout", run_nothing},
		{"session/new", run_new},
		{"session/load", run_load},
		{"session/resume", run_resume},
		{"session/list", run_list},
		{"session/close", run_close},
		{"session/set_mode", run_set_mode},
		{"session/set_config_option", run_set_option},
		{"session/prompt", run_prompt},
		{"session/cancel", run_cancel},
		{"$/cancel_request", run_cancel_request},
	};
	static const struct rpc_protocol protocol = {
		"2.0", "Invalid request: not initialized", methods, ARRAY_SIZE(methods), take_frame, acp_update_answer,
	};
	prompts = js_need(json_array());
	rpc_speak(&protocol);
}
