/* SPDX-License-Identifier: MIT */
#include "dialect/claude/turn.h"

#include "harness.h"

#include <string.h>

#define RESULT(rest) "{\"type\":\"result\"," rest "}"

START_TEST(outcomes) {
	static const struct {
		const char *line;
		enum turn_outcome outcome;
	} table[] = {
		{RESULT("\"subtype\":\"success\",\"is_error\":false"), TURN_SUCCESS},
		{RESULT("\"subtype\":\"success\",\"is_error\":false,\"terminal_reason\":\"hook_stopped\""), TURN_SUCCESS},
		{RESULT("\"subtype\":\"success\",\"is_error\":true,\"terminal_reason\":\"api_error\""), TURN_ERROR},
		{RESULT("\"subtype\":\"error_max_turns\",\"is_error\":true,\"terminal_reason\":\"max_turns\""), TURN_LIMIT},
		{RESULT("\"subtype\":\"error_max_budget_usd\",\"is_error\":true"), TURN_LIMIT},
		{RESULT("\"subtype\":\"error_during_execution\",\"terminal_reason\":\"aborted_tools\""), TURN_INTERRUPTED},
		{RESULT("\"subtype\":\"success\",\"terminal_reason\":\"aborted_streaming\""), TURN_INTERRUPTED},
		{RESULT("\"subtype\":\"error_during_execution\",\"terminal_reason\":\"model_error\""), TURN_ERROR},
		{RESULT("\"subtype\":\"error_during_execution\""), TURN_INTERRUPTED}, /* an old child gives no reason */
		{RESULT("\"subtype\":\"later_word\",\"is_error\":true"), TURN_ERROR},
		{RESULT("\"subtype\":7"), TURN_SUCCESS},
	};
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		enum turn_outcome got = turn_read_result(span_of(table[i].line)).outcome;
		REQUIRE(got == table[i].outcome, "%s: %d", table[i].line, (int)got);
	}
}
END_TEST

START_TEST(numbers) {
	struct turn_result r = turn_read_result(span_of(
		RESULT("\"duration_ms\":1234,\"total_cost_usd\":0.0123456,\"result\":\"done\",\"usage\":{\"input_tokens\":3,"
			   "\"output_tokens\":40,\"cache_read_input_tokens\":500,\"cache_creation_input_tokens\":6000}")));
	ck_assert_int_eq(r.ms, 1234);
	ck_assert_int_eq(r.nano_usd, 12345600);
	ck_assert(r.input == 3 && r.output == 40 && r.cache_read == 500 && r.cache_write == 6000);
	ck_assert(span_equals(r.text, "done"));
}
END_TEST

START_TEST(absent_numbers) {
	static const char *const lines[] = {
		RESULT("\"subtype\":\"success\""),
		RESULT("\"duration_ms\":-1,\"total_cost_usd\":-0.5,\"usage\":{\"input_tokens\":-3,\"output_tokens\":\"4\"}"),
		RESULT("\"duration_ms\":\"5\",\"total_cost_usd\":\"0.5\",\"usage\":[1]"),
		RESULT("\"duration_ms\":null,\"total_cost_usd\":1e300,\"usage\":null"),
		RESULT("\"duration_ms\":{},\"total_cost_usd\":null"),
	};
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		struct turn_result r = turn_read_result(span_of(lines[i]));
		REQUIRE(r.ms == TURN_UNKNOWN && r.nano_usd == TURN_UNKNOWN && r.input == TURN_UNKNOWN &&
					r.output == TURN_UNKNOWN && r.cache_read == TURN_UNKNOWN && r.cache_write == TURN_UNKNOWN,
				"%s", lines[i]);
	}
}
END_TEST

START_TEST(texts) {
	struct turn_result r = turn_read_result(span_of(RESULT("\"errors\":[\"first\",\"second\"]")));
	ck_assert(span_equals(r.text, "first"));
	ck_assert(!turn_read_result(span_of(RESULT("\"errors\":[]"))).text.p);
}
END_TEST

START_TEST(tools) {
	struct span id, name,
		calls = span_of("{\"content\":[{\"type\":\"text\",\"text\":\"x\"},{\"type\":\"tool_use\"},"
						"{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"Bash\",\"input\":{}},"
						"{\"type\":\"tool_use\",\"id\":\"b\",\"name\":\"Read\"}]}");
	size_t at = 0;
	ck_assert(turn_next_tool(&calls, &at, &id, &name) && span_equals(id, "a") && span_equals(name, "Bash"));
	ck_assert(turn_next_tool(&calls, &at, &id, &name) && span_equals(id, "b") && span_equals(name, "Read"));
	ck_assert(!turn_next_tool(&calls, &at, &id, &name));
	at = 0;
	struct span results = span_of("{\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"a\",\"content\":\"x\"}]}");
	ck_assert(turn_next_tool(&results, &at, &id, &name) && span_equals(id, "a") && !name.p);
	ck_assert(!turn_next_tool(&results, &at, &id, &name));
	at = 0;
	struct span text = span_of("{\"content\":\"text\"}");
	ck_assert(!turn_next_tool(&text, &at, &id, &name));
}
END_TEST

RUN_TESTS("turn", outcomes, numbers, absent_numbers, texts, tools)
