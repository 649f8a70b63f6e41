/* SPDX-License-Identifier: MIT
 *
 * What plenumctl shows, and how it finds the result of its prompt.
 */
#include "base/macros.h"
#include "base/str.h"
#include "ctl/always.h"
#include "ctl/show.h"
#include "ctl/speech.h"
#include "ctl/table.h"
#include "ctl/text.h"
#include "harness.h"

#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- Text --------------------------------------------------------------------------------------------------------- */

static void expect_safe(const char *text, size_t n, const char *want) {
	struct buf b = BUF_INIT(4096);
	buf_puts(&b, "");
	text_put(&b, text, n);
	ck_assert_str_eq(b.data, want);
	buf_free(&b);
}
#define SAFE(text, want) expect_safe((text), sizeof(text) - 1, (want))

START_TEST(nothing_steers_the_terminal) {
	SAFE("plain \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "plain \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
	SAFE("a\nb\tc", "a\nb\tc");
	SAFE("a\r\nb\rc", "a\nb\\x0dc");
	SAFE("\x1b[2J\x07\x7f", "\\x1b[2J\\x07\\x7f");
	SAFE("\xc2\x9b", "\\xc2\\x9b");                                          /* CSI as a C1 control */
	SAFE("\xff\xc3", "\\xff\\xc3");                                          /* no UTF-8 */
	SAFE("\xe2\x80\xae", "\\u202e");                                         /* right to left */
	SAFE("\xe2\x81\xa6", "\\u2066");                                         /* an isolate */
	SAFE("\xe2\x80\x94", "\xe2\x80\x94");                                    /* a dash */
	SAFE("r\xe2\x80\x8bm \xd8\x9c\xef\xbb\xbf", "r\\u200bm \\u061c\\ufeff"); /* what does not show */
	SAFE("r\xe2\x80\x8dm\xe2\x80\x8c", "r\\u200dm\\u200c");
	SAFE("\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb", "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb"); /* one sign */
	SAFE("\xf3\xa0\x81\x81", "\\udb40\\udc41");                                                           /* a tag */
	expect_safe("a\0b", 3, "a\\x00b");
}
END_TEST

static void expect_line_of(const char *text, size_t max, const char *want) {
	struct buf b = BUF_INIT(4096);
	buf_puts(&b, "");
	text_put_line(&b, text, strlen(text), max);
	ck_assert_str_eq(b.data, want);
	buf_free(&b);
}

START_TEST(one_line_is_one_line) {
	expect_line_of("  a\n\n b\tc ", 20, "a b c ");
	expect_line_of("abcdef", 6, "abcdef");
	expect_line_of("abcdefg", 6, "abcdef…");
	expect_line_of("äöüßé", 3, "äöü…");
	expect_line_of("", 3, "");
}
END_TEST

START_TEST(columns_are_as_wide_as_their_cells) {
	struct table t = TABLE(2);
	char *out = NULL;
	size_t n = 0;
	const char *const cells[] = {"A", "B", "äöü", "x\033", "", NULL};
	for (size_t i = 0; i < ARRAY_SIZE(cells); i++) table_add(&t, cells[i]);
	FILE *f = open_memstream(&out, &n);
	table_print(&t, f);
	fclose(f);
	ck_assert_str_eq(out, "A    B\näöü  x\\x1b\n     \n");
	free(out);
	table_free(&t);
}
END_TEST

START_TEST(sizes_and_ages) {
	struct buf b = BUF_INIT(256);
	text_put_bytes(&b, 1023);
	buf_putc(&b, ' ');
	text_put_bytes(&b, 1536);
	buf_putc(&b, ' ');
	text_put_age(&b, 999);
	buf_putc(&b, ' ');
	text_put_age(&b, 90000);
	buf_putc(&b, ' ');
	text_put_age(&b, 7200000);
	ck_assert_str_eq(b.data, "1023 1.5K 999ms 90s 2h");
	buf_free(&b);
}
END_TEST

static char *printed(struct table *t) {
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	table_print(t, f);
	fclose(f);
	table_free(t);
	return text;
}

START_TEST(a_table_fits_its_width) {
	static const char *const cells[] = {"ONE", "TWO", "THREE", "a", "bb", "a long cell"};
	struct table t = TABLE(3);
	for (size_t i = 0; i < ARRAY_SIZE(cells); i++) table_add(&t, cells[i]);
	ck_assert_uint_eq(table_width(&t), 3 + 2 + 3 + 2 + 11);
	table_hide(&t, 1);
	ck_assert(table_is_hidden(&t, 1) && !table_is_hidden(&t, 2));
	ck_assert_uint_eq(table_width(&t), 3 + 2 + 11);
	table_note(&t, "below the\nlast row");
	t.width = 8;
	char *text = printed(&t);
	ck_assert_str_eq(text, "ONE  TH…\na    a …\n  below the last row\n");
	free(text);
}
END_TEST

/* A long cell does not push the ones behind it out of the line. */
START_TEST(a_table_cuts_its_widest_cells) {
	static const char *const cells[] = {
		"NAME", "STATE", "WHERE", "a-very-long-name-of-a-session", "idle", "/home/user/project"};
	struct table t = TABLE(3);
	for (size_t i = 0; i < ARRAY_SIZE(cells); i++) table_add(&t, cells[i]);
	t.width = 40;
	char *text = printed(&t);
	ck_assert_str_eq(text, "NAME              STATE  WHERE\na-very-long-nam…  idle   /home/user/pro…\n");
	free(text);
}
END_TEST

/* --- What an answer would remember -------------------------------------------------------------------------------- */

static void remembers(const char *suggestions, const char *want) {
	struct buf b = BUF_INIT(65536);
	json_t *list = json_loads(suggestions, JSON_DECODE_ANY, NULL);
	buf_puts(&b, "");
	always_put(&b, list);
	ck_assert_str_eq(b.data, want);
	json_decref(list);
	buf_free(&b);
}

START_TEST(what_always_remembers) {
	remembers("[]", "");
	remembers("null", "");
	remembers("[{\"type\":\"addRules\",\"rules\":[{\"toolName\":\"Bash\",\"ruleContent\":\"make \\u001b*\"},"
			  "{\"toolName\":\"Read\"}],\"behavior\":\"allow\",\"destination\":\"projectSettings\"}]",
			  "allow Bash(make \\x1b*), Read (.claude/settings.json)");
	remembers("[{\"type\":\"removeRules\",\"rules\":[{\"toolName\":\"Bash\"}],\"behavior\":\"deny\","
			  "\"destination\":\"userSettings\"},{\"type\":\"replaceRules\",\"rules\":[],\"behavior\":\"ask\","
			  "\"destination\":\"elsewhere\"}]",
			  "no longer deny Bash (~/.claude/settings.json); only ask (elsewhere)");
	remembers("[{\"type\":\"removeDirectories\",\"directories\":[\"/a\",7]}]", "no longer directories /a, ? (?)");
	remembers("[7,{\"type\":\"later\"}]", "7; {\"type\":\"later\"}");
}
END_TEST

/* --- Turns -------------------------------------------------------------------------------------------------------- */

static bool feed(struct speech_turn *t, const char *text) {
	struct incoming in;
	speech_read(&speech_claude, text, strlen(text), &in);
	return speech_claude.ends(t, &in);
}

START_TEST(a_result_is_found_by_uuid) {
	struct speech_turn t = {.uuid = "u1"};
	ck_assert(!feed(&t, "{\"type\":\"result\",\"user_message_uuids\":[\"u0\"]}"));
	ck_assert(!feed(&t, "{\"type\":\"system\",\"subtype\":\"init\",\"user_message_uuids\":[\"u1\"]}"));
	ck_assert(t.ours);
	ck_assert(!feed(&t, "{\"type\":\"assistant\",\"message\":{}}"));
	ck_assert(t.ours);
	ck_assert(feed(&t, "{\"type\":\"result\",\"user_message_uuid\":\"u1\"}"));
	ck_assert(!t.ours);
}
END_TEST

START_TEST(a_merged_turn_is_ours_too) {
	struct speech_turn t = {.uuid = "u1"};
	ck_assert(feed(&t, "{\"type\":\"result\",\"user_message_uuids\":[\"u0\",\"u1\",\"u2\"]}"));
}
END_TEST

/* A line has names for 64. */
START_TEST(a_turn_of_a_crowd_is_ours_by_its_echo) {
	struct speech_turn t = {.uuid = "u1"};
	struct buf b = BUF_INIT(4096);
	buf_puts(&b, "{\"type\":\"result\",\"user_message_uuids\":[\"a\"");
	for (int i = 1; i < 64; i++) buf_puts(&b, ",\"a\"");
	buf_puts(&b, "]}");
	ck_assert(!feed(&t, b.data));
	ck_assert(!feed(&t, "{\"type\":\"user\",\"isReplay\":true,\"uuid\":\"u1\"}"));
	ck_assert(feed(&t, b.data));
	buf_free(&b);
}
END_TEST

START_TEST(an_old_cli_names_nobody) {
	struct speech_turn t = {.uuid = "u1"};
	ck_assert(!feed(&t, "{\"type\":\"user\",\"isReplay\":true,\"uuid\":\"u0\"}"));
	ck_assert(!feed(&t, "{\"type\":\"result\"}"));
	ck_assert(!feed(&t, "{\"type\":\"user\",\"isReplay\":true,\"uuid\":\"u1\"}"));
	ck_assert(t.ours);
	ck_assert(feed(&t, "{\"type\":\"result\"}"));
}
END_TEST

START_TEST(a_turn_that_nobody_asked_for_is_not_ours) {
	struct speech_turn t = {.uuid = "u1"};
	feed(&t, "{\"type\":\"user\",\"isReplay\":true,\"uuid\":\"u1\"}");
	ck_assert(!feed(&t, "{\"type\":\"result\",\"origin\":{\"kind\":\"task-notification\"}}"));
	ck_assert(feed(&t, "{\"type\":\"result\",\"origin\":{\"kind\":\"human\"},\"user_message_uuid\":\"u1\"}"));
}
END_TEST

START_TEST(the_turn_of_another_prompt_is_not_printed) {
	struct speech_turn t = {.uuid = "u1"};
	feed(&t, "{\"type\":\"user\",\"isReplay\":true,\"uuid\":\"u1\"}");
	feed(&t, "{\"type\":\"stream_event\",\"user_message_uuids\":[\"u0\"]}");
	ck_assert(!t.ours);
	ck_assert(!feed(&t, "{\"type\":\"result\",\"user_message_uuids\":[\"u0\"]}"));
}
END_TEST

/* --- Answers ------------------------------------------------------------------------------------------------------ */

static char *shown_by(const struct speech *speech, void (*show)(struct show *, const struct incoming *),
					  const char *const *lines) {
	struct show s = {0};
	char *out = NULL;
	size_t n = 0;
	s.out = open_memstream(&out, &n);
	for (; *lines; lines++) {
		struct incoming in;
		speech_read(speech, *lines, strlen(*lines), &in);
		show(&s, &in);
	}
	fclose(s.out);
	return out;
}

static char *shown(const char *const *lines) {
	return shown_by(&speech_claude, show_answer, lines);
}

#define START(id) "{\"type\":\"stream_event\",\"event\":{\"type\":\"message_start\",\"message\":{\"id\":\"" id "\"}}}"
#define DELTA(text)                                                                                                    \
	"{\"type\":\"stream_event\",\"event\":{\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\","       \
	"\"text\":\"" text "\"}}}"
#define STOP "{\"type\":\"stream_event\",\"event\":{\"type\":\"content_block_stop\"}}"
#define WHOLE(id, text)                                                                                                \
	"{\"type\":\"assistant\",\"message\":{\"id\":\"" id "\",\"content\":[{\"type\":\"text\",\"text\":\"" text "\"}]}}"

START_TEST(streamed_text_is_printed_once) {
	const char *const lines[] = {START("m1"), DELTA("a"), DELTA("b"), WHOLE("m1", "ab"), STOP, WHOLE("m2", "c"), NULL};
	_cleanup_free_ char *out = shown(lines);
	ck_assert_str_eq(out, "ab\nc\n");
}
END_TEST

START_TEST(a_name_is_no_member_of_a_notice) {
	const char *const lines[] = {
		"{\"type\":\"system\",\"subtype\":\"plenum_event\",\"event\":\"settled\",\"decision\":\"deny\","
		"\"by\":{\"name\":\"x decision=\\\"allow\\\"\"},\"reason\":\"a reason\"}",
		"{\"type\":\"assistant\",\"subtype\":\"plenum_event\",\"event\":\"settled\"}", NULL};
	_cleanup_free_ char *out = shown_by(&speech_claude, show_line, lines);
	ck_assert_str_eq(out, "-- the request: denied by \"x decision=\\\"allow\\\"\": a reason\n");
}
END_TEST

#define NOTICE(event, members) "{\"type\":\"system\",\"subtype\":\"plenum_event\",\"event\":\"" event "\"," members "}"

START_TEST(a_notice_is_a_sentence) {
	const char *const lines[] = {
		NOTICE("attached", "\"client\":{\"name\":\"desk\"}"),
		NOTICE("detached", "\"client\":{\"name\":\"x left: bye, y\"},\"reason\":\"end of input\""),
		NOTICE("detached", "\"client\":{\"name\":null,\"program\":\"socat\"}"),
		NOTICE("child_exited", "\"status\":1,\"signal\":null,\"reason\":null"),
		NOTICE("changed", "\"what\":\"model\",\"value\":\"opus\",\"by\":{\"name\":\"desk\"}"),
		NOTICE("changed", "\"what\":\"flag_settings\",\"value\":[\"a\",\"b\"],\"by\":{\"name\":\"desk\"}"),
		NOTICE("changed", "\"what\":\"skills\",\"value\":null,\"by\":{\"name\":\"desk\"}"),
		NOTICE("changed", "\"what\":\"permission_mode\",\"value\":\"plan\""),
		NOTICE(
			"changed",
			"\"what\":\"config_option\",\"value\":\"m\",\"name\":\"Model\",\"to\":\"big\",\"by\":{\"name\":\"desk\"}"),
		NOTICE("changed", "\"what\":\"config_option\",\"value\":\"m\",\"by\":{\"name\":\"desk\"}"),
		NOTICE("changed", "\"what\":\"prompt_held\",\"value\":\"u-1\",\"by\":{\"name\":\"desk\"}"),
		NOTICE("changed", "\"what\":\"prompt_cancelled\",\"value\":\"u-1\",\"by\":{\"name\":\"desk\"}"),
		NOTICE("changed", "\"what\":\"prompt_cancelled\",\"value\":\"u-1\""),
		NOTICE("changed", "\"what\":\"hooks_applied\",\"value\":true"),
		NOTICE("leftovers", "\"action\":\"kept\",\"count\":2,\"processes\":[{\"pid\":7,\"program\":\"sh\"},"
							"{\"pid\":8,\"program\":\"nginx\"}]"),
		NOTICE("leftovers", "\"action\":\"killed\",\"count\":1,\"processes\":[{\"pid\":7,\"program\":\"sh\"}]"),
		NOTICE("owner_gone", "\"name\":\"a guard\",\"uid\":0,\"guards\":true,\"servers\":[]"),
		NOTICE("owner_gone", "\"name\":\"tools\",\"uid\":0,\"guards\":false,\"servers\":[\"s\"]"),
		NOTICE("owner_gone", "\"name\":null,\"uid\":0,\"guards\":false,\"servers\":[\"s\"]"),
		NOTICE("owner_back", "\"name\":\"tools\",\"uid\":0,\"guards\":false,\"servers\":[\"s\"]"),
		NOTICE("lag", "\"client\":{\"name\":\"phone\"},\"bytes\":9,\"ms\":4"),
		NOTICE("settled", "\"tool_name\":\"Bash\",\"decision\":\"allow\",\"by\":{\"name\":\"phone\","
						  "\"program\":\"python3\"},\"permissions\":[\"x\",\"y\"]"),
		NOTICE("settled", "\"tool_name\":\"Bash\",\"decision\":\"timeout\",\"by\":{\"name\":\"plenumd\"}"),
		NOTICE("settled", "\"decision\":\"cancel\",\"by\":{\"name\":\"desk\"}"),
		NOTICE("error", "\"code\":\"busy\",\"error\":\"the agent does not read\""),
		NOTICE("later", "\"name\":\"n\""),
		NULL};
	_cleanup_free_ char *out = shown_by(&speech_claude, show_line, lines);
	ck_assert_str_eq(out, "-- desk joined\n"
						  "-- \"x left: bye, y\" left: end of input\n"
						  "-- socat left\n"
						  "-- the agent ended with status 1\n"
						  "-- desk set model to opus\n"
						  "-- desk set flag settings to a, b\n"
						  "-- desk changed skills\n"
						  "-- permission mode is now plan\n"
						  "-- desk set Model: big\n"
						  "-- desk set the option m\n"
						  "-- a prompt of desk waits for its turn\n"
						  "-- desk cancelled a prompt that waited\n"
						  "-- a prompt that waited was cancelled\n"
						  "-- hooks that had to wait are active now\n"
						  "-- detached processes go on: sh (pid 7), nginx (pid 8)\n"
						  "-- detached processes were killed: sh (pid 7)\n"
						  "-- \"a guard\", which guards tools with hooks, is away\n"
						  "-- tools, which serves hooks or tools of this session, is away\n"
						  "-- a client that served hooks or tools of this session has left\n"
						  "-- tools serves its hooks and tools again\n"
						  "-- phone does not read fast enough: 9 bytes behind\n"
						  "-- Bash: allowed by phone (python3), and remembered: x; y\n"
						  "-- Bash: not answered in time\n"
						  "-- the request: cancelled by desk\n"
						  "-- the agent does not read\n"
						  "[later] name=n\n");
}
END_TEST

START_TEST(a_report_has_no_underscores) {
	const char *const lines[] = {"{\"type\":\"system\",\"subtype\":\"task_started\",\"description\":\"a_b\"}",
								 "{\"type\":\"system\",\"subtype\":\"permission_denied\",\"message\":\"by a rule\"}",
								 NULL};
	_cleanup_free_ char *out = shown_by(&speech_claude, show_line, lines);
	ck_assert_str_eq(out, "! task started: a_b\n! permission denied: by a rule\n");
}
END_TEST

START_TEST(a_subagent_is_not_printed) {
	const char *const lines[] = {"{\"type\":\"assistant\",\"parent_tool_use_id\":\"t\",\"message\":{\"content\":[{"
								 "\"type\":\"text\",\"text\":\"x\"}]}}",
								 WHOLE("m2", "\\u001b[1m"), NULL};
	_cleanup_free_ char *out = shown(lines);
	ck_assert_str_eq(out, "\\x1b[1m\n");
}
END_TEST

START_TEST(a_tool_is_shown_by_what_it_does) {
	static const char name[] = "\"Bash\"", input[] = "{\"description\":\"x\",\"command\":\"rm\\n-r \\u001b\"}",
					  other[] = "{\"a\":1}";
	_cleanup_free_ char *known = show_tool((struct span){name, 6}, (struct span){input, sizeof input - 1}, 80);
	_cleanup_free_ char *unknown = show_tool((struct span){name, 6}, (struct span){other, sizeof other - 1}, 80);
	ck_assert_str_eq(known, "Bash: rm -r \\x1b");
	ck_assert_str_eq(unknown, "Bash: {\"a\":1}");
}
END_TEST

/* --- The Agent Client Protocol ------------------------------------------------------------------------------------ */

static bool ends_turn(struct speech_turn *t, const char *text) {
	struct incoming in;
	speech_read(&speech_acp, text, strlen(text), &in);
	return speech_acp.ends(t, &in);
}

#define UPDATE(members)                                                                                                \
	"{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"c\",\"update\":{" members "}}}"
#define CHUNK(kind, text) UPDATE("\"sessionUpdate\":\"" kind "\",\"content\":{\"type\":\"text\",\"text\":\"" text "\"}")
#define EVENT(members) "{\"jsonrpc\":\"2.0\",\"method\":\"_plenum/event\",\"params\":{" members "}}"
#define PERMISSION                                                                                                     \
	"{\"jsonrpc\":\"2.0\",\"method\":\"session/request_permission\",\"params\":{\"options\":["                         \
	"{\"kind\":\"allow_always\",\"name\":\"Always\",\"optionId\":\"o1\"},"                                             \
	"{\"kind\":\"allow_once\",\"name\":\"Once\",\"optionId\":\"o2\"},"                                                 \
	"{\"kind\":\"reject_once\",\"name\":\"No\",\"optionId\":\"o3\"}],\"toolCall\":{\"kind\":\"execute\","              \
	"\"title\":\"rm x\",\"rawInput\":{\"command\":\"rm x\"}}},\"id\":7}"

START_TEST(an_acp_turn_is_shown) {
	const char *const lines[] = {
		CHUNK("user_message_chunk", "go"),
		CHUNK("agent_thought_chunk", "hm"),
		CHUNK("agent_message_chunk", "one "),
		CHUNK("agent_message_chunk", "two"),
		UPDATE("\"sessionUpdate\":\"tool_call\",\"kind\":\"execute\",\"title\":\"rm x\",\"status\":\"pending\""),
		PERMISSION,
		UPDATE("\"sessionUpdate\":\"tool_call_update\",\"status\":\"in_progress\""),
		UPDATE("\"sessionUpdate\":\"tool_call_update\",\"status\":\"failed\",\"content\":[{\"type\":\"content\","
			   "\"content\":{\"type\":\"text\",\"text\":\"no such file\"}}]"),
		UPDATE("\"sessionUpdate\":\"tool_call\",\"kind\":\"read\",\"title\":\"Read y\",\"status\":\"completed\","
			   "\"rawOutput\":\"y's text\""),
		UPDATE("\"sessionUpdate\":\"tool_call\",\"kind\":\"execute\",\"title\":\"Terminal\",\"status\":\"pending\","
			   "\"rawInput\":{}"),
		UPDATE("\"_meta\":{\"claudeCode\":{\"toolName\":\"Bash\"}},\"sessionUpdate\":\"tool_call_update\","
			   "\"title\":\"rm z\""),
		UPDATE("\"sessionUpdate\":\"tool_call_update\",\"status\":\"completed\",\"title\":\"rm z\",\"content\":[]"),
		EVENT("\"event\":\"turn_ended\",\"outcome\":\"success\",\"is_error\":false,\"ms\":1500,"
			  "\"tokens\":{\"input\":3,\"output\":4,\"cache_read\":null,\"cache_write\":null}"),
		"{\"jsonrpc\":\"2.0\",\"id\":\"u1\",\"result\":{\"stopReason\":\"end_turn\"}}",
		EVENT("\"event\":\"attached\",\"client\":{\"name\":\"desk\"}"),
		NULL};
	_cleanup_free_ char *out = shown_by(&speech_acp, show_line, lines);
	ck_assert_str_eq(out,
					 "> go\none two\n* execute: rm x\n? execute: rm x\n  = error: no such file\n* read: Read y\n"
					 "  = y's text\n* Bash: rm z\n  = rm z\n-- success, 1.5 s, tokens: 3 in, 4 out\n-- desk joined\n");
	_cleanup_free_ char *answer = shown_by(&speech_acp, show_answer, lines);
	ck_assert_str_eq(answer, "one two\n");
}
END_TEST

START_TEST(the_reply_to_an_acp_prompt_ends_its_turn) {
	struct speech_turn t = {.uuid = "u1", .client = 4};
	struct speech_fact end;
	struct incoming in;
	static const char *const ends[][3] = {
		{"\"result\":{\"stopReason\":\"end_turn\"}", "\"success\"", NULL},
		{"\"result\":{\"stopReason\":\"refusal\"}", "\"refusal\"", NULL},
		{"\"error\":{\"code\":-32603,\"message\":\"no key\"}", NULL, "\"no key\""},
	};
	ck_assert(!ends_turn(&t, EVENT("\"event\":\"turn_started\",\"clients\":[{\"client\":3}]")) && !t.ours);
	ck_assert(!ends_turn(&t, EVENT("\"event\":\"turn_started\",\"clients\":[{\"client\":4}]")) && !t.ours);
	ck_assert(!ends_turn(&t, EVENT("\"event\":\"turn_ended\",\"clients\":[{\"client\":3}]")) && t.ours);
	ck_assert(!ends_turn(&t, "{\"jsonrpc\":\"2.0\",\"id\":\"u2\",\"result\":{\"stopReason\":\"end_turn\"}}") && t.ours);
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		_cleanup_free_ char *line = str_printf("{\"jsonrpc\":\"2.0\",\"id\":\"u1\",%s}", ends[i][0]);
		ck_assert(ends_turn(&t, line) && !t.ours);
		speech_read(&speech_acp, line, strlen(line), &in);
		ck_assert(speech_find(&in, SPEECH_END, &end) && end.bad == (i > 0));
		ck_assert(span_same(end.name, span_of(ends[i][1])) && span_same(end.text, span_of(ends[i][2])));
	}
}
END_TEST

static void answers_in(const struct speech *speech, const char *line, struct speech_decision d, const char *want) {
	struct buf b = BUF_INIT(4096);
	struct speech_ask ask = {0};
	struct incoming in;
	speech_read(speech, line, strlen(line), &in);
	speech->read_ask(&in, &ask);
	bool put = speech->put_answer(&b, &ask, &d);
	ck_assert(put == (want != NULL));
	if (want) ck_assert_str_eq(b.data, want);
	buf_free(&b);
}

static void answers(const char *line, struct speech_decision d, const char *want) {
	answers_in(&speech_acp, line, d, want);
}

#define SELECTED(id, option)                                                                                           \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":{\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"" option      \
	"\"}}}"
#define NO_OPTIONS                                                                                                     \
	"{\"jsonrpc\":\"2.0\",\"id\":\"7\",\"method\":\"session/request_permission\",\"params\":{\"options\":[]}}"

START_TEST(an_acp_permission_is_answered_by_the_kind_of_its_option) {
	const struct speech_decision yes = {.allow = true}, always = {.allow = true, .always = true}, no = {0};
	answers(PERMISSION, yes, SELECTED("7", "o2"));
	answers(PERMISSION, always, SELECTED("7", "o1"));
	answers(PERMISSION, no, SELECTED("7", "o3"));
	answers(NO_OPTIONS, yes, NULL);
	answers(NO_OPTIONS, no, "{\"jsonrpc\":\"2.0\",\"id\":\"7\",\"result\":{\"outcome\":{\"outcome\":\"cancelled\"}}}");
	answers("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"elicitation/create\",\"params\":{\"message\":\"m\"}}", no,
			"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"action\":\"decline\"}}");
	answers("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"fs/read_text_file\",\"params\":{}}", yes, NULL);
}
END_TEST

/* --- codex app-server --------------------------------------------------------------------------------------------- */

#define NOTE(method, members)                                                                                          \
	"{\"method\":\"" method "\",\"params\":{\"threadId\":\"t\"," members "},\"emittedAtMs\":1}"
#define ITEM(step, members) NOTE("item/" step, "\"item\":{" members "}")
#define TURN(step, id, members) NOTE("turn/" step, "\"turn\":{\"id\":\"" id "\"" members "}")

START_TEST(a_codex_turn_is_shown) {
	const char *const lines[] = {
		TURN("started", "1", ""),
		ITEM("started", "\"type\":\"userMessage\",\"content\":[{\"type\":\"text\",\"text\":\"go\"}]"),
		ITEM("started", "\"type\":\"agentMessage\",\"text\":\"\""),
		NOTE("item/agentMessage/delta", "\"delta\":\"one \""),
		NOTE("item/agentMessage/delta", "\"delta\":\"two\""),
		ITEM("completed", "\"type\":\"agentMessage\",\"text\":\"one two\""),
		ITEM("started", "\"type\":\"commandExecution\",\"command\":\"rm x\""),
		ITEM("completed", "\"type\":\"commandExecution\",\"status\":\"failed\",\"aggregatedOutput\":\"no such file\""),
		ITEM("started", "\"type\":\"fileChange\",\"changes\":[{\"path\":\"/a\"}]"),
		ITEM("completed", "\"type\":\"fileChange\",\"status\":\"completed\""),
		TURN("completed", "1", ",\"status\":\"completed\",\"error\":null,\"durationMs\":1500"),
		TURN("completed", "2", ",\"status\":\"failed\",\"error\":{\"message\":\"no key\"}"),
		NULL};
	_cleanup_free_ char *out = shown_by(&speech_codex, show_line, lines);
	ck_assert_str_eq(out, "> go\none two\n* commandExecution: rm x\n  = error: no such file\n* fileChange: /a\n"
						  "  = completed\n-- success, 1.5 s\n-- failed (failed): no key\n");
}
END_TEST

START_TEST(a_codex_prompt_gets_the_name_of_its_turn) {
	static const char *const lines[] = {
		"{\"id\":\"u1\",\"result\":{\"turn\":{\"id\":\"7\"}}}", TURN("started", "7", ""), TURN("completed", "6", ""),
		TURN("completed", "7", ""), "{\"error\":{\"code\":-32600,\"message\":\"m\"},\"id\":\"u1\"}"};
	static const bool ours[] = {true, true, true, false, false}, end[] = {false, false, false, true, true};
	struct speech_turn t = {.uuid = "u1"};
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		struct incoming in;
		speech_read(&speech_codex, lines[i], strlen(lines[i]), &in);
		ck_assert_msg(speech_codex.ends(&t, &in) == end[i] && t.ours == ours[i], "line %zu", i);
		ck_assert_str_eq(t.running, i == 1 || i == 2 ? "7" : "");
	}
}
END_TEST

#define APPROVAL(method, members) "{\"id\":3,\"method\":\"item/" method "/requestApproval\",\"params\":{" members "}}"
#define DECISIONS(list) APPROVAL("commandExecution", "\"command\":\"rm x\",\"availableDecisions\":[" list "]")
#define DECIDED(decision) "{\"id\":3,\"result\":{\"decision\":" decision "}}"

START_TEST(a_codex_approval_is_answered_by_its_decisions) {
	const struct speech_decision yes = {.allow = true}, always = {.allow = true, .always = true}, no = {0},
								 end = {.interrupt = true};
	const char *all = APPROVAL("fileChange", "\"reason\":null"), *none = DECISIONS("\"cancel\"");
	const char *some = DECISIONS("\"accept\",{\"acceptWithExecpolicyAmendment\":{\"a\":[1]}},\"cancel\"");
	const char *rights = APPROVAL("permissions", "\"permissions\":{\"network\":{\"enabled\":true}}");
	answers_in(&speech_codex, all, yes, DECIDED("\"accept\""));
	answers_in(&speech_codex, all, always, DECIDED("\"acceptForSession\""));
	answers_in(&speech_codex, all, no, DECIDED("\"decline\""));
	answers_in(&speech_codex, all, end, DECIDED("\"cancel\""));
	answers_in(&speech_codex, some, always, DECIDED("{\"acceptWithExecpolicyAmendment\":{\"a\":[1]}}"));
	answers_in(&speech_codex, none, yes, NULL);
	answers_in(&speech_codex, none, always, NULL);
	answers_in(&speech_codex, rights, yes, "{\"id\":3,\"result\":{\"permissions\":{\"network\":{\"enabled\":true}}}}");
	answers_in(&speech_codex, rights, no, "{\"id\":3,\"result\":{\"permissions\":{}}}");
}
END_TEST

START_TEST(an_old_codex_approval_has_other_words) {
	const struct speech_decision yes = {.allow = true}, always = {.allow = true, .always = true}, no = {0},
								 end = {.interrupt = true};
	static const char command[] = "{\"id\":3,\"method\":\"execCommandApproval\",\"params\":{\"conversationId\":\"c\","
								  "\"command\":[\"ls\"]}}";
	static const char patch[] = "{\"id\":3,\"method\":\"applyPatchApproval\",\"params\":{\"conversationId\":\"c\","
								"\"fileChanges\":{\"/x\":{}}}}";
	answers_in(&speech_codex, command, yes, DECIDED("\"approved\""));
	answers_in(&speech_codex, patch, always, DECIDED("\"approved_for_session\""));
	answers_in(&speech_codex, patch, no, DECIDED("{\"denied\":{\"rejection\":\"the user denied it\"}}"));
	answers_in(&speech_codex, command, end, DECIDED("\"abort\""));
}
END_TEST

RUN_TESTS("ctl", nothing_steers_the_terminal, a_name_is_no_member_of_a_notice, a_notice_is_a_sentence,
		  a_report_has_no_underscores, one_line_is_one_line, columns_are_as_wide_as_their_cells, a_table_fits_its_width,
		  a_table_cuts_its_widest_cells, what_always_remembers, sizes_and_ages, a_result_is_found_by_uuid,
		  a_merged_turn_is_ours_too, a_turn_of_a_crowd_is_ours_by_its_echo, an_old_cli_names_nobody,
		  a_turn_that_nobody_asked_for_is_not_ours, the_turn_of_another_prompt_is_not_printed,
		  streamed_text_is_printed_once, a_subagent_is_not_printed, a_tool_is_shown_by_what_it_does,
		  an_acp_turn_is_shown, the_reply_to_an_acp_prompt_ends_its_turn,
		  an_acp_permission_is_answered_by_the_kind_of_its_option, a_codex_turn_is_shown,
		  a_codex_prompt_gets_the_name_of_its_turn, a_codex_approval_is_answered_by_its_decisions,
		  an_old_codex_approval_has_other_words)
