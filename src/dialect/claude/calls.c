/* SPDX-License-Identifier: MIT
 *
 * Lines of clients that run a tool: bash_command and mcp_call.
 */
#include "dialect/claude/answers.h"
#include "dialect/claude/claude.h"

#include "base/macros.h"
#include "base/str.h"

#include <string.h>

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
	for (size_t at = 0; span_next_member(of, &at, &key, &value);)
		if (!span_is_one_of(key, judged)) span_put_member(b, key, value);
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

const struct dialect_calls claude_calls = {
	.line_executes = line_executes,
	.read_call = read_call,
	.call_wants_check = call_wants_check,
	.put_call = put_call,
	.checks_calls = checks_calls,
	.put_question = put_question,
	.answer_input = answers_input,
	.way = way,
};
