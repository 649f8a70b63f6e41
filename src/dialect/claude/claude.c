/* SPDX-License-Identifier: MIT */
#include "dialect/claude/claude.h"

#include "base/macros.h"
#include "base/str.h"
#include "dialect/claude/argv.h"
#include "dialect/claude/crons.h"
#include "dialect/claude/message.h"
#include "dialect/claude/turn.h"
#include "dialect/frame.h"
#include "wire/alike.h"
#include "wire/notice.h"
#include "wire/splice.h"

#include <stdio.h>
#include <string.h>

static const char neutral[] = "{}";

static const struct {
	const char *type;
	enum line_kind kind;
} kinds[] = {
	{"stream_event", LINE_STREAM_EVENT},
	{"assistant", LINE_ASSISTANT},
	{"user", LINE_USER},
	{"system", LINE_SYSTEM},
	{"result", LINE_RESULT},
	{"control_request", LINE_REQUEST},
	{"control_response", LINE_RESPONSE},
	{"control_cancel_request", LINE_CANCEL},
	{"tool_progress", LINE_TOOL_PROGRESS},
	{"rate_limit_event", LINE_RATE_LIMIT},
	{"command_lifecycle", LINE_LIFECYCLE},
	{"conversation_reset", LINE_RESET},
};

static enum line_kind kind_of(const char *type, size_t n) {
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strlen(kinds[i].type) == n && memcmp(kinds[i].type, type, n) == 0) return kinds[i].kind;
	return LINE_OTHER;
}

static enum line_kind kind(const struct envelope *e) {
	struct span type = span_content(e->type);
	return type.p ? kind_of(type.p, type.n) : LINE_OTHER;
}

static bool hides_kind(struct chunk line, const struct envelope *e) {
	struct span all = {line.data, line.len}, key, value, type = e->type;
	size_t at = 0;
	if (type.p && !memchr(type.p, '\\', type.n)) return false;
	while (!type.p && span_next_member(all, &at, &key, &value)) {
		_cleanup_free_ char *name = memchr(key.p, '\\', key.n) ? span_dup(key, NULL) : NULL;
		if (name && strcmp(name, "type") == 0) type = value;
	}
	_cleanup_free_ char *text = span_is_string(type) ? span_dup(type, NULL) : NULL;
	enum line_kind is = text ? kind_of(text, strlen(text)) : LINE_OTHER;
	return is == LINE_REQUEST || is == LINE_RESPONSE || is == LINE_CANCEL;
}

static bool is_echo(const struct envelope *e) {
	static const char own[] = "<local-command-";
	if (!span_is_true(e->is_replay) || !span_equals(e->type, "user")) return false;
	struct span text = span_content(span_member(e->message, "content"));
	return text.n < sizeof own - 1 || memcmp(text.p, own, sizeof own - 1) != 0;
}

static bool ran_no_turn(struct span result) {
	int64_t turns;
	return span_int(span_member(result, "num_turns"), &turns) && turns == 0;
}

/* --- reports ------------------------------------------------------------------------------------------------------ */

static bool is_one_of(struct span key, const char *const *names) {
	for (; *names; names++)
		if (span_equals(key, *names)) return true;
	return false;
}

/* 2.1.197 reports tasks one by one, without a flag for the background; all have an end, also after an interrupt. */
static void read_task(struct span line, const struct envelope *e, struct report *r) {
	static const char *const ends[] = {"completed", "failed", "killed", "stopped", "cancelled", NULL};
	struct span in_background = span_member(line, "is_backgrounded");
	r->task = span_member(line, "task_id");
	if (span_equals(e->subtype, "task_started"))
		r->tasks = !in_background.p || span_is_true(in_background) ? REPORT_TASK_BEGINS : REPORT_TASKS_NONE;
	else if (span_equals(e->subtype, "task_notification") ||
			 is_one_of(span_member(span_member(line, "patch"), "status"), ends))
		r->tasks = REPORT_TASK_ENDS;
}

static struct span task_id(struct span task) {
	return span_member(task, "task_id");
}

#define DESCRIPTION_MAX 1024 /* of a task in a list made by the daemon */

/* The members of a task as in the child's own lists. */
static void put_task(struct buf *b, struct span line) {
	static const char *const names[] = {"task_type", "subagent_type", "description"};
	struct span id = task_id(line);
	buf_puts(b, "{\"task_id\":");
	buf_put(b, id.p, id.n);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct span value = span_member(line, names[i]);
		if (span_is_string(value) && value.n <= DESCRIPTION_MAX) notice_raw(b, names[i], value);
	}
	buf_putc(b, '}');
}

static void read_init(struct span line, struct report *r) {
	r->begins = r->works = r->starting = true;
	r->version = span_member(line, "claude_code_version");
	r->left_socket = span_member(line, "messaging_socket_path");
	r->mode = span_member(line, "permissionMode");
	r->model = span_member(line, "model");
}

static void read_state(struct span state, struct report *r) {
	r->state = span_equals(state, "running") ? REPORT_RUNS
			   : span_equals(state, "idle")  ? REPORT_RESTS
											 : REPORT_STATE_NONE;
}

/* Asked for its name (ask_name), the CLI prints one of these two lists. */
static void read_system(struct span line, const struct envelope *e, struct report *r) {
	static const char *const tasks[] = {"task_started", "task_updated", "task_notification", NULL};
	static const char *const starts[] = {"hook_started", "hook_progress", "hook_response", NULL};
	if (span_equals(e->subtype, "init")) {
		read_init(line, r);
	} else if (span_equals(e->subtype, "status")) {
		r->mode = span_member(line, "permissionMode");
	} else if (span_equals(e->subtype, "session_state_changed")) {
		read_state(span_member(line, "state"), r);
	} else if (span_equals(e->subtype, "background_tasks_changed")) {
		r->named = true;
		r->tasks = REPORT_TASKS;
		r->task = span_member(line, "tasks");
	} else if (is_one_of(e->subtype, tasks)) {
		read_task(line, e, r);
	} else {
		r->named = span_equals(e->subtype, "commands_changed");
		r->starting = is_one_of(e->subtype, starts);
	}
}

static void read_fate(struct span line, struct report *r) {
	static const char *const drops[] = {"discarded", "refused", NULL};
	struct span state = span_member(line, "state");
	r->prompt = span_member(line, "command_uuid");
	r->fate = span_equals(state, "cancelled") ? FATE_WITHDRAWN : is_one_of(state, drops) ? FATE_DROPPED : FATE_NONE;
}

static void read_line(struct chunk line, enum line_kind is, const struct envelope *e, struct report *r) {
	if (is == LINE_SYSTEM) read_system(splice_body(line), e, r);
	if (is == LINE_LIFECYCLE) read_fate(splice_body(line), r);
	if (is == LINE_ASSISTANT || is == LINE_STREAM_EVENT) r->works = !span_is_string(e->parent_tool_use_id);
	r->resets = is == LINE_RESET;
	r->echo = is_echo(e);
}

/* --- the beginning of a long line --------------------------------------------------------------------------------- */

static const char *skip_blanks(const char *p, const char *end) {
	while (p < end && (*p == ' ' || *p == '\t')) p++;
	return p;
}

/* Return the value if it ends within the head, else none. */
static struct span head_value(const char *at, const char *end) {
	const char *p = at;
	if (p < end && *p == '"') {
		for (p++; p < end && *p != '"';) p += *p == '\\' ? 2 : 1;
		return p < end ? (struct span){at, (size_t)(p - at) + 1} : SPAN_NONE;
	}
	while (p < end && (*p == '-' || (*p >= '0' && *p <= '9'))) p++;
	return p > at && p < end && strchr(",} \t", *p) ? (struct span){at, (size_t)(p - at)} : SPAN_NONE;
}

/* key: with its quotes. */
static struct span head_member(struct chunk head, const char *key) {
	const char *end = head.data + head.len, *at = memmem(head.data, head.len, key, strlen(key));
	if (!at) return SPAN_NONE;
	at = skip_blanks(at + strlen(key), end);
	return at < end && *at == ':' ? head_value(skip_blanks(at + 1, end), end) : SPAN_NONE;
}

static bool head_has(struct chunk head, const char *text) {
	return memmem(head.data, head.len, text, strlen(text)) != NULL;
}

/* The type comes first, so the first mark is that of the line itself. The quotes of a text within a line are escaped.
 */
static enum line_kind head_kind(struct chunk head) {
	static const struct {
		const char *mark;
		enum line_kind kind;
	} marks[] = {{"\"control_request\"", LINE_REQUEST},
				 {"\"control_response\"", LINE_RESPONSE},
				 {"\"type\":\"result\"", LINE_RESULT}};
	const char *first = NULL;
	enum line_kind found = LINE_OTHER;
	for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
		const char *at = memmem(head.data, head.len, marks[i].mark, strlen(marks[i].mark));
		if (!at || (first && at > first)) continue;
		first = at;
		found = marks[i].kind;
	}
	return found;
}

static void read_head(struct chunk text, struct head *head) {
	*head = (struct head){.kind = head_kind(text), .ask = ASK_UNKNOWN, .id = head_member(text, "\"request_id\"")};
	if (head->kind != LINE_REQUEST) return;
	if (head_has(text, "\"can_use_tool\"")) head->ask = ASK_TOOL;
	if (!head_has(text, "\"hook_callback\"")) return;
	head->ask = ASK_HOOK;
	head->callback = head_member(text, "\"callback_id\"");
}

/* --- asks --------------------------------------------------------------------------------------------------------- */

static enum ask_kind ask_kind(const struct envelope *e) {
	static const struct {
		const char *subtype;
		enum ask_kind kind;
	} asks[] = {{"can_use_tool", ASK_TOOL},
				{"hook_callback", ASK_HOOK},
				{"mcp_message", ASK_MCP},
				{"elicitation", ASK_ELICITATION},
				{"request_user_dialog", ASK_DIALOG}};
	for (size_t i = 0; i < ARRAY_SIZE(asks); i++)
		if (span_equals(e->inner_subtype, asks[i].subtype)) return asks[i].kind;
	return ASK_UNKNOWN;
}

static struct span input_of(enum ask_kind kind, struct span request) {
	struct span input = span_member(request, "input");
	return kind == ASK_HOOK ? span_member(input, "tool_input") : input;
}

/* Return the member of the tool's input that says most. */
static struct span subject(enum ask_kind kind, struct span request) {
	static const char *const keys[] = {"command", "file_path", "path", "pattern", "url", "query", "prompt"};
	struct span input = input_of(kind, request), value = SPAN_NONE;
	for (size_t i = 0; i < ARRAY_SIZE(keys) && !span_is_string(value); i++) value = span_member(input, keys[i]);
	return span_is_string(value) ? value : SPAN_NONE;
}

static struct span ask_part(enum ask_kind kind, struct span request, enum ask_part part) {
	static const char *const names[] = {
		[ASK_PART_TOOL] = "tool_name",       [ASK_PART_INPUT] = "input",
		[ASK_PART_AGENT] = "agent_id",       [ASK_PART_DIALOG_KIND] = "dialog_kind",
		[ASK_PART_CALLBACK] = "callback_id", [ASK_PART_SERVER] = "server_name",
		[ASK_PART_MESSAGE] = "message",      [ASK_PART_SUGGESTIONS] = "permission_suggestions",
	};
	if (part == ASK_PART_SUBJECT) return subject(kind, request);
	if (kind == ASK_HOOK && part == ASK_PART_TOOL) request = span_member(request, "input");
	struct span value = span_member(request, names[part]);
	return part != ASK_PART_SUGGESTIONS || span_is_array(value) ? value : SPAN_NONE;
}

static struct span summary(struct span request) {
	static const char *const telling[] = {"command", "file_path",   "path",    "url",
										  "pattern", "description", "message", "prompt"};
	struct span input = span_member(request, "input"), value = SPAN_NONE;
	for (size_t i = 0; i < ARRAY_SIZE(telling) && !value.p; i++) {
		value = span_member(input, telling[i]);
		if (!value.p) value = span_member(request, telling[i]);
	}
	return value;
}

/* --- tool calls by a client --------------------------------------------------------------------------------------- */

#define CALL_CAPABILITY "mcp_call_check_permissions_v1"

/* Members that are judged, and those that a copy must not have, are left out of the copy. */
static const char *const command_judged[] = {"type", "command", "cwd", NULL};
static const char *const mcp_judged[] = {"subtype", "tool", "arguments", "check_permissions", "request_id", NULL};

static bool line_executes(const struct envelope *e) {
	return span_equals(e->type, "bash_command");
}

/* The CLI finds a tool by its normal name. It sends any other name to the server unchanged, without rules and
 * matchers. */
static bool is_mcp_name(const char *tool) {
	if (!tool || strncmp(tool, "mcp__", 5) != 0 || !strstr(tool + 5, "__")) return false;
	return tool[strspn(tool, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")] == 0;
}

static bool is_absent(struct span s) {
	return !s.p || *s.p == 'n';
}

static void put_command(struct buf *b, struct span command, struct span cwd) {
	buf_puts(b, "\"command\":");
	buf_put(b, command.p, command.n);
	if (!is_absent(cwd)) {
		buf_puts(b, ",\"cwd\":");
		buf_put(b, cwd.p, cwd.n);
	}
}

static bool is_command(struct span command, struct span cwd) {
	return span_is_string(command) && (is_absent(cwd) || span_is_string(cwd));
}

static const char *read_call(struct span line, const struct envelope *e, char **tool, struct buf *input) {
	if (line_executes(e)) {
		struct span command = span_member(line, "command"), cwd = span_member(line, "cwd");
		if (!is_command(command, cwd)) return "`command` of bash_command must be a string, and `cwd` if it is there";
		buf_putc(input, '{');
		put_command(input, command, cwd);
		buf_putc(input, '}');
		*tool = str_dup("Bash");
		return *tool ? NULL : "out of memory";
	}
	if (!span_equals(e->inner_subtype, "mcp_call")) return "this request cannot be judged: send the line bash_command";
	struct span arguments = span_member(e->request, "arguments");
	_cleanup_free_ char *name = span_dup(span_member(e->request, "tool"), NULL);
	if (!is_mcp_name(name)) return "`tool` of mcp_call must be a name such as mcp__server__tool, of A-Z a-z 0-9 _ -";
	if (!is_absent(arguments) && !span_is_object(arguments)) return "`arguments` of mcp_call must be an object";
	if (is_absent(arguments)) arguments = span_of("{}");
	buf_put(input, arguments.p, arguments.n);
	*tool = str_dup(name);
	return *tool ? NULL : "out of memory";
}

static bool call_wants_check(const struct envelope *e) {
	struct span check = span_member(e->request, "check_permissions");
	return !is_absent(check) && *check.p != 'f';
}

/* Judged members are compared by their plain spelling: message.h refuses lines with another one. */
static void put_rest(struct buf *b, struct span of, const char *const *judged) {
	struct span key, value;
	for (size_t at = 0; span_next_member(of, &at, &key, &value);) {
		if (is_one_of(key, judged)) continue;
		buf_putc(b, ',');
		buf_put(b, key.p, key.n);
		buf_putc(b, ':');
		buf_put(b, value.p, value.n);
	}
}

static bool put_call(struct buf *b, struct span line, const struct envelope *e, struct span input, bool check) {
	if (!span_is_object(input)) return false;
	if (line_executes(e)) {
		struct span text = span_member(input, "command"), cwd = span_member(input, "cwd");
		if (!is_command(text, cwd)) return false;
		buf_puts(b, "{\"type\":\"bash_command\",");
		put_command(b, text, cwd);
		put_rest(b, line, command_judged);
	} else {
		struct span tool = span_member(e->request, "tool");
		buf_puts(b, "{\"subtype\":\"mcp_call\",\"tool\":");
		buf_put(b, tool.p, tool.n);
		buf_puts(b, ",\"arguments\":");
		buf_put(b, input.p, input.n);
		if (check) buf_puts(b, ",\"check_permissions\":true");
		put_rest(b, e->request, mcp_judged);
	}
	buf_putc(b, '}');
	return !b->failed;
}

static const char *way(const struct envelope *e) {
	return line_executes(e) ? "bash_command" : "mcp_call";
}

static void put_question(struct buf *b, const char *tool, struct span input, const char *text, struct span by) {
	char id[17];
	str_random_hex(id, 16);
	buf_printf(b,
			   "{\"type\":\"control_request\",\"request_id\":\"plenum_%s\",\"request\":{\"subtype\":\"can_use_tool\","
			   "\"tool_name\":\"%s\",\"input\":",
			   id, tool);
	buf_put(b, input.p, input.n);
	buf_printf(b, ",\"tool_use_id\":\"plenum_%s\",\"permission_suggestions\":[],\"description\":", id);
	str_put_json(b, text, strlen(text));
	buf_puts(b, ",\"plenum_by\":");
	buf_put(b, by.p, by.n);
	buf_puts(b, "}}\n");
}

static bool checks_calls(struct span init_answer) {
	struct span all = span_member(init_answer, "capabilities"), one;
	for (size_t at = 0; span_next(all, &at, &one);)
		if (span_equals(one, CALL_CAPABILITY)) return true;
	return false;
}

/* --- bodies --------------------------------------------------------------------------------------------------------
 */

static void put_tool_deny(struct buf *b, const char *reason) {
	buf_puts(b, "{\"behavior\":\"deny\",\"message\":");
	str_put_json(b, reason, strlen(reason));
	buf_puts(b, "}");
}

static void put_tool_allow(struct buf *b, struct span input) {
	buf_puts(b, "{\"behavior\":\"allow\",\"updatedInput\":");
	buf_put(b, input.p ? input.p : "{}", input.p ? input.n : 2);
	buf_putc(b, '}');
}

static void put_cancel_form(struct buf *b) {
	buf_puts(b, "{\"action\":\"cancel\"}");
}

static void put_hook_deny(struct buf *b, struct span event, const char *reason) {
	if (span_equals(event, "PreToolUse"))
		buf_puts(b, "{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"deny\","
					"\"permissionDecisionReason\":");
	else if (span_equals(event, "PermissionRequest"))
		buf_puts(b,
				 "{\"hookSpecificOutput\":{\"hookEventName\":\"PermissionRequest\",\"decision\":{\"behavior\":\"deny\","
				 "\"message\":");
	else
		buf_puts(b, "{\"decision\":\"block\",\"reason\":");
	str_put_json(b, reason, strlen(reason));
	if (span_equals(event, "PreToolUse"))
		buf_puts(b, "}}");
	else
		buf_puts(b, span_equals(event, "PermissionRequest") ? "}}}" : "}");
}

static void put_mcp_error(struct buf *b, struct span message, const char *reason) {
	struct span id = span_member(message, "id");
	if (!id.p) { /* a notification only needs an acknowledgement */
		buf_puts(b, "{\"mcp_response\":{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}}");
		return;
	}
	buf_puts(b, "{\"mcp_response\":{\"jsonrpc\":\"2.0\",\"id\":");
	buf_put(b, id.p, id.n);
	buf_puts(b, ",\"error\":{\"code\":-32000,\"message\":");
	str_put_json(b, reason, strlen(reason));
	buf_puts(b, "}}}");
}

/* --- hooks and answers -------------------------------------------------------------------------------------------- */

static int hook_timeout(struct span event) {
	return span_equals(event, "UserPromptSubmit") ? 30 : 600;
}

static bool hook_guards(struct span event) {
	return span_equals(event, "PreToolUse") || span_equals(event, "PermissionRequest");
}

static bool hook_sees_tools(struct span event) {
	static const char *const events[] = {
		"PreToolUse",        "PostToolUse",      "PostToolUseFailure",   "PostToolBatch",
		"PermissionRequest", "PermissionDenied", "PreSkillShellCommand", NULL};
	return is_one_of(event, events);
}

static bool matcher_covers(struct span matcher, const char *tool) {
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_|, -";
	_cleanup_free_ char *text = span_dup(matcher, NULL);
	char *save = NULL;
	if (!text || !*text || text[strspn(text, plain)]) return true;
	for (char *name = strtok_r(text, "|,", &save); name; name = strtok_r(NULL, "|,", &save)) {
		name += strspn(name, " ");
		size_t n = strcspn(name, " ");
		if (strlen(tool) == n && memcmp(tool, name, n) == 0) return true;
	}
	return false;
}

static const char *check_deny(struct span body) {
	struct span interrupt = span_member(body, "interrupt");
	if (!span_is_string(span_member(body, "message"))) return "a deny needs `message`, a string that says why";
	if (interrupt.p && *interrupt.p != 't' && *interrupt.p != 'f') return "`interrupt` must be true or false";
	return NULL;
}

/* The CLI drops other members that it cannot use; it fails on these, even if null. */
static const char *check_tool(struct span body) {
	struct span behavior = span_member(body, "behavior"), old = span_member(body, "allow");
	struct span updated = span_member(body, "updatedInput"), use = span_member(body, "toolUseID");
	if (behavior.p && use.p && !span_is_string(use)) return "`toolUseID` must be a string";
	if (span_equals(behavior, "allow"))
		return updated.p && !span_is_object(updated) ? "`updatedInput` must be an object" : NULL;
	if (span_equals(behavior, "deny")) return check_deny(body);
	if (behavior.p) return "`behavior` must be \"allow\" or \"deny\"";
	if (old.p && (*old.p == 't' || *old.p == 'f')) return NULL;
	return "write {\"behavior\":\"allow\"} or {\"behavior\":\"deny\",\"message\":\"why\"} as response.response";
}

/* Any other reply than JSON-RPC stalls the CLI's handshake and the session. */
static const char *check_mcp(struct span reply) {
	if (!span_is_object(reply)) return "response.response needs `mcp_response`, a JSON-RPC message";
	struct span result = span_member(reply, "result");
	if ((result.p && *result.p != 'n') || span_is_object(span_member(reply, "error"))) return NULL;
	return "`mcp_response` needs `result` or `error`";
}

static const char *check_action(struct span body, const char *member, const char *const *values, const char *error) {
	struct span value = span_member(body, member);
	for (; *values; values++)
		if (span_equals(value, *values)) return NULL;
	return error;
}

static bool is_empty(enum ask_kind kind, struct span request, struct span response) {
	struct span body = span_member(response, "response"), subtype = span_member(response, "subtype");
	if (span_equals(subtype, "error")) return !span_is_string(span_member(response, "error"));
	if (!span_equals(subtype, "success")) return false;
	if (kind == ASK_HOOK) return !body.p || *body.p == 'n';
	bool notification = kind == ASK_MCP && !span_member(span_member(request, "message"), "id").p;
	return notification && check_mcp(span_member(body, "mcp_response"));
}

static void put_empty(struct buf *b, struct span id, enum ask_kind kind, struct span request, struct span response) {
	struct buf body = BUF_INIT(4096);
	if (span_equals(span_member(response, "subtype"), "error")) {
		frame_put_error(b, id, "bad_answer", "the client gave no reason", "");
		return;
	}
	if (kind == ASK_MCP)
		put_mcp_error(&body, span_member(request, "message"), "");
	else
		buf_puts(&body, neutral);
	dialect_put_built(&claude_dialect, b, id, &body);
}

static const char *check_answer(enum ask_kind kind, struct span response) {
	static const char *const actions[] = {"accept", "decline", "cancel", NULL};
	static const char *const behaviors[] = {"completed", "cancelled", NULL};
	struct span body = span_member(response, "response"), subtype = span_member(response, "subtype");
	if (span_equals(subtype, "error"))
		return span_is_string(span_member(response, "error")) ? NULL
															  : "an error answer needs `error`, a string that says why";
	if (!span_equals(subtype, "success")) return "response.subtype must be \"success\" or \"error\"";
	if (kind == ASK_UNKNOWN) return NULL;
	if (!span_is_object(body)) return "response.response must be an object";
	if (kind == ASK_TOOL) return check_tool(body);
	if (kind == ASK_MCP) return check_mcp(span_member(body, "mcp_response"));
	if (kind == ASK_ELICITATION)
		return check_action(body, "action", actions, "`action` must be \"accept\", \"decline\" or \"cancel\"");
	if (kind == ASK_DIALOG)
		return check_action(body, "behavior", behaviors, "`behavior` must be \"completed\" or \"cancelled\"");
	return NULL;
}

static bool says(struct span value, const char *text) {
	_cleanup_free_ char *said = span_is_string(value) ? span_dup(value, NULL) : NULL;
	return said && strcmp(said, text) == 0;
}

/* The decision of a hook: in permissionDecision for PreToolUse, in `decision` for PermissionRequest. */
static const char *hook_decision(struct span body) {
	static const char *const words[] = {"allow", "deny", "ask", "defer"};
	struct span output = span_member_spelled(body, "hookSpecificOutput");
	struct span word = span_member_spelled(output, "permissionDecision");
	if (!word.p) word = span_member_spelled(span_member_spelled(output, "decision"), "behavior");
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (says(word, words[i])) return words[i];
	word = span_member_spelled(body, "decision");
	return says(word, "block") ? "deny" : says(word, "approve") ? "allow" : "answered";
}

static const char *decision(enum ask_kind kind, struct span response) {
	struct span body = span_member(response, "response");
	if (span_equals(span_member(response, "subtype"), "error")) return "error";
	if (kind == ASK_TOOL) {
		if (span_equals(span_member(body, "behavior"), "allow") || span_is_true(span_member(body, "allow")))
			return "allow";
		return "deny";
	}
	if (kind == ASK_ELICITATION) {
		struct span action = span_member(body, "action");
		return span_equals(action, "accept") ? "accept" : span_equals(action, "decline") ? "decline" : "cancel";
	}
	if (kind == ASK_DIALOG) return span_equals(span_member(body, "behavior"), "completed") ? "completed" : "cancelled";
	return kind == ASK_HOOK ? hook_decision(body) : "answered";
}

/* --- changes ------------------------------------------------------------------------------------------------------ */

/* Append as much of the text as fits, cut between two characters. */
static void put_grant(struct changes *c, struct buf *text) {
	char *to = c->n_grants < DIALECT_GRANTS ? c->grants[c->n_grants] : NULL;
	c->n_grants++;
	if (to) {
		size_t n = MIN(text->len, (size_t)DIALECT_GRANT_MAX - 4);
		while (n < text->len && n && ((unsigned char)text->data[n] & 0xc0) == 0x80) n--;
		snprintf(to, DIALECT_GRANT_MAX, "%.*s%s", (int)n, text->data ? text->data : "?", n < text->len ? "..." : "");
	}
	buf_free(text);
}

static void put_content(struct buf *b, struct span value) {
	_cleanup_free_ char *text = span_dup(value, NULL);
	buf_puts(b, text ? text : "?");
}

static void put_word(struct buf *b, struct span object, const char *key) {
	struct span value = span_member_spelled(object, key);
	if (!value.p) return;
	buf_putc(b, ' ');
	put_content(b, value);
}

static void add_rule(struct changes *c, struct span update, const char *verb, struct span rule) {
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	struct span content = span_member_spelled(rule, "ruleContent");
	buf_puts(&b, verb);
	put_content(&b, span_member_spelled(rule, "toolName"));
	if (content.p) {
		buf_putc(&b, '(');
		put_content(&b, content);
		buf_putc(&b, ')');
	}
	put_word(&b, update, "behavior");
	put_word(&b, update, "destination");
	put_grant(c, &b);
}

static void add_one(struct changes *c, struct span update, const char *verb, struct span what) {
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	buf_puts(&b, verb);
	put_content(&b, what);
	put_word(&b, update, "destination");
	put_grant(c, &b);
}

static const struct {
	const char *type, *verb, *list; /* list: the member with the elements; NULL: a single `mode` */
} updates[] = {
	{"addRules", "", "rules"},
	{"replaceRules", "replace: ", "rules"},
	{"removeRules", "remove: ", "rules"},
	{"addDirectories", "directory ", "directories"},
	{"removeDirectories", "remove: directory ", "directories"},
	{"setMode", "mode ", NULL},
};

static void add_update(struct changes *c, struct span update) {
	struct span type = span_member_spelled(update, "type"), element;
	for (size_t i = 0; i < ARRAY_SIZE(updates); i++) {
		if (!says(type, updates[i].type)) continue;
		if (!updates[i].list) add_one(c, update, updates[i].verb, span_member_spelled(update, "mode"));
		struct span list = updates[i].list ? span_member_spelled(update, updates[i].list) : SPAN_NONE;
		for (size_t at = 0; span_next(list, &at, &element);) {
			if (span_is_object(element))
				add_rule(c, update, updates[i].verb, element);
			else
				add_one(c, update, updates[i].verb, element);
		}
		return;
	}
	add_one(c, update, "", type);
}

/* Return the object of an answer that allows a tool. */
static struct span allowing(enum ask_kind kind, struct span body) {
	if (kind == ASK_TOOL) return body;
	if (kind != ASK_HOOK) return SPAN_NONE;
	struct span output = span_member_spelled(body, "hookSpecificOutput");
	struct span decision = span_member_spelled(output, "decision");
	return span_is_object(decision) ? decision : output;
}

static struct span answer_input(struct span response) {
	return span_member(span_member(response, "response"), "updatedInput");
}

static struct span answer_reason(struct span response) {
	return span_member(span_member(response, "response"), "message");
}

/* The input is needed by the child, and old forms of the answer are replaced. */
static bool mend(enum ask_kind kind, struct span request, const struct envelope *answer, struct splice_edit *edit) {
	struct span body = answer->inner_response;
	struct span updated = span_member(body, "updatedInput"), old = span_member(body, "allow"), value = updated;
	if (kind != ASK_TOOL || !span_is_object(body)) return false;
	bool old_shape = !span_member(body, "behavior").p && old.p;
	if (!old_shape && (!span_equals(span_member(body, "behavior"), "allow") || span_is_object(updated))) return false;
	if (old_shape && !span_is_true(old)) {
		value = span_member(body, "message");
		if (!span_is_string(value)) value = span_of("\"denied\"");
		*edit = (struct splice_edit){
			body.p, body.n, {span_of("{\"behavior\":\"deny\",\"message\":"), value, span_of("}")}};
		return true;
	}
	if (!span_is_object(updated)) value = span_member(request, "input");
	if (!value.p) value = span_of("{}");
	*edit = (struct splice_edit){body.p + body.n - 1, 0, {SPAN_NONE, span_of(",\"updatedInput\":"), value}};
	if (!old_shape) return true;
	edit->at = body.p;
	edit->cut = body.n;
	edit->parts[0] = span_of("{\"behavior\":\"allow\"");
	edit->parts[3] = span_of("}");
	return true;
}

static void read_changes(enum ask_kind kind, struct span request, struct span response, struct changes *c) {
	struct span update;
	const char *said = decision(kind, response);
	struct span from = allowing(kind, span_member(response, "response"));
	struct span updated = span_member_spelled(from, "updatedInput");
	struct span permissions = span_member_spelled(from, "updatedPermissions");
	*c = (struct changes){0};
	if (!from.p || strcmp(said, "deny") == 0 || strcmp(said, "error") == 0) return;
	c->input = span_is_object(updated) && !alike(updated, input_of(kind, request));
	for (size_t at = 0; span_next(permissions, &at, &update);)
		if (span_is_object(update)) add_update(c, update);
}

/* --- registration ------------------------------------------------------------------------------------------------- */

static bool entry_guards(struct span entry) {
	return span_equals(span_member(entry, "onFailure"), "block");
}

static void put_guard_all(struct buf *b, const char *callback) {
	buf_printf(b, "{\"PreToolUse\":[{\"hookCallbackIds\":[%s]}]}", callback);
}

static bool is_frame(struct span key) {
	return span_equals(key, "subtype") || span_equals(key, "request_id");
}

static bool looks_like(struct span text) {
	static const char name[] = "\"initialize\"";
	return memmem(text.p, text.n, name, sizeof name - 1) != NULL;
}

static struct span applied(const struct envelope *answer) {
	return span_member(answer->inner_response, "hooks_applied");
}

static struct span answered_mode(const struct envelope *answer) {
	return span_member(answer->inner_response, "current_permission_mode");
}

static struct span answered_pid(const struct envelope *answer) {
	return span_member(answer->inner_response, "pid");
}

static struct span answered_state(const struct envelope *answer) {
	return span_member(answer->inner_response, "session_state");
}

static struct span servers_of(const struct envelope *e) {
	return span_member(e->request, "servers");
}

static bool is_own_server(struct span config) {
	return span_equals(span_member(config, "type"), "sdk");
}

static struct span cancels_call(struct span message) {
	if (!span_equals(span_member(message, "method"), "notifications/cancelled")) return SPAN_NONE;
	return span_member(span_member(message, "params"), "requestId");
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

static void put_failure(struct buf *b, struct span id, const char *code, const char *text) {
	frame_put_error(b, id, code, text, "");
}

static void put_interrupt(struct buf *b, const char *id, const char *conversation) {
	(void)conversation;
	frame_put_request(b, id, "{\"subtype\":\"interrupt\"}");
}

static void put_cancel_prompt(struct buf *b, const char *id, const char *uuid) {
	struct buf body = BUF_INIT(SIZE_MAX / 4);
	buf_puts(&body, "{\"subtype\":\"cancel_async_message\",\"message_uuid\":");
	str_put_json(&body, uuid, strlen(uuid));
	buf_putc(&body, '}');
	frame_put_built_request(b, id, &body);
}

static void put_prompt_cancelled(struct buf *b, struct span id, struct span uuid) {
	struct buf body = BUF_INIT(SIZE_MAX / 4);
	buf_puts(&body, "{\"cancelled\":true,\"message_uuid\":");
	buf_put(&body, uuid.p, uuid.n);
	buf_putc(&body, '}');
	dialect_put_built(&claude_dialect, b, id, &body);
}

static void put_mode(struct buf *b, const char *id, struct span mode) {
	struct buf body = BUF_INIT(4096);
	buf_printf(&body, "{\"subtype\":\"set_permission_mode\",\"mode\":%.*s}", (int)mode.n, mode.p);
	frame_put_built_request(b, id, &body);
}

/* Measured: 2.1.332 prints its list of tasks after the answer to a repeated initialize, so the answer to another
 * request comes later; 2.1.197 prints its list of commands before the answer to reload_plugins. */
static bool put_ask_name(struct buf *b, const char *id, unsigned n) {
	static const char *const bodies[] = {"{\"subtype\":\"initialize\"}", "{\"subtype\":\"get_session_cost\"}",
										 "{\"subtype\":\"reload_plugins\"}"};
	if (n >= ARRAY_SIZE(bodies)) return false;
	frame_put_request(b, id, bodies[n]);
	return true;
}

static bool succeeded(const struct envelope *e) {
	return span_equals(e->inner_subtype, "success");
}

static struct span confirmed(const struct envelope *e) {
	struct span mode = span_member(e->inner_response, "mode");
	return mode.p ? mode : span_member(e->inner_response, "model");
}

static struct span cancelled(const struct envelope *e) {
	return span_member(e->inner_response, "cancelled");
}

static struct span cancelled_prompt(const struct envelope *e) {
	return span_member(e->request, "message_uuid");
}

static bool cancels_queued(const struct envelope *e) {
	return span_is_true(span_member(e->request, "cancel_queued"));
}

/* --- modes -------------------------------------------------------------------------------------------------------- */

static const char *strict_mode(struct span mode) {
	static const char *const modes[] = {"plan", "dontAsk"};
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
		if (span_equals(mode, modes[i])) return modes[i];
	return NULL;
}

static bool is_default_mode(struct span mode) {
	return span_equals(mode, "default");
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

#define ROW(kind, name, least, affects, act, what, member, show)                                                       \
	{GATE_##kind, name, sizeof name - 1, GATE_##least, GATE_##affects, ACT_##act, what, member, GATE_##show},

static const struct gate_row rows[] = {
#include "dialect/claude/gate.def"
};

#undef ROW

_Static_assert(ARRAY_SIZE(rows) < GATE_ROWS_MAX, "GATE_ROWS_MAX is too small");

/* The permission flag and the replays cannot be requested later, so they are always set; the environment variable
 * enables session_state_changed (contract 8). */
static const char *const flags[] = {"-p",
									"--input-format",
									"stream-json",
									"--output-format",
									"stream-json",
									"--verbose",
									"--permission-prompt-tool",
									"stdio",
									"--include-partial-messages",
									"--replay-user-messages",
									NULL};
static const char *const env[] = {"CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS=1", NULL};
static const char *const resume_args[] = {"--resume={id}", NULL};
static const char *const stripped[] = {
	"CLAUDECODE", "CLAUDE_CODE_*", "CLAUDE_AGENT_SDK_*", "CLAUDE_PID", "CLAUDE_EFFORT", "AI_AGENT", NULL};

static const struct message_steps steps = {
	.new = message_check_new,
	.free = message_check_free,
	.step = message_check_step,
	.result = message_check_result,
};

static const struct dialect_calls calls = {
	.line_executes = line_executes,
	.read_call = read_call,
	.call_wants_check = call_wants_check,
	.put_call = put_call,
	.checks_calls = checks_calls,
	.put_question = put_question,
	.way = way,
};

static const char *const needed_members[] = {"hooks", "sdkMcpServers", "sdkMcpServerConfigs", "mcpServers", NULL};
static const char *const open_asks[] = {"pending_permission_requests", "pending_user_dialog_requests",
										"pending_elicitation_requests", NULL};

static const struct dialect_hooks hooks = {
	.hooks = "hooks",
	.servers = "sdkMcpServers",
	.dialogs = "supportedDialogKinds",
	.needed = needed_members,
	.callbacks = "hookCallbackIds",
	.matcher = "matcher",
	.timeout = "timeout",
	.bad_entry = "a hook entry needs `hookCallbackIds`, an array of strings",
	.bad_callback = "`hookCallbackIds` must hold strings",
	.bad_server = "`sdkMcpServers` must hold strings",
	.entry_guards = entry_guards,
	.put_guard_all = put_guard_all,
	.request = "{\"subtype\":\"initialize\"",
	.is_frame = is_frame,
	.looks_like = looks_like,
	.applied = applied,
	.mode = answered_mode,
	.pid = answered_pid,
	.state = answered_state,
	.state_rests = "\"idle\"",
	.state_runs = "\"running\"",
	.state_asks = "\"requires_action\"",
	.open_asks = open_asks,
	.set_servers = "{\"subtype\":\"mcp_set_servers\",\"servers\":",
	.servers_of = servers_of,
	.bad_servers = "mcp_set_servers needs `servers`, an object of configurations by name",
	.set_servers_name = "mcp_set_servers",
	.is_own_server = is_own_server,
	.cancels_call = cancels_call,
	.neutral = neutral,
	.put_hook_deny = put_hook_deny,
	.put_mcp_error = put_mcp_error,
	.hook_timeout = hook_timeout,
	.hook_guards = hook_guards,
	.hook_sees_tools = hook_sees_tools,
	.matcher_covers = matcher_covers,
};

const struct dialect claude_dialect = {
	.name = "claude",
	.flags = flags,
	.env = env,
	.resume_args = resume_args,
	.stripped = stripped,
	.fork_flag = "--fork-session",
	.read_claim = argv_read_claim,
	.read_resume = argv_read_resume,
	.skips_word = argv_skips_word,
	.add_flags = argv_add_flags,
	.scan = scan_envelope,
	.kind = kind,
	.kind_of = kind_of,
	.hides_kind = hides_kind,
	.read = read_line,
	.read_timers = crons_read,
	.read_head = read_head,
	.was_cut = turn_was_cut,
	.read_result = turn_read_result,
	.next_tool = turn_next_tool,
	.ran_no_turn = ran_no_turn,
	.names_max = CLAUDE_NAMES_MAX,
	.task_id = task_id,
	.put_task = put_task,
	.strict_mode = strict_mode,
	.strictest = "plan",
	.is_default_mode = is_default_mode,
	.is_default_model = is_default_mode,
	.ask_kind = ask_kind,
	.ask_part = ask_part,
	.summary = summary,
	.check_answer = check_answer,
	.is_empty = is_empty,
	.put_empty = put_empty,
	.decision = decision,
	.answer_input = answer_input,
	.answer_reason = answer_reason,
	.read_changes = read_changes,
	.mend = mend,
	.put_answer = frame_put_success,
	.put_failure = put_failure,
	.put_tool_deny = put_tool_deny,
	.put_tool_allow = put_tool_allow,
	.put_cancel_form = put_cancel_form,
	.put_cancel = frame_put_cancel,
	.put_request = frame_put_request,
	.put_interrupt = put_interrupt,
	.put_cancel_prompt = put_cancel_prompt,
	.put_prompt_cancelled = put_prompt_cancelled,
	.put_mode = put_mode,
	.put_ask_name = put_ask_name,
	.put_success = frame_put_success,
	.success_end = FRAME_SUCCESS_END,
	.put_error = frame_put_error,
	.succeeded = succeeded,
	.confirmed = confirmed,
	.cancelled = cancelled,
	.check = message_check,
	.check_steps = &steps,
	.prompt_id = "uuid",
	.request_id = "request_id",
	.session_id = "session_id",
	.skips = message_is_skipped,
	.is_fatal_request = message_is_fatal_request,
	.after_mark = message_after_mark,
	.gate = rows,
	.n_gate = ARRAY_SIZE(rows),
	.cancelled_prompt = cancelled_prompt,
	.cancels_queued = cancels_queued,
	.tools = &claude_tools,
	.calls = &calls,
	.hooks = &hooks,
};
