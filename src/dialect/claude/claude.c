/* SPDX-License-Identifier: MIT */
#include "dialect/dialect.h"

#include "base/macros.h"
#include "base/str.h"
#include "wire/alike.h"

#include <stdio.h>
#include <string.h>

const char dialect_neutral[] = "{}";

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

enum line_kind dialect_kind_of(const char *type, size_t n) {
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strlen(kinds[i].type) == n && memcmp(kinds[i].type, type, n) == 0) return kinds[i].kind;
	return LINE_OTHER;
}

enum line_kind dialect_kind(const struct envelope *e) {
	struct span type = span_content(e->type);
	return type.p ? dialect_kind_of(type.p, type.n) : LINE_OTHER;
}

bool dialect_is_echo(const struct envelope *e) {
	static const char own[] = "<local-command-";
	if (!span_is_true(e->is_replay) || !span_equals(e->type, "user")) return false;
	struct span text = span_content(span_member(e->message, "content"));
	return text.n < sizeof own - 1 || memcmp(text.p, own, sizeof own - 1) != 0;
}

bool dialect_was_cut(struct span result) {
	static const char aborted[] = "aborted_";
	struct span why = span_content(span_member(result, "terminal_reason"));
	if (why.p) return why.n >= sizeof aborted - 1 && memcmp(why.p, aborted, sizeof aborted - 1) == 0;
	return span_equals(span_member(result, "subtype"), "error_during_execution");
}

enum ask_kind dialect_ask_kind(const struct envelope *e) {
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

struct span dialect_ask_suggestions(struct span request) {
	struct span list = span_member(request, "permission_suggestions");
	return span_is_array(list) ? list : SPAN_NONE;
}

/* --- tool calls by a client --------------------------------------------------------------------------------------- */

#define CALL_CAPABILITY "mcp_call_check_permissions_v1"

/* Members that are judged, and those that a copy must not have, are left out of the copy. */
static const char *const command_judged[] = {"type", "command", "cwd", NULL};
static const char *const mcp_judged[] = {"subtype", "tool", "arguments", "check_permissions", "request_id", NULL};

bool dialect_line_executes(const struct envelope *e) {
	return span_equals(e->type, "bash_command");
}

static bool is_one_of(struct span key, const char *const *names) {
	for (; *names; names++)
		if (span_equals(key, *names)) return true;
	return false;
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

const char *dialect_read_call(struct span line, const struct envelope *e, char **tool, struct buf *input) {
	if (dialect_line_executes(e)) {
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

bool dialect_call_wants_check(const struct envelope *e) {
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

bool dialect_put_call(struct buf *b, struct span line, const struct envelope *e, struct span input, bool check) {
	if (!span_is_object(input)) return false;
	if (dialect_line_executes(e)) {
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

bool dialect_checks_calls(struct span init_answer) {
	struct span all = span_member(init_answer, "capabilities"), one;
	for (size_t at = 0; span_next(all, &at, &one);)
		if (span_equals(one, CALL_CAPABILITY)) return true;
	return false;
}

/* --- builders ----------------------------------------------------------------------------------------------------- */

void dialect_put_request(struct buf *b, const char *id, const char *request_json) {
	buf_printf(b, "{\"type\":\"control_request\",\"request_id\":\"%s\",\"request\":%s}\n", id, request_json);
}

static void put_head(struct buf *b, const char *subtype, struct span id) {
	buf_printf(b, "{\"type\":\"control_response\",\"response\":{\"subtype\":\"%s\"", subtype);
	if (id.p) {
		buf_puts(b, ",\"request_id\":");
		buf_put(b, id.p, id.n);
	}
}

void dialect_put_success(struct buf *b, struct span id, const char *response_json) {
	put_head(b, "success", id);
	if (response_json) {
		buf_puts(b, ",\"response\":");
		buf_puts(b, response_json);
	}
	buf_puts(b, "}}\n");
}

void dialect_put_built_request(struct buf *b, const char *id, struct buf *body) {
	if (body->failed)
		b->failed = true;
	else
		dialect_put_request(b, id, body->data);
	buf_free(body);
}

void dialect_put_built_success(struct buf *b, struct span id, struct buf *body) {
	if (body->failed)
		b->failed = true;
	else
		dialect_put_success(b, id, body->data);
	buf_free(body);
}

void dialect_put_error(struct buf *b, struct span id, const char *code, const char *text) {
	dialect_put_error_more(b, id, code, text, "");
}

void dialect_put_error_more(struct buf *b, struct span id, const char *code, const char *text, const char *more) {
	put_head(b, "error", id);
	buf_printf(b, ",\"code\":\"%s\",\"error\":", code);
	str_put_json(b, text, strlen(text));
	buf_printf(b, "%s}}\n", more);
}

void dialect_put_cancel(struct buf *b, struct span id) {
	buf_puts(b, "{\"type\":\"control_cancel_request\",\"request_id\":");
	buf_put(b, id.p, id.n);
	buf_puts(b, "}\n");
}

void dialect_put_tool_deny(struct buf *b, const char *reason) {
	buf_puts(b, "{\"behavior\":\"deny\",\"message\":");
	str_put_json(b, reason, strlen(reason));
	buf_puts(b, "}");
}

void dialect_put_hook_deny(struct buf *b, struct span event, const char *reason) {
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

void dialect_put_mcp_error(struct buf *b, struct span message, const char *reason) {
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

int dialect_hook_timeout(struct span event) {
	return span_equals(event, "UserPromptSubmit") ? 30 : 600;
}

bool dialect_hook_guards(struct span event) {
	return span_equals(event, "PreToolUse") || span_equals(event, "PermissionRequest");
}

bool dialect_hook_sees_tools(struct span event) {
	static const char *const events[] = {
		"PreToolUse",        "PostToolUse",      "PostToolUseFailure",   "PostToolBatch",
		"PermissionRequest", "PermissionDenied", "PreSkillShellCommand", NULL};
	return is_one_of(event, events);
}

bool dialect_matcher_covers(struct span matcher, const char *tool) {
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

bool dialect_is_empty(enum ask_kind kind, struct span request, struct span response) {
	struct span body = span_member(response, "response"), subtype = span_member(response, "subtype");
	if (span_equals(subtype, "error")) return !span_is_string(span_member(response, "error"));
	if (!span_equals(subtype, "success")) return false;
	if (kind == ASK_HOOK) return !body.p || *body.p == 'n';
	bool notification = kind == ASK_MCP && !span_member(span_member(request, "message"), "id").p;
	return notification && check_mcp(span_member(body, "mcp_response"));
}

void dialect_put_empty(struct buf *b, struct span id, enum ask_kind kind, struct span request, struct span response) {
	struct buf body = BUF_INIT(4096);
	if (span_equals(span_member(response, "subtype"), "error")) {
		dialect_put_error(b, id, "bad_answer", "the client gave no reason");
		return;
	}
	if (kind == ASK_MCP)
		dialect_put_mcp_error(&body, span_member(request, "message"), "");
	else
		buf_puts(&body, dialect_neutral);
	dialect_put_built_success(b, id, &body);
}

const char *dialect_check_answer(enum ask_kind kind, struct span response) {
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

const char *dialect_decision(enum ask_kind kind, struct span response) {
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

static struct span input_of(enum ask_kind kind, struct span request) {
	struct span input = span_member(request, "input");
	return kind == ASK_HOOK ? span_member(input, "tool_input") : input;
}

void dialect_read_changes(enum ask_kind kind, struct span request, struct span response, struct changes *c) {
	struct span update;
	const char *decision = dialect_decision(kind, response);
	struct span from = allowing(kind, span_member(response, "response"));
	struct span updated = span_member_spelled(from, "updatedInput");
	struct span permissions = span_member_spelled(from, "updatedPermissions");
	*c = (struct changes){0};
	if (!from.p || strcmp(decision, "deny") == 0 || strcmp(decision, "error") == 0) return;
	c->input = span_is_object(updated) && !alike(updated, input_of(kind, request));
	for (size_t at = 0; span_next(permissions, &at, &update);)
		if (span_is_object(update)) add_update(c, update);
}

/* Measured: 2.1.332 prints its list of tasks after the answer to a repeated initialize, so the answer to another
 * request comes later; 2.1.197 prints its list of commands before the answer to reload_plugins. */
const char *dialect_ask_name(unsigned n) {
	static const char *const bodies[] = {"{\"subtype\":\"initialize\"}", "{\"subtype\":\"get_session_cost\"}",
										 "{\"subtype\":\"reload_plugins\"}"};
	return n < ARRAY_SIZE(bodies) ? bodies[n] : NULL;
}

bool dialect_is_name(const struct envelope *e) {
	return span_equals(e->subtype, "background_tasks_changed") || span_equals(e->subtype, "commands_changed");
}

bool dialect_is_start(const struct envelope *e) {
	return span_equals(e->subtype, "init") || span_equals(e->subtype, "hook_started") ||
		   span_equals(e->subtype, "hook_progress") || span_equals(e->subtype, "hook_response");
}
