/* SPDX-License-Identifier: MIT */
#include "dialect/jsonrpc_check.h"
#include "plenum/protocol.h"
#include "wire/limits.h"

#include "base/buf.h"
#include "harness.h"

#include <stdio.h>
#include <string.h>

static const char *read_params(struct message *m) {
	if (m->kind == MESSAGE_REQUEST && span_equals(m->env.type, "bad")) return "`x` is missing";
	return NULL;
}

static const struct jsonrpc_rules strict = {
	.versioned = true, .conversation = "sessionId", .prompt = "prompt", .read = read_params};
static const struct jsonrpc_rules bare = {.conversation = "threadId", .prompt = "input"};

struct verdict {
	bool ok;
	struct message m;
	struct span id;
	struct error error;
};

/* Check at once, and in pieces of every size up to 9 bytes: the same. */
static struct verdict check(const struct jsonrpc_rules *rules, const char *line, size_t n) {
	struct verdict v = {0};
	struct chunk rewritten;
	v.ok = jsonrpc_check(rules, line, n, &v.m, &rewritten, &v.error, &v.id);
	ck_assert(!rewritten.data);
	for (size_t bytes = 1; bytes < 10; bytes++) {
		struct message_check *k = jsonrpc_check_new(rules, line, n);
		struct message m;
		struct span id;
		const char *error = "";
		REQUIRE(k, "no memory");
		while (!jsonrpc_check_step(k, bytes)) {}
		bool ok = jsonrpc_check_result(k, &m, &rewritten, &error, &id);
		REQUIRE(ok == v.ok && strcmp(error, v.error.text) == 0, "%s: in pieces %s, at once %s", line, error,
				v.error.text);
		ck_assert(span_same(id, v.id) && m.kind == v.m.kind && m.code == v.m.code);
		ck_assert(span_same(m.env.type, v.m.env.type) && span_same(m.content, v.m.content));
		jsonrpc_check_free(k);
	}
	return v;
}

static bool is_text(struct span s, const char *want) {
	return want ? s.n == strlen(want) && memcmp(s.p, want, s.n) == 0 : s.p == NULL;
}

static struct verdict passes(const char *line, enum message_kind kind, const char *id) {
	struct verdict v = check(&strict, line, strlen(line));
	REQUIRE(v.ok, "%s: %s", line, v.error.text);
	REQUIRE(v.m.kind == kind && is_text(v.id, id), "%s: kind %d, id %.*s", line, (int)v.m.kind, (int)v.id.n, v.id.p);
	return v;
}

static void fails(const struct jsonrpc_rules *rules, const char *line, const char *code, const char *id,
				  const char *word) {
	struct verdict v = check(rules, line, strlen(line));
	REQUIRE(!v.ok, "%s: passes", line);
	const char *got = v.m.code ? v.m.code : "none";
	REQUIRE(strcmp(got, code) == 0 && is_text(v.id, id), "%s: %s, id %.*s", line, got, (int)v.id.n, v.id.p);
	REQUIRE(!id || v.m.kind == MESSAGE_REQUEST, "%s: no request", line);
	REQUIRE(strstr(v.error.text, word), "%s: %s", line, v.error.text);
}

#define V "\"jsonrpc\":\"2.0\","

START_TEST(good_lines) {
	struct verdict v = passes("{" V "\"method\":\"session/prompt\",\"params\":{\"prompt\":[{\"type\":\"text\"}],"
							  "\"sessionId\":\"s\"},\"id\":\"0\"}",
							  MESSAGE_REQUEST, "\"0\"");
	ck_assert(is_text(v.m.env.session_id, "\"s\"") && is_text(v.m.content, "[{\"type\":\"text\"}]"));
	passes(" {" V "\"id\":9223372036854775807,\"method\":\"x\"} ", MESSAGE_REQUEST, "9223372036854775807");
	passes("{" V "\"id\":-0,\"method\":\"x\",\"params\":{}}", MESSAGE_REQUEST, "-0");
	v = passes("{" V "\"method\":\"session/cancel\",\"params\":{\"sessionId\":\"\\ud800\"}}", MESSAGE_OTHER, NULL);
	ck_assert(is_text(v.m.env.session_id, "\"\\ud800\"") && !v.m.env.inner_subtype.p);
	v = passes("{" V "\"id\":7,\"result\":{\"outcome\":{\"outcome\":\"cancelled\"}}} ", MESSAGE_ANSWER, NULL);
	ck_assert(is_text(v.m.env.inner_request_id, "7") && v.m.env.response.p[v.m.env.response.n - 1] == '}');
	v = passes("{" V "\"error\":{\"code\":-1,\"message\":\"\"},\"id\":null}", MESSAGE_ANSWER, NULL);
	ck_assert(is_text(v.m.env.inner_request_id, "null") && v.m.env.is_error.p);
	v = passes("{" V "\"id\":1,\"method\":\"_plenum/list\"}", MESSAGE_REQUEST, "1");
	ck_assert(is_text(v.m.env.inner_subtype, "\"" PLENUM_LIST "\"") && is_text(v.m.env.request, "{}"));
	const char *codex = "{\"id\":0,\"method\":\"turn/start\",\"params\":{\"threadId\":\"t\",\"input\":[]}}";
	v = check(&bare, codex, strlen(codex));
	ck_assert(v.ok && is_text(v.m.env.session_id, "\"t\"") && is_text(v.m.content, "[]"));
	codex = "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"x\"}";
	ck_assert(check(&bare, codex, strlen(codex)).ok);
}
END_TEST

START_TEST(bad_json) {
	fails(&strict, "{" V "\"id\":1,\"method\":\"x\",}", PLENUM_E_BAD_LINE, NULL, "comma");
	fails(&strict, "{" V "\"id\":3,\"method\":\"x\",\"params\":{\"a\":\"\xff\"}}", PLENUM_E_BAD_LINE, "3", "UTF-8");
	fails(&strict, "{" V "\"id\":\"\xff\",\"method\":\"x\"}", PLENUM_E_BAD_LINE, NULL, "UTF-8");
	fails(&strict, "{" V "\"id\":1,\"method\":\"x\"", PLENUM_E_BAD_LINE, NULL, "ends in the middle");
	fails(&strict, "hello", PLENUM_E_BAD_LINE, NULL, "not JSON");
	fails(&strict, "{" V "\"id\":1,\"method\":\"x\"}{}", PLENUM_E_BAD_LINE, NULL, "something after");
}
END_TEST

START_TEST(bad_frames) {
	static const char *const code = PLENUM_E_INVALID_REQUEST;
	fails(&strict, "[{" V "\"id\":1,\"method\":\"x\"}]", code, NULL, "batch");
	fails(&strict, "[]", code, NULL, "batch");
	fails(&strict, "7", code, NULL, "no object");
	fails(&strict, "{\"id\":1,\"method\":\"x\"}", code, "1", "\"jsonrpc\":\"2.0\"");
	fails(&strict, "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"x\"}", code, "1", "\"jsonrpc\":\"2.0\"");
	fails(&strict, "{" V "\"id\":null,\"method\":\"x\"}", code, NULL, "null");
	static const char *const ids[] = {"1.5", "1e3", "9223372036854775808", "12345678901234567890", "true", "[1]", "{}"};
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		char line[100];
		snprintf(line, sizeof line, "{%s\"id\":%s,\"method\":\"x\"}", V, ids[i]);
		fails(&strict, line, code, NULL, "64 bits");
	}
	fails(&strict, "{" V "\"id\":1,\"method\":7}", code, "1", "`method`");
	fails(&strict, "{" V "\"id\":1,\"method\":\"\"}", code, "1", "`method`");
	fails(&strict, "{" V "\"id\":1,\"method\":\"a\\u0062\"}", code, "1", "`method`");
	fails(&strict, "{" V "\"id\":1,\"method\":\"x\",\"result\":1}", code, "1", "or else");
	fails(&strict, "{" V "\"id\":1,\"method\":\"x\",\"params\":[]}", PLENUM_E_BAD_REQUEST, "1", "`params`");
	fails(&strict, "{" V "\"id\":1,\"method\":\"bad\"}", PLENUM_E_BAD_REQUEST, "1", "`x` is missing");
	fails(&strict, "{" V "\"id\":1}", code, NULL, "no JSON-RPC");
	fails(&strict, "{" V "\"id\":1,\"result\":1,\"error\":{}}", code, NULL, "not both");
	fails(&strict, "{" V "\"id\":1,\"error\":\"x\"}", code, NULL, "`error`");
	fails(&strict, "{" V "\"result\":1}", code, NULL, "`id`");
	fails(&bare, "{\"type\":\"user\"}", code, NULL, "no JSON-RPC");
}
END_TEST

START_TEST(methods_of_the_daemon) {
	fails(&strict, "{" V "\"id\":1,\"method\":\"_plenum/nothing\"}", PLENUM_E_UNKNOWN_METHOD, "1", "no such method");
	fails(&strict, "{" V "\"id\":1,\"method\":\"_Plenum/list\"}", PLENUM_E_UNKNOWN_METHOD, "1", "no such method");
	fails(&strict, "{" V "\"method\":\"_plenum/list\"}", PLENUM_E_INVALID_REQUEST, NULL, "needs an `id`");
}
END_TEST

START_TEST(keys) {
	static const char *const code = PLENUM_E_INVALID_REQUEST;
	fails(&strict, "{" V "\"id\":1,\"method\":\"x\",\"id\":2}", code, "2", "twice");
	fails(&strict, "{" V "\"id\":1,\"method\":\"x\",\"params\":{\"sessionId\":\"a\",\"sessionId\":\"b\"}}", code, "1",
		  "twice");
	fails(&strict, "{" V "\"id\":1,\"m\\u0065thod\":\"x\"}", code, NULL, "escapes");
	fails(&strict, "{" V "\"id\":1,\"method\":\"x\",\"params\":{\"s\\u0065ssionId\":\"a\"}}", code, "1", "escapes");
	fails(&strict, "{" V "\"id\":1,\"result\":{\"outcome\":{\"option\\u0049d\":\"a\"}}}", code, NULL, "escapes");
	passes("{" V "\"id\":1,\"method\":\"x\",\"params\":{\"a\":{\"b\":{\"\\u0063\":1}},\"\\n\":1,\"a\":2}}",
		   MESSAGE_REQUEST, "1");
}
END_TEST

START_TEST(too_many_keys) {
	struct buf b = BUF_INIT(1 << 20);
	buf_puts(&b, "{" V "\"id\":1,\"method\":\"x\",\"params\":{\"a0\":0");
	for (size_t i = 1; i < LIMITS_MEMBERS; i++) buf_printf(&b, ",\"a%zu\":0", i);
	size_t n = b.len;
	buf_puts(&b, "}}");
	struct message m;
	struct chunk rewritten;
	struct span id;
	struct error error;
	ck_assert(jsonrpc_check(&strict, b.data, b.len, &m, &rewritten, &error, &id));
	b.len = n;
	buf_puts(&b, ",\"last\":0}}");
	ck_assert(!jsonrpc_check(&strict, b.data, b.len, &m, &rewritten, &error, &id));
	ck_assert_str_eq(m.code, PLENUM_E_TOO_MANY);
	ck_assert(is_text(id, "1"));
	buf_free(&b);
}
END_TEST

RUN_TESTS("jsonrpc_check", good_lines, bad_json, bad_frames, methods_of_the_daemon, keys, too_many_keys)
