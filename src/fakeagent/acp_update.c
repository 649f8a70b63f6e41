/* SPDX-License-Identifier: MIT */
#include "fakeagent/acp_update.h"

#include "fakeagent/conversation.h"
#include "fakeagent/policy.h"
#include "fakeagent/rpc.h"

#define OPTIONS                                                                                                        \
	"[{kind:allow_always,name:Always Allow,optionId:allow_always},{kind:allow_once,name:Allow,optionId:allow},"        \
	"{kind:reject_once,name:Reject,optionId:reject},{kind:reject_always,name:Never Allow,optionId:reject_always}]"

void acp_update_put(json_t *update) {
	rpc_notify("session/update", js_make("{sessionId:%s,update:%o}", conversation_id(), update));
}

void acp_update_state(json_t *update) {
	rpc_notify("session/update", js_make("{update:%o,sessionId:%s}", update, conversation_id()));
}

static void put_chunk(const char *kind, json_t *text) {
	acp_update_put(js_make("{sessionUpdate:%s,content:{type:text,text:%O}}", kind, text));
}

/* ---- tools ----------------------------------------------------------------------------------------------------- */

static const char *kind_of(const char *name) {
	static const char *const kinds[][2] = {
		{"Bash", "execute"}, {"Read", "read"},   {"Write", "edit"},     {"Edit", "edit"},
		{"Glob", "search"},  {"Grep", "search"}, {"WebFetch", "fetch"}, {"ExitPlanMode", "switch_mode"},
		{"Task", "think"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (js_same(kinds[i][0], name)) return kinds[i][1];
	return "other";
}

static json_t *title_of(const char *name, const json_t *input) {
	const char *path = js_get(input, "file_path"), *command = js_get(input, "command");
	if (js_same(name, "Bash") && command) return js_make("%s", command);
	return path ? js_printf("%s %s", name, path) : js_make("%s", name);
}

/* Describe a call; `update`: the value of sessionUpdate, or NULL. */
static json_t *describe(const char *update, const char *name, json_t *input, const json_t *id) {
	const char *path = js_get(input, "file_path");
	return js_make(
		"{sessionUpdate:%z,toolCallId:%O,title:%o,kind:%s,status:pending,rawInput:%O,content:[],locations:%o,"
		"_meta:{claudeCode:{toolName:%s}}}",
		update, id, title_of(name, input), kind_of(name), input, path ? js_make("[{path:%s}]", path) : js_make("[]"),
		name);
}

static void put_result(const json_t *block) {
	_cleanup_json_ json_t *text = js_content(json_object_get(block, "content"));
	acp_update_put(js_make("{sessionUpdate:tool_call_update,toolCallId:%O,status:%s,rawOutput:%O,"
						   "content:[{type:content,content:{type:text,text:%O}}]}",
						   json_object_get(block, "tool_use_id"), js_true(block, "is_error") ? "failed" : "completed",
						   text, text));
}

/* ---- messages -------------------------------------------------------------------------------------------------- */

static void put_tools(const json_t *content) {
	size_t i;
	json_t *block;
	json_array_foreach(content, i, block) {
		if (js_is(block, "type", "tool_use"))
			acp_update_put(describe("tool_call", js_get(block, "name"), json_object_get(block, "input"),
									json_object_get(block, "id")));
		if (js_is(block, "type", "tool_result")) put_result(block);
	}
}

static void put_message(const json_t *message) {
	const char *kind = js_is(message, "role", "user") ? "user_message_chunk" : "agent_message_chunk", *text;
	json_t *content = json_object_get(message, "content"), *block;
	size_t i;
	if (json_is_string(content)) put_chunk(kind, content);
	json_array_foreach(content, i, block) {
		if (js_is(block, "type", "thinking")) put_chunk("agent_thought_chunk", json_object_get(block, "thinking"));
		text = js_get(block, "text");
		if (text && strncmp(text, "[Request interrupted", 20) != 0) put_chunk(kind, json_object_get(block, "text"));
	}
	put_tools(content);
}

void acp_update_history(void) {
	size_t i;
	json_t *message;
	json_array_foreach(conversation_messages(), i, message) put_message(message);
}

/* ---- requests -------------------------------------------------------------------------------------------------- */

static void ask(const json_t *control) {
	const json_t *r = json_object_get(control, "request");
	const char *subtype = js_get(r, "subtype"), *id = conversation_id();
	if (js_same(subtype, "can_use_tool"))
		rpc_ask(control, "session/request_permission",
				js_make("{options:" OPTIONS ",toolCall:%o,sessionId:%s}",
						describe(NULL, js_get(r, "tool_name"), json_object_get(r, "input"),
								 json_object_get(r, "tool_use_id")),
						id));
	else if (js_same(subtype, "elicitation"))
		rpc_ask(control, "elicitation/create",
				js_make("{message:%O,mode:form,requestedSchema:%O,sessionId:%s}", json_object_get(r, "message"),
						json_object_get(r, "requested_schema"), id));
	else
		rpc_ask(control, subtype, js_make("{detail:fake,sessionId:%s}", id));
}

static void withdraw(const char *request_id) {
	json_t *id = rpc_withdraw(request_id);
	if (id) rpc_notify("$/cancel_request", js_make("{requestId:%o}", id));
}

/* An unknown option refuses the tool: it uses the request up. */
static json_t *decide(const json_t *request, const json_t *outcome) {
	const char *option = js_is(outcome, "outcome", "selected") ? js_get(outcome, "optionId") : NULL;
	json_t *input = json_object_get(request, "input"), *rules = json_object_get(request, "permission_suggestions");
	if (js_is(outcome, "outcome", "cancelled")) return js_make("{subtype:error,error:Tool use aborted}");
	if (js_same(option, "allow")) return js_make("{subtype:success,response:{behavior:allow,updatedInput:%O}}", input);
	if (js_same(option, "allow_always"))
		return js_make("{subtype:success,response:{behavior:allow,updatedInput:%O,updatedPermissions:%O}}", input,
					   rules);
	if (js_same(option, "reject_always")) {
		_cleanup_json_ json_t *list = js_make("[%O]", json_object_get(request, "tool_name"));
		policy_extend("deny", list);
	}
	return js_make("{subtype:success,response:{behavior:deny,message:User refused permission to run tool}}");
}

json_t *acp_update_answer(json_t *id, const json_t *request, json_t *result, json_t *error) {
	(void)id;
	const char *text = js_get(error, "message");
	if (error) return js_make("{subtype:error,error:%s}", text ? text : "unknown error");
	if (js_is(request, "subtype", "can_use_tool")) return decide(request, json_object_get(result, "outcome"));
	return js_make("{subtype:success,response:%O}", result);
}

/* ---- frames ---------------------------------------------------------------------------------------------------- */

static void put_delta(const json_t *delta) {
	json_t *text = json_object_get(delta, "text"), *thought = json_object_get(delta, "thinking");
	if (text) put_chunk("agent_message_chunk", text);
	if (thought) put_chunk("agent_thought_chunk", thought);
}

bool acp_update_frame(const json_t *f) {
	const char *type = js_get(f, "type");
	if (js_same(type, "stream_event"))
		put_delta(json_object_get(json_object_get(f, "event"), "delta"));
	else if (js_same(type, "assistant") || js_same(type, "user"))
		put_tools(json_object_get(json_object_get(f, "message"), "content"));
	else if (js_same(type, "control_request"))
		ask(f);
	else if (js_same(type, "control_cancel_request"))
		withdraw(js_get(f, "request_id"));
	else if (js_is(f, "subtype", "status") && js_get(f, "permissionMode"))
		acp_update_state(js_make("{sessionUpdate:current_mode_update,currentModeId:%s}", policy_mode()));
	else if (js_is(f, "subtype", "local_command_output"))
		put_chunk("agent_message_chunk", json_object_get(f, "content"));
	else
		return false;
	return true;
}
