/* SPDX-License-Identifier: MIT */
#include "fakeagent/acp.h"

#include "fakeagent/backlog.h"
#include "fakeagent/conversation.h"
#include "fakeagent/permission.h"
#include "fakeagent/query.h"
#include "fakeagent/rpc.h"

#define NOT_FOUND (-32002)
#define OPTIONS                                                                                                        \
	"[{kind:allow_always,name:Always Allow,optionId:allow_always},{kind:allow_once,name:Allow,optionId:allow},"        \
	"{kind:reject_once,name:Reject,optionId:reject},{kind:reject_always,name:Never Allow,optionId:reject_always}]"

static bool opened;     /* a session is open; its id is agent.id */
static bool named;      /* its title was printed */
static json_t *prompts; /* without a reply, oldest first: {id, uuid} */

/* ---- updates --------------------------------------------------------------------------------------------------- */

/* Takes update. */
static void put(json_t *update) {
	rpc_notify("session/update", js_make("{sessionId:%s,update:%o}", agent.id, update));
}

/* The same with the sessionId at the end. */
static void put_state(json_t *update) {
	rpc_notify("session/update", js_make("{update:%o,sessionId:%s}", update, agent.id));
}

static void put_chunk(const char *kind, json_t *text) {
	if (text) put(js_make("{sessionUpdate:%s,content:{type:text,text:%O}}", kind, text));
}

/* Describe a call; `update`: the value of sessionUpdate, or NULL. */
static json_t *describe(const char *update, const char *name, json_t *input, const json_t *id) {
	static const char *const kinds[][2] = {
		{"Bash", "execute"}, {"Read", "read"},   {"Write", "edit"},     {"Edit", "edit"},
		{"Glob", "search"},  {"Grep", "search"}, {"WebFetch", "fetch"}, {"ExitPlanMode", "switch_mode"},
		{"Task", "think"},
	};
	const char *path = js_get(input, "file_path"), *command = js_get(input, "command"), *kind = "other";
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (js_same(kinds[i][0], name)) kind = kinds[i][1];
	json_t *title = js_same(name, "Bash") && command ? js_string(command)
					: path                           ? js_printf("%s %s", name, path)
													 : js_string(name);
	return js_make(
		"{sessionUpdate:%z,toolCallId:%O,title:%o,kind:%s,status:pending,rawInput:%O,content:[],locations:%o,"
		"_meta:{claudeCode:{toolName:%s}}}",
		update, id, title, kind, input, path ? js_make("[{path:%s}]", path) : js_make("[]"), name);
}

static void put_tools(const json_t *content) {
	JS_EACH (block, content) {
		json_t *b = block.v;
		if (js_is(b, "type", "tool_use"))
			put(describe("tool_call", js_get(b, "name"), json_object_get(b, "input"), json_object_get(b, "id")));
		if (!js_is(b, "type", "tool_result")) continue;
		_cleanup_json_ json_t *text = js_content(json_object_get(b, "content"));
		put(js_make("{sessionUpdate:tool_call_update,toolCallId:%O,status:%s,rawOutput:%O,"
					"content:[{type:content,content:{type:text,text:%O}}]}",
					json_object_get(b, "tool_use_id"), js_true(b, "is_error") ? "failed" : "completed", text, text));
	}
}

static void put_history(void) {
	JS_EACH (message, agent.messages) {
		const char *kind = js_is(message.v, "role", "user") ? "user_message_chunk" : "agent_message_chunk";
		_cleanup_json_ json_t *blocks = js_blocks(json_object_get(message.v, "content"));
		JS_EACH (block, blocks) {
			const char *text = js_get(block.v, "text");
			put_chunk("agent_thought_chunk", json_object_get(block.v, "thinking"));
			if (text && strncmp(text, "[Request interrupted", 20) != 0)
				put_chunk(kind, json_object_get(block.v, "text"));
		}
		put_tools(blocks);
	}
}

/* ---- the session ----------------------------------------------------------------------------------------------- */

static json_t *options(void) {
	return js_make("[{id:mode,name:Mode,category:mode,type:select,currentValue:%s,options:[{value:default,name:Always "
				   "Ask},{value:acceptEdits,name:Accept Edits},{value:plan,name:Plan Mode},{value:dontAsk,name:Don't "
				   "Ask}]},{id:model,name:Model,category:model,type:select,currentValue:%s,options:[{value:fake-model,"
				   "name:Fake},{value:fake-small,name:Fake small}]}]",
				   agent.mode, agent.model);
}

/* Answer an opening; name: the id of a new session, or NULL. */
static void reply_opened(const json_t *id, const json_t *name) {
	rpc_reply(id, js_make("{sessionId:%O,modes:{currentModeId:%s,availableModes:[{id:default,name:Always Ask},"
						  "{id:acceptEdits,name:Accept Edits},{id:plan,name:Plan Mode},{id:dontAsk,name:Don't Ask}]},"
						  "configOptions:%o}",
						  name, agent.mode, options()));
	put(js_make("{sessionUpdate:available_commands_update,availableCommands:[{name:compact,description:"
				"Summarise the conversation,input:null}]}"));
}

/* Check the members that every opening has, and enter the directory. Return false if it was answered by an error. */
static bool enter(json_t *id, const json_t *params) {
	const char *cwd = js_get(params, "cwd");
	if (!cwd || *cwd != '/' || !json_is_array(json_object_get(params, "mcpServers")))
		return rpc_fail(id, RPC_PARAMS,
						js_string("Invalid params: cwd (an absolute path) and mcpServers are required"));
	if (!rpc_may_open(id, cwd)) return false;
	return opened = true;
}

static void run_new(json_t *id, json_t *params) {
	if (!enter(id, params)) return;
	_cleanup_json_ json_t *name = js_uuid();
	conversation_reset(json_string_value(name));
	named = false;
	reply_opened(id, name);
}

static bool not_found(json_t *id, const char *name) {
	return rpc_fail(id, NOT_FOUND, js_printf("Resource not found: %s", name ? name : "no sessionId"));
}

static bool reopen(json_t *id, const json_t *params) {
	const char *name = js_get(params, "sessionId");
	if (agent_has("refuse-load")) return rpc_fail(id, RPC_INTERNAL, js_make("Internal error: a fault refuses it"));
	if (!enter(id, params)) return false;
	if (name && conversation_open(name)) return named = true;
	return not_found(id, name);
}

static void run_load(json_t *id, json_t *params) {
	if (!reopen(id, params)) return;
	put_history();
	reply_opened(id, NULL);
}

static void run_resume(json_t *id, json_t *params) {
	if (reopen(id, params)) reply_opened(id, NULL);
}

static void run_list(json_t *id, json_t *params) {
	(void)params;
	json_t *list = js_make("[]"), *stored = conversation_stored();
	JS_EACH (name, stored) js_add(list, js_make("{sessionId:%O,cwd:%w}", name.v));
	json_decref(stored);
	rpc_reply(id, js_make("{sessions:%o}", list));
}

static bool is_open(json_t *id, const json_t *params) {
	const char *name = js_get(params, "sessionId");
	if (opened && js_same(name, agent.id)) return true;
	return id ? not_found(id, name) : false;
}

/* ---- modes and options ----------------------------------------------------------------------------------------- */

static bool set_mode(json_t *id, const char *mode) {
	if (!permission_set_mode(mode)) return true;
	return rpc_fail(id, RPC_PARAMS, js_printf("Invalid params: no such mode: %s", mode ? mode : "none"));
}

static void put_mode(void) {
	put_state(js_make("{sessionUpdate:current_mode_update,currentModeId:%s}", agent.mode));
}

static void run_set_mode(json_t *id, json_t *params) {
	if (!is_open(id, params) || !set_mode(id, js_get(params, "modeId"))) return;
	put_state(js_make("{sessionUpdate:config_option_update,configOptions:%o}", options()));
	rpc_reply(id, json_object());
}

static void run_set_option(json_t *id, json_t *params) {
	const char *name = js_get(params, "configId"), *value = js_get(params, "value");
	bool mode = js_same(name, "mode"), model = js_same(name, "model") && value;
	if (!is_open(id, params) || (mode && !set_mode(id, value))) return;
	if (!mode && !model) {
		rpc_fail(id, RPC_PARAMS, js_printf("Invalid params: no such option: %s", name ? name : "none"));
		return;
	}
	if (model) conversation_set_model(value);
	if (mode) put_mode();
	rpc_reply(id, js_make("{configOptions:%o}", options()));
}

/* ---- prompts --------------------------------------------------------------------------------------------------- */

/* Reply to the oldest prompts that `which` names (NULL: all): with a stop reason, or an error text. */
static void end_prompts(const json_t *which, const char *stop_reason, const json_t *usage, const char *error) {
	for (size_t i = 0; i < json_array_size(prompts);) {
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

/* A prompt within a turn is accepted, and the earlier ones return at once. */
static void run_prompt(json_t *id, json_t *params) {
	json_t *blocks = json_object_get(params, "prompt");
	if (!is_open(id, params)) return;
	if (!json_is_array(blocks)) {
		rpc_fail(id, RPC_PARAMS, js_make("Invalid params: prompt is no array"));
		return;
	}
	_cleanup_json_ json_t *line = rpc_prompt(blocks);
	end_prompts(NULL, "end_turn", NULL, NULL);
	js_add(prompts, js_make("{id:%O,uuid:%O}", id, json_object_get(line, "uuid")));
	backlog_add(line);
}

static void interrupt(void) {
	_cleanup_json_ json_t *held = backlog_clear();
	end_prompts(held, "cancelled", NULL, NULL);
	query_end_turn(ABORT_INTERRUPT);
}

static void run_cancel(json_t *id, json_t *params) {
	if (!id && is_open(NULL, params)) interrupt();
}

/* Of all requests only a prompt can be open. */
static void run_cancel_request(json_t *id, json_t *params) {
	bool known = false;
	(void)id;
	JS_EACH (prompt, prompts)
		known |= json_equal(json_object_get(prompt.v, "id"), json_object_get(params, "requestId"));
	if (known) interrupt();
}

static void finish(const json_t *result) {
	json_int_t in = js_number(result, "usage.input_tokens"), out = js_number(result, "usage.output_tokens");
	const char *error = js_is(result, "terminal_reason", "api_error") ? js_get(result, "result") : NULL;
	const char *stop = js_is(result, "subtype", "error_during_execution") ? "cancelled"
					   : js_is(result, "subtype", "error_max_turns")      ? "max_turn_requests"
																		  : "end_turn";
	put_state(js_make("{sessionUpdate:usage_update,used:%I,size:200000,cost:{amount:%O,currency:USD}}", in + out,
					  json_object_get(result, "total_cost_usd")));
	if (!named) put(js_make("{sessionUpdate:session_info_update,title:A scripted session}"));
	named = true;
	_cleanup_json_ json_t *used = js_make("{inputTokens:%I,outputTokens:%I,totalTokens:%I}", in, out, in + out);
	const json_t *uuids = json_object_get(result, "user_message_uuids");
	if (uuids) end_prompts(uuids, stop, used, error);
}

/* ---- requests to the client ------------------------------------------------------------------------------------ */

static void ask(const json_t *control) {
	const json_t *r = json_object_get(control, "request");
	const char *subtype = js_get(r, "subtype");
	if (js_same(subtype, "can_use_tool"))
		rpc_ask(control, "session/request_permission",
				js_make("{options:" OPTIONS ",toolCall:%o,sessionId:%s}",
						describe(NULL, js_get(r, "tool_name"), json_object_get(r, "input"),
								 json_object_get(r, "tool_use_id")),
						agent.id));
	else if (js_same(subtype, "elicitation"))
		rpc_ask(control, "elicitation/create",
				js_make("{message:%O,mode:form,requestedSchema:%O,sessionId:%s}", json_object_get(r, "message"),
						json_object_get(r, "requested_schema"), agent.id));
	else
		rpc_ask(control, subtype, js_make("{detail:fake,sessionId:%s}", agent.id));
}

/* An unknown option refuses the tool: it uses the request up. */
static json_t *take_answer(json_t *id, const json_t *request, json_t *result, json_t *error) {
	const char *outcome = js_get(result, "outcome.outcome");
	const char *option = js_same(outcome, "selected") ? js_get(result, "outcome.optionId") : NULL;
	bool always = js_same(option, "allow_always");
	(void)id;
	if (error || !js_is(request, "subtype", "can_use_tool")) return rpc_answer(result, error);
	if (js_same(outcome, "cancelled")) return js_make("{subtype:error,error:Tool use aborted}");
	if (always || js_same(option, "allow"))
		return js_make("{subtype:success,response:{behavior:allow,updatedInput:%O,updatedPermissions:%O}}",
					   json_object_get(request, "input"),
					   always ? json_object_get(request, "permission_suggestions") : NULL);
	if (js_same(option, "reject_always")) {
		_cleanup_json_ json_t *list = js_make("[%O]", json_object_get(request, "tool_name"));
		permission_extend("deny", list);
	}
	return js_make("{subtype:success,response:{behavior:deny,message:User refused permission to run tool}}");
}

/* ---- the connection -------------------------------------------------------------------------------------------- */

static void run_initialize(json_t *id, json_t *params) {
	(void)params;
	if (agent_has("refuse-initialize")) {
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
	rpc_reply(id, json_object());
}

static void run_close(json_t *id, json_t *params) {
	if (!is_open(id, params)) return;
	interrupt();
	opened = false;
	rpc_reply(id, json_object());
}

static void take_frame(json_t *f) {
	const char *type = js_get(f, "type");
	if (js_same(type, "stream_event")) {
		put_chunk("agent_message_chunk", js_at(f, "event.delta.text"));
		put_chunk("agent_thought_chunk", js_at(f, "event.delta.thinking"));
	} else if (js_same(type, "assistant") || js_same(type, "user")) {
		put_tools(js_at(f, "message.content"));
	} else if (js_same(type, "control_request")) {
		ask(f);
	} else if (js_same(type, "control_cancel_request")) {
		json_t *id = rpc_withdraw(js_get(f, "request_id"));
		if (id) rpc_notify("$/cancel_request", js_make("{requestId:%o}", id));
	} else if (js_is(f, "subtype", "status") && js_get(f, "permissionMode")) {
		put_mode();
	} else if (js_is(f, "subtype", "local_command_output")) {
		put_chunk("agent_message_chunk", json_object_get(f, "content"));
	} else if (js_same(type, "result")) {
		finish(f);
	}
	json_decref(f);
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
		.version = "2.0",
		.unready = "Invalid request: not initialized",
		.busy = "A turn is running in another session",
		.internal = "Internal error: ",
		.methods = methods,
		.n = ARRAY_SIZE(methods),
		.frame = take_frame,
		.answer = take_answer,
	};
	prompts = js_make("[]");
	rpc_speak(&protocol);
}
