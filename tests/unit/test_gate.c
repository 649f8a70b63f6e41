/* SPDX-License-Identifier: MIT */
#include "core/gate.h"
#include "dialect/claude/claude.h"
#include "dialect/claude/message.h"

#include "harness.h"

#include "base/log.h"

#include <stdlib.h>
#include <unistd.h>

static struct gate gate;

__attribute__((constructor)) static void make_gate(void) {
	gate_init(&gate, &claude_dialect);
}

static bool passes(enum trust who, const char *line, struct gate_verdict *v) {
	struct message m;
	struct chunk rewritten;
	struct span id;
	struct error error;
	REQUIRE(message_check(line, strlen(line), &m, &rewritten, &error, &id), "%s: %s", line, error.text);
	gate_judge(&gate, who, &m, rewritten.data ? (struct span){rewritten.data, rewritten.len} : span_of(line), v);
	chunk_drop(&rewritten);
	return v->passes;
}

/* Permitted senders: o own, d driver (and agent), v observer; and the reason given to a driver. */
static void is(const char *who, const char *thing, const char *line) {
	static const enum trust classes[] = {TRUST_OWN, TRUST_DRIVER, TRUST_AGENT, TRUST_OBSERVER};
	struct gate_verdict v;
	for (size_t i = 0; i < ARRAY_SIZE(classes); i++) {
		bool want = strchr(who, "oddv"[i]) != NULL;
		REQUIRE(passes(classes[i], line, &v) == want, "%s as %zu", line, i);
		REQUIRE(want == !v.thing[0], "%s: \"%s\"", line, v.thing);
		if (classes[i] == TRUST_DRIVER && thing) ck_assert_str_eq(v.thing, thing);
	}
}

#define REQUEST(members) "{\"type\":\"control_request\",\"request_id\":\"1\",\"request\":{" members "}}"
#define INIT(members) REQUEST("\"subtype\":\"initialize\"," members)
#define USER(content, members) "{\"type\":\"user\"" members ",\"message\":{\"role\":\"user\",\"content\":" content "}}"

START_TEST(lines) {
	is("od", NULL, USER("\"hello\"", ""));
	is("od", NULL, "{\"type\":\"user\",\"prompt\":\"hello\"}");
	is("odv", NULL, "{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"1\"}}");
	is("od", NULL, "{\"type\":\"control_cancel_request\",\"request_id\":\"1\"}");
	is("od", NULL, "{\"type\":\"keep_alive\"}");
	is("od", NULL, "{\"type\":\"bash_command\",\"command\":\"id\"}");
	is("o", "bash_command with `novel`", "{\"type\":\"bash_command\",\"command\":\"id\",\"novel\":1}");
	is("od", NULL, REQUEST("\"subtype\":\"mcp_call\",\"tool\":\"mcp__a__b\",\"arguments\":{}"));
	is("o", "mcp_call with `input_files`", REQUEST("\"subtype\":\"mcp_call\",\"tool\":\"x\",\"input_files\":[]"));
	is("o", "start_shell_task", REQUEST("\"subtype\":\"start_shell_task\",\"command\":\"id\""));
	is("o", "a line of type update_environment_variables",
	   "{\"type\":\"update_environment_variables\",\"variables\":{}}");
	is("o", NULL, "{\"type\":\"system\",\"subtype\":\"x\"}");
	is("o", NULL, "{\"type\":\"assistant\",\"message\":{\"role\":\"assistant\",\"content\":[]}}");
	is("o", "a line of type banana", "{\"type\":\"banana\"}");
	is("o", "a line of type BASH?command", "{\"type\":\"BASH command\"}");
	is("o", "keep_alive with `uuid`", "{\"type\":\"keep_alive\",\"uuid\":\"u\"}");
	is("o", "control_response with `uuid`",
	   "{\"type\":\"control_response\",\"uuid\":\"u\",\"response\":{\"subtype\":\"success\",\"request_id\":\"1\"}}");
}
END_TEST

START_TEST(requests) {
	is("od", NULL, REQUEST("\"subtype\":\"interrupt\""));
	is("od", NULL, REQUEST("\"subtype\":\"interrupt\",\"cancel_queued\":true,\"plenum_all\":false"));
	is("o", "interrupt with `plenum_all`", REQUEST("\"subtype\":\"interrupt\",\"plenum_all\":true"));
	is("o", "interrupt with `novel`", REQUEST("\"subtype\":\"interrupt\",\"novel\":1"));
	is("od", NULL, REQUEST("\"subtype\":\"list_models\",\"plenum_timeout_ms\":5"));
	is("o", "set_cwd", REQUEST("\"subtype\":\"set_cwd\",\"path\":\"/\",\"trust_accepted\":true"));
	is("o", "mcp_status", REQUEST("\"subtype\":\"mcp_status\""));
	is("o", "read_file", REQUEST("\"subtype\":\"read_file\",\"path\":\"x\""));
	is("o", "novel", REQUEST("\"subtype\":\"novel\""));
	is("o", "interrupt?", REQUEST("\"subtype\":\"interrupt \""));
	is("o", "control_request with `uuid`",
	   "{\"type\":\"control_request\",\"uuid\":\"u\",\"request_id\":\"1\",\"request\":{\"subtype\":\"interrupt\"}}");
	is("od", NULL, "{\"type\":\"control_request\",\"request\":{\"subtype\":\"interrupt\",\"request_id\":\"1\"}}");
}
END_TEST

START_TEST(members_of_initialize) {
	is("od", NULL, REQUEST("\"subtype\":\"initialize\""));
	is("od", NULL, INIT("\"hooks\":null,\"agents\":{ },\"sdkMcpServers\":[],\"systemPrompt\":[\"\"],\"title\":\"\""));
	is("od", NULL, INIT("\"promptSuggestions\":true,\"forwardSubagentText\":true"));
	is("o", "initialize with `hooks`", INIT("\"hooks\":{\"Stop\":[]}"));
	is("o", "initialize with `agents`", INIT("\"agents\":null,\"agents\":{\"a\":{}}"));
	is("o", "initialize with `agents`", INIT("\"agents\":{\"a\":{}},\"agents\":null"));
	is("o", "initialize with `mcpServers`", INIT("\"mcpServers\":{\"a\":{\"command\":\"id\"}}"));
	is("o", "initialize with `sdkMcpServers`", INIT("\"sdkMcpServers\":[\"a\"]"));
	is("o", "initialize with `systemPrompt`", INIT("\"systemPrompt\":[\"x\"]"));
	is("o", "initialize with `skills`", INIT("\"skills\":[]"));
	is("o", "initialize with `novel`", INIT("\"novel\":false"));
	is("o", "initialize with `a?u0020b`", INIT("\"a\\u0020b\":1"));
}
END_TEST

START_TEST(members_of_prompts) {
	is("od", NULL, USER("\"x\"", ",\"uuid\":\"u\",\"session_id\":\"s\",\"parent_tool_use_id\":null"));
	is("od", NULL, USER("\"x\"", ",\"priority\":\"now\",\"shouldQuery\":false,\"isSynthetic\":false"));
	is("o", "user with `isSynthetic`", USER("\"x\"", ",\"isSynthetic\":true"));
	is("o", "user with `origin`", USER("\"x\"", ",\"origin\":{\"kind\":\"human\"}"));
	is("o", "user with `file_attachments`", USER("\"x\"", ",\"file_attachments\":[{}]"));
	is("o", "user with `isSynthetic`", " \t" USER("\"x\"", ",\"isSynthetic\":true")); /* spaces hide nothing */
	is("o", "user with `novel`", USER("\"x\"", ",\"novel\":{}"));
	is("o", "message with `usage`", "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"\",\"usage\":1}}");
}
END_TEST

START_TEST(content_of_prompts) {
	is("od", NULL, USER("[{\"type\":\"text\",\"text\":\"x\"}]", ""));
	is("o", "a prompt with a `tool_result` block", USER("[{\"type\":\"tool_result\",\"tool_use_id\":\"t\"}]", ""));
	is("o", "a prompt with a `novel` block", USER("[{\"type\":\"text\",\"text\":\"x\"},{\"type\":\"novel\"}]", ""));
	is("od", NULL, USER("\"/compact it\"", ""));
	is("o", "the command /model", USER("\"/model haiku\"", ""));
	is("o", "the command /model", USER("\"\\u002fmodel haiku\"", ""));
	is("o", "the command /model", USER("\"\\/\\u006dodel\\thaiku\"", ""));
	is("o", "the command /model", USER("\" \\n/model\"", ""));
	is("o", "the command /model",
	   USER("[{\"type\":\"text\",\"text\":\"x\"},{\"type\":\"text\",\"text\":\"/model haiku\"}]", ""));
	is("o", "the command /compact:x", USER("\"/compact:x\"", ""));
	is("od", NULL, USER("\"/etc/hosts is a file\"", ""));
	is("od", NULL, USER("\"see /model\"", ""));
	is("o", "a prompt that mentions a file with @", USER("\"see @/etc/hosts\"", ""));
	is("o", NULL, USER("\"@a\"", ""));
	is("o", NULL, USER("\"see \\u0040a\"", ""));
	is("o", NULL, USER("\"see @\\\"a b\\\"\"", ""));
	is("o", NULL, USER("\"\\u00a0@a\"", ""));
	is("o", NULL, USER("\"@@a\"", ""));
	is("o", NULL, USER("[{\"type\":\"text\",\"text\":\"x\\n@a\"},{\"type\":\"text\",\"text\":\"y\"}]", ""));
	is("od", NULL, USER("\"me@example.org, a @ b, at the end @\"", ""));
}
END_TEST

/* A row that gives a driver access to the files, programs or accounts of the daemon's user is an error. */
START_TEST(rows_are_sound) {
	size_t n;
	const struct gate_row *rows = claude_dialect.gate;
	n = claude_dialect.n_gate;
	for (size_t i = 0; i < n; i++) {
		const struct gate_row *row = &rows[i];
		REQUIRE(row->affects != GATE_USER || row->least == GATE_OWN || row->act == ACT_EXECUTE, "%s", row->name);
		bool changes = row->act == ACT_CHANGE || row->act == ACT_MCP_SET_SERVERS;
		REQUIRE(!changes || (row->what && row->least == GATE_OWN), "%s", row->name);
		REQUIRE(changes == (row->show != GATE_NOTHING), "%s", row->name);
		REQUIRE(row->kind == GATE_MEMBER || dialect_gate_row(&gate.rows, row->kind, row->name, row->len) == row,
				"%s twice", row->name);
		const char *dot = strchr(row->name, '.');
		if (row->kind != GATE_MEMBER || !dot) continue;
		size_t parent = (size_t)(dot - row->name);
		REQUIRE(dialect_gate_member(&gate.rows, row->name, parent, dot + 1, row->len - parent - 1) == row, "%s twice",
				row->name);
		const struct gate_row *of = dialect_gate_row(&gate.rows, GATE_REQUEST, row->name, parent);
		if (!of) of = dialect_gate_row(&gate.rows, GATE_TYPE, row->name, parent);
		REQUIRE(of ? of->least != GATE_OWN : strncmp(row->name, "message.", 8) == 0, "%s is never looked at",
				row->name);
	}
	ck_assert_ptr_null(dialect_gate_member(&gate.rows, "x", 1, "interrupt.reason", 16));
}
END_TEST

/* The log has each name once, up to a limit; a client's name cannot forge a line of the log. */
START_TEST(names_are_logged_once) {
	char line[200], log[1 << 16];
	struct gate_verdict v;
	int out[2], err = dup(2);
	ck_assert_int_eq(pipe(out), 0);
	gate_init(&gate, &claude_dialect);
	dup2(out[1], 2);
	for (int i = 0; i < 3; i++) passes(TRUST_DRIVER, "{\"type\":\"a\xe2\x80\xae b\xc2\x85\"}", &v);
	for (int i = 0; i < 3 * GATE_SEEN_MAX; i++) {
		snprintf(line, sizeof line, REQUEST("\"subtype\":\"novel-%d\""), i % (2 * GATE_SEEN_MAX));
		passes(TRUST_OWN, line, &v);
	}
	dup2(err, 2);
	close(err);
	close(out[1]);
	ssize_t n = 0, got;
	while ((got = read(out[0], log + n, sizeof log - 1 - (size_t)n)) > 0) n += got;
	close(out[0]);
	log[n] = 0;
	size_t count = 0;
	for (ssize_t i = 0; i < n; i++) count += log[i] == '\n';
	ck_assert_uint_eq(count, GATE_SEEN_MAX);
	ck_assert_ptr_nonnull(strstr(log, "no row for type \"a"));
	for (ssize_t i = 0; i < n; i++) REQUIRE(log[i] == '\n' || (log[i] >= ' ' && log[i] <= '~'), "byte %d", log[i]);
	ck_assert_ptr_nonnull(strstr(log, "further"));
}
END_TEST

/* In a dialect without rows for them, a prompt's text has no commands and mentions. */
START_TEST(a_dialect_without_commands) {
	static const struct gate_row rows[] = {{.kind = GATE_TYPE, .name = "do", .len = 2, .least = GATE_DRIVER},
										   {.kind = GATE_MEMBER, .name = "do.do", .len = 5, .least = GATE_DRIVER}};
	static const struct dialect bare = {.gate = rows, .n_gate = ARRAY_SIZE(rows)};
	struct span line = span_of("{\"do\":\"/model @file\"}");
	struct message m = {.kind = MESSAGE_USER};
	struct gate_verdict v;
	struct gate *g = calloc(1, sizeof *g);
	m.env.type = (struct span){line.p + 1, 4};
	m.content = m.text = span_member(line, "do");
	gate_init(g, &bare);
	gate_judge(g, TRUST_DRIVER, &m, line, &v);
	ck_assert(v.passes);
	gate_judge(g, TRUST_OBSERVER, &m, line, &v);
	ck_assert(!v.passes);
	free(g);
}
END_TEST

RUN_TESTS("gate", lines, requests, members_of_initialize, members_of_prompts, content_of_prompts, rows_are_sound,
		  names_are_logged_once, a_dialect_without_commands)
