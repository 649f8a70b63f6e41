/* SPDX-License-Identifier: MIT */
#include "dialect/jsonrpc.h"
#include "plenum/protocol.h"
#include "wire/notice.h"

#include "harness.h"

#include <stdio.h>
#include <string.h>

static struct chunk text(const char *line) {
	return (struct chunk){NULL, line, strlen(line)};
}

static bool is_text(struct span s, const char *want) {
	return want ? s.n == strlen(want) && memcmp(s.p, want, s.n) == 0 : s.p == NULL;
}

static struct envelope scanned(const char *line) {
	struct envelope e;
	REQUIRE(jsonrpc_scan(line, strlen(line), &e, "sessionId"), "%s", line);
	return e;
}

#define MEMBER(e, m, want) REQUIRE(is_text((e).m, want), #m " is %.*s", (int)(e).m.n, (e).m.p ? (e).m.p : "absent")

START_TEST(requests) {
	struct envelope e = scanned(
		" {\"params\":{\"x\":[1],\"sessionId\":\"s1\"},\"method\":\"session/prompt\",\"id\":\"0\"} ");
	MEMBER(e, type, "\"session/prompt\"");
	MEMBER(e, inner_subtype, "\"session/prompt\"");
	MEMBER(e, request_id, "\"0\"");
	MEMBER(e, request, "{\"x\":[1],\"sessionId\":\"s1\"}");
	MEMBER(e, session_id, "\"s1\"");
	MEMBER(e, inner_request_id, NULL);
	MEMBER(e, response, NULL);
	e = scanned("{\"jsonrpc\":\"2.0\",\"id\":-7,\"method\":\"a\",\"params\":[\"sessionId\"]}");
	MEMBER(e, request_id, "-7");
	MEMBER(e, request, NULL);
	MEMBER(e, session_id, NULL);
	e = scanned("{\"id\":null,\"method\":\"a\"}");
	MEMBER(e, request_id, "null");
	MEMBER(e, request, NULL);
}
END_TEST

START_TEST(notifications) {
	struct envelope e = scanned(
		"{\"method\":\"session/update\",\"params\":{\"sessionId\":\"s\",\"a\":{\"sessionId\":1}}}");
	MEMBER(e, type, "\"session/update\"");
	MEMBER(e, request_id, NULL);
	MEMBER(e, inner_subtype, NULL);
	MEMBER(e, session_id, "\"s\"");
	struct envelope other;
	const char *codex = "{\"method\":\"turn/started\",\"params\":{\"sessionId\":\"w\",\"threadId\":\"t\"}}";
	ck_assert(jsonrpc_scan(codex, strlen(codex), &other, "threadId"));
	MEMBER(other, session_id, "\"t\"");
}
END_TEST

START_TEST(answers) {
	const char *line = "{\"result\":{\"stopReason\":\"end_turn\"},\"id\":3}";
	struct envelope e = scanned(line);
	MEMBER(e, type, NULL);
	MEMBER(e, request_id, NULL);
	MEMBER(e, inner_request_id, "3");
	MEMBER(e, inner_subtype, "\"success\"");
	MEMBER(e, inner_response, "{\"stopReason\":\"end_turn\"}");
	MEMBER(e, response, line);
	MEMBER(e, is_error, NULL);
	e = scanned("{\"error\":{\"code\":-1,\"message\":\"m\"},\"id\":null}");
	MEMBER(e, inner_request_id, "null");
	MEMBER(e, inner_subtype, "\"error\"");
	MEMBER(e, inner_response, NULL);
	MEMBER(e, is_error, "{\"code\":-1,\"message\":\"m\"}");
	e = scanned("{\"id\":1}"); /* no answer */
	MEMBER(e, inner_request_id, NULL);
	MEMBER(e, response, NULL);
}
END_TEST

START_TEST(last_duplicate_counts) {
	struct envelope e = scanned(
		"{\"method\":\"a\",\"id\":1,\"params\":{\"sessionId\":\"x\",\"sessionId\":\"y\"},\"method\":\"b\","
		"\"id\":\"2\"}");
	MEMBER(e, type, "\"b\"");
	MEMBER(e, request_id, "\"2\"");
	MEMBER(e, session_id, "\"y\"");
	e = scanned("{\"method\":\"a\",\"params\":{\"sessionId\":\"x\"},\"params\":[]}");
	MEMBER(e, session_id, NULL);
	MEMBER(e, request, NULL);
	e = scanned("{\"method\":\"a\",\"params\":3,\"params\":{\"sessionId\":\"x\"}}");
	MEMBER(e, session_id, "\"x\"");
}
END_TEST

START_TEST(no_objects) {
	static const char *const bad[] = {"",
									  "[]",
									  "[{\"method\":\"a\"}]",
									  "{",
									  "{\"id\":}",
									  "{\"id\" 1}",
									  "{\"id\":1}{",
									  "{\"id\":1,}",
									  "{\"params\":{\"a\":1}",
									  "{\"params\":{\"a\"}}",
									  "\"{}\""};
	struct envelope e;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		REQUIRE(!jsonrpc_scan(bad[i], strlen(bad[i]), &e, "sessionId"), "%s", bad[i]);
}
END_TEST

START_TEST(verbs) {
	struct envelope e = scanned("{\"id\":1,\"method\":\"_plenum/attach\",\"params\":{}}");
	MEMBER(e, type, "\"_plenum/attach\"");
	MEMBER(e, inner_subtype, "\"" PLENUM_ATTACH "\"");
	e = scanned("{\"id\":1,\"method\":\"_plenum/clear_lost\"}");
	MEMBER(e, inner_subtype, "\"" PLENUM_CLEAR_LOST "\"");
	static const char *const others[] = {"\"_plenum/\"", "\"_plenum/attac\"", "\"_plenum/attachx\"",
										 "\"plenum_attach\"", "\"_plenum\""};
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		char line[100];
		snprintf(line, sizeof line, "{\"id\":1,\"method\":%s}", others[i]);
		e = scanned(line);
		MEMBER(e, inner_subtype, others[i]);
	}
	e = scanned("{\"method\":\"_plenum/attach\"}"); /* a notification is no verb */
	MEMBER(e, inner_subtype, NULL);
}
END_TEST

static bool hides(const char *line) {
	struct envelope e = scanned(line);
	return jsonrpc_hides_kind(text(line), &e);
}

START_TEST(hidden_kinds) {
	static const char *const hidden[] = {" {\"i\\u0064\":1,\"method\":\"a\"}\n", "{\"id\":1,\"r\\u0065sult\":{}}",
										 "{\"m\\u0065thod\":\"a\",\"id\":1}", "{\"\\u0065rror\":{},\"id\":1}"};
	static const char *const plain[] = {"{\"method\":\"a\",\"params\":{\"i\\u0064\":1}}",
										"{\"\\n\":1,\"method\":\"a\"}", "{\"method\":\"i\\u0064\"}", "{}"};
	for (size_t i = 0; i < ARRAY_SIZE(hidden); i++) REQUIRE(hides(hidden[i]), "%s", hidden[i]);
	for (size_t i = 0; i < ARRAY_SIZE(plain); i++) REQUIRE(!hides(plain[i]), "%s", plain[i]);
}
END_TEST

static void child_becomes(const char *line, const char *want) {
	struct envelope e = scanned(line);
	struct chunk c = e.reserved ? jsonrpc_frame.disown(text(line)) : chunk_ref(text(line));
	REQUIRE(is_text((struct span){c.data, c.len}, want), "%s: %.*s", line, (int)c.len, c.data);
	if (strcmp(line, want) == 0) ck_assert_ptr_eq(c.data, line); /* not even copied */
	chunk_drop(&c);
}

START_TEST(names_of_the_daemon) {
	child_becomes("{\"method\":\"_plenum/event\",\"params\":{\"event\":\"error\"}}",
				  "{\"method\":\"child__plenum/event\",\"params\":{\"event\":\"error\"}}");
	child_becomes("{\"plenum_seq\":1,\"method\":\"x\"}", "{\"child_plenum_seq\":1,\"method\":\"x\"}");
	child_becomes("{\"m\\u0065thod\":\"_Plenum\\/x\"}", "{\"m\\u0065thod\":\"child__Plenum\\/x\"}");
	child_becomes("{\"method\":\"_plenum/a\",\"method\":\"b\"}", "{\"method\":\"child__plenum/a\",\"method\":\"b\"}");
	child_becomes("{\"method\":\"_plenu/a\",\"params\":{\"method\":\"_plenum/a\",\"plenum_seq\":1}}",
				  "{\"method\":\"_plenu/a\",\"params\":{\"method\":\"_plenum/a\",\"plenum_seq\":1}}");
}
END_TEST

static void answer_becomes(const char *line, const char *want) {
	struct chunk c = jsonrpc_frame.disown_answer(text(line), false);
	REQUIRE(is_text((struct span){c.data, c.len}, want), "%s: %.*s", line, (int)c.len, c.data);
	if (strcmp(line, want) == 0) ck_assert_ptr_eq(c.data, line);
	chunk_drop(&c);
}

START_TEST(codes_of_the_daemon) {
	answer_becomes(
		"{\"error\":{\"code\":-1,\"data\":{\"code\":\"busy\",\"c\\u006fde\":\"b\\u0075sy\"}},\"id\":1}\n",
		"{\"error\":{\"code\":-1,\"data\":{\"child_code\":\"busy\",\"child_c\\u006fde\":\"b\\u0075sy\"}},\"id\":1}\n");
	static const char *const stay[] = {"{\"error\":{\"code\":-1,\"data\":{\"code\":\"ENOENT\"}},\"id\":1}\n",
									   "{\"error\":{\"data\":{\"code\":5,\"x\":{\"code\":\"busy\"}}},\"id\":1}",
									   "{\"error\":\"busy\",\"id\":1}",
									   "{\"result\":{\"data\":{\"code\":\"busy\"}},\"id\":1}"};
	for (size_t i = 0; i < ARRAY_SIZE(stay); i++) answer_becomes(stay[i], stay[i]);
}
END_TEST

static void put(struct buf *b, const char *want) {
	REQUIRE(b->data && strcmp(b->data, want) == 0, "%s", b->data ? b->data : "nothing");
	buf_free(b);
}

START_TEST(built_lines) {
	struct buf b = BUF_INIT(4096);
	jsonrpc_put_request(&b, JSONRPC_HEAD, "7", "session/new", "{\"cwd\":\"/\"}");
	put(&b, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"session/new\",\"params\":{\"cwd\":\"/\"}}\n");
	jsonrpc_put_notification(&b, JSONRPC_BARE_HEAD, "initialized", "{}");
	put(&b, "{\"method\":\"initialized\",\"params\":{}}\n");
	jsonrpc_put_success(&b, JSONRPC_HEAD, span_of("\"a\""), NULL);
	put(&b, "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{}}\n");
	jsonrpc_put_success(&b, JSONRPC_BARE_HEAD, span_of("0"), "{\"x\":{}}");
	ck_assert_str_eq(b.data + b.len - strlen(JSONRPC_SUCCESS_END), JSONRPC_SUCCESS_END);
	put(&b, "{\"id\":0,\"result\":{\"x\":{}}}\n");
	jsonrpc_put_error(&b, JSONRPC_HEAD, span_of("1"), PLENUM_E_BUSY, "wait \"now\"", ",\"state\":1");
	put(&b,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32000,\"message\":\"wait \\\"now\\\"\",\"data\":{\"code\":"
		"\"busy\",\"state\":1}}}\n");
	jsonrpc_put_error(&b, JSONRPC_BARE_HEAD, SPAN_NONE, PLENUM_E_BAD_LINE, "x", "");
	put(&b, "{\"id\":null,\"error\":{\"code\":-32700,\"message\":\"x\",\"data\":{\"code\":\"bad_line\"}}}\n");
}
END_TEST

START_TEST(numbers) {
	ck_assert_int_eq(jsonrpc_number(PLENUM_E_BAD_LINE), -32700);
	ck_assert_int_eq(jsonrpc_number(PLENUM_E_INVALID_REQUEST), -32600);
	ck_assert_int_eq(jsonrpc_number(PLENUM_E_UNKNOWN_METHOD), -32601);
	ck_assert_int_eq(jsonrpc_number(PLENUM_E_BAD_REQUEST), -32602);
	ck_assert_int_eq(jsonrpc_number(PLENUM_E_CANCELLED), -32800);
	ck_assert_int_eq(jsonrpc_number(PLENUM_E_NOT_ALLOWED), -32000);
}
END_TEST

START_TEST(notices) {
	struct buf b = NOTICE_INIT;
	notice_begin(&b, "lag", "s1");
	notice_number(&b, "lines", 3);
	struct chunk built = notice_end(&b);
	struct chunk c = jsonrpc_frame.put_notice(built), bare = jsonrpc_bare_frame.put_notice(built);
	static const char want[] = "{\"jsonrpc\":\"2.0\",\"method\":\"_plenum/"
							   "event\",\"params\":{\"event\":\"lag\",\"session\":\"s1\",\"lines\":3}}\n";
	REQUIRE(is_text((struct span){c.data, c.len}, want), "%.*s", (int)c.len, c.data);
	ck_assert(bare.len == c.len - strlen("\"jsonrpc\":\"2.0\",") && memcmp(bare.data, "{\"method\"", 9) == 0);
	struct envelope e;
	ck_assert(jsonrpc_scan(c.data, c.len - 1, &e, "sessionId") && e.reserved);
	chunk_drop(&bare);
	chunk_drop(&c);
	chunk_drop(&built);
}
END_TEST

RUN_TESTS("jsonrpc", requests, notifications, answers, last_duplicate_counts, no_objects, verbs, hidden_kinds,
		  names_of_the_daemon, codes_of_the_daemon, built_lines, numbers, notices)
