/* SPDX-License-Identifier: MIT */
#include "fakeagent/acp.h"

#include "fakeagent/backlog.h"
#include "fakeagent/conversation.h"
#include "fakeagent/permission.h"
#include "fakeagent/query.h"
#include "fakeagent/rpc.h"

#define NOT_FOUND (-32002)
#define ANSWERS                                                                                                        \
	"[{kind:allow_always,name:Always Allow,optionId:allow_always},{kind:allow_once,name:Allow,optionId:allow},"        \
	"{kind:reject_once,name:Reject,optionId:reject},{kind:reject_always,name:Never Allow,optionId:reject_always}]"
#define MODES(id)                                                                                                      \
	"[{" id ":default,name:Always Ask},{" id ":acceptEdits,name:Accept Edits},{" id ":plan,name:Plan Mode},{" id       \
	":dontAsk,name:Don't Ask}]"
/* of the mode and the model */
#define OPTIONS                                                                                                        \
	"[{id:mode,name:Mode,category:mode,type:select,currentValue:%s,options:" MODES(                                    \
		"value") "},{id:model,name:Model,"                                                                             \
				 "category:model,type:select,currentValue:%s,options:[{value:fake-model,name:Fake},{value:fake-small," \
				 "name:Fake "                                                                                          \
				 "small}]}]"

static bool named;      /* the title of the session was printed */
static json_t *prompts; /* without a reply, oldest first: {id, uuid} */

/* ---- updates --------------------------------------------------------------------------------------------------- */

/* Takes update. The sessionId comes last with the updates of a state. */
static void put(json_t *update) {
	bool last = js_word(js_get(update, "sessionUpdate"), "current_mode_update config_option_update usage_update");
	rpc_notify("session/update", js_make("{sessionId:%z,update:%o,sessionId:%z}", last ? NULL : agent.id, update,
										 last ? agent.id : NULL));
}

static void put_chunk(const char *kind, json_t *text) {
	if (text) put(js_make("{sessionUpdate:%s,content:{type:text,text:%O}}", kind, text));
}

/* Describe a tool_use block; `update`: the value of sessionUpdate, or NULL. */
static json_t *describe(const char *update, const json_t *use) {
	static const char *const kinds[][2] = {
		{"Bash", "execute"},     {"Read", "read"},      {"Write Edit", "edit"},
		{"Glob Grep", "search"}, {"WebFetch", "fetch"}, {"ExitPlanMode", "switch_mode"},
		{"Task", "think"},
	};
	const char *path = js_get(use, "input.file_path"), *name = js_get(use, "name"), *kind = "other";
	const char *command = js_same(name, "Bash") ? js_get(use, "input.command") : NULL;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (js_word(name, kinds[i][0])) kind = kinds[i][1];
	json_t *title = command ? js_string(command) : js_printf("%s%s%s", name, path ? " " : "", path ? path : "");
	return js_view(use,
				   "{sessionUpdate:%z,toolCallId:$id,title:%o,kind:%s,status:pending,rawInput:$input,content:[],"
				   "locations:%o,_meta:{claudeCode:{toolName:$name}}}",
				   update, title, kind, js_make(path ? "[{path:%s}]" : "[]", path));
}

static void put_tools(const json_t *content) {
	JS_EACH (block, content) {
		if (js_is(block.v, "type", "tool_use")) put(describe("tool_call", block.v));
		if (!js_is(block.v, "type", "tool_result")) continue;
		_cleanup_json_ json_t *text = js_content(json_object_get(block.v, "content"));
		put(js_view(block.v,
					"{sessionUpdate:tool_call_update,toolCallId:$tool_use_id,status:%s,rawOutput:%O,"
					"content:[{type:content,content:{type:text,text:%O}}]}",
					js_true(block.v, "is_error") ? "failed" : "completed", text, text));
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

/* Answer an opening; name: the id of a new session, or NULL. */
static void reply_opened(const struct rpc_call *c, const char *name) {
	rpc_reply(c, js_make("{sessionId:%z,modes:{currentModeId:%s,availableModes:" MODES("id") "},configOptions:" OPTIONS
																							 "}",
						 name, agent.mode, agent.mode, agent.model));
	put(js_make("{sessionUpdate:available_commands_update,availableCommands:[{name:compact,description:"
				"Summarise the conversation,input:null}]}"));
}

/* Check the members that every opening has, and enter the directory. Return false if it was answered by an error. */
static bool enter(const struct rpc_call *c) {
	const char *cwd = js_get(c->params, "cwd");
	if (!cwd || *cwd != '/' || !json_is_array(json_object_get(c->params, "mcpServers")))
		return rpc_fail(c, RPC_PARAMS, "Invalid params: cwd (an absolute path) and mcpServers are required");
	if (!rpc_may_open(c)) return false;
	return agent.opened = true;
}

static void run_new(const struct rpc_call *c) {
	_cleanup_json_ json_t *name = js_uuid();
	if (!enter(c)) return;
	conversation_reset(json_string_value(name));
	named = false;
	reply_opened(c, agent.id);
}

static bool not_found(const struct rpc_call *c) {
	const char *name = js_get(c->params, "sessionId");
	return c->id && rpc_fail(c, NOT_FOUND, "Resource not found: %s", name ? name : "no sessionId");
}

/* session/load shows the past, session/resume does not. */
static void run_reopen(const struct rpc_call *c) {
	if (!enter(c) || !(conversation_open(js_get(c->params, "sessionId")) || not_found(c))) return;
	named = true;
	if (strcmp(c->method, "session/load") == 0) put_history();
	reply_opened(c, NULL);
}

static void run_list(const struct rpc_call *c) {
	_cleanup_json_ json_t *stored = conversation_stored(), *list = js_make("[]");
	JS_EACH (name, stored) js_add(list, js_make("{sessionId:%O,cwd:%w}", name.v));
	rpc_reply(c, js_make("{sessions:%O}", list));
}

static bool is_open(const struct rpc_call *c) {
	return (agent.opened && js_is(c->params, "sessionId", agent.id)) || not_found(c);
}

/* ---- modes and options ----------------------------------------------------------------------------------------- */

static bool set_mode(const struct rpc_call *c, const char *mode) {
	return !permission_set_mode(mode) ||
		   rpc_fail(c, RPC_PARAMS, "Invalid params: no such mode: %s", mode ? mode : "none");
}

static void put_mode(void) {
	put(js_make("{sessionUpdate:current_mode_update,currentModeId:%s}", agent.mode));
}

static void run_set_mode(const struct rpc_call *c) {
	if (!is_open(c) || !set_mode(c, js_get(c->params, "modeId"))) return;
	put(js_make("{sessionUpdate:config_option_update,configOptions:" OPTIONS "}", agent.mode, agent.model));
	rpc_reply(c, json_object());
}

static void run_set_option(const struct rpc_call *c) {
	const char *name = js_get(c->params, "configId"), *value = js_get(c->params, "value");
	bool mode = js_same(name, "mode"), model = js_same(name, "model") && value;
	if (!is_open(c) || (mode && !set_mode(c, value))) return;
	if (!mode && !model) {
		rpc_fail(c, RPC_PARAMS, "Invalid params: no such option: %s", name ? name : "none");
		return;
	}
	if (model) conversation_set_model(value);
	if (mode) put_mode();
	rpc_reply(c, js_make("{configOptions:" OPTIONS "}", agent.mode, agent.model));
}

/* ---- prompts --------------------------------------------------------------------------------------------------- */

/* Reply to the prompts that `which` names (NULL: all), oldest first: with a stop reason, or an error text. */
static void end_prompts(const json_t *which, const char *stop_reason, const json_t *usage, const char *error) {
	json_t *left = js_make("[]");
	JS_EACH (prompt, prompts) {
		struct rpc_call c = {.id = json_object_get(prompt.v, "id")};
		if (which && !js_has(which, js_get(prompt.v, "uuid")))
			json_array_append(left, prompt.v);
		else if (error)
			rpc_fail(&c, RPC_INTERNAL, "Internal error: %s", error);
		else
			rpc_reply(&c, js_make("{stopReason:%s,usage:%O}", stop_reason, usage));
	}
	js_set(&prompts, left);
}

/* A prompt within a turn is accepted, and the earlier ones return at once. */
static void run_prompt(const struct rpc_call *c) {
	json_t *blocks = json_object_get(c->params, "prompt");
	if (!is_open(c)) return;
	if (!json_is_array(blocks)) {
		rpc_fail(c, RPC_PARAMS, "Invalid params: prompt is no array");
		return;
	}
	_cleanup_json_ json_t *line = rpc_prompt(blocks);
	end_prompts(NULL, "end_turn", NULL, NULL);
	js_add(prompts, js_view(line, "{id:%O,uuid:$uuid}", c->id));
	backlog_add(line);
}

static void interrupt(void) {
	_cleanup_json_ json_t *held = backlog_clear();
	end_prompts(held, "cancelled", NULL, NULL);
	query_end_turn(ABORT_INTERRUPT);
}

static void run_cancel(const struct rpc_call *c) {
	if (!c->id && is_open(c)) interrupt();
}

/* Of all requests only a prompt can be open. */
static void run_cancel_request(const struct rpc_call *c) {
	bool known = false;
	JS_EACH (prompt, prompts)
		known |= json_equal(json_object_get(prompt.v, "id"), json_object_get(c->params, "requestId"));
	if (known) interrupt();
}

static void finish(const json_t *result) {
	json_int_t in = js_number(result, "usage.input_tokens"), out = js_number(result, "usage.output_tokens");
	const char *error = js_is(result, "terminal_reason", "api_error") ? js_get(result, "result") : NULL;
	const char *stop = js_is(result, "subtype", "error_during_execution") ? "cancelled"
					   : js_is(result, "subtype", "error_max_turns")      ? "max_turn_requests"
																		  : "end_turn";
	put(js_view(result, "{sessionUpdate:usage_update,used:%I,size:200000,cost:{amount:$total_cost_usd,currency:USD}}",
				in + out));
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
	if (js_same(subtype, "can_use_tool")) {
		_cleanup_json_ json_t *use = js_view(r, "{id:$tool_use_id,name:$tool_name,input:$input}");
		rpc_ask(control, "session/request_permission",
				js_make("{options:" ANSWERS ",toolCall:%o,sessionId:%s}", describe(NULL, use), agent.id));
	} else if (js_same(subtype, "elicitation")) {
		rpc_ask(control, "elicitation/create",
				js_view(r, "{message:$message,mode:form,requestedSchema:$requested_schema,sessionId:%s}", agent.id));
	} else {
		rpc_ask(control, subtype, js_make("{detail:fake,sessionId:%s}", agent.id));
	}
}

/* An unknown option refuses the tool: it uses the request up. */
static json_t *take_answer(json_t *id, const json_t *request, json_t *result, json_t *error) {
	const char *outcome = js_get(result, "outcome.outcome");
	const char *option = js_same(outcome, "selected") ? js_get(result, "outcome.optionId") : NULL;
	bool always = js_same(option, "allow_always");
	(void)id;
	if (error || !js_is(request, "subtype", "can_use_tool")) return rpc_answer(result, error);
	if (js_same(outcome, "cancelled")) return js_make("{subtype:error,error:Tool use aborted}");
	if (always || js_same(option, "allow")) return rpc_allow(request, always);
	if (js_same(option, "reject_always")) {
		_cleanup_json_ json_t *list = js_view(request, "[$tool_name]");
		permission_extend("deny", list);
	}
	return js_make("{subtype:success,response:{behavior:deny,message:User refused permission to run tool}}");
}

/* ---- the connection -------------------------------------------------------------------------------------------- */

static void run_initialize(const struct rpc_call *c) {
	rpc_reply(c, js_make("{protocolVersion:1,agentCapabilities:{loadSession:true,promptCapabilities:{image:true,"
						 "embeddedContext:true},mcpCapabilities:{http:true,sse:true},sessionCapabilities:{list:{},"
						 "resume:{},close:{}}},agentInfo:{name:plenum-fakeagent,title:Fake agent,version:%s},"
						 "authMethods:[]}",
						 PLENUM_VERSION));
}

static void run_nothing(const struct rpc_call *c) {
	rpc_reply(c, json_object());
}

static void run_close(const struct rpc_call *c) {
	if (!is_open(c)) return;
	interrupt();
	agent.opened = false;
	rpc_reply(c, json_object());
}

static void take_frame(json_t *f) {
	const char *type = js_get(f, "type");
	if (js_same(type, "control_request")) {
		ask(f);
	} else if (js_same(type, "control_cancel_request")) {
		json_t *id = rpc_withdraw(js_get(f, "request_id"));
		if (id) rpc_notify("$/cancel_request", js_make("{requestId:%o}", id));
	} else if (js_same(type, "result")) {
		finish(f);
	} else if (js_is(f, "subtype", "status") && js_get(f, "permissionMode")) {
		put_mode();
	} else if (js_is(f, "subtype", "local_command_output")) {
		put_chunk("agent_message_chunk", json_object_get(f, "content"));
	} else {
		put_chunk("agent_message_chunk", js_at(f, "event.delta.text"));
		put_chunk("agent_thought_chunk", js_at(f, "event.delta.thinking"));
		put_tools(js_at(f, "message.content"));
	}
	json_decref(f);
}

void acp_start(void) {
	static const struct rpc_method methods[] = {
		{"initialize", run_initialize},
		{"authenticate", run_nothing},
		{"logout", run_nothing},
		{"session/new", run_new},
		{"session/load", run_reopen},
		{"session/resume", run_reopen},
		{"session/list", run_list},
		{"session/close", run_close},
		{"session/set_mode", run_set_mode},
		{"session/set_config_option", run_set_option},
		{"session/prompt", run_prompt},
		{"session/cancel", run_cancel},
		{"$/cancel_request", run_cancel_request},
		{NULL, NULL},
	};
	static const struct rpc_protocol protocol = {
		.version = "2.0",
		.unready = "Invalid request: not initialized",
		.busy = "A turn is running in another session",
		.internal = "Internal error: ",
		.methods = methods,
		.frame = take_frame,
		.answer = take_answer,
	};
	prompts = js_make("[]");
	rpc_speak(&protocol);
}
