/* SPDX-License-Identifier: MIT */
#include "dialect/claude/claude.h"
#include "dialect/frame.h"

#include "harness.h"

#include <jansson.h>
#include <string.h>

static struct envelope envelope(const char *line) {
	struct envelope e;
	REQUIRE(scan_envelope(line, strlen(line), &e), "%s", line);
	return e;
}

START_TEST(kinds) {
	static const struct {
		const char *type;
		enum line_kind kind;
	} table[] = {
		{"user", LINE_USER},
		{"assistant", LINE_ASSISTANT},
		{"stream_event", LINE_STREAM_EVENT},
		{"result", LINE_RESULT},
		{"system", LINE_SYSTEM},
		{"tool_progress", LINE_TOOL_PROGRESS},
		{"rate_limit_event", LINE_RATE_LIMIT},
		{"command_lifecycle", LINE_LIFECYCLE},
		{"conversation_reset", LINE_RESET},
		{"control_request", LINE_REQUEST},
		{"control_response", LINE_RESPONSE},
		{"control_cancel_request", LINE_CANCEL},
		{"keep_alive", LINE_OTHER},
		{"use", LINE_OTHER},
		{"users", LINE_OTHER},
		{"", LINE_OTHER},
		{"plenum_event", LINE_OTHER}, /* the child cannot send our events */
		{"us\\u0065r", LINE_OTHER},
	};
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		char line[100];
		snprintf(line, sizeof line, "{\"type\":\"%s\"}", table[i].type);
		struct envelope e = envelope(line);
		REQUIRE(claude_dialect.kind(&e) == table[i].kind, "%s", line);
		ck_assert_int_eq(claude_dialect.kind_of(table[i].type, strlen(table[i].type)), table[i].kind);
	}
	struct envelope none = envelope("{}"), number = envelope("{\"type\":1}");
	ck_assert_int_eq(claude_dialect.kind(&none), LINE_OTHER);
	ck_assert_int_eq(claude_dialect.kind(&number), LINE_OTHER);
	/* kinds before LINE_REQUEST are for all clients */
	ck_assert(LINE_OTHER < LINE_REQUEST && LINE_OTHER < LINE_RESPONSE && LINE_OTHER < LINE_CANCEL);
}
END_TEST

START_TEST(echoes) {
	static const struct {
		const char *line;
		bool echo;
	} table[] = {
		{"{\"type\":\"user\",\"isReplay\":true,\"message\":{\"content\":\"hi\"}}", true},
		{"{\"type\":\"user\",\"isReplay\":true,\"message\":{\"content\":[]}}", true},
		{"{\"type\":\"user\",\"isReplay\":true,\"message\":{\"content\":\"\"}}", true},
		{"{\"type\":\"user\",\"isReplay\":true}", true},
		{"{\"type\":\"user\",\"isReplay\":false,\"message\":{\"content\":\"hi\"}}", false},
		{"{\"type\":\"user\",\"isReplay\":\"true\"}", false},
		{"{\"type\":\"user\",\"message\":{\"content\":\"hi\"}}", false},
		{"{\"type\":\"assistant\",\"isReplay\":true}", false},
		{"{\"type\":\"user\",\"isReplay\":true,\"message\":{\"content\":\"<local-command-stdout>Set model\"}}", false},
		{"{\"type\":\"user\",\"isReplay\":true,\"message\":{\"content\":\"<local-comman\"}}", true},
	};
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct envelope e = envelope(table[i].line);
		struct report r = {0};
		struct chunk line = {NULL, table[i].line, strlen(table[i].line)};
		claude_dialect.read(line, claude_dialect.kind(&e), &e, &r);
		REQUIRE(r.echo == table[i].echo, "%s", table[i].line);
	}
}
END_TEST

START_TEST(what_is_asked) {
	static const struct {
		const char *subtype;
		enum ask_kind kind;
	} table[] = {{"can_use_tool", ASK_TOOL},       {"hook_callback", ASK_HOOK},         {"mcp_message", ASK_MCP},
				 {"elicitation", ASK_ELICITATION}, {"request_user_dialog", ASK_DIALOG}, {"can_use_tools", ASK_UNKNOWN}};
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		char line[200];
		snprintf(line, sizeof line, "{\"type\":\"control_request\",\"subtype\":\"x\",\"request\":{\"subtype\":\"%s\"}}",
				 table[i].subtype);
		struct envelope e = envelope(line);
		ck_assert_int_eq(claude_dialect.ask_kind(&e), table[i].kind);
	}
	struct envelope none = envelope("{\"subtype\":\"can_use_tool\",\"request\":{}}");
	ck_assert_int_eq(claude_dialect.ask_kind(&none), ASK_UNKNOWN);
}
END_TEST

START_TEST(changes_have_names) {
	char copy[] = "model"; /* another address, as after an upgrade */
	ck_assert_str_eq(dialect_gate_what(claude_dialect.gate, claude_dialect.n_gate, copy), "model");
	ck_assert_ptr_ne(dialect_gate_what(claude_dialect.gate, claude_dialect.n_gate, copy), copy);
	ck_assert_ptr_null(dialect_gate_what(claude_dialect.gate, claude_dialect.n_gate, "initialize"));
	ck_assert_ptr_null(
		dialect_gate_what(claude_dialect.gate, claude_dialect.n_gate, "Bash")); /* ACT_EXECUTE: a tool, not a change */
	ck_assert_ptr_null(dialect_gate_what(claude_dialect.gate, claude_dialect.n_gate, NULL));
}
END_TEST

static void is_built(struct buf *b, const char *want) {
	ck_assert_str_eq(b->data, want);
	json_t *root = json_loads(b->data, JSON_REJECT_DUPLICATES, NULL);
	REQUIRE(root, "%s", b->data);
	json_decref(root);
	buf_free(b);
}

/* Half a refusal, or one without its body, would allow what it must refuse. */
START_TEST(body_without_room) {
	for (size_t room = 1; room < 100; room++) {
		struct buf b = BUF_INIT(10000), body = BUF_INIT(room);
		claude_dialect.hooks->put_hook_deny(&body, span_of("\"PreToolUse\""), "no");
		bool built = !body.failed;
		dialect_put_built(&claude_dialect, &b, span_of("\"a\""), &body);
		ck_assert(!body.data);
		ck_assert(b.failed == !built);
		ck_assert(built || !b.data);
		buf_free(&b);
		body = (struct buf)BUF_INIT(room);
		buf_puts(&body, "{\"subtype\":\"initialize\"}");
		built = !body.failed;
		frame_put_built_request(&b, "req_1", &body);
		ck_assert(b.failed == !built);
		if (built)
			is_built(
				&b,
				"{\"type\":\"control_request\",\"request_id\":\"req_1\",\"request\":{\"subtype\":\"initialize\"}}\n");
		buf_free(&b);
	}
}
END_TEST

START_TEST(builders) {
	struct buf b = BUF_INIT(10000);
	frame_put_request(&b, "req_1", "{\"subtype\":\"interrupt\"}");
	is_built(&b, "{\"type\":\"control_request\",\"request_id\":\"req_1\",\"request\":{\"subtype\":\"interrupt\"}}\n");
	frame_put_success(&b, span_of("\"a\\u0000\""), "{\"x\":1}");
	ck_assert_str_eq(b.data, "{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":"
							 "\"a\\u0000\",\"response\":{\"x\":1}}}\n"); /* the id unchanged */
	buf_free(&b);
	frame_put_success(&b, span_of("\"a\""), NULL);
	is_built(&b, "{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"a\"}}\n");
	frame_put_error(&b, SPAN_NONE, "bad_line", "say \"what\"\n", "");
	is_built(&b, "{\"type\":\"control_response\",\"response\":{\"subtype\":\"error\",\"code\":\"bad_line\",\"error\":"
				 "\"say \\\"what\\\"\\n\"}}\n");
	frame_put_error(&b, span_of("7"), "busy", "x", "");
	is_built(&b,
			 "{\"type\":\"control_response\",\"response\":{\"subtype\":\"error\",\"request_id\":7,\"code\":\"busy\","
			 "\"error\":\"x\"}}\n");
	frame_put_cancel(&b, span_of("\"r\""), SPAN_NONE);
	is_built(&b, "{\"type\":\"control_cancel_request\",\"request_id\":\"r\"}\n");
}
END_TEST

/* --- answers: the daemon would accept its own --------------------------------------------------------------------- */

static const char *check(enum ask_kind kind, const char *body) {
	char response[1000];
	snprintf(response, sizeof response, "{\"subtype\":\"success\",\"request_id\":\"1\",\"response\":%s}", body);
	return claude_dialect.check_answer(kind, SPAN_NONE, span_of(response));
}

static const char *decision(enum ask_kind kind, const char *body) {
	char response[1000];
	snprintf(response, sizeof response, "{\"subtype\":\"success\",\"response\":%s}", body);
	return claude_dialect.decision(kind, SPAN_NONE, span_of(response));
}

START_TEST(own_answers_are_valid) {
	static const char *const events[] = {"\"PreToolUse\"", "\"PermissionRequest\"", "\"Stop\"", "\"New\""};
	struct buf b = BUF_INIT(10000);
	claude_dialect.put_tool_deny(&b, SPAN_NONE, "a \"reason\"");
	ck_assert_ptr_null(check(ASK_TOOL, b.data));
	ck_assert_str_eq(decision(ASK_TOOL, b.data), "deny");
	is_built(&b, "{\"behavior\":\"deny\",\"message\":\"a \\\"reason\\\"\"}");
	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		claude_dialect.hooks->put_hook_deny(&b, span_of(events[i]), "\xff\"");
		json_t *root = json_loads(b.data, 0, NULL), *own = json_object_get(root, "hookSpecificOutput");
		REQUIRE(root, "%s", b.data);
		ck_assert_int_eq(own != NULL, i < 2);
		if (own)
			ck_assert_int_eq(strncmp(json_string_value(json_object_get(own, "hookEventName")), events[i] + 1, 5), 0);
		if (!own) ck_assert_str_eq(json_string_value(json_object_get(root, "decision")), "block");
		if (i == 0) ck_assert_str_eq(json_string_value(json_object_get(own, "permissionDecision")), "deny");
		if (i == 1)
			ck_assert_str_eq(json_string_value(json_object_get(json_object_get(own, "decision"), "behavior")), "deny");
		json_decref(root);
		ck_assert_ptr_null(check(ASK_HOOK, b.data));
		buf_free(&b);
	}
	ck_assert_ptr_null(check(ASK_HOOK, claude_dialect.hooks->neutral));
	claude_dialect.hooks->put_mcp_error(&b, span_of("{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"tools/call\"}"),
										"gone");
	ck_assert_ptr_null(check(ASK_MCP, b.data));
	is_built(&b,
			 "{\"mcp_response\":{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"error\":{\"code\":-32000,\"message\":\"gone\"}}}");
	claude_dialect.hooks->put_mcp_error(&b, span_of("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"),
										"gone");
	ck_assert_ptr_null(check(ASK_MCP, b.data));
	is_built(&b, "{\"mcp_response\":{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}}");
}
END_TEST

START_TEST(answers) {
	static const struct {
		enum ask_kind kind;
		const char *body;
		const char *decision; /* NULL: refused */
	} table[] = {
		{ASK_TOOL, "{\"behavior\":\"allow\"}", "allow"},
		{ASK_TOOL, "{\"behavior\":\"allow\",\"updatedInput\":{}}", "allow"},
		{ASK_TOOL, "{\"behavior\":\"allow\",\"updatedInput\":[]}", NULL},
		{ASK_TOOL, "{\"behavior\":\"deny\",\"message\":\"\"}", "deny"},
		{ASK_TOOL, "{\"behavior\":\"deny\"}", NULL},
		{ASK_TOOL, "{\"behavior\":\"deny\",\"message\":1}", NULL},
		{ASK_TOOL, "{\"behavior\":\"deny\",\"message\":\"x\",\"interrupt\":true}", "deny"},
		{ASK_TOOL, "{\"behavior\":\"deny\",\"message\":\"x\",\"interrupt\":false,\"toolUseID\":\"t\"}", "deny"},
		{ASK_TOOL, "{\"behavior\":\"deny\",\"message\":\"x\",\"interrupt\":null}", NULL},
		{ASK_TOOL, "{\"behavior\":\"deny\",\"message\":\"x\",\"interrupt\":\"true\"}", NULL},
		{ASK_TOOL, "{\"behavior\":\"deny\",\"message\":\"x\",\"interrupt\":1}", NULL},
		{ASK_TOOL, "{\"behavior\":\"deny\",\"message\":\"x\",\"toolUseID\":5}", NULL},
		{ASK_TOOL, "{\"behavior\":\"allow\",\"toolUseID\":\"t\",\"interrupt\":\"x\"}", "allow"},
		{ASK_TOOL, "{\"behavior\":\"allow\",\"toolUseID\":null}", NULL},
		{ASK_TOOL, "{\"behavior\":\"allow\",\"updatedPermissions\":\"x\",\"decisionClassification\":1}", "allow"},
		{ASK_TOOL, "{\"behavior\":\"ask\"}", NULL},
		{ASK_TOOL, "{\"behavior\":true}", NULL},
		{ASK_TOOL, "{\"behavior\":\"deny\",\"message\":\"x\",\"allow\":true,\"updatedInput\":{}}", "deny"},
		{ASK_TOOL, "{\"allow\":true}", "allow"},
		{ASK_TOOL, "{\"allow\":false}", "deny"},
		{ASK_TOOL, "{\"allow\":1}", NULL},
		{ASK_TOOL, "{\"allow\":\"true\"}", NULL},
		{ASK_TOOL, "{}", NULL},
		{ASK_TOOL, "[]", NULL},
		{ASK_TOOL, "null", NULL},
		{ASK_HOOK, "{}", "answered"},
		{ASK_HOOK, "{\"decision\":\"block\"}", "deny"},
		{ASK_HOOK, "{\"decision\":\"approve\"}", "allow"},
		{ASK_HOOK, "{\"hookSpecificOutput\":{\"permissionDecision\":\"ask\"}}", "ask"},
		{ASK_HOOK, "{\"decision\":\"block\",\"hookSpecificOutput\":{\"permission\\u0044ecision\":\"allo\\u0077\"}}",
		 "allow"},
		{ASK_HOOK, "{\"hookSpecificOutput\":{\"decision\":{\"behavior\":\"deny\"}}}", "deny"},
		{ASK_HOOK, "{\"hookSpecificOutput\":{\"permissionDecision\":\"mine\"}}", "answered"},
		{ASK_HOOK, "\"\"", NULL},
		{ASK_MCP, "{\"mcp_response\":{\"result\":{}}}", "answered"},
		{ASK_MCP, "{\"mcp_response\":{\"error\":{}}}", "answered"},
		{ASK_MCP, "{\"mcp_response\":{\"result\":null}}", NULL},
		{ASK_MCP, "{\"mcp_response\":{\"error\":\"x\"}}", NULL},
		{ASK_MCP, "{\"mcp_response\":{}}", NULL},
		{ASK_MCP, "{\"mcp_response\":[]}", NULL},
		{ASK_MCP, "{}", NULL},
		{ASK_ELICITATION, "{\"action\":\"accept\",\"content\":{}}", "accept"},
		{ASK_ELICITATION, "{\"action\":\"decline\"}", "decline"},
		{ASK_ELICITATION, "{\"action\":\"cancel\"}", "cancel"},
		{ASK_ELICITATION, "{\"action\":\"yes\"}", NULL},
		{ASK_ELICITATION, "{}", NULL},
		{ASK_DIALOG, "{\"behavior\":\"completed\"}", "completed"},
		{ASK_DIALOG, "{\"behavior\":\"cancelled\"}", "cancelled"},
		{ASK_DIALOG, "{\"behavior\":\"allow\"}", NULL},
		{ASK_UNKNOWN, "[1]", "answered"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		const char *error = check(table[i].kind, table[i].body);
		REQUIRE(!error == (table[i].decision != NULL), "%s: %s", table[i].body, error ? error : "taken");
		if (table[i].decision) ck_assert_str_eq(decision(table[i].kind, table[i].body), table[i].decision);
	}
}
END_TEST

START_TEST(answers_are_success_or_error) {
	for (int kind = ASK_TOOL; kind <= ASK_UNKNOWN; kind++) {
		ck_assert_ptr_nonnull(
			claude_dialect.check_answer((enum ask_kind)kind, SPAN_NONE, span_of("{\"response\":{}}")));
		ck_assert_ptr_nonnull(claude_dialect.check_answer((enum ask_kind)kind, SPAN_NONE,
														  span_of("{\"subtype\":\"maybe\",\"response\":{}}")));
		ck_assert_ptr_nonnull(claude_dialect.check_answer((enum ask_kind)kind, SPAN_NONE,
														  span_of("{\"subtype\":\"succes\\u0073\",\"response\":{}}")));
	}
}
END_TEST

/* The error of a failed SDK callback: a refusal, of any request. */
START_TEST(error_answers) {
	for (int kind = ASK_TOOL; kind <= ASK_UNKNOWN; kind++) {
		struct span good = span_of("{\"subtype\":\"error\",\"request_id\":\"1\",\"error\":\"it threw\"}");
		ck_assert_ptr_null(claude_dialect.check_answer((enum ask_kind)kind, SPAN_NONE, good));
		ck_assert_str_eq(claude_dialect.decision((enum ask_kind)kind, SPAN_NONE, good), "error");
		ck_assert_ptr_nonnull(
			claude_dialect.check_answer((enum ask_kind)kind, SPAN_NONE, span_of("{\"subtype\":\"error\"}")));
		ck_assert_ptr_nonnull(claude_dialect.check_answer((enum ask_kind)kind, SPAN_NONE,
														  span_of("{\"subtype\":\"error\",\"error\":{}}")));
	}
}
END_TEST

START_TEST(hooks) {
	ck_assert_int_eq(claude_dialect.hooks->hook_timeout(span_of("\"UserPromptSubmit\"")), 30);
	ck_assert_int_eq(claude_dialect.hooks->hook_timeout(span_of("\"PreToolUse\"")), 600);
	ck_assert(claude_dialect.hooks->hook_guards(span_of("\"PreToolUse\"")) &&
			  claude_dialect.hooks->hook_guards(span_of("\"PermissionRequest\"")));
	ck_assert(!claude_dialect.hooks->hook_guards(span_of("\"PostToolUse\"")) &&
			  !claude_dialect.hooks->hook_guards(SPAN_NONE));
}
END_TEST

static struct changes changes_of(enum ask_kind kind, const char *request, const char *body) {
	struct changes c;
	char response[1000];
	snprintf(response, sizeof response, "{\"subtype\":\"success\",\"response\":%s}", body);
	claude_dialect.read_changes(kind, span_of(request), span_of(response), &c);
	return c;
}

START_TEST(what_an_answer_changes) {
	static const char tool[] = "{\"input\":{\"a\":1}}", hook[] = "{\"input\":{\"tool_input\":{\"a\":1}}}";
	static const char rule[] = "{\"behavior\":\"allow\",\"updatedPermissions\":[{\"type\":\"addRules\",\"rules\":"
							   "[{\"toolName\":\"B\",\"rule\\u0043ontent\":\"x \\n*\"}],\"behavior\":\"allow\"},7,{}]}";
	struct changes c = changes_of(ASK_TOOL, tool, "{\"behavior\":\"allow\",\"updatedInput\":{ \"a\":1}}");
	ck_assert(!c.input && c.n_grants == 0);
	c = changes_of(ASK_TOOL, tool, "{\"behavior\":\"allow\",\"updatedInput\":{\"a\":2}}");
	ck_assert(c.input && c.n_grants == 0);
	c = changes_of(ASK_TOOL, "{}", "{\"allow\":true,\"updatedInput\":{}}");
	ck_assert(c.input);
	c = changes_of(ASK_TOOL, tool, rule);
	ck_assert_uint_eq(c.n_grants, 2);
	ck_assert_str_eq(c.grants[0], "B(x \n*) allow");
	ck_assert_str_eq(c.grants[1], "?");
	c = changes_of(ASK_HOOK, hook, "{\"hookSpecificOutput\":{\"updatedInput\":{\"a\":1}}}");
	ck_assert(!c.input);
	c = changes_of(ASK_HOOK, hook, "{\"hookSpecificOutput\":{\"updated\\u0049nput\":{\"a\":1,\"b\":2}}}");
	ck_assert(c.input);
	c = changes_of(ASK_HOOK, hook, "{\"hookSpecificOutput\":{\"permissionDecision\":\"deny\",\"updatedInput\":{}}}");
	ck_assert(!c.input);
	c = changes_of(ASK_ELICITATION, tool, "{\"action\":\"accept\",\"updatedInput\":{},\"updatedPermissions\":[{}]}");
	ck_assert(!c.input && c.n_grants == 0);
}
END_TEST

START_TEST(matchers) {
	static const struct {
		const char *matcher;
		bool covers;
	} table[] = {
		{NULL, true},
		{"\"\"", true},
		{"\"*\"", true},
		{"\"Bash\"", true},
		{"\"Edit|Bash\"", true},
		{"\"Edit, Bash\"", true},
		{"\" Bash \"", true},
		{"\".*\"", true},
		{"\"^Edit$\"", true},
		{"\"Edit\"", false},
		{"\"Bas\"", false},
		{"\"bash\"", false},
		{"\"BashOutput\"", false},
		{"7", true},
		{"\"B\\u0061sh\"", true},
	};
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		REQUIRE(claude_dialect.hooks->matcher_covers(span_of(table[i].matcher), "Bash") == table[i].covers, "%s",
				table[i].matcher);
	ck_assert(claude_dialect.hooks->hook_sees_tools(span_of("\"PreToolUse\"")) &&
			  !claude_dialect.hooks->hook_sees_tools(span_of("\"Stop\"")));
}
END_TEST

/* Return the tool call of a line, and the line as passed on; NULL: the error was appended. */
static char *call_of(const char *line, const char *input, bool check) {
	struct envelope e = envelope(line);
	struct buf read = BUF_INIT(1000), out = BUF_INIT(1000);
	char *tool = NULL;
	if (claude_dialect.calls->read_call(span_of(line), &e, &tool, &read)) {
		buf_free(&read);
		return NULL;
	}
	buf_puts(&out, tool);
	buf_putc(&out, ' ');
	bool ok = claude_dialect.calls->put_call(&out, span_of(line), &e, span_of(input ? input : read.data), check);
	free(tool);
	buf_free(&read);
	if (ok) return buf_steal(&out, NULL);
	buf_free(&out);
	return strdup("unusable");
}

#define MCP_CALL(members)                                                                                              \
	"{\"type\":\"control_request\",\"request_id\":\"1\",\"request\":{\"subtype\":\"mcp_call\"" members "}}"

START_TEST(calls) {
	static const struct {
		const char *line, *input;
		bool check;
		const char *want;
	} table[] = {
		{"{\"type\":\"bash_command\",\"command\":\"a\",\"command\":\"b\",\"uuid\":\"u\"}", NULL, false,
		 "Bash {\"type\":\"bash_command\",\"command\":\"b\",\"uuid\":\"u\"}"},
		{"{\"command\":\"a\",\"cwd\":\"/\",\"type\":\"bash_command\"}", NULL, false,
		 "Bash {\"type\":\"bash_command\",\"command\":\"a\",\"cwd\":\"/\"}"},
		{"{\"type\":\"bash_command\",\"command\":\"a\",\"cwd\":\"/\"}", "{\"command\":\"c\"}", false,
		 "Bash {\"type\":\"bash_command\",\"command\":\"c\"}"},
		{"{\"type\":\"bash_command\",\"command\":\"a\"}", "{\"cwd\":\"/\"}", false, "unusable"},
		{"{\"type\":\"bash_command\",\"command\":[\"a\"]}", NULL, false, NULL},
		{"{\"type\":\"bash_command\",\"command\":\"a\",\"cwd\":1}", NULL, false, NULL},
		{"{\"type\":\"bash_command\"}", NULL, false, NULL},
		{MCP_CALL(",\"tool\":\"mcp__a__b\",\"arguments\":{\"x\":1},\"timeout_ms\":5"), NULL, false,
		 "mcp__a__b {\"subtype\":\"mcp_call\",\"tool\":\"mcp__a__b\",\"arguments\":{\"x\":1},\"timeout_ms\":5}"},
		{MCP_CALL(",\"tool\":\"mcp__a__b\",\"check_permissions\":false"), NULL, true,
		 "mcp__a__b {\"subtype\":\"mcp_call\",\"tool\":\"mcp__a__b\",\"arguments\":{},\"check_permissions\":true}"},
		{MCP_CALL(",\"tool\":\"mcp__a__b\",\"arguments\":null"), "[1]", false, "unusable"},
		{MCP_CALL(",\"tool\":\"mcp__a__b\",\"arguments\":[]"), NULL, false, NULL},
		{MCP_CALL(",\"tool\":\"mcp__a__b.c\""), NULL, false, NULL},
		{MCP_CALL(",\"tool\":\"mcp__a\""), NULL, false, NULL},
		{MCP_CALL(",\"tool\":\"Bash\""), NULL, false, NULL},
	};
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		char *got = call_of(table[i].line, table[i].input, table[i].check);
		REQUIRE(!got == !table[i].want && (!got || strcmp(got, table[i].want) == 0), "%s: %s", table[i].line,
				got ? got : "refused");
		free(got);
	}
}
END_TEST

START_TEST(checked_calls) {
	struct envelope command = envelope("{\"type\":\"bash_command\",\"command\":\"a\"}");
	struct envelope call = envelope(MCP_CALL(",\"tool\":\"mcp__a__b\""));
	struct envelope checked = envelope(MCP_CALL(",\"tool\":\"mcp__a__b\",\"check_permissions\":true"));
	ck_assert(claude_dialect.calls->line_executes(&command) && !claude_dialect.calls->line_executes(&call));
	ck_assert(!claude_dialect.calls->call_wants_check(&command) && !claude_dialect.calls->call_wants_check(&call));
	ck_assert(claude_dialect.calls->call_wants_check(&checked));
	ck_assert(
		claude_dialect.calls->checks_calls(span_of("{\"capabilities\":[\"x\",\"mcp_call_check_permissions_v1\"]}")));
	ck_assert(!claude_dialect.calls->checks_calls(span_of("{\"capabilities\":[\"x\"]}")) &&
			  !claude_dialect.calls->checks_calls(SPAN_NONE));
}
END_TEST

RUN_TESTS("claude", kinds, echoes, what_is_asked, changes_have_names, matchers, calls, checked_calls, builders,
		  body_without_room, own_answers_are_valid, answers, answers_are_success_or_error, error_answers, hooks,
		  what_an_answer_changes)
