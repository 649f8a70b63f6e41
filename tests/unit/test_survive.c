/* SPDX-License-Identifier: MIT
 *
 * Lines measured to end or silence the agent; test_message.c checks whole lines with their errors.
 */
#include "dialect/claude/message.h"
#include "dialect/claude/survive.h"

#include "harness.h"

#include <string.h>

static enum message_kind kind_of(const struct envelope *e) {
	if (span_equals(e->type, "user")) return MESSAGE_USER;
	if (span_equals(e->type, "control_request")) return MESSAGE_REQUEST;
	if (span_equals(e->type, "control_response")) return MESSAGE_ANSWER;
	if (span_equals(e->type, "control_cancel_request")) return MESSAGE_CANCEL;
	return MESSAGE_OTHER;
}

static bool survives(const char *line, struct error *error) {
	struct message m = {0};
	const char *what = "";
	size_t at = 0;
	REQUIRE(message_scan(line, strlen(line), &m.env, &what, &at), "%s: %s", line, what);
	m.kind = kind_of(&m.env);
	m.role = span_member(m.env.message, "role");
	m.content = span_member(m.env.message, "content");
	error->text[0] = 0;
	struct survive w;
	bool good = survive_begin(&w, &m, (struct span){line, strlen(line)}, error);
	while (good && w.n) good = survive_step(&w, 1, error);
	return good;
}

static void all(const char *const *lines, size_t n, bool good) {
	struct error error;
	for (size_t i = 0; i < n; i++) {
		REQUIRE(survives(lines[i], &error) == good, "%s: %s", lines[i], error.text);
		REQUIRE(good == !error.text[0], "%s: %s", lines[i], error.text); /* a refusal has a reason */
	}
}
#define GOOD(lines) all(lines, ARRAY_SIZE(lines), true)
#define BAD(lines) all(lines, ARRAY_SIZE(lines), false)

START_TEST(types) {
	static const char *const good[] = {"{\"type\":\"keep_alive\"}", "{\"type\":\"something_new\",\"x\":1}",
									   "{\"type\":\"\"}"};
	static const char *const bad[] = {"{}", "{\"type\":1}", "{\"type\":null}", "{\"type\":\"us\\u0065r\"}",
									  "{\"subtype\":\"interrupt\"}"};
	GOOD(good);
	BAD(bad);
}
END_TEST

#define USER(message) "{\"type\":\"user\",\"message\":" message "}"
#define BLOCK(block) USER("{\"role\":\"user\",\"content\":[" block "]}")

START_TEST(prompts) {
	static const char *const good[] = {
		USER("{\"role\":\"user\",\"content\":\"hi\"}"),
		USER("{\"role\":\"user\",\"content\":\"\"}"),
		USER("{\"role\":\"user\",\"content\":[]}"),
		BLOCK("{\"type\":\"text\",\"text\":\"hi\"}"),
		BLOCK("{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":\"image/png\",\"data\":\"\"}}"),
		BLOCK("{\"type\":\"document\",\"title\":\"t\",\"source\":{\"type\":\"url\",\"url\":\"http://x\"}}"),
		BLOCK("{\"type\":\"tool_result\",\"content\":[{\"type\":\"text\",\"text\":\"x\"}]}"),
		BLOCK("{\"type\":\"tool_result\",\"content\":\"x\"}"),
		BLOCK("{\"type\":\"tool_result\"}"),
		BLOCK("{\"type\":\"new_kind\",\"x\":1}"),
	};
	static const char *const bad[] = {
		"{\"type\":\"user\"}",
		USER("null"),
		USER("\"hi\""),
		USER("{}"),
		USER("{\"content\":\"hi\"}"),
		USER("{\"role\":\"assistant\",\"content\":\"hi\"}"),
		USER("{\"role\":null,\"content\":\"hi\"}"),
		USER("{\"role\":\"us\\u0065r\",\"content\":\"hi\"}"),
		USER("{\"role\":\"user\"}"),
		USER("{\"role\":\"user\",\"content\":null}"),
		USER("{\"role\":\"user\",\"content\":{}}"),
		USER("{\"role\":\"user\",\"content\":1}"),
		BLOCK("null"),
		BLOCK("\"hi\""),
		BLOCK("{}"),
		BLOCK("{\"type\":1}"),
		BLOCK("{\"type\":\"t\\u0065xt\",\"text\":1}"),
		BLOCK("{\"type\":\"text\"}"),
		BLOCK("{\"type\":\"text\",\"text\":null}"),
		BLOCK("{\"type\":\"text\",\"t\\u0065xt\":\"x\"}"),
		BLOCK("{\"type\":\"text\",\"text\":\"good\"},{\"type\":\"text\",\"text\":1}"),
		BLOCK("{\"type\":\"image\"}"),
		BLOCK("{\"type\":\"image\",\"source\":\"x\"}"),
		BLOCK("{\"type\":\"image\",\"source\":{}}"),
		BLOCK("{\"type\":\"image\",\"source\":{\"type\":\"base64\"}}"),
		BLOCK("{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"data\":1}}"),
		BLOCK("{\"type\":\"document\",\"title\":1,\"source\":{\"type\":\"url\",\"url\":\"x\"}}"),
		BLOCK("{\"type\":\"tool_result\",\"content\":{}}"),
		BLOCK("{\"type\":\"tool_result\",\"content\":[1]}"),
		BLOCK("{\"type\":\"tool_result\",\"content\":[{\"type\":\"tool_result\"}]}"),
	};
	GOOD(good);
	BAD(bad);
}
END_TEST

#define REQUEST(body) "{\"type\":\"control_request\",\"request_id\":\"1\",\"request\":" body "}"

START_TEST(requests) {
	static const char *const good[] = {
		REQUEST("{\"subtype\":\"interrupt\"}"),
		"{\"type\":\"control_request\",\"request_id\":1,\"request\":{\"subtype\":\"interrupt\"}}",
		REQUEST("{\"subtype\":\"something_new\",\"model\":1}"),
		REQUEST("{\"subtype\":\"set_model\"}"),
		REQUEST("{\"subtype\":\"set_model\",\"model\":null}"),
		REQUEST("{\"subtype\":\"mcp_set_servers\",\"servers\":{\"a\":{\"url\":\"http://x\"}}}"),
		REQUEST("{\"subtype\":\"initialize\",\"hooks\":{\"PreToolUse\":[]}}"),
		REQUEST("{\"subtype\":\"initialize\",\"hooks\":null}"),
		REQUEST("{\"subtype\":\"mcp_call\",\"tool\":\"mcp__a__b\"}"),
	};
	static const char *const bad[] = {
		"{\"type\":\"control_request\",\"request_id\":\"1\"}",
		"{\"type\":\"control_request\",\"request_id\":\"1\",\"subtype\":\"interrupt\"}",
		"{\"type\":\"control_request\",\"request\":{\"subtype\":\"interrupt\"}}",
		"{\"type\":\"control_request\",\"request_id\":1.5,\"request\":{\"subtype\":\"interrupt\"}}",
		"{\"type\":\"control_request\",\"request_id\":null,\"request\":{\"subtype\":\"interrupt\"}}",
		REQUEST("null"),
		REQUEST("[]"),
		REQUEST("{}"),
		REQUEST("{\"subtype\":1}"),
		REQUEST("{\"subtype\":\"int\\u0065rrupt\"}"),
		REQUEST("{\"subtype\":\"set_model\",\"model\":1}"),
		REQUEST("{\"subtype\":\"set_model\",\"model\":{}}"),
		REQUEST("{\"subtype\":\"mcp_set_servers\"}"),
		REQUEST("{\"subtype\":\"mcp_set_servers\",\"servers\":[]}"),
		REQUEST("{\"subtype\":\"mcp_set_servers\",\"servers\":{\"a\":1}}"),
		REQUEST("{\"subtype\":\"mcp_set_servers\",\"servers\":{\"a\":{\"url\":1}}}"),
		REQUEST("{\"subtype\":\"mcp_set_servers\",\"servers\":{\"a\":{\"\\u0075rl\":1}}}"),
		REQUEST("{\"subtype\":\"mcp_call\"}"),
		REQUEST("{\"subtype\":\"apply_flag_settings\"}"),
		REQUEST("{\"subtype\":\"apply_flag_settings\",\"settings\":\"x\"}"),
		REQUEST("{\"subtype\":\"rewind_conversation\"}"),
		REQUEST("{\"subtype\":\"initialize\",\"hooks\":{\"constructor\":[]}}"),
		REQUEST("{\"subtype\":\"initialize\",\"hooks\":{\"__proto__\":[]}}"),
		REQUEST("{\"subtype\":\"initialize\",\"hooks\":{\"to\\u0053tring\":[]}}"),
		REQUEST("{\"subtype\":\"initialize\",\"mcpServers\":{\"a\":{\"url\":7}}}"),
	};
	GOOD(good);
	BAD(bad);
}
END_TEST

START_TEST(answers) {
	static const char *const good[] = {
		"{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"1\",\"response\":{}}}",
		"{\"type\":\"control_response\",\"response\":{\"subtype\":\"error\",\"request_id\":\"1\",\"error\":\"x\"}}",
		"{\"type\":\"control_response\",\"response\":{\"subtype\":\"maybe\",\"request_id\":\"1\"}}",
		"{\"type\":\"control_response\",\"response\":{\"request_id\":\"1\"}}",
		"{\"type\":\"control_cancel_request\",\"request_id\":\"1\"}",
		"{\"type\":\"control_cancel_request\",\"request_id\":1}",
	};
	static const char *const bad[] = {
		"{\"type\":\"control_response\"}",
		"{\"type\":\"control_response\",\"response\":null}",
		"{\"type\":\"control_response\",\"response\":{}}",
		"{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\"}}",
		"{\"type\":\"control_response\",\"request_id\":\"1\",\"response\":{\"subtype\":\"success\"}}",
		"{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":1}}",
		"{\"type\":\"control_response\",\"request\":{},\"response\":{\"subtype\":\"success\",\"request_id\":\"1\"}}",
		"{\"type\":\"control_cancel_request\"}",
		"{\"type\":\"control_cancel_request\",\"request_id\":true}",
	};
	GOOD(good);
	BAD(bad);
}
END_TEST

START_TEST(lines_that_are_passed_on_unread) {
	static const char *const good[] = {
		"{\"type\":\"assistant\",\"message\":{\"role\":\"assistant\",\"content\":[]}}",
		"{\"type\":\"system\",\"subtype\":\"init\"}",
		"{\"type\":\"system\"}",
		"{\"type\":\"update_environment_variables\",\"variables\":{}}",
	};
	static const char *const bad[] = {
		"{\"type\":\"assistant\"}",
		"{\"type\":\"assistant\",\"message\":{\"content\":\"x\"}}",
		"{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\"}]}}",
		"{\"type\":\"system\",\"subtype\":\"compact_boundary\"}",
		"{\"type\":\"system\",\"subtype\":\"compact_bound\\u0061ry\"}",
		"{\"type\":\"update_environment_variables\"}",
		"{\"type\":\"update_environment_variables\",\"variables\":\"x\"}",
	};
	GOOD(good);
	BAD(bad);
}
END_TEST

RUN_TESTS("survive", types, prompts, requests, answers, lines_that_are_passed_on_unread)
