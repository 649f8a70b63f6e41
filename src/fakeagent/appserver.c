/* SPDX-License-Identifier: MIT */
#include "fakeagent/appserver.h"

#include "base/fd.h"
#include "base/str.h"
#include "fakeagent/backlog.h"
#include "fakeagent/conversation.h"
#include "fakeagent/permission.h"
#include "fakeagent/query.h"
#include "fakeagent/rpc.h"

#include <stdio.h>

static struct {
	bool initialized;
	bool opened; /* a thread is loaded; its id is agent.id */
	char *approval;
	json_t *muted; /* optOutNotificationMethods */
	/* the open turn: it goes on while prompts wait, which join it */
	char turn[STR_UUID_SIZE]; /* its id, or empty */
	bool begun;               /* turn/started was printed */
	int64_t started;
	json_t *prompts;   /* that were not shown yet, by uuid: {content, client} */
	json_t *tools;     /* items of running tools, by id */
	json_t *open_item; /* the id of the message whose deltas are printed */
	json_t *withdrawn; /* requests that the interrupt has ended; told after the turn */
} my;

/* ---- notices --------------------------------------------------------------------------------------------------- */

/* Takes params; adds threadId. */
static void notify(const char *method, json_t *params) {
	js_put(params, "threadId", js_string(agent.id));
	if (js_has(my.muted, method))
		json_decref(params);
	else
		rpc_notify(method, params);
}

/* The same, with turnId. */
static void notify_of_turn(const char *method, json_t *params) {
	js_put(params, "turnId", js_string(my.turn));
	notify(method, params);
}

static void put_status(const char *type, const char *flag) {
	json_t *flags = strcmp(type, "active") != 0 ? NULL : flag ? js_make("[%s]", flag) : js_make("[]");
	notify("thread/status/changed", js_make("{status:{type:%s,activeFlags:%o}}", type, flags));
}

static json_t *turn_object(const char *status, json_t *error) {
	int64_t now = now_real_ms();
	bool ended = strcmp(status, "inProgress") != 0;
	return js_make("{id:%s,rootTurnId:%s,items:[],itemsView:%s,status:%s,error:%o,startedAt:%o,completedAt:%o,"
				   "durationMs:%o}",
				   my.turn, my.turn, ended ? "summary" : "notLoaded", status, error ? error : json_null(),
				   my.begun ? json_integer(my.started / 1000) : json_null(),
				   ended ? json_integer(now / 1000) : json_null(),
				   ended ? json_integer(now - my.started) : json_null());
}

static void open_turn(void) {
	if (!*my.turn) str_uuid(my.turn);
}

/* ---- items ----------------------------------------------------------------------------------------------------- */

/* which: started or completed. */
static void put_item(const char *which, json_t *item) {
	bool start = strcmp(which, "item/started") == 0;
	json_t *now = json_integer(now_real_ms());
	notify_of_turn(which,
				   js_make("{item:%O,startedAtMs:%o,completedAtMs:%o}", item, start ? now : NULL, start ? NULL : now));
}

/* Takes client. */
static json_t *user_item(const json_t *id, const json_t *content, json_t *client) {
	_cleanup_json_ json_t *text = js_content(content);
	return js_make("{type:userMessage,id:%O,clientId:%o,content:[{type:text,text:%O,text_elements:[]}]}", id,
				   client ? client : json_null(), text);
}

/* A message, or a thought. */
static json_t *said_item(const json_t *id, const json_t *text, bool thought) {
	return thought ? js_make("{type:reasoning,id:%O,summary:[],content:[%O]}", id, text)
				   : js_make("{type:agentMessage,id:%O,text:%O,phase:null,memoryCitation:null}", id, text);
}

static bool edits(const char *name) {
	return name && strstr("Write Edit NotebookEdit", name);
}

/* A new file by its text, an edit by its lines. */
static json_t *change_of(const json_t *input) {
	const char *path = js_get(input, "file_path"), *old = js_get(input, "old_string"), *p;
	if (!path) path = "";
	if (!old) return js_make("{path:%s,kind:{type:add},diff:%s}", path, js_get(input, "content"));
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	buf_puts(&b, "@@ -1 +1 @@\n-");
	for (p = old; *p; p++) buf_puts(&b, *p == '\n' ? "\n-" : (char[]){*p, 0});
	buf_puts(&b, "\n+");
	for (p = js_get(input, "new_string"); p && *p; p++) buf_puts(&b, *p == '\n' ? "\n+" : (char[]){*p, 0});
	buf_puts(&b, "\n");
	json_t *change = js_make("{path:%s,kind:{type:update,move_path:null},diff:%s}", path, b.data);
	buf_free(&b);
	return change;
}

static json_t *tool_item(const json_t *use) {
	json_t *id = json_object_get(use, "id"), *input = json_object_get(use, "input");
	const char *name = js_get(use, "name"), *command = js_get(input, "command");
	if (edits(name)) return js_make("{type:fileChange,id:%O,changes:[%o],status:inProgress}", id, change_of(input));
	if (!command)
		return js_make(
			"{type:mcpToolCall,id:%O,server:fake,tool:%s,arguments:%O,result:null,error:null,durationMs:null,"
			"status:inProgress}",
			id, name, input);
	return js_make("{type:commandExecution,id:%O,command:%s,cwd:%w,processId:null,source:agent,status:inProgress,"
				   "commandActions:[{type:unknown,command:%s}],aggregatedOutput:null,exitCode:null,durationMs:null}",
				   id, command, command);
}

static void end_tool(json_t *item, const json_t *result) {
	_cleanup_json_ json_t *text = js_content(json_object_get(result, "content"));
	bool failed = js_true(result, "is_error"), command = js_is(item, "type", "commandExecution");
	long code = 0;
	if (failed && sscanf(json_string_value(text), "Exit code %ld", &code) != 1) code = 1; /* NOLINT(cert-err34-c) */
	if (!js_is(item, "status", "inProgress")) return;
	js_put(item, "status", js_string(failed ? "failed" : "completed"));
	if (command) js_merge(item, js_make("{exitCode:%I,aggregatedOutput:%O}", (json_int_t)code, text));
}

/* ---- the past -------------------------------------------------------------------------------------------------- */

static void add_past_item(json_t *items, json_t *block, json_t *id, bool user) {
	json_t *text = json_object_get(block, "text"), *thought = json_object_get(block, "thinking");
	_cleanup_json_ json_t *list = js_make("[%O]", block);
	if (js_is(block, "type", "tool_result")) {
		JS_EACH (item, items)
			if (js_is(item.v, "id", js_get(block, "tool_use_id"))) end_tool(item.v, block);
	} else if (user && text) {
		js_add(items, user_item(id, list, NULL));
	} else if (js_is(block, "type", "tool_use")) {
		js_add(items, tool_item(block));
	} else if (text || thought) {
		js_add(items, said_item(id, text ? text : thought, !text));
	}
	json_decref(id);
}

/* Return the turns of the whole conversation, or none: a prompt begins one. */
static json_t *past_turns(bool wanted) {
	json_t *turns = js_make("[]"), *items = NULL;
	JS_EACH (message, wanted ? agent.messages : NULL) {
		bool user = js_is(message.v, "role", "user");
		_cleanup_json_ json_t *blocks = js_blocks(json_object_get(message.v, "content"));
		if (user && !js_has_block(blocks, "tool_result")) {
			items = js_make("[]");
			js_add(turns, js_make("{id:%o,items:%o,itemsView:full,status:completed,error:null}",
								  js_printf("%s-%zu", agent.id, message.i), items));
		}
		JS_EACH (block, blocks) add_past_item(items, block.v, js_printf("item-%zu-%zu", message.i, block.i), user);
	}
	return turns;
}

/* ---- requests to the client ------------------------------------------------------------------------------------ */

static void ask(const json_t *control) {
	const json_t *r = json_object_get(control, "request");
	const char *subtype = js_get(r, "subtype"), *name = js_get(r, "tool_name"), *command = js_get(r, "input.command");
	json_t *params = js_make("{threadId:%s,turnId:%s}", agent.id, my.turn);
	const char *method = subtype;
	if (js_same(subtype, "elicitation")) {
		method = "mcpServer/elicitation/request";
		js_merge(params, js_make("{serverName:fake,mode:form,message:%O,requestedSchema:%O}",
								 json_object_get(r, "message"), json_object_get(r, "requested_schema")));
	} else if (!js_same(subtype, "can_use_tool")) {
		js_merge(params, js_make("{detail:fake}"));
	} else {
		put_status("active", "waitingOnApproval");
		js_merge(params,
				 js_make("{itemId:%O,startedAtMs:%I}", json_object_get(r, "tool_use_id"), (json_int_t)now_real_ms()));
		method = edits(name) ? "item/fileChange/requestApproval" : "item/commandExecution/requestApproval";
		if (!command) command = name;
		js_merge(params,
				 edits(name)
					 ? js_make("{reason:null,grantRoot:null}")
					 : js_make("{kind:command,reason:%O,command:%s,cwd:%w,commandActions:[{type:unknown,command:%s}],"
							   "proposedExecpolicyAmendment:[%s],availableDecisions:[accept,"
							   "{acceptWithExecpolicyAmendment:{execpolicy_amendment:[%s]}},cancel]}",
							   json_object_get(r, "decision_reason"), command, command, command, command));
	}
	rpc_ask(control, method, params);
}

static void put_resolved(json_t *id) {
	notify("serverRequest/resolved", js_make("{requestId:%O}", id));
}

/* An unknown decision refuses the tool. `acceptForSession` and `decline` count although no request offers them. */
static json_t *take_answer(json_t *id, const json_t *request, json_t *result, json_t *error) {
	bool tool = js_is(request, "subtype", "can_use_tool");
	json_t *decision = json_object_get(result, "decision");
	const char *word = json_string_value(decision);
	put_resolved(id);
	if (tool) put_status("active", NULL);
	if (!tool || error) return rpc_answer(result, error);
	bool more = js_same(word, "acceptForSession") ||
				(!edits(js_get(request, "tool_name")) && json_object_get(decision, "acceptWithExecpolicyAmendment"));
	if (more || js_same(word, "accept"))
		return js_make("{subtype:success,response:{behavior:allow,updatedInput:%O,updatedPermissions:%O}}",
					   json_object_get(request, "input"),
					   more ? json_object_get(request, "permission_suggestions") : NULL);
	json_t *item = json_object_get(my.tools, js_get(request, "tool_use_id"));
	if (item) js_put(item, "status", js_string("declined"));
	return js_make("{subtype:success,response:{behavior:deny,message:rejected by user,interrupt:%b}}",
				   js_same(word, "cancel"));
}

/* ---- the turn -------------------------------------------------------------------------------------------------- */

/* A turn of the agent begins, with these prompts. */
static void begin(const json_t *uuids) {
	open_turn();
	if (!my.begun) {
		my.begun = true;
		my.started = now_real_ms();
		js_set(&my.tools, js_make("{}"));
		put_status("active", NULL);
		notify("turn/started", js_make("{turn:%o}", turn_object("inProgress", NULL)));
	}
	JS_EACH (uuid, uuids) {
		const char *name = json_string_value(uuid.v);
		json_t *prompt = json_object_get(my.prompts, name);
		if (!prompt) continue;
		_cleanup_json_ json_t *item = user_item(uuid.v, json_object_get(prompt, "content"),
												json_incref(json_object_get(prompt, "client")));
		put_item("item/started", item);
		put_item("item/completed", item);
		json_object_del(my.prompts, name);
	}
}

static void finish(const json_t *result) {
	bool api = js_is(result, "terminal_reason", "api_error"), cut = js_is(result, "subtype", "error_during_execution");
	json_int_t in = js_number(result, "usage.input_tokens"), out = js_number(result, "usage.output_tokens");
	json_t *sum = js_make("{totalTokens:%I,inputTokens:%I,cachedInputTokens:0,outputTokens:%I,reasoningOutputTokens:0}",
						  in + out, in, out);
	notify_of_turn("thread/tokenUsage/updated",
				   js_make("{tokenUsage:{total:%O,last:%o,modelContextWindow:200000}}", sum, sum));
	if (!cut && !backlog_empty()) return;
	json_t *error = api ? js_make("{message:%O,codexErrorInfo:null,additionalDetails:null}",
								  json_object_get(result, "result"))
						: NULL;
	if (api) notify_of_turn("error", js_make("{error:%O,willRetry:false}", error));
	put_status("idle", NULL);
	notify("turn/completed", js_make("{turn:%o}", turn_object(cut   ? "interrupted"
															  : api ? "failed"
																	: "completed",
															  error)));
	JS_EACH (id, my.withdrawn) put_resolved(id.v);
	js_set(&my.withdrawn, NULL);
	js_set(&my.tools, NULL);
	js_set(&my.open_item, NULL);
	*my.turn = 0;
	my.begun = false;
}

/* ---- frames ---------------------------------------------------------------------------------------------------- */

static void open_block(const json_t *frame, const json_t *event) {
	const char *type = js_get(event, "content_block.type");
	bool thought = js_same(type, "thinking");
	if (!js_same(type, "text") && !thought) return;
	js_set(&my.open_item, js_printf("%s-%d", js_get(frame, "api_message_id"), (int)js_number(event, "index")));
	_cleanup_json_ json_t *nothing = js_string(""), *item = said_item(my.open_item, nothing, thought);
	put_item("item/started", item);
}

static void put_block(json_t *block) {
	json_t *text = json_object_get(block, "text"), *item;
	if (js_is(block, "type", "tool_use")) {
		item = tool_item(block);
		put_item("item/started", item);
		js_put(my.tools, js_get(block, "id"), item);
	} else if (my.open_item) {
		item = said_item(my.open_item, text ? text : json_object_get(block, "thinking"), !text);
		put_item("item/completed", item);
		json_decref(item);
		js_set(&my.open_item, NULL);
	}
}

static void put_result(const json_t *block) {
	const char *id = js_get(block, "tool_use_id");
	json_t *item = json_object_get(my.tools, id);
	if (!item) return;
	end_tool(item, block);
	put_item("item/completed", item);
	json_object_del(my.tools, id);
}

static void take_message(const json_t *frame) {
	JS_EACH (block, js_at(frame, "message.content")) {
		if (js_is(block.v, "type", "tool_result"))
			put_result(block.v);
		else if (js_is(frame, "type", "assistant") && !js_true(frame, "aborted"))
			put_block(block.v);
	}
}

static void put_delta(const json_t *event) {
	json_t *text = js_at(event, "delta.text"), *thought = js_at(event, "delta.thinking");
	if (text) notify_of_turn("item/agentMessage/delta", js_make("{itemId:%O,delta:%O}", my.open_item, text));
	if (thought)
		notify_of_turn("item/reasoning/textDelta",
					   js_make("{itemId:%O,contentIndex:0,delta:%O}", my.open_item, thought));
}

static void withdraw(const char *request_id) {
	if (!my.withdrawn) my.withdrawn = js_make("[]");
	js_add(my.withdrawn, rpc_withdraw(request_id));
}

static void take_frame(json_t *f) {
	const char *type = js_get(f, "type");
	const json_t *event = json_object_get(f, "event");
	if (js_is(event, "type", "content_block_start"))
		open_block(f, event);
	else if (event)
		put_delta(event);
	else if (js_same(type, "assistant") || js_same(type, "user"))
		take_message(f);
	else if (js_same(type, "control_request"))
		ask(f);
	else if (js_same(type, "control_cancel_request"))
		withdraw(js_get(f, "request_id"));
	else if (js_is(f, "subtype", "init"))
		begin(json_object_get(f, "user_message_uuids"));
	else if (js_is(f, "subtype", "local_command_output"))
		notify_of_turn("item/agentMessage/delta", js_make("{itemId:huge,delta:%O}", json_object_get(f, "content")));
	else if (js_same(type, "result"))
		finish(f);
	json_decref(f);
}

/* ---- threads --------------------------------------------------------------------------------------------------- */

/* Return a required text, or NULL after an error reply. */
static const char *need(json_t *id, const json_t *params, const char *name) {
	const char *text = js_get(params, name);
	if (!text) rpc_fail(id, RPC_INVALID, js_printf("Invalid request: missing field `%s`", name));
	return text;
}

static bool is_loaded(json_t *id, const json_t *params) {
	const char *name = need(id, params, "threadId");
	if (!name || (my.opened && js_same(name, agent.id))) return name;
	return rpc_fail(id, RPC_INVALID, js_printf("thread not found: %s", name));
}

/* Take the settings that a thread or a turn begins with. Return true if there are any. */
static bool configure(const json_t *params) {
	const char *policy = js_get(params, "approvalPolicy"), *model = js_get(params, "model");
	if (model) conversation_set_model(model);
	if (!policy) return model;
	js_replace(&my.approval, policy);
	permission_set_mode(strcmp(policy, "never") == 0 ? "dontAsk" : "default");
	return true;
}

static void put_settings(void) {
	notify("thread/settings/updated",
		   js_make("{threadSettings:{approvalPolicy:%s,approvalsReviewer:user,model:%s,modelProvider:fake,"
				   "sandboxPolicy:{type:readOnly,networkAccess:false}}}",
				   my.approval, agent.model));
}

static void run_settings(json_t *id, json_t *params) {
	if (!is_loaded(id, params)) return;
	bool changed = configure(params);
	rpc_reply(id, json_object());
	if (changed) put_settings();
}

/* Takes turns. */
static json_t *thread(const char *id, json_t *turns) {
	json_int_t now = now_real_ms() / 1000;
	bool here = my.opened && js_same(id, agent.id);
	return js_make("{id:%s,sessionId:%s,forkedFromId:null,preview:%s,ephemeral:false,modelProvider:fake,model:%s,"
				   "createdAt:%I,updatedAt:%I,status:{type:%s},path:%o,cwd:%w,cliVersion:%s,source:vscode,gitInfo:null,"
				   "name:null,projectId:null,turns:%o}",
				   id, id, "", agent.model, now, now,
				   !here      ? "notLoaded"
				   : *my.turn ? "active"
							  : "idle",
				   conversation_path(), PLENUM_VERSION, turns);
}

/* Answer an opening. */
static void reply_opened(json_t *id, const json_t *params, bool turns) {
	configure(params);
	my.opened = true;
	rpc_reply(id, js_make("{thread:%o,model:%s,modelProvider:fake,serviceTier:null,cwd:%w,approvalPolicy:%s,"
						  "approvalsReviewer:user,sandbox:{type:readOnly,networkAccess:false},reasoningEffort:null}",
						  thread(agent.id, past_turns(turns)), agent.model, my.approval));
}

static void run_start(json_t *id, json_t *params) {
	if (!rpc_may_open(id, js_get(params, "cwd"))) return;
	_cleanup_json_ json_t *made = js_uuid();
	conversation_reset(json_string_value(made));
	reply_opened(id, params, false);
	rpc_notify("thread/started", js_make("{thread:%o}", thread(agent.id, js_make("[]"))));
}

static void run_resume(json_t *id, json_t *params) {
	const char *name = need(id, params, "threadId");
	bool loaded = my.opened && js_same(name, agent.id);
	if (!name) return;
	if (agent_has("refuse-load"))
		rpc_fail(id, RPC_INTERNAL, js_make("a fault refuses it"));
	else if (loaded)
		reply_opened(id, params, !js_true(params, "excludeTurns"));
	else if (!rpc_may_open(id, js_get(params, "cwd")))
		return;
	else if (!conversation_open(name))
		rpc_fail(id, RPC_INVALID, js_printf("no rollout found for thread id %s", name));
	else
		reply_opened(id, params, !js_true(params, "excludeTurns"));
}

static void run_read(json_t *id, json_t *params) {
	if (!is_loaded(id, params)) return;
	rpc_reply(id, js_make("{thread:%o}", thread(agent.id, past_turns(js_true(params, "includeTurns")))));
}

static void run_list(json_t *id, json_t *params) {
	(void)params;
	json_t *data = js_make("[]"), *stored = conversation_stored();
	JS_EACH (name, stored) js_add(data, thread(json_string_value(name.v), js_make("[]")));
	json_decref(stored);
	rpc_reply(id, js_make("{data:%o,nextCursor:null}", data));
}

/* ---- prompts --------------------------------------------------------------------------------------------------- */

/* Pass the input on as a user line. False: there is none, and the request is answered by an error. */
static bool submit(json_t *id, const json_t *params) {
	json_t *input = json_object_get(params, "input");
	if (!json_array_size(input)) return rpc_fail(id, RPC_INVALID, js_make("Invalid request: missing field `input`"));
	_cleanup_json_ json_t *line = rpc_prompt(input);
	js_put(my.prompts, js_get(line, "uuid"),
		   js_make("{content:%O,client:%s}", js_at(line, "message.content"), js_get(params, "clientUserMessageId")));
	backlog_add(line);
	return true;
}

/* Within a turn the input joins it. */
static void run_turn(json_t *id, json_t *params) {
	if (!is_loaded(id, params)) return;
	if (configure(params)) put_settings();
	if (!submit(id, params)) return;
	open_turn();
	rpc_reply(id, js_make("{turn:%o}", turn_object("inProgress", NULL)));
}

/* Return true if a turn is open and is the one that the request names. */
static bool is_turn(json_t *id, const json_t *params, const char *member, const char *what) {
	const char *name;
	if (!is_loaded(id, params) || !(name = need(id, params, member))) return false;
	if (!*my.turn) return rpc_fail(id, RPC_INVALID, js_printf("no active turn to %s", what));
	return js_same(name, my.turn) ||
		   rpc_fail(id, RPC_INVALID, js_printf("expected active turn id `%s` but found `%s`", name, my.turn));
}

static void run_steer(json_t *id, json_t *params) {
	if (!is_turn(id, params, "expectedTurnId", "steer") || !submit(id, params)) return;
	rpc_reply(id, js_make("{turnId:%s}", my.turn));
}

static void run_interrupt(json_t *id, json_t *params) {
	if (!is_turn(id, params, "turnId", "interrupt")) return;
	json_decref(backlog_clear());
	json_object_clear(my.prompts);
	query_end_turn(ABORT_INTERRUPT);
	rpc_reply(id, json_object());
}

/* ---- the connection -------------------------------------------------------------------------------------------- */

static void run_initialize(json_t *id, json_t *params) {
	if (my.initialized || agent_has("refuse-initialize")) {
		rpc_fail(id, RPC_INVALID, js_string(my.initialized ? "Already initialized" : "a fault refuses it"));
		return;
	}
	my.initialized = true;
	js_set(&my.muted, json_incref(js_at(params, "capabilities.optOutNotificationMethods")));
	rpc_reply(id, js_make("{userAgent:%s,codexHome:/nonexistent,platformFamily:unix,platformOs:linux}",
						  "plenum-fakeagent/" PLENUM_VERSION));
}

static void run_initialized(json_t *id, json_t *params) {
	(void)params;
	if (id) rpc_fail(id, RPC_INVALID, js_make("Invalid request: unknown variant `initialized`"));
}

void appserver_start(void) {
	static const struct rpc_method methods[] = {
		{"initialize", run_initialize},
		{"initialized", run_initialized},
		{"thread/start", run_start},
		{"thread/resume", run_resume},
		{"thread/read", run_read},
		{"thread/list", run_list},
		{"thread/settings/update", run_settings},
		{"turn/start", run_turn},
		{"turn/steer", run_steer},
		{"turn/interrupt", run_interrupt},
	};
	static const struct rpc_protocol protocol = {
		.unready = "Not initialized",
		.busy = "a turn is running in another thread",
		.internal = "",
		.methods = methods,
		.n = ARRAY_SIZE(methods),
		.frame = take_frame,
		.answer = take_answer,
	};
	js_replace(&my.approval, "on-request");
	my.prompts = js_make("{}");
	rpc_speak(&protocol);
}
