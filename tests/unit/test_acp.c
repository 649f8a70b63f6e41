/* SPDX-License-Identifier: MIT
 *
 * The dialect acp through its table.
 */
#include "dialect/acp/acp.h"

static const struct dialect *const d = &acp_dialect;

#include "dialect.h"

/* --- lines -------------------------------------------------------------------------------------------------------- */

START_TEST(kinds_of_lines) {
	static const struct kind_row lines[] = {
		{"{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{}}", LINE_OTHER},
		{"{\"params\":{\"sessionId\":\"s\"},\"method\":\"session/request_permission\",\"id\":0}", LINE_REQUEST},
		{"{\"id\":1,\"result\":{}}", LINE_RESPONSE},
		{"{\"error\":{\"code\":1,\"message\":\"\"},\"id\":1}", LINE_RESPONSE},
		{"{\"method\":\"$/cancel_request\",\"params\":{\"requestId\":\"0\"}}", LINE_CANCEL},
		{"{\"method\":\"$/cancel_request\",\"params\":{}}", LINE_OTHER},
		{"{\"x\":1}", LINE_OTHER},
		{"{\"method\":\"session/update\",\"params\":{\"update\":{\"sessionUpdate\":\"agent_message_chunk\"}}}",
		 LINE_STREAM_EVENT},
		{"{\"method\":\"session/update\",\"params\":{\"update\":{\"sessionUpdate\":\"agent_thought_chunk\"}}}",
		 LINE_STREAM_EVENT},
		{"{\"method\":\"session/update\",\"params\":{\"update\":{\"sessionUpdate\":\"tool_call\"}}}", LINE_OTHER},
		{"{\"i\\u0064\":1,\"method\":\"session/update\",\"params\":{\"update\":{\"sessionUpdate\":"
		 "\"agent_message_chunk\"}}}",
		 LINE_OTHER}, /* hides_kind() looks closer */
	};
	check_kinds(lines, ARRAY_SIZE(lines));
	has(scan(lines[4].line).request_id, "\"0\"");
	has(scan("{\"id\":1,\"result\":{\"sessionId\":\"c\"}}").session_id, "\"c\"");
	has(scan(lines[1].line).session_id, "\"s\"");
}
END_TEST

/* Found in the pass over the line, wherever it stands and whatever stands twice. */
START_TEST(the_name_and_the_mark_of_an_update) {
	static const struct {
		const char *line, *name;
		bool marked;
	} rows[] = {
		{"{\"method\":\"session/update\",\"params\":{\"sessionId\":\"c\",\"update\":{\"sessionUpdate\":\"a\"}}}",
		 "\"a\"", false},
		{" { \"params\" : {\"update\": {\"x\":{\"sessionUpdate\":\"b\"} , \"sessionUpdate\" : \"a\" } } , "
		 "\"method\":\"session/update\"} ",
		 "\"a\"", false},
		{"{\"method\":\"session/update\",\"params\":{\"update\":{\"sessionUpdate\":\"a\",\"sessionUpdate\":\"b\"}}}",
		 "\"b\"", false},
		{"{\"method\":\"session/update\",\"params\":{\"update\":{\"sessionUpdate\":\"a\"},\"update\":{}}}", NULL,
		 false},
		{"{\"method\":\"session/update\",\"params\":{\"update\":{\"sessionUpdate\":\"a\"},\"update\":1}}", NULL, false},
		{"{\"method\":\"session/update\",\"params\":{\"update\":{\"sessionUpdate\":\"a\"}},\"params\":{}}", NULL,
		 false},
		{"{\"method\":\"other\",\"params\":{\"update\":{\"sessionUpdate\":\"a\"}}}", NULL, false},
		{"{\"id\":1,\"result\":{\"update\":{\"sessionUpdate\":\"a\"}}}", NULL, false},
		{"{\"method\":\"session/update\",\"params\":{\"update\":{\"_meta\":{\"plenum\":1}}}}", NULL, true},
		{"{\"method\":\"x\",\"params\":{\"Upd\\u0061te\":{\"_m\\u0065ta\":{\"PLENUM\":1}}}}", NULL, true},
		{"{\"method\":\"session/update\",\"params\":{\"update\":{\"_meta\":{\"other\":1}},\"_meta\":{\"plenum\":1}}}",
		 NULL, false},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct envelope e = scan(rows[i].line);
		has(e.subtype, rows[i].name);
		REQUIRE(e.reserved == rows[i].marked, "%s", rows[i].line);
	}
}
END_TEST

START_TEST(a_long_permission_is_known_by_its_beginning) {
	static const char text[] =
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"session/request_permission\",\"params\":{\"a\":\"";
	struct head h;
	d->read_head((struct chunk){NULL, text, sizeof text - 1}, &h);
	ck_assert(h.kind == LINE_REQUEST && h.ask == ASK_TOOL);
	has(h.id, "7");
}
END_TEST

START_TEST(ends_of_turns) {
	static const struct {
		const char *body;
		enum turn_outcome outcome;
	} ends[] = {
		{"\"result\":{\"stopReason\":\"end_turn\"}", TURN_SUCCESS},
		{"\"result\":{\"stopReason\":\"cancelled\"}", TURN_INTERRUPTED},
		{"\"result\":{\"stopReason\":\"max_tokens\"}", TURN_LIMIT},
		{"\"result\":{\"stopReason\":\"refusal\"}", TURN_ERROR},
		{"\"error\":{\"code\":-32603,\"message\":\"no\"}", TURN_ERROR},
	};
	char line[200];
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		snprintf(line, sizeof line, "{\"id\":1,%s}", ends[i].body);
		struct turn_result r = d->read_result(span_of(line));
		REQUIRE(r.outcome == ends[i].outcome, "%s", line);
		ck_assert(r.input == TURN_UNKNOWN && r.nano_usd == TURN_UNKNOWN);
	}
	has(d->read_result(span_of(line)).text, "\"no\"");
	struct turn_result r = d->read_result(
		span_of("{\"result\":{\"stopReason\":\"end_turn\",\"usage\":{\"inputTokens\":3,\"outputTokens\":4,"
				"\"cachedReadTokens\":5}}}"));
	ck_assert(r.input == 3 && r.output == 4 && r.cache_read == 5 && r.cache_write == TURN_UNKNOWN);
}
END_TEST

/* --- asks --------------------------------------------------------------------------------------------------------- */

static const char asked[] =
	"{\"sessionId\":\"c\",\"toolCall\":{\"toolCallId\":\"t\",\"title\":\"`ls`\",\"kind\":\"execute\",\"rawInput\":"
	"{\"command\":\"ls -l\"}},\"options\":[{\"optionId\":\"a\\u0031\",\"kind\":\"allow_always\",\"name\":\"Always\"},"
	"{\"optionId\":\"y\",\"kind\":\"allow_once\"},{\"optionId\":\"n\",\"kind\":\"reject_once\"}]}";

START_TEST(parts_of_a_permission) {
	struct span request = span_of(asked);
	has(d->ask_part(ASK_TOOL, request, ASK_PART_TOOL), "\"execute\"");
	has(d->ask_part(ASK_TOOL, request, ASK_PART_INPUT), "{\"command\":\"ls -l\"}");
	has(d->ask_part(ASK_TOOL, request, ASK_PART_SUBJECT), "\"ls -l\"");
	request = span_of("{\"toolCall\":{\"title\":\"ls\",\"kind\":\"execute\"},\"options\":[]}");
	has(d->ask_part(ASK_TOOL, request, ASK_PART_INPUT), "{\"title\":\"ls\",\"kind\":\"execute\"}");
	request = span_of(asked);
	has(d->ask_part(ASK_TOOL, request, ASK_PART_AGENT), NULL);
	has(d->summary(request), "\"ls -l\"");
	struct span bare = span_of("{\"toolCall\":{\"kind\":\"other\",\"title\":\"Do it\"}}");
	has(d->ask_part(ASK_TOOL, bare, ASK_PART_TOOL), "\"Do it\"");
	has(d->summary(bare), "\"Do it\"");
}
END_TEST

#define SELECTED(id) "{\"id\":1,\"result\":{\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"" id "\"}}}"

START_TEST(answers_to_a_permission) {
	static const struct {
		const char *answer, *decision; /* decision NULL: it is refused */
		size_t grants;
	} all[] = {
		{SELECTED("y"), "allow", 0},
		{SELECTED("a1"), "allow", 1}, /* in another spelling */
		{SELECTED("n"), "deny", 0},
		{"{\"result\":{\"outcome\":{\"outcome\":\"cancelled\"}}}", "cancelled", 0},
		{"{\"error\":{\"code\":-32601,\"message\":\"?\"}}", "error", 0},
		{SELECTED("z"), NULL, 0},
		{SELECTED(""), NULL, 0},
		{"{\"result\":{\"outcome\":{\"outcome\":\"selected\"}}}", NULL, 0},
		{"{\"result\":{\"outcome\":{\"outcome\":\"selected\",\"optionId\":1}}}", NULL, 0},
		{"{\"result\":{\"outcome\":\"selected\"}}", NULL, 0},
		{"{\"result\":{}}", NULL, 0},
		{"{\"result\":null}", NULL, 0},
	};
	struct span request = span_of(asked);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		struct span answer = span_of(all[i].answer);
		const char *wrong = d->check_answer(ASK_TOOL, request, answer);
		struct changes ch;
		REQUIRE(!wrong == (all[i].decision != NULL), "%s: %s", all[i].answer, wrong ? wrong : "accepted");
		if (wrong) continue;
		ck_assert_str_eq(d->decision(ASK_TOOL, request, answer), all[i].decision);
		d->read_changes(ASK_TOOL, request, answer, &ch);
		ck_assert_uint_eq(ch.n_grants, all[i].grants);
		if (ch.n_grants) ck_assert_str_eq(ch.grants[0], "Always");
	}
}
END_TEST

START_TEST(answers_of_the_daemon) {
	struct buf b = B;
	d->put_tool_deny(&b, span_of(asked), "no");
	ck_assert_str_eq(built(&b), "{\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"n\"}}");
	d->put_tool_allow(&b, span_of(asked)); /* once, though `always` stands first */
	ck_assert_str_eq(built(&b), "{\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"y\"}}");
	d->put_tool_deny(&b, SPAN_NONE, "too long");
	ck_assert_str_eq(built(&b), "{\"outcome\":{\"outcome\":\"cancelled\"}}");
	d->put_cancel_form(&b, span_of("{\"message\":\"?\"}"));
	ck_assert_str_eq(built(&b), "{\"action\":\"cancel\"}");
	d->put_answer(&b, span_of("\"0\""), "{}");
	ck_assert_str_eq(built(&b), "{\"jsonrpc\":\"2.0\",\"id\":\"0\",\"result\":{}}\n");
	d->put_cancel(&b, span_of("7"), SPAN_NONE);
	ck_assert_str_eq(built(&b), "{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{\"requestId\":7}}\n");
}
END_TEST

START_TEST(answers_to_a_form) {
	ck_assert_ptr_null(d->check_answer(ASK_ELICITATION, SPAN_NONE, span_of("{\"result\":{\"action\":\"decline\"}}")));
	ck_assert_ptr_nonnull(d->check_answer(ASK_ELICITATION, SPAN_NONE, span_of("{\"result\":{\"action\":\"yes\"}}")));
	ck_assert_str_eq(d->decision(ASK_ELICITATION, SPAN_NONE, span_of("{\"result\":{\"action\":\"accept\"}}")), "allow");
}
END_TEST

/* --- the start ---------------------------------------------------------------------------------------------------- */

static struct dialect_start start_of(struct memo *m, const char *conversation, bool told) {
	return (struct dialect_start){.cwd = "/w", .conversation = conversation, .told = told, .memo = m};
}

static void take(struct memo *m, unsigned n, const char *answer) {
	struct envelope e = scan(answer);
	struct buf why = B;
	REQUIRE(d->take_step(n, &e, m, &why), "%s", built(&why));
}

static void refuses(struct memo *m, unsigned n, const char *answer, const char *text) {
	struct envelope e = scan(answer);
	struct buf why = B;
	ck_assert(!d->take_step(n, &e, m, &why));
	const char *got = built(&why);
	REQUIRE(strstr(got, text), "%s", got);
}

static enum dialect_step second_step(const char *capabilities, const char *conversation, bool told, struct buf *b) {
	struct memo m = {0};
	char answer[300];
	struct dialect_start start = start_of(&m, conversation, told);
	snprintf(answer, sizeof answer, "{\"id\":1,\"result\":{\"protocolVersion\":1,\"agentCapabilities\":%s}}",
			 capabilities);
	take(&m, 0, answer);
	enum dialect_step step = d->put_step(b, "2", 1, &start);
	memo_free(&m);
	return step;
}

START_TEST(ways_to_the_conversation) {
	static const char both[] = "{\"loadSession\":true,\"sessionCapabilities\":{\"resume\":{}}}";
	struct buf b = B;
	ck_assert(second_step(both, NULL, false, &b) == STEP_SENT);
	ck_assert_str_eq(built(&b), "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"session/new\",\"params\":{\"cwd\":\"/w\","
								"\"mcpServers\":[]}}\n");
	ck_assert(second_step(both, "c\"", false, &b) == STEP_REPLAYS);
	ck_assert_str_eq(built(&b), "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"session/load\",\"params\":{\"sessionId\":"
								"\"c\\\"\",\"cwd\":\"/w\",\"mcpServers\":[]}}\n");
	ck_assert(second_step(both, "c", true, &b) == STEP_SENT);
	ck_assert_ptr_nonnull(strstr(built(&b), "session/resume"));
	ck_assert(second_step("{\"loadSession\":true}", "c", true, &b) == STEP_REPLAYS);
	ck_assert_ptr_nonnull(strstr(built(&b), "session/load"));
	ck_assert(second_step("{}", "c", true, &b) == STEP_SENT); /* it can neither */
	ck_assert_ptr_nonnull(strstr(built(&b), "session/new"));
}
END_TEST

START_TEST(agents_that_cannot_serve) {
	struct memo m = {0};
	refuses(&m, 0, "{\"id\":1,\"result\":{\"protocolVersion\":2}}", "version 1");
	refuses(&m, 0, "{\"id\":1,\"result\":{}}", "version 1");
	refuses(&m, 0, "{\"id\":1,\"error\":{\"code\":1,\"message\":\"gone\"}}", "gone");
	memo_set(&m, "params", span_of("{}"));
	refuses(&m, 1, "{\"id\":1,\"error\":{\"code\":-32603,\"message\":\"Internal\",\"data\":{\"details\":\"key\"}}}",
			"Internal, key");
	ck_assert_ptr_null(memo_get(&m, "params").p); /* a client may ask again */
	memo_free(&m);
}
END_TEST

START_TEST(mode_and_options_come_back) {
	struct memo m = {0};
	struct buf b = B;
	struct dialect_start start = start_of(&m, "c", true);
	memo_set(&m, "current_mode_update", span_of("{\"currentModeId\":\"plan\"}"));
	memo_set(&m, "config_option_update",
			 span_of("{\"configOptions\":[{\"id\":\"a\",\"currentValue\":1},{\"id\":\"b\",\"currentValue\":2},{\"id\":"
					 "\"gone\",\"currentValue\":3}]}"));
	ck_assert(d->put_step(&b, "1", 0, &start) == STEP_SENT);
	take(&m, 0, "{\"id\":1,\"result\":{\"protocolVersion\":1,\"agentCapabilities\":{\"loadSession\":true}}}");
	take(
		&m, 1,
		"{\"id\":2,\"result\":{\"modes\":{\"currentModeId\":\"default\",\"availableModes\":[{\"id\":\"default\"},{"
		"\"id\":\"plan\"}]},\"configOptions\":[{\"id\":\"a\",\"currentValue\":1},{\"id\":\"b\",\"currentValue\":1}]}}");
	buf_free(&b);
	ck_assert(d->put_step(&b, "3", 2, &start) == STEP_SENT);
	ck_assert_str_eq(built(&b), "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"session/set_mode\",\"params\":{"
								"\"sessionId\":\"c\",\"modeId\":\"plan\"}}\n");
	ck_assert(d->put_step(&b, "4", 3, &start) == STEP_SENT);
	ck_assert_str_eq(built(&b), "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"session/set_config_option\",\"params\":{"
								"\"sessionId\":\"c\",\"configId\":\"b\",\"value\":2}}\n");
	ck_assert(d->put_step(&b, "5", 4, &start) == STEP_NONE);
	ck_assert_uint_eq(b.len, 0);
	buf_free(&b);
	memo_free(&m);
}
END_TEST

/* An agent that reports very many options does not make the start of the next one endless. */
START_TEST(few_of_many_options_come_back) {
	struct memo m = {0};
	struct buf b = B, wanted = B, now = B;
	struct dialect_start start = start_of(&m, "c", true);
	unsigned n = 3;
	buf_puts(&wanted, "{\"configOptions\":[{}");
	buf_puts(&now, "{\"configOptions\":[{}");
	for (unsigned i = 0; i < 1000; i++) {
		buf_printf(&wanted, ",{\"id\":\"o%u\",\"currentValue\":1}", i);
		buf_printf(&now, ",{\"id\":\"o%u\",\"currentValue\":2}", i);
	}
	buf_puts(&wanted, "]}");
	buf_puts(&now, "]}");
	memo_set(&m, "config_option_update", (struct span){wanted.data, wanted.len});
	ck_assert(d->put_step(&b, "1", 0, &start) == STEP_SENT);
	memo_set(&m, "session", (struct span){now.data, now.len});
	buf_free(&b);
	for (; n < 1000 && d->put_step(&b, "3", n, &start) == STEP_SENT; n++) {
		char want[32];
		snprintf(want, sizeof want, "\"configId\":\"o%u\"", n - 3);
		ck_assert_ptr_nonnull(strstr(built(&b), want));
	}
	ck_assert_uint_gt(n, 3 + 8);
	ck_assert_uint_lt(n, 3 + 100);
	buf_free(&b);
	buf_free(&wanted);
	buf_free(&now);
	memo_free(&m);
}
END_TEST

START_TEST(a_late_replay_ends_with_one_more_answer) {
	struct memo m = {0};
	struct buf b = B;
	struct dialect_start start = start_of(&m, "c", true);
	take(&m, 0, "{\"id\":1,\"result\":{\"protocolVersion\":1,\"agentCapabilities\":{\"loadSession\":true}}}");
	ck_assert(d->put_step(&b, "2", 1, &start) == STEP_REPLAYS);
	take(&m, 1, "{\"id\":2,\"result\":{\"modes\":{\"currentModeId\":\"default\",\"availableModes\":[]}}}");
	buf_free(&b);
	ck_assert(d->put_step(&b, "3", 2, &start) == STEP_REPLAYS);
	ck_assert_ptr_nonnull(strstr(built(&b), "\"modeId\":\"default\""));
	take(&m, 2, "{\"id\":3,\"error\":{\"code\":1,\"message\":\"no\"}}"); /* the answer counts, not what it says */
	ck_assert(d->put_step(&b, "4", 3, &start) == STEP_NONE);
	start.told = false; /* its clients get the replay, early or late, but before the next prompt */
	ck_assert(d->put_step(&b, "2", 1, &start) == STEP_REPLAYS);
	buf_free(&b);
	start.told = true; /* by now: the rest is not dropped */
	ck_assert(d->put_step(&b, "3", 2, &start) == STEP_SENT);
	take(&m, 2, "{\"id\":3,\"error\":{\"code\":1,\"message\":\"no\"}}");
	ck_assert(d->put_step(&b, "4", 3, &start) == STEP_NONE);
	buf_free(&b);
	memo_free(&m);
}
END_TEST

START_TEST(a_client_loads_with_the_present_mode) {
	struct memo m = {0};
	struct buf b = B;
	const char *error = NULL;
	struct envelope e = scan("{\"id\":1,\"method\":\"session/load\",\"params\":{\"sessionId\":\"c\"}}");
	struct dialect_ask ask = {.e = &e, .conversation = "c", .ready = true, .told = true, .memo = &m};
	memo_set(&m, "session",
			 span_of("{\"sessionId\":\"old\",\"modes\":{\"currentModeId\":\"default\",\"x\":1},\"y\":2}"));
	memo_set(&m, "current_mode_update", span_of("{\"currentModeId\":\"plan\"}"));
	ck_assert(d->kept(&ask, &b, &error) == KEPT_REPLAY);
	ck_assert_str_eq(built(&b), "{\"sessionId\":\"c\",\"modes\":{\"currentModeId\":\"plan\",\"x\":1},\"y\":2}");
	ask.conversation = "other";
	ck_assert(d->kept(&ask, &b, &error) == KEPT_FORBIDDEN);
	ck_assert_ptr_nonnull(error);
	ask.may_begin = true;
	ck_assert(d->kept(&ask, &b, &error) == KEPT_ANOTHER);
	memo_free(&m);
}
END_TEST

/* --- lines of clients --------------------------------------------------------------------------------------------- */

#define RPC(method, params) "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\",\"params\":{" params "}}"
#define TEXT "\"prompt\":[{\"type\":\"text\",\"text\":\"hi\"}]"

START_TEST(rights) {
	static const struct right_row rows[] = {
		{RPC("session/prompt", TEXT), false, true},
		{RPC("session/prompt", "\"prompt\":[{\"type\":\"text\",\"text\":\"/model x\"}]"), false, false},
		{RPC("session/prompt", "\"prompt\":[{\"type\":\"text\",\"text\":\"see @/etc/shadow\"}]"), false, false},
		{RPC("session/prompt", "\"prompt\":[{\"type\":\"resource_link\",\"uri\":\"file:///etc/shadow\"}]"), false,
		 false},
		{RPC("session/prompt", TEXT ",\"new\":1"), false, false},
		{RPC("initialize", "\"protocolVersion\":1"), true, true},
		{RPC("session/new", "\"cwd\":\"/\",\"mcpServers\":[]"), false, false},
		{RPC("session/load", "\"sessionId\":\"c\",\"mcpServers\":[ ]"), true, true},
		{RPC("session/load", "\"sessionId\":\"c\",\"mcpServers\":[{}]"), false, false},
		{RPC("session/set_mode", "\"modeId\":\"plan\""), false, false},
		{RPC("session/anything", ""), false, false},
		{"{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\",\"params\":{\"sessionId\":\"c\"}}", false, true},
		{"{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{\"requestId\":1}}", false, true},
		{"{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{}}", true, true},
		{"{\"jsonrpc\":\"2.0\",\"method\":\"other\"}", false, false},
	};
	check_rights(rows, ARRAY_SIZE(rows));
}
END_TEST

START_TEST(prompts_that_are_none) {
	static const char *const lines[] = {
		RPC("session/prompt", "\"prompt\":\"hi\""),
		RPC("session/prompt", ""),
		"{\"jsonrpc\":\"2.0\",\"method\":\"session/prompt\",\"params\":{" TEXT "}}",
		"{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{}}",
		"{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{\"requestId\":1.5}}",
	};
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		struct message m;
		struct chunk rewritten;
		struct span id;
		struct error error;
		REQUIRE(!d->check(lines[i], strlen(lines[i]), &m, &rewritten, &error, &id), "%s", lines[i]);
	}
}
END_TEST

START_TEST(the_echo_of_a_prompt) {
	struct buf b = B;
	struct envelope e = scan(
		RPC("session/prompt", "\"prompt\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"image\"}]"));
	d->put_echo(&b, &e, "c", span_of("{\"client\":1}"));
	ck_assert_str_eq(
		built(&b), "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"c\",\"update\":{"
				   "\"sessionUpdate\":\"user_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"a\"},\"_meta\":{"
				   "\"plenum\":{\"client\":1}}}}}\n"
				   "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"c\",\"update\":{"
				   "\"sessionUpdate\":\"user_message_chunk\",\"content\":{\"type\":\"image\"},\"_meta\":{\"plenum\":{"
				   "\"client\":1}}}}}\n");
}
END_TEST

RUN_TESTS("acp", kinds_of_lines, the_name_and_the_mark_of_an_update, a_long_permission_is_known_by_its_beginning,
		  ends_of_turns, parts_of_a_permission, answers_to_a_permission, answers_of_the_daemon, answers_to_a_form,
		  ways_to_the_conversation, agents_that_cannot_serve, mode_and_options_come_back, few_of_many_options_come_back,
		  a_client_loads_with_the_present_mode, rights, a_late_replay_ends_with_one_more_answer, prompts_that_are_none,
		  the_echo_of_a_prompt)
