/* SPDX-License-Identifier: MIT */
#include "fakeagent/appserver_item.h"

#include "base/fd.h"
#include "fakeagent/backlog.h"
#include "fakeagent/conversation.h"
#include "fakeagent/rpc.h"

#include <limits.h>
#include <stdio.h>

#define EDITS "Write Edit NotebookEdit"

static char turn[37]; /* the id of the open turn, or empty */
static bool begun;    /* turn/started was printed */
static int64_t started;
static json_t *prompts;   /* user lines that were not shown yet, by uuid */
static json_t *tools;     /* items of running tools, by id */
static json_t *open_item; /* the id of the message whose deltas are printed */
static json_t *withdrawn; /* requests that the interrupt has ended; told after the turn */
static json_t *muted;

const char *appserver_item_turn(void) {
	return *turn ? turn : NULL;
}

void appserver_item_mute(json_t *methods) {
	js_set(&muted, methods);
}

void appserver_item_notify(const char *method, json_t *params) {
	js_put(params, "threadId", js_make("%s", conversation_id()));
	if (js_has(muted, method))
		json_decref(params);
	else
		rpc_notify(method, params);
}

/* Takes params; adds threadId and turnId. */
static void notify(const char *method, json_t *params) {
	js_put(params, "turnId", js_make("%s", turn));
	appserver_item_notify(method, params);
}

static json_t *turn_object(const char *status, json_t *items, json_t *error) {
	int64_t now = now_real_ms();
	bool ended = strcmp(status, "inProgress") != 0;
	return js_make("{id:%s,rootTurnId:%s,items:%o,itemsView:%s,status:%s,error:%o,startedAt:%o,completedAt:%o,"
				   "durationMs:%o}",
				   turn, turn, items, ended ? "summary" : "notLoaded", status, error ? error : json_null(),
				   begun ? json_integer(started / 1000) : json_null(), ended ? json_integer(now / 1000) : json_null(),
				   ended ? json_integer(now - started) : json_null());
}

static void put_status(const char *type, const char *flag) {
	json_t *flags = strcmp(type, "active") != 0 ? NULL : flag ? js_make("[%s]", flag) : js_make("[]");
	json_t *status = js_make("{type:%s}", type);
	js_put(status, "activeFlags", flags);
	appserver_item_notify("thread/status/changed", js_make("{status:%o}", status));
}

json_t *appserver_item_begin(void) {
	if (!*turn) js_uuid(turn);
	return turn_object("inProgress", js_need(json_array()), NULL);
}

/* ---- items ----------------------------------------------------------------------------------------------------- */

static void put_started(json_t *item) {
	notify("item/started", js_make("{item:%O,startedAtMs:%I}", item, (json_int_t)now_real_ms()));
}

static void put_completed(json_t *item) {
	notify("item/completed", js_make("{item:%O,completedAtMs:%I}", item, (json_int_t)now_real_ms()));
}

static json_t *user_item(json_t *id, json_t *content, json_t *client_id) {
	_cleanup_json_ json_t *text = js_content(content);
	return js_make("{type:userMessage,id:%o,clientId:%o,content:[{type:text,text:%O,text_elements:[]}]}", id,
				   client_id ? client_id : json_null(), text);
}

static json_t *message_item(json_t *id, const json_t *text) {
	return js_make("{type:agentMessage,id:%O,text:%O,phase:null,memoryCitation:null}", id, text);
}

static json_t *thought_item(json_t *id, const json_t *text) {
	return js_make("{type:reasoning,id:%O,summary:[],content:[%O]}", id, text);
}

static bool edits(const char *name) {
	return name && strstr(EDITS, name);
}

static json_t *tool_item(const json_t *use) {
	char cwd[PATH_MAX];
	json_t *id = json_object_get(use, "id"), *input = json_object_get(use, "input");
	const char *name = js_get(use, "name"), *command = js_get(input, "command"), *path = js_get(input, "file_path");
	if (edits(name))
		return js_make("{type:fileChange,id:%O,changes:[{path:%s,kind:{type:add},diff:%s}],status:inProgress}", id,
					   path ? path : "", js_get(input, "content"));
	if (!command)
		return js_make(
			"{type:mcpToolCall,id:%O,server:fake,tool:%s,arguments:%O,result:null,error:null,durationMs:null,"
			"status:inProgress}",
			id, name, input);
	return js_make("{type:commandExecution,id:%O,command:%s,cwd:%s,processId:null,source:agent,status:inProgress,"
				   "commandActions:[{type:unknown,command:%s}],aggregatedOutput:null,exitCode:null,durationMs:null}",
				   id, command, getcwd(cwd, sizeof cwd) ? cwd : "/", command);
}

static void end_tool(json_t *item, const json_t *result) {
	json_t *text = js_content(json_object_get(result, "content"));
	bool failed = js_true(result, "is_error"), command = js_is(item, "type", "commandExecution");
	long code = 0;
	if (failed && sscanf(json_string_value(text), "Exit code %ld", &code) != 1) code = 1; /* NOLINT(cert-err34-c) */
	if (js_is(item, "status", "inProgress")) {
		js_put(item, "status", js_make("%s", failed ? "failed" : "completed"));
		if (command) js_put(item, "exitCode", json_integer(code));
		if (command) js_put(item, "aggregatedOutput", json_incref(text));
	}
	json_decref(text);
}

/* ---- requests -------------------------------------------------------------------------------------------------- */

/* The members that every request of a turn has. */
static json_t *request_params(const json_t *item_id) {
	return js_make("{threadId:%s,turnId:%s,itemId:%O,startedAtMs:%I}", conversation_id(), turn, item_id,
				   (json_int_t)now_real_ms());
}

static void ask_approval(const json_t *control, const json_t *r) {
	char cwd[PATH_MAX];
	json_t *params = request_params(json_object_get(r, "tool_use_id")), *input = json_object_get(r, "input"), *more;
	const char *name = js_get(r, "tool_name"), *command = js_get(input, "command");
	put_status("active", "waitingOnApproval");
	if (edits(name)) {
		more = js_make("{reason:null,grantRoot:null}");
	} else {
		if (!command) command = name;
		more = js_make("{kind:command,reason:%O,command:%s,cwd:%s,commandActions:[{type:unknown,command:%s}],"
					   "proposedExecpolicyAmendment:[%s],availableDecisions:[accept,{acceptWithExecpolicyAmendment:{"
					   "execpolicy_amendment:[%s]}},cancel]}",
					   json_object_get(r, "decision_reason"), command, getcwd(cwd, sizeof cwd) ? cwd : "/", command,
					   command, command);
	}
	json_object_update(params, more);
	json_decref(more);
	rpc_ask(control, edits(name) ? "item/fileChange/requestApproval" : "item/commandExecution/requestApproval", params);
}

static void ask(const json_t *control) {
	const json_t *r = json_object_get(control, "request");
	const char *subtype = js_get(r, "subtype");
	if (js_same(subtype, "can_use_tool"))
		ask_approval(control, r);
	else if (js_same(subtype, "elicitation"))
		rpc_ask(control, "mcpServer/elicitation/request",
				js_make("{threadId:%s,turnId:%s,serverName:fake,mode:form,message:%O,requestedSchema:%O}",
						conversation_id(), turn, json_object_get(r, "message"),
						json_object_get(r, "requested_schema")));
	else
		rpc_ask(control, subtype, js_make("{threadId:%s,turnId:%s,detail:fake}", conversation_id(), turn));
}

static void put_resolved(json_t *id) {
	appserver_item_notify("serverRequest/resolved", js_make("{requestId:%O}", id));
}

static void withdraw(const char *request_id) {
	json_t *id = rpc_withdraw(request_id);
	if (!withdrawn) withdrawn = js_need(json_array());
	if (id) json_array_append_new(withdrawn, id);
}

static json_t *refuse(const json_t *request, bool interrupt) {
	json_t *item = json_object_get(tools, js_get(request, "tool_use_id"));
	if (item) js_put(item, "status", js_make("declined"));
	return js_make("{subtype:success,response:{behavior:deny,message:rejected by user,interrupt:%b}}", interrupt);
}

/* An unknown decision refuses the tool. `acceptForSession` and `decline` count although no request offers them. */
static json_t *decide(const json_t *request, const json_t *decision) {
	const char *word = json_string_value(decision);
	bool file = edits(js_get(request, "tool_name")), session = js_same(word, "acceptForSession");
	bool rule = !file && json_object_get(decision, "acceptWithExecpolicyAmendment");
	if (!session && !rule && !js_same(word, "accept")) return refuse(request, js_same(word, "cancel"));
	return js_make("{subtype:success,response:{behavior:allow,updatedInput:%O,updatedPermissions:%O}}",
				   json_object_get(request, "input"),
				   session || rule ? json_object_get(request, "permission_suggestions") : NULL);
}

json_t *appserver_item_answer(json_t *id, const json_t *request, json_t *result, json_t *error) {
	const char *text = js_get(error, "message");
	bool tool = js_is(request, "subtype", "can_use_tool");
	put_resolved(id);
	if (tool) put_status("active", NULL);
	if (tool && !error) return decide(request, json_object_get(result, "decision"));
	if (error) return js_make("{subtype:error,error:%s}", text ? text : "unknown error");
	return js_make("{subtype:success,response:%O}", result);
}

/* ---- the turn -------------------------------------------------------------------------------------------------- */

void appserver_item_prompt(const char *uuid, json_t *content, json_t *client_id) {
	if (!prompts) prompts = js_need(json_object());
	json_object_set_new(prompts, uuid, js_make("{content:%o,client:%o}", content, client_id));
}

void appserver_item_forget(void) {
	json_object_clear(prompts);
}

static void show_prompt(const char *uuid) {
	json_t *prompt = json_object_get(prompts, uuid);
	if (!prompt) return;
	_cleanup_json_ json_t *item = user_item(js_make("%s", uuid), json_object_get(prompt, "content"),
											json_incref(json_object_get(prompt, "client")));
	put_started(item);
	put_completed(item);
	json_object_del(prompts, uuid);
}

/* A turn of the agent begins, with these prompts. */
static void begin(const json_t *uuids) {
	size_t i;
	json_t *uuid;
	if (!*turn) js_uuid(turn);
	if (!begun) {
		begun = true;
		started = now_real_ms();
		tools = js_need(json_object());
		put_status("active", NULL);
		appserver_item_notify("turn/started",
							  js_make("{turn:%o}", turn_object("inProgress", js_need(json_array()), NULL)));
	}
	json_array_foreach(uuids, i, uuid) show_prompt(json_string_value(uuid));
}

static void put_usage(const json_t *result) {
	const json_t *usage = json_object_get(result, "usage");
	json_int_t in = json_integer_value(json_object_get(usage, "input_tokens"));
	json_int_t out = json_integer_value(json_object_get(usage, "output_tokens"));
	json_t *sum = js_make("{totalTokens:%I,inputTokens:%I,cachedInputTokens:0,outputTokens:%I,reasoningOutputTokens:0}",
						  in + out, in, out);
	notify("thread/tokenUsage/updated", js_make("{tokenUsage:{total:%O,last:%o,modelContextWindow:200000}}", sum, sum));
}

static void finish(const json_t *result) {
	bool api = js_is(result, "terminal_reason", "api_error");
	bool cut = js_is(result, "subtype", "error_during_execution");
	json_t *error = api ? js_make("{message:%O,codexErrorInfo:null,additionalDetails:null}",
								  json_object_get(result, "result"))
						: NULL;
	size_t i;
	json_t *id;
	put_usage(result);
	if (!cut && !backlog_empty()) {
		json_decref(error);
		return;
	}
	if (api) notify("error", js_make("{error:%O,willRetry:false}", error));
	put_status("idle", NULL);
	appserver_item_notify("turn/completed", js_make("{turn:%o}", turn_object(cut   ? "interrupted"
																			 : api ? "failed"
																				   : "completed",
																			 js_need(json_array()), error)));
	json_array_foreach(withdrawn, i, id) put_resolved(id);
	js_set(&withdrawn, NULL);
	js_set(&tools, NULL);
	js_set(&open_item, NULL);
	*turn = 0;
	begun = false;
}

/* ---- frames ---------------------------------------------------------------------------------------------------- */

static void open_block(const json_t *frame, const json_t *event) {
	const json_t *block = json_object_get(event, "content_block");
	const char *type = js_get(block, "type");
	_cleanup_json_ json_t *nothing = js_make("%s", "");
	if (!js_same(type, "text") && !js_same(type, "thinking")) return;
	js_set(&open_item, js_printf("%s-%d", js_get(frame, "api_message_id"),
								 (int)json_integer_value(json_object_get(event, "index"))));
	_cleanup_json_ json_t *item = js_same(type, "text") ? message_item(open_item, nothing)
														: thought_item(open_item, nothing);
	put_started(item);
}

static void put_delta(const json_t *delta) {
	json_t *text = json_object_get(delta, "text"), *thought = json_object_get(delta, "thinking");
	if (text) notify("item/agentMessage/delta", js_make("{itemId:%O,delta:%O}", open_item, text));
	if (thought) notify("item/reasoning/textDelta", js_make("{itemId:%O,contentIndex:0,delta:%O}", open_item, thought));
}

static void put_block(const json_t *block) {
	json_t *text = json_object_get(block, "text"), *thought = json_object_get(block, "thinking"), *item;
	if (js_is(block, "type", "tool_use")) {
		item = tool_item(block);
		put_started(item);
		json_object_set_new(tools, js_get(block, "id"), item);
	} else if (open_item) {
		item = text ? message_item(open_item, text) : thought_item(open_item, thought);
		put_completed(item);
		json_decref(item);
		js_set(&open_item, NULL);
	}
}

static void put_result(const json_t *block) {
	const char *id = js_get(block, "tool_use_id");
	json_t *item = json_object_get(tools, id);
	if (!item) return;
	end_tool(item, block);
	put_completed(item);
	json_object_del(tools, id);
}

static void take_message(const json_t *frame) {
	size_t i;
	json_t *block;
	json_array_foreach(json_object_get(json_object_get(frame, "message"), "content"), i, block) {
		if (js_is(block, "type", "tool_result"))
			put_result(block);
		else if (js_is(frame, "type", "assistant") && !js_true(frame, "aborted"))
			put_block(block);
	}
}

void appserver_item_frame(json_t *f) {
	const char *type = js_get(f, "type");
	const json_t *event = json_object_get(f, "event");
	if (js_is(event, "type", "content_block_start"))
		open_block(f, event);
	else if (event)
		put_delta(json_object_get(event, "delta"));
	else if (js_same(type, "assistant") || js_same(type, "user"))
		take_message(f);
	else if (js_same(type, "control_request"))
		ask(f);
	else if (js_same(type, "control_cancel_request"))
		withdraw(js_get(f, "request_id"));
	else if (js_is(f, "subtype", "init"))
		begin(json_object_get(f, "user_message_uuids"));
	else if (js_is(f, "subtype", "local_command_output"))
		notify("item/agentMessage/delta", js_make("{itemId:huge,delta:%O}", json_object_get(f, "content")));
	else if (js_same(type, "result"))
		finish(f);
	json_decref(f);
}

/* ---- the past -------------------------------------------------------------------------------------------------- */

static json_t *past_item(json_t *block, json_t *id, bool user) {
	json_t *text = json_object_get(block, "text"), *thought = json_object_get(block, "thinking"), *item = NULL;
	_cleanup_json_ json_t *list = js_make("[%O]", block);
	if (user && text)
		item = user_item(json_incref(id), list, NULL);
	else if (js_is(block, "type", "tool_use"))
		item = tool_item(block);
	else if (text || thought)
		item = text ? message_item(id, text) : thought_item(id, thought);
	json_decref(id);
	return item;
}

static void end_past_tool(json_t *items, const json_t *result) {
	size_t i;
	json_t *item;
	json_array_foreach(items, i, item) {
		if (js_is(item, "id", js_get(result, "tool_use_id"))) end_tool(item, result);
	}
}

/* Add the message to the last turn; a prompt begins one. */
static void add_past(json_t *turns, const json_t *message, size_t n) {
	bool user = js_is(message, "role", "user");
	json_t *content = json_object_get(message, "content"), *block;
	_cleanup_json_ json_t *blocks = json_is_array(content) ? json_incref(content)
														   : js_make("[{type:text,text:%O}]", content);
	size_t i;
	if (user && !js_has_block(blocks, "tool_result"))
		json_array_append_new(turns, js_make("{id:%o,items:[],itemsView:full,status:completed,error:null}",
											 js_printf("%s-%zu", conversation_id(), n)));
	json_t *items = json_object_get(json_array_get(turns, json_array_size(turns) - 1), "items");
	json_array_foreach(blocks, i, block) {
		if (js_is(block, "type", "tool_result")) {
			end_past_tool(items, block);
			continue;
		}
		json_t *item = past_item(block, js_printf("item-%zu-%zu", n, i), user);
		if (item) json_array_append_new(items, item);
	}
}

json_t *appserver_item_turns(void) {
	json_t *turns = js_need(json_array()), *message;
	size_t i;
	json_array_foreach(conversation_messages(), i, message) add_past(turns, message, i);
	return turns;
}
