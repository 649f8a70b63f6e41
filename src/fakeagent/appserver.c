/* SPDX-License-Identifier: MIT */
#include "fakeagent/appserver.h"

#include "fakeagent/backlog.h"
#include "fakeagent/conversation.h"
#include "fakeagent/permission.h"
#include "fakeagent/query.h"
#include "fakeagent/rpc.h"

#include <stdio.h>

static struct {
	char *approval;
	json_t *muted; /* optOutNotificationMethods */
	/* the open turn: it goes on while prompts wait, which join it */
	char turn[STR_UUID_SIZE]; /* its id, or empty */
	bool begun;               /* turn/started was printed */
	int64_t started;
	json_t *prompts;   /* that were not shown yet, by uuid: {content, client} */
	json_t *tools;     /* items of running tools, by id */
	json_t *open_item; /* the id of the message that is being printed */
	json_t *withdrawn; /* requests that the interrupt has ended; resolved after the turn */
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

/* type: idle or active; flag: the reason if an active thread waits, or NULL. */
static void put_status(const char *type, const char *flag) {
	json_t *flags = strcmp(type, "active") != 0 ? NULL : js_make(flag ? "[%s]" : "[]", flag);
	notify("thread/status/changed", js_make("{status:{type:%s,activeFlags:%o}}", type, flags));
}

/* error: of a failed turn, or NULL. */
static json_t *turn_object(const char *status, json_t *error) {
	json_int_t now = now_real_ms();
	json_t *turn = js_make("{id:%s,rootTurnId:%s,items:[],itemsView:notLoaded,status:%s,error:null,startedAt:null,"
						   "completedAt:null,durationMs:null}",
						   my.turn, my.turn, status);
	if (my.begun) js_merge(turn, js_make("{startedAt:%I}", (json_int_t)my.started / 1000));
	if (strcmp(status, "inProgress") != 0)
		js_merge(turn, js_make("{itemsView:summary,completedAt:%I,durationMs:%I,error:%O}", now / 1000,
							   now - my.started, error));
	return turn;
}

/* ---- items ----------------------------------------------------------------------------------------------------- */

/* Takes item. */
static void put_item(bool completed, json_t *item) {
	json_int_t now = now_real_ms();
	notify_of_turn(completed ? "item/completed" : "item/started",
				   js_make(completed ? "{item:%o,completedAtMs:%I}" : "{item:%o,startedAtMs:%I}", item, now));
}

static json_t *user_item(const json_t *id, const json_t *content, const json_t *client) {
	_cleanup_json_ json_t *text = js_content(content);
	return js_make("{type:userMessage,id:%O,clientId:%s,content:[{type:text,text:%O,text_elements:[]}]}", id,
				   json_string_value(client), text);
}

/* A message, or a thought. */
static json_t *said_item(const json_t *id, const json_t *text, bool thought) {
	return js_make(thought ? "{type:reasoning,id:%O,summary:[],content:[%O]}"
						   : "{type:agentMessage,id:%O,text:%O,phase:null,memoryCitation:null}",
				   id, text);
}

static bool edits(const char *name) {
	return name && js_word(name, "Write Edit NotebookEdit");
}

static void put_lines(struct buf *b, char sign, const char *text) {
	for (size_t n; text; text = text[n] ? text + n + 1 : NULL) {
		n = strcspn(text, "\n");
		buf_printf(b, "\n%c%.*s", sign, (int)n, text);
	}
}

/* A new file by its text, an edit by its lines. */
static json_t *change_of(const json_t *input) {
	const char *path = js_get(input, "file_path"), *old = js_get(input, "old_string"),
			   *new = js_get(input, "new_string");
	struct buf b = JS_BUF;
	if (!path) path = "";
	if (!old) return js_view(input, "{path:%s,kind:{type:add},diff:$content}", path);
	buf_puts(&b, "@@ -1 +1 @@");
	put_lines(&b, '-', old);
	put_lines(&b, '+', new ? new : "");
	buf_putc(&b, '\n');
	return js_make("{path:%s,kind:{type:update,move_path:null},diff:%o}", path, js_of(&b));
}

static json_t *tool_item(const json_t *use) {
	if (edits(js_get(use, "name")))
		return js_view(use, "{type:fileChange,id:$id,changes:[%o],status:inProgress}",
					   change_of(json_object_get(use, "input")));
	return js_view(use, js_get(use, "input.command")
							? "{type:commandExecution,id:$id,command:$input.command,cwd:%w,processId:null,source:agent,"
							  "status:inProgress,commandActions:[{type:unknown,command:$input.command}],"
							  "aggregatedOutput:null,exitCode:null,durationMs:null}"
							: "{type:mcpToolCall,id:$id,server:fake,tool:$name,arguments:$input,result:null,error:null,"
							  "durationMs:null,status:inProgress}");
}

static void end_tool(json_t *item, const json_t *result) {
	_cleanup_json_ json_t *text = js_content(json_object_get(result, "content"));
	bool failed = js_true(result, "is_error");
	long code = 0;
	if (failed && sscanf(json_string_value(text), "Exit code %ld", &code) != 1) code = 1; /* NOLINT(cert-err34-c) */
	if (!js_is(item, "status", "inProgress")) return;
	js_put(item, "status", js_string(failed ? "failed" : "completed"));
	if (js_is(item, "type", "commandExecution"))
		js_merge(item, js_make("{exitCode:%I,aggregatedOutput:%O}", (json_int_t)code, text));
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
		JS_EACH (block, blocks) {
			json_t *text = json_object_get(block.v, "text"), *thought = json_object_get(block.v, "thinking");
			_cleanup_json_ json_t *id = js_printf("item-%zu-%zu", message.i, block.i), *list = js_make("[%O]", block.v);
			if (js_is(block.v, "type", "tool_use")) js_add(items, tool_item(block.v));
			if (text || thought)
				js_add(items, user ? user_item(id, list, NULL) : said_item(id, text ? text : thought, !text));
			JS_EACH (item, items)
				if (js_is(item.v, "id", js_get(block.v, "tool_use_id"))) end_tool(item.v, block.v);
		}
	}
	return turns;
}

/* ---- requests to the client ------------------------------------------------------------------------------------ */

static void ask(const json_t *control) {
	const json_t *r = json_object_get(control, "request");
	const char *method = js_get(r, "subtype"), *name = js_get(r, "tool_name"), *command = js_get(r, "input.command");
	json_t *params = js_make("{threadId:%s,turnId:%s}", agent.id, my.turn);
	if (!command) command = name;
	if (js_same(method, "elicitation")) {
		method = "mcpServer/elicitation/request";
		js_merge(params, js_view(r, "{serverName:fake,mode:form,message:$message,requestedSchema:$requested_schema}"));
	} else if (!js_same(method, "can_use_tool")) {
		js_merge(params, js_make("{detail:fake}"));
	} else {
		put_status("active", "waitingOnApproval");
		js_merge(params, js_view(r, "{itemId:$tool_use_id,startedAtMs:%I}", (json_int_t)now_real_ms()));
		method = edits(name) ? "item/fileChange/requestApproval" : "item/commandExecution/requestApproval";
		js_merge(params,
				 edits(name)
					 ? js_make("{reason:null,grantRoot:null}")
					 : js_view(r,
							   "{kind:command,reason:$decision_reason,command:%s,cwd:%w,commandActions:[{type:unknown,"
							   "command:%s}],proposedExecpolicyAmendment:[%s],availableDecisions:[accept,"
							   "{acceptWithExecpolicyAmendment:{execpolicy_amendment:[%s]}},cancel]}",
							   command, command, command, command));
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
	if (more || js_same(word, "accept")) return rpc_allow(request, more);
	js_put(json_object_get(my.tools, js_get(request, "tool_use_id")), "status", js_string("declined"));
	return js_make("{subtype:success,response:{behavior:deny,message:rejected by user,interrupt:%b}}",
				   js_same(word, "cancel"));
}

/* ---- the turn -------------------------------------------------------------------------------------------------- */

/* A turn of the agent begins, with these prompts. */
static void begin(const json_t *uuids) {
	if (!*my.turn) str_uuid(my.turn);
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
		json_t *item = user_item(uuid.v, json_object_get(prompt, "content"), json_object_get(prompt, "client"));
		put_item(false, json_incref(item));
		put_item(true, item);
		json_object_del(my.prompts, name);
	}
}

static void finish(const json_t *result) {
	bool api = js_is(result, "terminal_reason", "api_error"), cut = js_is(result, "subtype", "error_during_execution");
	json_int_t in = js_number(result, "usage.input_tokens"), out = js_number(result, "usage.output_tokens");
	_cleanup_json_ json_t *sum = js_make("{totalTokens:%I,inputTokens:%I,cachedInputTokens:0,outputTokens:%I,"
										 "reasoningOutputTokens:0}",
										 in + out, in, out);
	_cleanup_json_ json_t *error = api ? js_view(result, "{message:$result,codexErrorInfo:null,additionalDetails:null}")
									   : NULL;
	notify_of_turn("thread/tokenUsage/updated",
				   js_make("{tokenUsage:{total:%O,last:%O,modelContextWindow:200000}}", sum, sum));
	if (!cut && !backlog_empty()) return;
	if (api) notify_of_turn("error", js_make("{error:%O,willRetry:false}", error));
	put_status("idle", NULL);
	const char *status = cut ? "interrupted" : api ? "failed" : "completed";
	notify("turn/completed", js_make("{turn:%o}", turn_object(status, error)));
	JS_EACH (id, my.withdrawn) put_resolved(id.v);
	json_array_clear(my.withdrawn);
	js_set(&my.tools, NULL);
	js_set(&my.open_item, NULL);
	*my.turn = 0;
	my.begun = false;
}

/* ---- frames ---------------------------------------------------------------------------------------------------- */

static void take_event(const json_t *frame, const json_t *event) {
	const char *type = js_get(event, "content_block.type");
	json_t *text = js_at(event, "delta.text"), *thought = js_at(event, "delta.thinking");
	if (js_same(type, "text") || js_same(type, "thinking")) {
		_cleanup_json_ json_t *nothing = js_string("");
		js_set(&my.open_item, js_printf("%s-%d", js_get(frame, "api_message_id"), (int)js_number(event, "index")));
		put_item(false, said_item(my.open_item, nothing, js_same(type, "thinking")));
	}
	if (text) notify_of_turn("item/agentMessage/delta", js_make("{itemId:%O,delta:%O}", my.open_item, text));
	if (thought)
		notify_of_turn("item/reasoning/textDelta",
					   js_make("{itemId:%O,contentIndex:0,delta:%O}", my.open_item, thought));
}

static void take_block(const json_t *block, bool whole) {
	json_t *text = json_object_get(block, "text"), *thought = json_object_get(block, "thinking");
	const char *id = js_get(block, "tool_use_id");
	json_t *item = json_object_get(my.tools, id);
	if (item) {
		end_tool(item, block);
		put_item(true, json_incref(item));
		json_object_del(my.tools, id);
	} else if (whole && js_is(block, "type", "tool_use")) {
		item = tool_item(block);
		put_item(false, json_incref(item));
		js_put(my.tools, js_get(block, "id"), item);
	} else if (whole && my.open_item) {
		put_item(true, said_item(my.open_item, text ? text : thought, !text));
		js_set(&my.open_item, NULL);
	}
}

static void take_frame(json_t *f) {
	const char *type = js_get(f, "type");
	const json_t *event = json_object_get(f, "event");
	bool whole = js_same(type, "assistant") && !js_true(f, "aborted");
	if (event) take_event(f, event);
	JS_EACH (block, js_at(f, "message.content")) take_block(block.v, whole);
	if (js_same(type, "control_request")) ask(f);
	if (js_same(type, "control_cancel_request")) js_add(my.withdrawn, rpc_withdraw(js_get(f, "request_id")));
	if (js_is(f, "subtype", "init")) begin(json_object_get(f, "user_message_uuids"));
	if (js_is(f, "subtype", "local_command_output"))
		notify_of_turn("item/agentMessage/delta", js_view(f, "{itemId:huge,delta:$content}"));
	if (js_same(type, "result")) finish(f);
	json_decref(f);
}

/* ---- threads --------------------------------------------------------------------------------------------------- */

/* Return a required text, or NULL after an error reply. */
static const char *need(const struct rpc_call *c, const char *name) {
	const char *text = js_get(c->params, name);
	if (!text) rpc_fail(c, RPC_INVALID, "Invalid request: missing field `%s`", name);
	return text;
}

static bool is_loaded(const struct rpc_call *c) {
	const char *name = need(c, "threadId");
	if (!name || (agent.opened && js_same(name, agent.id))) return name;
	return rpc_fail(c, RPC_INVALID, "thread not found: %s", name);
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

static void run_settings(const struct rpc_call *c) {
	if (!is_loaded(c)) return;
	bool changed = configure(c->params);
	rpc_reply(c, json_object());
	if (changed) put_settings();
}

/* Takes turns. */
static json_t *thread(const char *id, json_t *turns) {
	json_int_t now = now_real_ms() / 1000;
	bool here = agent.opened && js_same(id, agent.id);
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
static void reply_opened(const struct rpc_call *c, bool turns) {
	configure(c->params);
	agent.opened = true;
	rpc_reply(c, js_make("{thread:%o,model:%s,modelProvider:fake,serviceTier:null,cwd:%w,approvalPolicy:%s,"
						 "approvalsReviewer:user,sandbox:{type:readOnly,networkAccess:false},reasoningEffort:null}",
						 thread(agent.id, past_turns(turns)), agent.model, my.approval));
}

static void run_start(const struct rpc_call *c) {
	_cleanup_json_ json_t *name = js_uuid();
	if (!rpc_may_open(c)) return;
	conversation_reset(json_string_value(name));
	reply_opened(c, false);
	rpc_notify("thread/started", js_make("{thread:%o}", thread(agent.id, js_make("[]"))));
}

static void run_resume(const struct rpc_call *c) {
	const char *name = need(c, "threadId");
	bool loaded = agent.opened && js_same(name, agent.id);
	if (!name) return;
	if (!loaded && !rpc_may_open(c)) return;
	if (!loaded && !conversation_open(name))
		rpc_fail(c, RPC_INVALID, "no rollout found for thread id %s", name);
	else
		reply_opened(c, !js_true(c->params, "excludeTurns"));
}

static void run_read(const struct rpc_call *c) {
	if (!is_loaded(c)) return;
	rpc_reply(c, js_make("{thread:%o}", thread(agent.id, past_turns(js_true(c->params, "includeTurns")))));
}

static void run_list(const struct rpc_call *c) {
	_cleanup_json_ json_t *stored = conversation_stored(), *data = js_make("[]");
	JS_EACH (name, stored) js_add(data, thread(json_string_value(name.v), js_make("[]")));
	rpc_reply(c, js_make("{data:%O,nextCursor:null}", data));
}

/* ---- prompts --------------------------------------------------------------------------------------------------- */

/* Pass the input on as a user line. False: there is none, and the request is answered by an error. */
static bool submit(const struct rpc_call *c) {
	json_t *input = json_object_get(c->params, "input");
	if (!json_array_size(input)) return rpc_fail(c, RPC_INVALID, "Invalid request: missing field `input`");
	_cleanup_json_ json_t *line = rpc_prompt(input);
	js_put(my.prompts, js_get(line, "uuid"),
		   js_view(line, "{content:$message.content,client:%s}", js_get(c->params, "clientUserMessageId")));
	backlog_add(line);
	return true;
}

/* Within a turn the input joins it. */
static void run_turn(const struct rpc_call *c) {
	if (!is_loaded(c)) return;
	if (configure(c->params)) put_settings();
	if (!submit(c)) return;
	if (!*my.turn) str_uuid(my.turn);
	rpc_reply(c, js_make("{turn:%o}", turn_object("inProgress", NULL)));
}

/* Return true if a turn is open and is the one that the request names. */
static bool is_turn(const struct rpc_call *c, const char *member, const char *what) {
	const char *name;
	if (!is_loaded(c) || !(name = need(c, member))) return false;
	if (!*my.turn) return rpc_fail(c, RPC_INVALID, "no active turn to %s", what);
	return js_same(name, my.turn) ||
		   rpc_fail(c, RPC_INVALID, "expected active turn id `%s` but found `%s`", name, my.turn);
}

static void run_steer(const struct rpc_call *c) {
	if (is_turn(c, "expectedTurnId", "steer") && submit(c)) rpc_reply(c, js_make("{turnId:%s}", my.turn));
}

static void run_interrupt(const struct rpc_call *c) {
	if (!is_turn(c, "turnId", "interrupt")) return;
	json_decref(backlog_clear());
	json_object_clear(my.prompts);
	query_end_turn(ABORT_INTERRUPT);
	rpc_reply(c, json_object());
}

/* ---- the connection -------------------------------------------------------------------------------------------- */

static void run_initialize(const struct rpc_call *c) {
	if (agent.initialized) {
		rpc_fail(c, RPC_INVALID, "Already initialized");
		return;
	}
	agent.initialized = true;
	js_set(&my.muted, json_incref(js_at(c->params, "capabilities.optOutNotificationMethods")));
	rpc_reply(c, js_make("{userAgent:%s,codexHome:/nonexistent,platformFamily:unix,platformOs:linux}",
						 "plenum-fakeagent/" PLENUM_VERSION));
}

void appserver_start(void) {
	static const struct rpc_method methods[] = {
		{"initialize", run_initialize},    {"thread/start", run_start},
		{"thread/resume", run_resume},     {"thread/read", run_read},
		{"thread/list", run_list},         {"thread/settings/update", run_settings},
		{"turn/start", run_turn},          {"turn/steer", run_steer},
		{"turn/interrupt", run_interrupt}, {NULL, NULL},
	};
	static const struct rpc_protocol protocol = {
		.unready = "Not initialized",
		.busy = "a turn is running in another thread",
		.internal = "",
		.methods = methods,
		.frame = take_frame,
		.answer = take_answer,
	};
	js_replace(&my.approval, "on-request");
	my.prompts = js_make("{}");
	my.withdrawn = js_make("[]");
	rpc_speak(&protocol);
}
