/* SPDX-License-Identifier: MIT
 *
 * The check of clients' lines. The table of JSON texts has the kinds of the public parser test vectors (y: must be
 * accepted, n: must be refused, i: free; our choice is given here).
 */
#include "dialect/claude/message.h"
#include "wire/valid.h"

#include "generate.h"

#include <string.h>

/* A copy of exactly n bytes, so that a sanitizer detects a read past the end. */
static char *exact(const char *text, size_t n) {
	char *copy = malloc(n ? n : 1);
	REQUIRE(copy, "no memory");
	memcpy(copy, text, n);
	return copy;
}

static bool valid(const char *text, size_t n) {
	const char *error = NULL;
	size_t at = 0;
	_cleanup_free_ char *copy = exact(text, n);
	bool ok = valid_json(copy, n, &error, &at);
	REQUIRE(ok || (error && *error && at <= n), "no reason for refusing %.*s", (int)n, text);
	return ok;
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

#define TEXT(s) s, sizeof(s) - 1

static const struct json_case {
	const char *name, *text;
	size_t n;
	bool good;
} json_cases[] = {
	/* y: structure */
	{"y empty object", TEXT("{}"), true},
	{"y empty array", TEXT("[]"), true},
	{"y blanks all around", TEXT(" \t\r\n[ \t\r\n1 \t\r\n, 2 ] \t"), true},
	{"y object with blanks", TEXT("{ \"a\" : 1 , \"b\" : 2 }"), true},
	{"y nested", TEXT("[[[{\"a\":[{}]}]],{}]"), true},
	{"y several nulls", TEXT("[1,null,null,2]"), true},
	{"y duplicate key", TEXT("{\"a\":1,\"a\":2}"), true},
	{"y empty key", TEXT("{\"\":0}"), true},
	{"y key with escaped NUL", TEXT("{\"a\\u0000b\":1}"), true},
	{"y lone string", TEXT("\"x\""), true},
	{"y lone true", TEXT("true"), true},
	{"y lone false", TEXT("false"), true},
	{"y lone null", TEXT("null"), true},
	{"y lone number", TEXT("42"), true},
	{"y lone negative real", TEXT("-0.1"), true},
	{"y empty string", TEXT("\"\""), true},
	/* y: numbers */
	{"y zero", TEXT("[0]"), true},
	{"y minus zero", TEXT("[-0]"), true},
	{"y exponent", TEXT("[1e5,1E5,1e+5,1E-5,0e1,0E+0]"), true},
	{"y real exponent", TEXT("[123.456e78,1.5e-3]"), true},
	{"y tiny", TEXT("[-0.000000000000000000000000000000000000000000000000000000000000000000000000001]"), true},
	{"y many digits", TEXT("[123456789012345678901234567890.123456789012345678901234567890]"), true},
	/* y: strings */
	{"y simple escapes", TEXT("[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"]"), true},
	{"y unicode escapes", TEXT("[\"\\u0041\\u00e9\\u20aC\\uFFFF\"]"), true},
	{"y surrogate pair", TEXT("[\"\\ud83d\\ude39\"]"), true},
	{"y escaped NUL", TEXT("[\"\\u0000\"]"), true},
	{"y escaped control", TEXT("[\"\\u0012\"]"), true},
	{"y DEL", TEXT("[\"\x7f\"]"), true},
	{"y two bytes", TEXT("[\"\xc2\x80\xdf\xbf\"]"), true},
	{"y three bytes", TEXT("[\"\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\"]"), true},
	{"y four bytes", TEXT("[\"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\"]"), true},
	{"y line separators", TEXT("[\"\xe2\x80\xa8\xe2\x80\xa9\xc2\x85\"]"), true},
	{"y BOM inside a string", TEXT("[\"\xef\xbb\xbf\"]"), true},
	{"y noncharacter", TEXT("[\"\xef\xbf\xbe\\uFDD0\"]"), true},
	{"y comment inside a string", TEXT("[\"a/*b*/c//d\"]"), true},
	{"y backslash before the end", TEXT("[\"\\\\\"]"), true},
	{"y escaped u, no escape", TEXT("[\"\\\\u0000\"]"), true},
	/* i: our choice where the RFC has none */
	{"i real overflow", TEXT("[1e400,-1e+9999]"), true},
	{"i real underflow", TEXT("[123e-10000000]"), true},
	{"i huge exponent", TEXT("[0.4e00669999999999999999999999999999999999999999999999999999999999999999]"), true},
	{"i integer over 64 bits", TEXT("[18446744073709551616,-123123123123123123123123123123]"), true},
	{"i lone high surrogate", TEXT("[\"\\uD800\"]"), true},
	{"i lone low surrogate", TEXT("[\"\\uDFAA\"]"), true},
	{"i high surrogate, then none", TEXT("[\"\\uD888\\u1234\"]"), true},
	{"i high surrogate, then text", TEXT("[\"\\uD800abc\"]"), true},
	{"i high surrogate, then escape", TEXT("[\"\\uD800\\n\"]"), true},
	{"i surrogates in the wrong order", TEXT("[\"\\uDd1e\\uD834\"]"), true},
	{"i byte order mark", TEXT("\xef\xbb\xbf{}"), false},
	{"i UTF-16 with mark", TEXT("\xff\xfe[\0\"\0\"\0]\0"), false},
	{"i UTF-16 without mark", TEXT("[\0\"\0\"\0]\0"), false},
	{"i invalid UTF-8", TEXT("[\"\xff\"]"), false},
	{"i lone continuation", TEXT("[\"\x80\"]"), false},
	{"i overlong two", TEXT("[\"\xc0\xaf\"]"), false},
	{"i overlong three", TEXT("[\"\xe0\x80\xaf\"]"), false},
	{"i overlong four", TEXT("[\"\xf0\x80\x80\xaf\"]"), false},
	{"i encoded surrogate", TEXT("[\"\xed\xa0\x80\"]"), false},
	{"i over U+10FFFF", TEXT("[\"\xf4\x90\x80\x80\"]"), false},
	{"i five bytes", TEXT("[\"\xf8\x88\x80\x80\x80\"]"), false},
	{"i truncated UTF-8", TEXT("[\"\xe0\xff\"]"), false},
	{"i UTF-8 cut by the quote", TEXT("[\"\xe2\x82\"]"), false},
	{"i UTF-8 cut by the end", TEXT("[\"\xe2\x82"), false},
	/* n: structure */
	{"n nothing", TEXT(""), false},
	{"n blanks only", TEXT(" \t "), false},
	{"n open array", TEXT("["), false},
	{"n open object", TEXT("{"), false},
	{"n close only", TEXT("]"), false},
	{"n wrong close", TEXT("[}"), false},
	{"n wrong close of object", TEXT("{\"a\":1]"), false},
	{"n mixed close", TEXT("[{]}"), false},
	{"n unclosed array", TEXT("[1"), false},
	{"n unclosed array, comma", TEXT("[1,"), false},
	{"n unclosed nested", TEXT("[[1]"), false},
	{"n extra close", TEXT("[1]]"), false},
	{"n trailing comma", TEXT("[1,]"), false},
	{"n leading comma", TEXT("[,1]"), false},
	{"n double comma", TEXT("[1,,2]"), false},
	{"n comma only", TEXT("[,]"), false},
	{"n no comma", TEXT("[1 2]"), false},
	{"n no comma, strings", TEXT("[\"a\" \"b\"]"), false},
	{"n colon in array", TEXT("[\"a\":1]"), false},
	{"n star", TEXT("[*]"), false},
	{"n object trailing comma", TEXT("{\"a\":1,}"), false},
	{"n object trailing commas", TEXT("{\"a\":1,,,}"), false},
	{"n object leading comma", TEXT("{,\"a\":1}"), false},
	{"n object no colon", TEXT("{\"a\" 1}"), false},
	{"n object double colon", TEXT("{\"a\"::1}"), false},
	{"n object no value", TEXT("{\"a\":}"), false},
	{"n object key only", TEXT("{\"a\"}"), false},
	{"n object key cut", TEXT("{\"a"), false},
	{"n object cut behind key", TEXT("{\"a\""), false},
	{"n object cut behind colon", TEXT("{\"a\":"), false},
	{"n object cut behind value", TEXT("{\"a\":1"), false},
	{"n bare key", TEXT("{a:1}"), false},
	{"n number key", TEXT("{1:1}"), false},
	{"n null key", TEXT("{null:1}"), false},
	{"n array key", TEXT("{[]:1}"), false},
	{"n single quotes", TEXT("{'a':1}"), false},
	{"n value in single quotes", TEXT("{\"a\":'b'}"), false},
	{"n two values", TEXT("{} {}"), false},
	{"n two objects", TEXT("{}{}"), false},
	{"n trailing garbage", TEXT("{}x"), false},
	{"n trailing comment", TEXT("{}/**/"), false},
	{"n line comment", TEXT("{}//"), false},
	{"n comment inside", TEXT("[1/*x*/]"), false},
	{"n trailing #", TEXT("{}#{}"), false},
	{"n raw NUL behind", TEXT("{}\0"), false},
	{"n raw NUL before", TEXT("\0{}"), false},
	{"n raw NUL between", TEXT("[1,\0 2]"), false},
	{"n form feed", TEXT("[\x0c]"), false},
	{"n vertical tab", TEXT("[\x0b 1]"), false},
	{"n no-break space", TEXT("[\xc2\xa0 1]"), false},
	{"n word joiner", TEXT("[\xe2\x81\xa0]"), false},
	{"n BOM alone", TEXT("\xef\xbb\xbf"), false},
	{"n half a BOM", TEXT("\xef\xbb{}"), false},
	{"n BOM in the middle", TEXT("[\xef\xbb\xbf 1]"), false},
	{"n plain text", TEXT("hello"), false},
	{"n angle brackets", TEXT("<null>"), false},
	{"n high byte", TEXT("\xe5"), false},
	/* n: literals */
	{"n capital True", TEXT("[True]"), false},
	{"n cut true", TEXT("[tru]"), false},
	{"n cut at the end", TEXT("[nul"), false},
	{"n longer word", TEXT("[nulll]"), false},
	{"n NaN", TEXT("[NaN]"), false},
	{"n Infinity", TEXT("[Infinity]"), false},
	{"n minus Infinity", TEXT("[-Infinity]"), false},
	{"n undefined", TEXT("[undefined]"), false},
	/* n: numbers */
	{"n leading zero", TEXT("[01]"), false},
	{"n minus leading zero", TEXT("[-012]"), false},
	{"n double zero", TEXT("[00]"), false},
	{"n plus", TEXT("[+1]"), false},
	{"n double minus", TEXT("[--1]"), false},
	{"n minus alone", TEXT("[-]"), false},
	{"n minus blank", TEXT("[- 1]"), false},
	{"n minus letter", TEXT("[-a]"), false},
	{"n no digit before the point", TEXT("[.5]"), false},
	{"n minus point", TEXT("[-.5]"), false},
	{"n no digit behind the point", TEXT("[1.]"), false},
	{"n point then exponent", TEXT("[1.e3]"), false},
	{"n two points", TEXT("[1.2.3]"), false},
	{"n exponent without digits", TEXT("[1e]"), false},
	{"n exponent plus only", TEXT("[1e+]"), false},
	{"n exponent two signs", TEXT("[1e+-2]"), false},
	{"n exponent with point", TEXT("[1e1.5]"), false},
	{"n two exponents", TEXT("[1eE2]"), false},
	{"n hex", TEXT("[0x1F]"), false},
	{"n octal-like", TEXT("[0o7]"), false},
	{"n underscore", TEXT("[1_000]"), false},
	{"n blank inside", TEXT("[1 000]"), false},
	{"n letter behind", TEXT("[1a]"), false},
	{"n fullwidth digit", TEXT("[\xef\xbc\x91]"), false},
	{"n minus at the end", TEXT("-"), false},
	{"n cut real", TEXT("1."), false},
	/* n: strings */
	{"n open string", TEXT("[\""), false},
	{"n open string, text", TEXT("[\"abc"), false},
	{"n escape then end", TEXT("[\"\\\"]"), false},
	{"n backslash at the end", TEXT("[\"\\"), false},
	{"n three backslashes", TEXT("[\"\\\\\\\"]"), false},
	{"n escape x", TEXT("[\"\\x00\"]"), false},
	{"n escape a", TEXT("[\"\\a\"]"), false},
	{"n escape quote ' ", TEXT("[\"\\'\"]"), false},
	{"n escape digit", TEXT("[\"\\0\"]"), false},
	{"n escape NUL byte", TEXT("[\"\\\0\"]"), false},
	{"n escape newline", TEXT("[\"\\\n\"]"), false},
	{"n escape emoji", TEXT("[\"\\\xf0\x9f\x8c\x80\"]"), false},
	{"n capital U", TEXT("[\"\\U0041\"]"), false},
	{"n unicode no digits", TEXT("[\"\\u\"]"), false},
	{"n unicode three digits", TEXT("[\"\\u00A\"]"), false},
	{"n unicode bad digit", TEXT("[\"\\u00A\xe5\"]"), false},
	{"n unicode g", TEXT("[\"\\u000g\"]"), false},
	{"n unicode cut", TEXT("[\"\\u00"), false},
	{"n second surrogate cut", TEXT("[\"\\uD834\\uDd\"]"), false},
	{"n raw newline", TEXT("[\"a\nb\"]"), false},
	{"n raw tab", TEXT("[\"\t\"]"), false},
	{"n raw NUL in a string", TEXT("[\"a\0b\"]"), false},
	{"n raw 0x1f", TEXT("[\"\x1f\"]"), false},
	{"n escape outside", TEXT("[\\n]"), false},
	{"n escaped quote outside", TEXT("[\\\"a\\\"]"), false},
	{"n unescaped quote", TEXT("[\"a\"b\"]"), false},
};

START_TEST(json_vectors) {
	for (size_t i = 0; i < ARRAY_SIZE(json_cases); i++)
		REQUIRE(valid(json_cases[i].text, json_cases[i].n) == json_cases[i].good, "%s", json_cases[i].name);
}
END_TEST

/* Each special byte at every place of the 16-byte blocks in which strings are searched. */
START_TEST(odd_bytes_at_every_place) {
	char text[80];
	for (size_t at = 0; at < 50; at++)
		for (unsigned byte = 0; byte < 256; byte++) {
			memset(text, 'x', sizeof text);
			text[0] = text[sizeof text - 1] = '"';
			text[1 + at] = (char)byte;
			bool plain = byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
			REQUIRE(valid(text, sizeof text) == plain, "byte %02x at %zu", byte, at);
		}
}
END_TEST

START_TEST(random_lines_are_valid) {
	for (uint64_t run = 0; run < 5000; run++) {
		uint64_t seed = run * 31 + 5;
		size_t n;
		_cleanup_free_ char *line = gen_line(&seed, &n);
		REQUIRE(valid(line, n), "seed %d", (int)run);
		size_t cut = n;
		while (line[cut - 1] != '}') cut--;
		REQUIRE(!valid(line, rng_below(&seed, cut)), "seed %d, cut", (int)run);
	}
}
END_TEST

static bool nested(size_t levels, const char *open, const char *close) {
	struct buf b = BUF_INIT(4 << 20);
	for (size_t i = 0; i < levels; i++) buf_puts(&b, open);
	buf_puts(&b, "1");
	for (size_t i = 0; i < levels; i++) buf_puts(&b, close);
	bool ok = valid(b.data, b.len);
	buf_free(&b);
	return ok;
}

/* C77 */
START_TEST(depth) {
	ck_assert(nested(VALID_MAX_DEPTH, "[", "]"));
	ck_assert(!nested(VALID_MAX_DEPTH + 1, "[", "]"));
	ck_assert(nested(VALID_MAX_DEPTH, "{\"a\":", "}"));
	ck_assert(!nested(VALID_MAX_DEPTH + 1, "{\"a\":", "}"));
	ck_assert(nested(VALID_MAX_DEPTH / 2, "{\"a\":[", "]}"));
	ck_assert(!nested(100000, "[", "]"));
	ck_assert(!nested(100000, "[", ""));
	ck_assert(!nested(1000, "[", "}"));
	ck_assert(!nested(65, "[{\"a\":", "]}"));
}
END_TEST

/* --- The check of a client's line --------------------------------------------------------------------------------- */

struct verdict {
	bool ok;
	struct message m;
	struct chunk rewritten;
	struct error error;
	struct span id;
	char *copy;
};

static void verdict_free(struct verdict *v) {
	chunk_drop(&v->rewritten);
	free(v->copy);
}

#define _cleanup_verdict_ _cleanup_(verdict_free)

static void same_span(struct span a, struct span b) {
	ck_assert(a.p == b.p && a.n == b.n);
}

/* Interrupted after every few bytes, the check has the same result. */
static void same_in_pieces(const struct verdict *v, size_t n, size_t bytes) {
	struct message_check *k = message_check_new(v->copy, n);
	struct message m;
	struct chunk rewritten;
	struct span id;
	const char *error;
	size_t steps = 1;
	REQUIRE(k, "no memory");
	while (!message_check_step(k, bytes)) REQUIRE(++steps < 4 * n + 8, "no end after %zu steps", steps);
	bool ok = message_check_result(k, &m, &rewritten, &error, &id);
	REQUIRE(ok == v->ok, "in pieces: %s; at once: %s", error, v->error.text);
	if (!ok) ck_assert_str_eq(error, v->error.text);
	same_span(id, v->id);
	ck_assert_int_eq(m.kind, v->m.kind);
	ck_assert_ptr_eq(m.code, v->m.code);
	if (!rewritten.data) {
		same_span(m.env.type, v->m.env.type);
		same_span(m.env.inner_subtype, v->m.env.inner_subtype);
		same_span(m.env.message, v->m.env.message);
	}
	ck_assert(rewritten.len == v->rewritten.len);
	ck_assert(!rewritten.len || memcmp(rewritten.data, v->rewritten.data, rewritten.len) == 0);
	chunk_drop(&rewritten);
	message_check_free(k);
}

static struct verdict check_bytes(const char *line, size_t n) {
	struct verdict v = {.copy = exact(line, n)};
	v.ok = message_check(v.copy, n, &v.m, &v.rewritten, &v.error, &v.id);
	REQUIRE(v.ok || v.error.text[0], "refused without a reason: %.*s", (int)n, line);
	REQUIRE(v.ok || !v.rewritten.data, "refused, but rewritten: %.*s", (int)n, line);
	same_in_pieces(&v, n, 1);
	same_in_pieces(&v, n, 7);
	return v;
}

static struct verdict check_line(const char *line) {
	return check_bytes(line, strlen(line));
}

static void refused(const char *line, const char *word) {
	_cleanup_verdict_ struct verdict v = check_line(line);
	REQUIRE(!v.ok, "taken: %s", line);
	REQUIRE(strstr(v.error.text, word), "%s: the error does not say \"%s\": %s", line, word, v.error.text);
}

static void taken(const char *line, enum message_kind kind) {
	_cleanup_verdict_ struct verdict v = check_line(line);
	REQUIRE(v.ok, "%s: %s", line, v.error.text);
	REQUIRE(v.m.kind == kind, "%s: kind %d", line, (int)v.m.kind);
	REQUIRE(!v.rewritten.data, "rewritten: %s", line);
}

static void rewritten(const char *line, const char *want) {
	_cleanup_verdict_ struct verdict v = check_line(line);
	REQUIRE(v.ok, "%s: %s", line, v.error.text);
	REQUIRE(v.rewritten.len == strlen(want) && memcmp(v.rewritten.data, want, v.rewritten.len) == 0, "%s became %.*s",
			line, (int)v.rewritten.len, v.rewritten.data ? v.rewritten.data : "nothing");
	const char *from = v.rewritten.data, *to = from + v.rewritten.len;
	REQUIRE(v.m.kind == MESSAGE_USER, "kind %d", (int)v.m.kind);
	REQUIRE(v.m.env.message.p > from && v.m.env.message.p < to, "the envelope points elsewhere");
	REQUIRE(!v.m.env.uuid.p || (v.m.env.uuid.p > from && v.m.env.uuid.p < to), "the uuid points elsewhere");
	taken(want, MESSAGE_USER);
}

/* C24 */
START_TEST(broken_lines) {
	refused("hello", "not JSON");
	refused("", "empty");
	refused("{\"type\":\"user\",\"message\":", "ends in the middle");
	refused("{\"type\":\"us", "not closed");
	refused("[1,2,3]", "no object");
	refused("\"x\"", "no object");
	refused("7", "no object");
	refused("{}", "`type` is missing");
	refused("{\"type\":\"user\"}{\"type\":\"user\"}", "newline");
	refused("\xff\xfe{\"type\":\"user\"}", "UTF-8");
	refused("{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"\xc3\x28\"}}", "UTF-8");
	refused("{'type':'user'}", "double quotes");
	refused("{\"type\":'user'}", "single quotes");
	refused("{\"type\":\"user\",}", "comma");
	refused("{\"type\":\"user\",\"x\":NaN}", "not JSON");
	refused("{\"type\":\"user\",\"x\":\"a\tb\"}", "control character");
}
END_TEST

START_TEST(offsets_are_counted_from_one) {
	refused("{\"type\":\"user\",\"x\":+1}", "(byte 20 of the line)");
	refused("x", "(byte 1 of the line)");
}
END_TEST

/* C07, C73 */
START_TEST(requests) {
	taken("{\"type\":\"control_request\",\"request_id\":\"1\",\"request\":{\"subtype\":\"interrupt\"}}",
		  MESSAGE_REQUEST);
	taken("{\"type\":\"control_request\",\"request_id\":\"\",\"request\":{\"subtype\":\"mcp_status\"}}",
		  MESSAGE_REQUEST);
	taken("{\"request\":{\"x\":1,\"subtype\":\"a\"},\"request_id\":\"q\\\"\\n\",\"type\":\"control_request\"}",
		  MESSAGE_REQUEST);
	refused("{\"subtype\":\"interrupt\"}", "`type` is missing");
	refused("{\"request_id\":\"1\",\"request\":{\"subtype\":\"interrupt\"}}", "`type` is missing");
	refused("{\"type\":\"control_request\",\"request_id\":\"a-2\"}", "`request` is missing");
	refused("{\"type\":\"control_request\",\"subtype\":\"interrupt\",\"request_id\":\"a\"}", "inside it");
	refused("{\"type\":\"control_request\",\"request_id\":\"a\",\"request\":\"interrupt\"}", "not an object");
	refused("{\"type\":\"control_request\",\"request_id\":\"a\",\"request\":null}", "not an object");
	refused("{\"type\":\"control_request\",\"request_id\":\"a\",\"request\":{}}", "request.subtype is missing");
	refused("{\"type\":\"control_request\",\"request_id\":\"a\",\"request\":{\"subtype\":1}}",
			"request.subtype is not a string");
	refused("{\"type\":\"control_request\",\"request_id\":1.5,\"request\":{\"subtype\":\"x\"}}",
			"request_id is not a string");
	refused("{\"type\":\"control_request\",\"request_id\":null,\"request\":{\"subtype\":\"x\"}}",
			"request_id is not a string");
	refused("{\"type\":\"control_request\",\"request\":{\"subtype\":\"x\"}}", "request_id is missing");
	refused("{\"type\":\"control_request\",\"request\":{\"subtype\":\"x\",\"request_id\":true}}",
			"request_id is not a string");
}
END_TEST

#define REQUEST(body) "{\"type\":\"control_request\",\"request_id\":\"r\",\"request\":{\"subtype\":" body "}}"

START_TEST(requests_that_the_agent_does_not_survive) {
	static const char *const good[] = {
		REQUEST("\"set_model\""),
		REQUEST("\"set_model\",\"model\":null"),
		REQUEST("\"set_model\",\"model\":\"m\""),
		REQUEST("\"mcp_set_servers\",\"servers\":{}"),
		REQUEST("\"mcp_set_servers\",\"servers\":{\"\\u00e9\":{\"command\":\"x\",\"args\":[1]},\"b\":{\"url\":\"x\"}}"),
		REQUEST("\"mcp_call\",\"tool\":\"mcp__a__b\",\"arguments\":5"),
		REQUEST("\"apply_flag_settings\",\"settings\":{\"x\":null}"),
		REQUEST("\"rewind_conversation\",\"target_message_uuid\":\"u\""),
		REQUEST("\"initialize\",\"hooks\":null,\"mcpServers\":[1]"),
		REQUEST("\"initialize\",\"hooks\":{\"PreToolUse\":[{\"hookCallbackIds\":[\"hook_0\"]}],\"FutureEvent\":[]}"),
		REQUEST("\"some_future_thing\",\"model\":5,\"servers\":null"),
	};
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) taken(good[i], MESSAGE_REQUEST);
	refused(REQUEST("\"set_model\",\"model\":5"), "request.model");
	refused(REQUEST("\"set_model\",\"model\":{}"), "request.model");
	refused(REQUEST("\"set_model\",\"model\":\"m\",\"model\":[]"), "request.model");
	refused(REQUEST("\"set_model\",\"model\":\"m\",\"mode\\u006c\":[]"), "escapes");
	refused(REQUEST("\"mcp_set_servers\""), "request.servers");
	refused(REQUEST("\"mcp_set_servers\",\"servers\":[]"), "request.servers");
	refused(REQUEST("\"mcp_set_servers\",\"servers\":{\"a\":null}"), "\"a\"");
	refused(REQUEST("\"mcp_set_servers\",\"servers\":{\"a\":{\"url\":5}}"), "url");
	refused(REQUEST("\"mcp_set_servers\",\"servers\":{\"a\":{\"url\":\"x\",\"ur\\u006c\":5}}"), "escapes");
	refused(REQUEST("\"initialize\",\"mcpServers\":{\"a\":{\"url\":null}}"), "url");
	refused(REQUEST("\"mcp_call\""), "request.tool");
	refused(REQUEST("\"mcp_call\",\"tool\":null"), "request.tool");
	refused(REQUEST("\"apply_flag_settings\",\"settings\":\"x\""), "request.settings");
	refused(REQUEST("\"rewind_conversation\",\"user_message_id\":\"u\""), "request.target_message_uuid");
	refused(REQUEST("\"initialize\",\"hooks\":{\"constructor\":[]}"), "no hook event");
	refused(REQUEST("\"initialize\",\"hooks\":{\"__proto__\":[]}"), "no hook event");
	refused(REQUEST("\"initialize\",\"hooks\":{\"c\\u006fnstructor\":[]}"), "no hook event");
}
END_TEST

START_TEST(an_id_of_ten_thousand_characters) {
	char id[10001], line[10200];
	memset(id, 'i', 10000);
	id[10000] = 0;
	snprintf(line, sizeof line, "{\"type\":\"control_request\",\"request_id\":\"%s\",\"request\":{\"subtype\":\"x\"}}",
			 id);
	_cleanup_verdict_ struct verdict v = check_line(line);
	ck_assert(v.ok);
	ck_assert(span_equals(v.m.env.request_id, id) && span_equals(v.id, id));
}
END_TEST

/* contract 4: an old form is answered, too. */
START_TEST(an_id_inside_the_request) {
	_cleanup_verdict_ struct verdict v = check_line(
		"{\"type\":\"control_request\",\"request\":{\"subtype\":\"interrupt\",\"request_id\":\"a-1\"}}");
	ck_assert(v.ok && v.m.kind == MESSAGE_REQUEST);
	ck_assert(span_equals(v.m.env.request_id, "a-1") && span_equals(v.id, "a-1"));
	ck_assert(v.m.env.request_id.p == v.m.env.inner_request_id.p);
}
END_TEST

START_TEST(the_id_of_a_refused_line) {
	static const struct {
		const char *line, *id;
		enum message_kind kind;
	} cases[] = {
		{"{\"type\":\"control_request\",\"request_id\":\"a-2\"}", "\"a-2\"", MESSAGE_REQUEST},
		{"{\"type\":\"control_request\",\"request_id\":1,\"request\":{}}", "1", MESSAGE_REQUEST},
		{"{\"type\":\"control_request\",\"request_id\":{},\"request\":{\"subtype\":\"x\"}}", NULL, MESSAGE_REQUEST},
		{"{\"type\":\"control_request\",\"request\":{\"request_id\":\"in\"}}", "\"in\"", MESSAGE_REQUEST},
		{"{\"type\":\"control_response\",\"response\":{\"request_id\":\"k\"},\"x\":01}", "\"k\"", MESSAGE_ANSWER},
		{"{\"type\":\"control_request\",\"request_id\":\"d\",\"type\":\"user\"}", "\"d\"", MESSAGE_USER},
		{"{\"type\":\"control_request\",\"request_id\":\"ok\",\"x\":01}", "\"ok\"", MESSAGE_REQUEST},
		{"{\"type\":\"control_request\",\"request_id\":\"\xff\",\"x\":1}", NULL, MESSAGE_REQUEST},
		{"{\"type\":\"control_request\",\"request_id\":\"\\q\",\"x\":1}", NULL, MESSAGE_REQUEST},
		{"{\"type\":\"user\",\"request_id\":\"u\"}", "\"u\"", MESSAGE_USER},
		{"{\"type\":\"user\",\"request_id\":\"u\",\"prompt\":5}", "\"u\"", MESSAGE_USER},
		{"{\"type\":\"control_request\",\"request_id\":\"a\"", NULL, MESSAGE_OTHER},
		{"hello", NULL, MESSAGE_OTHER},
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_verdict_ struct verdict v = check_line(cases[i].line);
		struct span want = cases[i].id ? span_of(cases[i].id) : SPAN_NONE;
		REQUIRE(!v.ok && v.m.kind == cases[i].kind, "%s: kind %d", cases[i].line, (int)v.m.kind);
		REQUIRE(span_same(v.id, want) && !v.id.p == !want.p, "%s: id %.*s", cases[i].line, (int)v.id.n,
				v.id.p ? v.id.p : "");
	}
}
END_TEST

/* C73 */
START_TEST(answers) {
	taken("{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"k\",\"response\":{}}}",
		  MESSAGE_ANSWER);
	taken("{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"k\"}}",
		  MESSAGE_ANSWER);
	taken("{\"type\":\"control_response\",\"response\":{\"subtype\":\"error\",\"request_id\":\"k\",\"error\":\"no\"}}",
		  MESSAGE_ANSWER);
	refused("{\"type\":\"control_response\",\"request_id\":\"k-1\",\"response\":{\"behavior\":\"allow\"}}",
			"belongs inside");
	refused("{\"type\":\"control_response\"}", "`response` is missing");
	refused("{\"type\":\"control_response\",\"response\":[]}", "`response` is not an object");
	refused("{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\"}}", "response.request_id is missing");
	refused("{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":3}}", "not a string");
	/* The subtype is checked together with the answered request. */
	taken("{\"type\":\"control_response\",\"response\":{\"request_id\":\"k\"}}", MESSAGE_ANSWER);
	refused(
		"{\"type\":\"control_response\",\"request\":{},\"response\":{\"subtype\":\"success\",\"request_id\":\"k\"}}",
		"no `request`");
}
END_TEST

/* C45, C46: the body of an answer is neither checked nor changed here. */
START_TEST(a_rich_answer) {
	taken("{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"k-1\",\"response\":{"
		  "\"behavior\":\"allow\",\"updatedInput\":{\"questions\":[{}],\"answers\":{\"Which?\":\"b\"},"
		  "\"total_cost_usd\":0.1,\"n\":12345678901234567000,\"big\":18446744073709551615,\"huge\":1e400,\"e\":1E2,"
		  "\"z\":-0.0,\"i\":9007199254740993},\"updatedPermissions\":[{\"type\":\"setMode\"}],\"unknown\":null}}}",
		  MESSAGE_ANSWER);
}
END_TEST

START_TEST(cancels) {
	taken("{\"type\":\"control_cancel_request\",\"request_id\":\"a\"}", MESSAGE_CANCEL);
	refused("{\"type\":\"control_cancel_request\"}", "request_id is missing");
	taken("{\"type\":\"control_cancel_request\",\"request_id\":9}", MESSAGE_CANCEL);
	refused("{\"type\":\"control_cancel_request\",\"request_id\":{}}", "request_id is not a string");
}
END_TEST

START_TEST(types) {
	static const char *const other[] = {
		"{\"type\":\"keep_alive\"}",
		"{\"type\":\"banana\",\"x\":[1,{\"y\":null}]}",
		"{\"type\":\"result\",\"subtype\":\"success\"}",
		"{\"type\":\"system\",\"subtype\":\"init\"}",
		"{\"type\":\"stream_event\",\"event\":{}}",
		" { \"type\" : \"\" } ",
	};
	for (size_t i = 0; i < ARRAY_SIZE(other); i++) taken(other[i], MESSAGE_OTHER);
	refused("{\"type\":5}", "`type` is not a string");
	refused("{\"type\":null}", "`type` is not a string");
	refused("{\"type\":[\"user\"]}", "`type` is not a string");
	refused("{\"notype\":1}", "`type` is missing");
}
END_TEST

START_TEST(prompts) {
	taken("{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"hi\"}}", MESSAGE_USER);
	taken("{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"x\"}],\"role\":\"user\"}}",
		  MESSAGE_USER);
	taken("{\"type\":\"user\",\"prompt\":\"ignored\",\"message\":{\"role\":\"user\",\"content\":\"hi\"}}",
		  MESSAGE_USER);
	refused("{\"type\":\"user\"}", "\"message\"");
	refused("{\"type\":\"user\",\"message\":\"hi\"}", "not an object");
	refused("{\"type\":\"user\",\"message\":null,\"prompt\":\"hi\"}", "not an object");
	refused("{\"type\":\"user\",\"message\":{\"content\":\"hi\"}}", "message.role of a user line is missing");
	refused("{\"type\":\"user\",\"message\":{\"role\":\"assistant\",\"content\":\"hi\"}}", "\"role\":\"user\"");
	refused("{\"type\":\"user\",\"message\":{\"role\":1,\"content\":\"hi\"}}", "\"role\":\"user\"");
	refused("{\"type\":\"user\",\"message\":{\"role\":\"user\"}}", "message.content is missing");
	refused("{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":5}}", "neither a string nor an array");
	refused("{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":{\"text\":\"x\"}}}",
			"neither a string nor an array");
	refused("{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":null}}", "neither a string nor an array");
}
END_TEST

/* Blocks, as %s in a prompt and within a tool_result: both measured on the real CLI. */
static const struct {
	const char *block, *word; /* NULL: accepted */
} block_cases[] = {
	{"{\"type\":\"text\",\"text\":\"\"}", NULL},
	{"{\"type\":\"banana\",\"x\":[null]}", NULL},
	{"{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":\"image/png\",\"data\":\"aGk=\"}}", NULL},
	{"{\"type\":\"image\",\"source\":{\"type\":\"url\",\"url\":\"http://x/\"}}", NULL},
	{"{\"type\":\"image\",\"source\":{\"type\":\"future\"}}", NULL},
	{"{\"type\":\"document\",\"title\":\"t\",\"source\":{\"type\":\"text\",\"data\":\"x\"}}", NULL},
	{"null", "is no object"},
	{"5", "is no object"},
	{"\"text\"", "is no object"},
	{"[]", "is no object"},
	{"{}", "`type`"},
	{"{\"type\":5}", "`type`"},
	{"{\"text\":\"x\"}", "`type`"},
	{"{\"type\":\"t\\u0065xt\",\"text\":\"x\"}", "`type`"},
	{"{\"type\":\"text\"}", "`text` is missing"},
	{"{\"type\":\"text\",\"text\":5}", "`text` is not a string"},
	{"{\"type\":\"text\",\"text\":null}", "`text` is not a string"},
	{"{\"type\":\"text\",\"text\":\"x\",\"text\":5}", "`text` is not a string"},
	{"{\"type\":\"text\",\"text\":\"x\",\"te\\u0078t\":5}", "escapes"},
	{"{\"type\":\"image\"}", "source"},
	{"{\"type\":\"image\",\"source\":null}", "source"},
	{"{\"type\":\"image\",\"source\":\"x\"}", "source"},
	{"{\"type\":\"image\",\"source\":{}}", "source.type"},
	{"{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":\"image/png\"}}", "source.data"},
	{"{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"data\":5}}", "source.data"},
	{"{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"data\":\"x\",\"dat\\u0061\":5}}", "escapes"},
	{"{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"data\":\"x\",\"media_type\":5}}", "source.media_type"},
	{"{\"type\":\"document\"}", "source"},
	{"{\"type\":\"document\",\"title\":5,\"source\":{\"type\":\"text\",\"data\":\"x\"}}", "`title`"},
	{"{\"type\":\"document\",\"source\":{\"type\":\"text\"}}", "source.data"},
};

static void try_block(const char *before, const char *block, const char *after, const char *word, const char *place) {
	struct buf b = BUF_INIT(4096);
	buf_printf(&b, "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":[%s%s%s]}}", before, block, after);
	if (!word) {
		taken(b.data, MESSAGE_USER);
	} else {
		refused(b.data, word);
		refused(b.data, place);
	}
	buf_free(&b);
}

START_TEST(content_blocks) {
	for (size_t i = 0; i < ARRAY_SIZE(block_cases); i++) {
		const char *block = block_cases[i].block, *word = block_cases[i].word;
		try_block("", block, "", word, "message.content[0] ");
		try_block("{\"type\":\"text\",\"text\":\"x\"},", block, "", word, "message.content[1] ");
		try_block("{\"type\":\"tool_result\",\"tool_use_id\":\"t\",\"content\":[", block, "]}", word,
				  "message.content[0].content[0] ");
	}
}
END_TEST

START_TEST(tool_results) {
#define RESULT(content)                                                                                                \
	"{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\"" content "}]}}"
	taken(RESULT(""), MESSAGE_USER);
	taken(RESULT(",\"content\":\"x\""), MESSAGE_USER);
	taken(RESULT(",\"content\":[]"), MESSAGE_USER);
	refused(RESULT(",\"content\":5"), "neither a string nor an array");
	refused(RESULT(",\"content\":{}"), "neither a string nor an array");
	refused(RESULT(",\"content\":[{\"type\":\"tool_result\"}]"), "within another");
}
END_TEST

START_TEST(other_lines_that_would_hurt) {
	taken("{\"type\":\"assistant\",\"message\":{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"x\"}]"
		  "}}",
		  MESSAGE_OTHER);
	taken("{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"tool_use\",\"id\":\"t\"}]}}", MESSAGE_OTHER);
	refused("{\"type\":\"assistant\"}", "\"message\"");
	refused("{\"type\":\"assistant\",\"message\":{\"role\":\"assistant\"}}", "\"content\":[...]");
	refused("{\"type\":\"assistant\",\"message\":{\"content\":\"x\"}}", "\"content\":[...]");
	refused("{\"type\":\"assistant\",\"message\":{\"content\":[null]}}", "is no object");
	refused("{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":5}]}}", "not a string");
	refused("{\"type\":\"system\",\"subtype\":\"compact_boundary\",\"compact_metadata\":{}}", "/compact");
	refused("{\"type\":\"system\",\"subtype\":\"compact\\u005fboundary\"}", "escapes");
	taken(" {\"type\":\"update_environment_variables\",\"variables\":{\"A\":\"x\"}}", MESSAGE_OTHER);
	refused("{\"type\":\"update_environment_variables\"}", "`variables`");
	refused("{\"type\":\"update_environment_variables\",\"variables\":null}", "`variables`");
	refused("{\"type\":\"update_environment_variables\",\"variables\":{},\"vari\\u0061bles\":null}", "escapes");
}
END_TEST

START_TEST(old_prompts) {
	rewritten("{\"type\":\"user\",\"prompt\":\"hi\"}",
			  "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"hi\"}}");
	rewritten("{\"type\":\"user\",\"content\":\"hi\"}",
			  "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"hi\"}}");
	refused("{\"type\":\"user\",\"content\":[1]}", "message.content[0] is no object");
	rewritten("{\"type\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"}\"}],\"uuid\":\"u-1\"}",
			  "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"}\"}]},"
			  "\"uuid\":\"u-1\"}");
	rewritten(
		" { \"uuid\" : \"u\\/1\" , \"prompt\" : \"a\\ud800\" , \"session_id\":\"s\", \"n\":1E400, \"type\":\"user\" } ",
		" { \"uuid\" : \"u\\/1\" , \"message\":{\"role\":\"user\",\"content\" : \"a\\ud800\"} , \"session_id\":\"s\", "
		"\"n\":1E400, \"type\":\"user\" } ");
	rewritten("{\"type\":\"user\",\"role\":\"user\",\"parent_tool_use_id\":null,\"content\":\"\"}",
			  "{\"type\":\"user\",\"role\":\"user\",\"parent_tool_use_id\":null,\"message\":{\"role\":\"user\","
			  "\"content\":\"\"}}");
	refused("{\"type\":\"user\",\"prompt\":\"a\",\"content\":\"b\"}", "more than one prompt");
	refused("{\"type\":\"user\",\"prompt\":\"a\",\"prompt\":\"b\"}", "more than one prompt");
	refused("{\"type\":\"user\",\"prompt\":5}", "neither a string nor an array");
	refused("{\"type\":\"user\",\"content\":{}}", "neither a string nor an array");
	refused("{\"type\":\"user\",\"prom\\u0070t\":\"x\"}", "escapes");
}
END_TEST

/* C48 */
START_TEST(nul_bytes) {
	static const char two[] =
		"{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"x\"}}\0{\"type\":\"control_request\"}";
	_cleanup_verdict_ struct verdict a = check_bytes(two, sizeof two - 1), b = check_bytes("\0", 1);
	_cleanup_verdict_ struct verdict c = check_bytes(TEXT("{\"type\":\"user\",\"x\":\"a\0b\"}"));
	ck_assert(!a.ok && strstr(a.error.text, "NUL"));
	ck_assert(!b.ok && strstr(b.error.text, "NUL"));
	ck_assert(!c.ok && strstr(c.error.text, "NUL"));
	taken("{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"a\\u0000b\"},\"a\\u0000b\":1}",
		  MESSAGE_USER);
}
END_TEST

/* C49, C50, C51 */
START_TEST(separators_blanks_and_marks) {
	taken("{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"a\xe2\x80\xa8\xe2\x80\xa9\xc2\x85z\"}}",
		  MESSAGE_USER);
	taken("{\"type\":\"keep_alive\"}\r", MESSAGE_OTHER);
	taken("\t {\"type\":\"keep_alive\"} ", MESSAGE_OTHER);
	refused("{\"type\":\"keep_alive\"} \r {\"type\":\"keep_alive\"}", "newline");
	refused("\xef\xbb\xbf{\"type\":\"keep_alive\"}", "byte order mark");
	refused("{\"type\":\"keep_alive\"}\xef\xbb\xbf", "something after");
}
END_TEST

/* C76 */
START_TEST(duplicates) {
	static const char *const lines[] = {
		"{\"type\":\"user\",\"request_id\":\"a-1\",\"type\":\"control_request\",\"request\":{\"subtype\":\"interrupt\"}"
		"}",
		"{\"type\":\"control_request\",\"request_id\":\"a\",\"request_id\":\"b\",\"request\":{\"subtype\":\"x\"}}",
		"{\"type\":\"control_request\",\"request_id\":\"a\",\"request\":{\"subtype\":\"x\"},\"request\":{\"subtype\":"
		"\"y\"}}",
		"{\"type\":\"control_request\",\"request_id\":\"a\",\"request\":{\"subtype\":\"x\",\"subtype\":\"y\"}}",
		"{\"type\":\"control_request\",\"request\":{\"subtype\":\"x\",\"request_id\":\"y\",\"request_id\":\"z\"}}",
		"{\"type\":\"x\",\"subtype\":\"a\",\"subtype\":\"a\"}",
		"{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"k-1\",\"request_id\":"
		"\"k-2\"}}",
		"{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"subtype\":\"error\",\"request_id\":"
		"\"k\"}}",
		"{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"k\",\"response\":1,"
		"\"response\":2}}",
		"{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"k\"},\"response\":{}}",
		"{\"type\":\"user\",\"message\":{\"role\":\"user\",\"role\":\"assistant\",\"content\":\"x\"}}",
		"{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"x\",\"content\":5}}",
		"{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"x\"},\"message\":{\"role\":\"user\","
		"\"content\":\"x\"}}",
		"{\"type\":\"user\",\"uuid\":\"a\",\"uuid\":\"b\",\"message\":{\"role\":\"user\",\"content\":\"x\"}}",
		"{\"type\":\"user\",\"session_id\":\"a\",\"session_id\":\"b\",\"message\":{\"role\":\"user\",\"content\":\"x\"}"
		"}",
	};
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) refused(lines[i], "twice");
	/* The same names elsewhere, and other duplicates, do not matter. */
	taken("{\"type\":\"x\",\"x\":1,\"x\":2,\"deep\":{\"type\":1,\"type\":2,\"request_id\":1,\"request_id\":2}}",
		  MESSAGE_OTHER);
	taken("{\"type\":\"control_request\",\"request_id\":\"a\",\"request\":{\"subtype\":\"x\",\"a\":{\"subtype\":1,"
		  "\"subtype\":2}}}",
		  MESSAGE_REQUEST);
	taken("{\"type\":\"x\",\"request\":[{\"subtype\":1,\"subtype\":2}],\"isReplay\":1,\"isReplay\":2}", MESSAGE_OTHER);
	taken("{\"type\":\"x\",\"request\":{\"role\":1,\"role\":2,\"response\":1,\"response\":2}}", MESSAGE_OTHER);
}
END_TEST

START_TEST(disguised_keys) {
	static const char *const lines[] = {
		"{\"\\u0074ype\":\"control_request\",\"type\":\"user\"}",
		"{\"type\":\"user\",\"typ\\u0065\":\"control_request\"}",
		"{\"type\":\"control_request\",\"request_id\":\"a\",\"r\\u0065quest\":{\"subtype\":\"interrupt\"}}",
		"{\"type\":\"control_request\",\"request\\u005fid\":\"a\",\"request\":{\"subtype\":\"interrupt\"}}",
		"{\"type\":\"control_request\",\"request_id\":\"a\",\"request\":{\"subtype\":\"x\",\"subtyp\\u0065\":\"end_"
		"session\"}}",
		"{\"type\":\"control_request\",\"request_id\":\"a\",\"request\":{\"subtype\":\"interrupt\","
		"\"cancel\\u005fqueued\":true}}",
		"{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"k\",\"\\u0072esponse\":{"
		"}}}",
		"{\"type\":\"user\",\"message\":{\"\\u0072ole\":\"user\",\"content\":\"x\"}}",
		"{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"x\"},\"uui\\u0064\":\"u\"}",
	};
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) refused(lines[i], "spelled with escapes");
	refused("{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"k\",\"response\":{"
			"\"behavior\":\"deny\",\"message\":\"m\",\"behavio\\u0072\":\"allow\"}}}",
			"spelled with escapes");
	/* A tool's input belongs to the agent, as do the members beside the body. */
	taken("{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"k\",\"response\":{"
		  "\"behavior\":\"allow\",\"updatedInput\":{\"\\u0061\":1}},\"other\":{\"\\u0061\":1}},\"x\":{\"y\":{"
		  "\"\\u0061\":1}}}",
		  MESSAGE_ANSWER);
	/* Necessary escapes in a key, and escapes where routing does not look. */
	taken("{\"type\":\"x\",\"\\u00e9\":1,\"a\\\"b\":1,\"a\\\\u0074\":1,\"\\n\":1,\"a b\\u0074\":1,\"\\u0174\":1}",
		  MESSAGE_OTHER);
	taken("{\"type\":\"x\",\"deep\":{\"\\u0074ype\":1},\"request\":[{\"\\u0074ype\":1}]}", MESSAGE_OTHER);
}
END_TEST

/* A value that decides the routing of a line must have only one reading, too. */
START_TEST(disguised_values) {
	refused("{\"type\":\"control\\u005frequest\",\"request_id\":\"a\",\"request\":{\"subtype\":\"end_session\"}}",
			"escapes");
	refused("{\"type\":\"us\\u0065r\",\"message\":{\"role\":\"user\",\"content\":\"x\"}}", "escapes");
	refused("{\"type\":\"control_request\",\"request_id\":\"a\",\"request\":{\"subtype\":\"end\\u005fsession\"}}",
			"escapes");
	refused("{\"type\":\"user\",\"message\":{\"role\":\"us\\u0065r\",\"content\":\"x\"}}", "\"role\":\"user\"");
}
END_TEST

START_TEST(deep_prompts) {
	struct buf b = BUF_INIT(1 << 20);
	buf_puts(&b, "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"x\"},\"d\":");
	for (size_t i = 0; i < 100000; i++) buf_putc(&b, '[');
	_cleanup_verdict_ struct verdict open = check_bytes(b.data, b.len);
	ck_assert(!open.ok && strstr(open.error.text, "4096"));
	for (size_t i = 0; i < 100000; i++) buf_putc(&b, ']');
	buf_putc(&b, '}');
	_cleanup_verdict_ struct verdict closed = check_bytes(b.data, b.len);
	ck_assert(!closed.ok && strstr(closed.error.text, "4096"));
	buf_free(&b);
}
END_TEST

/* Both scanners agree: on a line accepted by the strict one, the quick one finds the same. */
START_TEST(strict_and_quick_agree) {
	size_t good = 0;
	for (uint64_t run = 0; run < 8000; run++) {
		uint64_t seed = run * 101 + 3;
		size_t n, at;
		const char *error;
		struct envelope strict, quick;
		_cleanup_free_ char *line = gen_line(&seed, &n);
		if (!message_scan(line, n, &strict, &error, &at)) continue;
		good++;
		REQUIRE(scan_envelope(line, n, &quick), "seed %d", (int)run);
		quick.reserved = strict.reserved; /* only set for the child's lines */
		REQUIRE(memcmp(&strict, &quick, sizeof strict) == 0, "seed %d: %.*s", (int)run, (int)n, line);
	}
	REQUIRE(good > 2000, "only %zu lines", good);
}
END_TEST

/* Measured on both versions of the CLI. */
START_TEST(lines_that_the_child_skips) {
	static const char *const skipped[] = {"[1]",
										  " [ ] ",
										  "\"x\"",
										  "5",
										  "true",
										  "{}",
										  "{\"type\":5}",
										  "{\"type\":null}",
										  "{\"type\":\"control_cancel_request\"}"};
	static const char *const others[] = {"null",
										 " null",
										 "[1",
										 "hello",
										 "",
										 "1 2",
										 "{",
										 "{\"type\":\"user\"}",
										 "{\"type\":\"control_request\"}",
										 "{\"type\":\"control_cancel_request\",\"request_id\":\"r\"}"};
	for (size_t i = 0; i < ARRAY_SIZE(skipped); i++)
		REQUIRE(message_is_skipped((struct span){skipped[i], strlen(skipped[i])}), "%s", skipped[i]);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		REQUIRE(!message_is_skipped((struct span){others[i], strlen(others[i])}), "%s", others[i]);
}
END_TEST

START_TEST(requests_that_end_the_child) {
	static const char *const fatal[] = {"{\"type\":\"control_request\",\"request_id\":\"r\"}",
										"{\"request\":null,\"type\":\"control_request\"}"};
	static const char *const others[] = {"{\"type\":\"control_request\",\"request\":{}}",
										 "{\"type\":\"control_request\",\"request\":[]}", "{\"type\":\"user\"}",
										 "hello"};
	struct envelope e;
	for (size_t i = 0; i < ARRAY_SIZE(fatal); i++) {
		scan_envelope(fatal[i], strlen(fatal[i]), &e);
		REQUIRE(message_is_fatal_request(&e), "%s", fatal[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		scan_envelope(others[i], strlen(others[i]), &e);
		REQUIRE(!message_is_fatal_request(&e), "%s", others[i]);
	}
}
END_TEST

START_TEST(a_byte_order_mark_is_left_out) {
	static const char line[] = "\xef\xbb\xbf{}";
	ck_assert_ptr_eq(message_after_mark((struct span){line, 5}).p, line + 3);
	ck_assert_ptr_eq(message_after_mark((struct span){line, 3}).p, line); /* nothing behind it */
	ck_assert_ptr_eq(message_after_mark((struct span){line + 1, 4}).p, line + 1);
}
END_TEST

RUN_TESTS("message", json_vectors, odd_bytes_at_every_place, random_lines_are_valid, depth, broken_lines,
		  offsets_are_counted_from_one, requests, requests_that_the_agent_does_not_survive,
		  an_id_of_ten_thousand_characters, an_id_inside_the_request, the_id_of_a_refused_line, answers, a_rich_answer,
		  cancels, types, prompts, content_blocks, tool_results, other_lines_that_would_hurt, old_prompts, nul_bytes,
		  separators_blanks_and_marks, duplicates, disguised_keys, disguised_values, deep_prompts,
		  strict_and_quick_agree, lines_that_the_child_skips, requests_that_end_the_child,
		  a_byte_order_mark_is_left_out)
