/* SPDX-License-Identifier: MIT
 *
 * The scanner against known lines, against a plain byte loop on every kind of input, and against jansson on lines that
 * jansson accepts.
 */
#include "base/str.h"
#include "dialect/envelope.h"
#include "wire/scan.h"

#include "../fuzz/reference.h"
#include "generate.h"

#include <jansson.h>
#include <string.h>

static bool is_text(struct span s, const char *text) {
	return text ? s.n == strlen(text) && memcmp(s.p, text, s.n) == 0 : s.p == NULL;
}

/* Scan a copy of exactly n bytes with both scanners; true if both accept it. The copy is *owned. */
static bool scan_copy(const char *text, size_t n, struct envelope *e, char **owned) {
	struct envelope plain, narrow;
	char *copy = malloc(n ? n : 1);
	REQUIRE(copy, "no memory");
	memcpy(copy, text, n);
	bool ok = scan_envelope(copy, n, e), want = ref_envelope(copy, n, &plain);
	REQUIRE(ok == want, "scan_envelope says %d, the plain loop %d: %.*s", ok, want, (int)n, text);
	const char *differs = ok ? ref_difference(e, &plain) : NULL;
	REQUIRE(!differs, "%s differs in: %.*s", differs, (int)n, text);
	REQUIRE(scan_envelope_plain(copy, n, &narrow) == want, "scan_envelope_plain: not %d: %.*s", want, (int)n, text);
	differs = ok ? ref_difference(&narrow, &plain) : NULL;
	REQUIRE(!differs, "%s differs without wide instructions in: %.*s", differs, (int)n, text);
	const size_t pieces[] = {1, 7, n + 1};
	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
		differs = ref_measured(copy, n, pieces[i], 1, want, &plain);
		REQUIRE(!differs, "%s differs if measured in pieces of %zu: %.*s", differs, pieces[i], (int)n, text);
	}
	*owned = copy;
	return ok;
}

static void one_member(const char *line, struct span s, const char *name, const char *want) {
	REQUIRE(is_text(s, want), "%s of %s is %.*s", name, line, (int)s.n, s.p ? s.p : "absent");
}

#define MEMBER(line, e, m, want) one_member(line, (e).m, #m, want)

START_TEST(every_member) {
	static const char line[] =
		"{\"type\":\"t\",\"subtype\":\"s\",\"request_id\":\"r\",\"uuid\":\"u\",\"session_id\":\"i\",\"request\":{\"a\":"
		"1,"
		"\"subtype\":\"rs\",\"request_id\":\"rr\",\"response\":5},\"response\":{\"response\":{\"x\":[1,2]},\"subtype\":"
		"\"ps\","
		"\"request_id\":\"pr\"},\"message\":{\"role\":\"user\"},\"isReplay\":true,\"is_error\":false,"
		"\"user_message_uuid\":null,\"user_message_uuids\":[\"a\",\"b\"],\"parent_tool_use_id\":\"p\",\"other\":0}";
	struct envelope e;
	_cleanup_free_ char *copy = NULL;
	ck_assert(scan_copy(line, sizeof line - 1, &e, &copy));
	MEMBER(line, e, type, "\"t\"");
	MEMBER(line, e, subtype, "\"s\"");
	MEMBER(line, e, request_id, "\"r\"");
	MEMBER(line, e, uuid, "\"u\"");
	MEMBER(line, e, session_id, "\"i\"");
	MEMBER(line, e, message, "{\"role\":\"user\"}");
	MEMBER(line, e, is_replay, "true");
	MEMBER(line, e, is_error, "false");
	MEMBER(line, e, user_message_uuid, "null");
	MEMBER(line, e, user_message_uuids, "[\"a\",\"b\"]");
	MEMBER(line, e, parent_tool_use_id, "\"p\"");
	MEMBER(line, e, inner_subtype, "\"rs\"");
	MEMBER(line, e, inner_request_id, "\"rr\"");
	MEMBER(line, e, inner_response, "{\"x\":[1,2]}");
}
END_TEST

START_TEST(inner_of_a_response) {
	static const char line[] =
		"{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"1\"}}";
	struct envelope e;
	_cleanup_free_ char *copy = NULL;
	ck_assert(scan_copy(line, sizeof line - 1, &e, &copy));
	MEMBER(line, e, inner_subtype, "\"success\"");
	MEMBER(line, e, inner_request_id, "\"1\"");
	MEMBER(line, e, inner_response, NULL);
	MEMBER(line, e, request_id, NULL);
}
END_TEST

START_TEST(the_last_one_counts) {
	static const char line[] =
		"{\"type\":\"a\",\"type\":\"b\",\"request\":{\"subtype\":\"x\"},\"request\":{\"subtype\":\"y\"},"
		"\"uuid\":1,\"uuid\":[2]}";
	struct envelope e;
	_cleanup_free_ char *copy = NULL;
	ck_assert(scan_copy(line, sizeof line - 1, &e, &copy));
	MEMBER(line, e, type, "\"b\"");
	MEMBER(line, e, inner_subtype, "\"y\"");
	MEMBER(line, e, uuid, "[2]");
}
END_TEST

START_TEST(a_later_request_that_is_no_object_hides_the_first) {
	static const char line[] = "{\"request\":{\"subtype\":\"x\"},\"request\":7}";
	struct envelope e;
	_cleanup_free_ char *copy = NULL;
	ck_assert(scan_copy(line, sizeof line - 1, &e, &copy));
	MEMBER(line, e, inner_subtype, NULL);
}
END_TEST

/* Keys within other objects, and texts that look like keys, are not at the top level. */
START_TEST(nothing_leaks_from_within) {
	static const char *const lines[] = {
		"{\"m\":{\"type\":\"no\",\"request\":{\"subtype\":\"no\"}},\"x\":[{\"type\":\"no\"}]}",
		"{\"m\":\"\\\"type\\\":\\\"no\\\"\"}",
		"{\"m\":\"\\\\\",\"y\":\",\\\"type\\\":\\\"no\\\"\"}",
		"{\"type \":\"no\",\"Type\":\"no\",\"\\u0074ype\":\"no\"}",
	};
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		struct envelope e;
		_cleanup_free_ char *copy = NULL;
		ck_assert(scan_copy(lines[i], strlen(lines[i]), &e, &copy));
		MEMBER(lines[i], e, type, NULL);
		MEMBER(lines[i], e, inner_subtype, NULL);
	}
}
END_TEST

START_TEST(lines_that_are_none) {
	static const char *const lines[] = {
		"",
		" ",
		"{",
		"}",
		"[",
		"[]",
		"\"x\"",
		"1",
		"null",
		"hello",
		"{}x",
		"{}{}",
		"{} {}",
		"{,}",
		"{\"a\"}",
		"{\"a\":}",
		"{\"a\":1,}",
		"{\"a\":1 \"b\":2}",
		"{a:1}",
		"{\"a\":1",
		"{\"a\":\"",
		"{\"a\":\"\\\"}",
		"{\"a\":[}",
		"{\"a\":{}",
		"{\"type\":\"",
		"{\"type\":\"x",
		"{\"type\":\"x\"",
		"{\"type\":\"x\\\"}",
		"{\"type\":\"x\",",
		"{\"type\":\"x\"}}",
		"{\"request\":{x}}",
		"{\"request\":{\"subtype\"}}",
		"{\"a\":1:2}",
		"\xef\xbb\xbf{}",
		"{\"a\":\"b\"c}",
	};
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		struct envelope e;
		_cleanup_free_ char *copy = NULL;
		REQUIRE(!scan_copy(lines[i], strlen(lines[i]), &e, &copy), "taken: %s", lines[i]);
	}
}
END_TEST

START_TEST(lines_of_the_child) {
	static const char *const lines[] = {
		"{}",
		" {} ",
		"{\"no_type_at_all\":true}",
		"{\"type\":5}",                                                             /* C08 */
		"{\"type\":\"assistant\",\"a\\u0000b\":1}",                                 /* C48 */
		"{\"type\":\"assistant\",\"t\":\"a\xe2\x80\xa8\xe2\x80\xa9\xc2\x85\"}",     /* C49 */
		"{\"type\":\"result\",\"subtype\":\"success\"}\r",                          /* C50 */
		"{\"n\":12345678901234567000,\"huge\":1e400,\"e\":1E2,\"z\":-0.0,\"i\":9}", /* C46 */
		"{\"duration_api_ms\":1,\"type\":\"result\",\"x\":1,\"x\":2}",              /* C76 */
		"{\"lone\":\"\\ud800\",\"bytes\":\"\xff\xfe\"}",
	};
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		struct envelope e;
		_cleanup_free_ char *copy = NULL;
		REQUIRE(scan_copy(lines[i], strlen(lines[i]), &e, &copy), "refused: %s", lines[i]);
	}
}
END_TEST

START_TEST(a_raw_carriage_return_between_objects) {
	static const char line[] = "{\"type\":\"assistant\"} \r {\"type\":\"assistant\"}"; /* C49: one bad line */
	struct envelope e;
	_cleanup_free_ char *copy = NULL;
	ck_assert(!scan_copy(line, sizeof line - 1, &e, &copy));
}
END_TEST

/* C77 */
START_TEST(deep_lines) {
	const size_t levels = 100000;
	struct buf b = BUF_INIT(1 << 20);
	struct envelope e;
	buf_puts(&b, "{\"type\":\"assistant\",\"d\":");
	for (size_t i = 0; i < levels; i++) buf_putc(&b, '[');
	_cleanup_free_ char *open = NULL, *closed = NULL;
	ck_assert(!scan_copy(b.data, b.len, &e, &open));
	for (size_t i = 0; i < levels; i++) buf_putc(&b, ']');
	buf_putc(&b, '}');
	ck_assert(scan_copy(b.data, b.len, &e, &closed));
	MEMBER("deep", e, type, "\"assistant\"");
	buf_free(&b);
}
END_TEST

/* Strings of every length around the block sizes of the search, with backslashes before the end. */
START_TEST(string_lengths) {
	char line[512];
	for (size_t len = 0; len < 200; len++)
		for (size_t slashes = 0; slashes <= MIN(len, (size_t)5); slashes++) {
			size_t n = (size_t)sprintf(line, "{\"type\":\"");
			memset(line + n, 'x', len - slashes);
			memset(line + n + len - slashes, '\\', slashes);
			n += len;
			n += (size_t)sprintf(line + n, "\",\"uuid\":\"u\"}");
			struct envelope e;
			_cleanup_free_ char *copy = NULL;
			bool ok = scan_copy(line, n, &e, &copy);
			REQUIRE(ok == (slashes % 2 == 0), "%zu bytes, %zu backslashes", len, slashes);
		}
}
END_TEST

START_TEST(random_lines_against_the_plain_loop) {
	const uint64_t runs = (uint64_t)rounds(20000);
	for (uint64_t run = 0; run < runs; run++) {
		uint64_t seed = run;
		size_t n;
		struct envelope e;
		_cleanup_free_ char *line = gen_line(&seed, &n), *copy = NULL, *cut = NULL, *bent = NULL;
		REQUIRE(scan_copy(line, n, &e, &copy), "seed %d: a good line is refused", (int)run);
		scan_copy(line, rng_below(&seed, n + 1), &e, &cut);
		static const char bytes[] = "\"\\{}[],: \0x1\n";
		for (size_t i = rng_below(&seed, 4); i; i--) line[rng_below(&seed, n)] = bytes[rng_below(&seed, sizeof bytes)];
		scan_copy(line, n, &e, &bent);
	}
}
END_TEST

/* Brackets, quotes and backslashes in any order, mostly invalid JSON, over many steps of the wide scanner. */
START_TEST(random_bytes_against_the_plain_loop) {
	static const char *const pieces[] = {"{",    "}", "[", "]",       "\"", "\\",   "\\\"",
										 "\\\\", ",", ":", "xxxxxxx", "{}", "\"\"", "\"x{"};
	static const char *const starts[] = {"{\"type\":\"t\",\"m\":[", "{\"type\":\"", "{\"response\":{\"a\":{\"b\":\""};
	const uint64_t runs = (uint64_t)rounds(40000);
	for (uint64_t run = 0; run < runs; run++) {
		uint64_t seed = run * 31;
		struct buf b = BUF_INIT(1 << 20);
		struct envelope e;
		size_t n = rng_below(&seed, 300), kinds = 2 + rng_below(&seed, ARRAY_SIZE(pieces) - 1);
		size_t from = rng_below(&seed, ARRAY_SIZE(pieces));
		buf_puts(&b, starts[rng_below(&seed, ARRAY_SIZE(starts))]);
		while (n--) buf_puts(&b, pieces[(from + rng_below(&seed, kinds)) % ARRAY_SIZE(pieces)]);
		for (size_t i = rng_below(&seed, 3); i; i--) buf_puts(&b, i == 1 ? "}" : "]}");
		_cleanup_free_ char *copy = NULL;
		scan_copy(b.data, b.len, &e, &copy);
		buf_free(&b);
	}
}
END_TEST

/* --- jansson ------------------------------------------------------------------------------------------------------ */

static void same_value(uint64_t run, struct span s, const json_t *want, const char *name) {
	REQUIRE((s.p != NULL) == (want != NULL), "seed %d: %s is there for one only", (int)run, name);
	if (!want) return;
	json_error_t error;
	json_t *got = json_loadb(s.p, s.n, JSON_DECODE_ANY, &error);
	REQUIRE(got && json_equal(got, want), "seed %d: %s differs: %.*s", (int)run, name, (int)s.n, s.p);
	json_decref(got);
}

static void same_members(uint64_t run, const struct envelope *e, const json_t *root) {
	const json_t *request = json_object_get(root, "request"), *response = json_object_get(root, "response");
	const json_t *inner = request ? request : response;
	same_value(run, e->type, json_object_get(root, "type"), "type");
	same_value(run, e->subtype, json_object_get(root, "subtype"), "subtype");
	same_value(run, e->request_id, json_object_get(root, "request_id"), "request_id");
	same_value(run, e->uuid, json_object_get(root, "uuid"), "uuid");
	same_value(run, e->session_id, json_object_get(root, "session_id"), "session_id");
	same_value(run, e->request, request, "request");
	same_value(run, e->response, response, "response");
	same_value(run, e->message, json_object_get(root, "message"), "message");
	same_value(run, e->is_replay, json_object_get(root, "isReplay"), "isReplay");
	same_value(run, e->is_error, json_object_get(root, "is_error"), "is_error");
	same_value(run, e->user_message_uuid, json_object_get(root, "user_message_uuid"), "user_message_uuid");
	same_value(run, e->user_message_uuids, json_object_get(root, "user_message_uuids"), "user_message_uuids");
	same_value(run, e->parent_tool_use_id, json_object_get(root, "parent_tool_use_id"), "parent_tool_use_id");
	same_value(run, e->inner_subtype, json_object_get(inner, "subtype"), "inner subtype");
	same_value(run, e->inner_request_id, json_object_get(inner, "request_id"), "inner request_id");
	same_value(run, e->inner_response, json_object_get(response, "response"), "inner response");
}

/* span_member() finds every member of the value, and span_element() every element. */
static void same_walk(uint64_t run, struct span s, json_t *want) {
	const char *key;
	json_t *value;
	size_t i;
	json_object_foreach(want, key, value) {
		if (strcmp(key, "t\"ype") != 0 && strcmp(key, "k\xc3\xa9y") != 0)
			same_value(run, span_member(s, key), value, key);
	}
	json_array_foreach(want, i, value) {
		same_value(run, span_element(s, i), value, "an element");
	}
	if (json_is_array(want)) same_value(run, span_element(s, json_array_size(want)), NULL, "an element too many");
}

START_TEST(random_lines_against_jansson) {
	const uint64_t runs = (uint64_t)rounds(6000);
	for (uint64_t run = 0; run < runs; run++) {
		uint64_t seed = run * 7919;
		size_t n;
		struct envelope e;
		json_error_t error;
		_cleanup_free_ char *line = gen_line(&seed, &n);
		REQUIRE(scan_envelope(line, n, &e), "seed %d: refused", (int)run);
		json_t *root = json_loadb(line, n, 0, &error);
		REQUIRE(root, "seed %d: jansson refuses: %s", (int)run, error.text);
		same_members(run, &e, root);
		const char *key;
		json_t *value;
		struct span all = {line, n};
		while (*all.p != '{') all.p++, all.n--;
		same_walk(run, all, root);
		json_object_foreach(root, key, value) {
			if (strchr(key, '"') || (unsigned char)key[strlen(key) / 2] > 127) continue;
			same_walk(run, span_member(all, key), value);
		}
		json_decref(root);
	}
}
END_TEST

/* --- Spans -------------------------------------------------------------------------------------------------------- */

START_TEST(members_and_elements) {
	struct span obj = span_of("{ \"a\" : 1 , \"b\":[10, \"x,]\", {\"c\":2} ,[]], \"a\":2 }"),
				array = span_member(obj, "b");
	ck_assert(is_text(span_member(obj, "a"), "2"));
	ck_assert(is_text(span_member(obj, "c"), NULL));
	ck_assert(is_text(span_element(array, 0), "10"));
	ck_assert(is_text(span_element(array, 1), "\"x,]\""));
	ck_assert(is_text(span_member(span_element(array, 2), "c"), "2"));
	ck_assert(is_text(span_element(array, 3), "[]"));
	ck_assert(is_text(span_element(array, 4), NULL));
	ck_assert(is_text(span_element(span_element(array, 3), 0), NULL));
	ck_assert(is_text(span_member(array, "a"), NULL));
	ck_assert(is_text(span_element(obj, 0), NULL));
	ck_assert(is_text(span_member(SPAN_NONE, "a"), NULL));
	ck_assert(is_text(span_element(SPAN_NONE, 0), NULL));
	ck_assert(is_text(span_member(span_of("{}"), "a"), NULL));
}
END_TEST

START_TEST(walks) {
	struct span obj = span_of("{\"a\":1,\"a\":{\"b\":[]} , \"\":\"\"}"), key, value;
	static const char *const want[][2] = {{"\"a\"", "1"}, {"\"a\"", "{\"b\":[]}"}, {"\"\"", "\"\""}};
	size_t at = 0, n = 0;
	for (; span_next_member(obj, &at, &key, &value); n++) {
		ck_assert_uint_lt(n, ARRAY_SIZE(want));
		ck_assert(is_text(key, want[n][0]) && is_text(value, want[n][1]));
	}
	ck_assert_uint_eq(n, 3);
	ck_assert(!span_next_member(obj, &at, &key, &value));
	static const char *const broken[] = {"[", "[1",     "[1 2]",   "[1,]",       "[1,",
										 "{", "{\"a\"", "{\"a\":", "{\"a\":1,}", "{1:2}"};
	for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
		struct span s = span_of(broken[i]);
		for (at = n = 0; span_next(s, &at, &value); n++) ck_assert_uint_lt(n, 2);
		for (at = n = 0; span_next_member(s, &at, &key, &value); n++) ck_assert_uint_lt(n, 2);
	}
}
END_TEST

START_TEST(kinds) {
	ck_assert(span_is_string(span_of("\"\"")) && span_is_string(span_of("\"a\"")));
	ck_assert(!span_is_string(span_of("1")) && !span_is_string(SPAN_NONE) && !span_is_string(span_of("\"")));
	ck_assert(span_is_object(span_of("{}")) && !span_is_object(span_of("[]")) && !span_is_object(SPAN_NONE));
	ck_assert(span_is_array(span_of("[]")) && !span_is_array(span_of("{}")) && !span_is_array(SPAN_NONE));
	ck_assert(span_is_true(span_of("true")) && !span_is_true(span_of("\"true\"")) && !span_is_true(SPAN_NONE));
	ck_assert(span_equals(span_of("\"abc\""), "abc") && !span_equals(span_of("\"abc\""), "ab"));
	ck_assert(!span_equals(span_of("abc"), "b") && !span_equals(SPAN_NONE, "") && span_equals(span_of("\"\""), ""));
	ck_assert(span_same(span_of("\"a\""), span_of("\"a\"")) && !span_same(span_of("\"a\""), span_of("\"b\"")));
	ck_assert(span_same(SPAN_NONE, SPAN_NONE) && !span_same(SPAN_NONE, span_of("1")));
	ck_assert(is_text(span_content(span_of("\"a\\n\"")), "a\\n") && !span_content(span_of("12")).p);
	ck_assert(is_text(span_content(span_of("\"\"")), ""));
}
END_TEST

START_TEST(whole_numbers) {
	static const struct {
		const char *text;
		int64_t value;
	} good[] = {{"0", 0},
				{"-0", 0},
				{"7", 7},
				{"-12", -12},
				{"9223372036854775807", INT64_MAX},
				{"-9223372036854775808", INT64_MIN}};
	static const char *const wrong[] = {
		"",      "-",   "01",   "1.0", "1e2", "9223372036854775808",    "-9223372036854775809",
		"\"1\"", "- 1", "null", "1 ",  "+1",  "99999999999999999999999"};
	int64_t v;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		REQUIRE(span_int(span_of(good[i].text), &v) && v == good[i].value, "%zu", i);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) REQUIRE(!span_int(span_of(wrong[i]), &v), "%s", wrong[i]);
	ck_assert(!span_int(SPAN_NONE, &v));
}
END_TEST

START_TEST(unescaping) {
	static const struct {
		const char *raw, *text;
	} good[] = {
		{"\"\"", ""},
		{"\"plain\"", "plain"},
		{"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
		{"\"\\u0041\\u00e9\\u20ac\"", "A\xc3\xa9\xe2\x82\xac"},
		{"\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80"},
		{"\"\\uD83D\\uDE00\"", "\xf0\x9f\x98\x80"},
		{"\"\\ud83d\"", "\xef\xbf\xbd"},
		{"\"\\ude00x\"", "\xef\xbf\xbdx"},
		{"\"\\ud83d\\u0041\"", "\xef\xbf\xbd"
							   "A"},
		{"\"\\ud83d\\ud83d\\ude00\"", "\xef\xbf\xbd\xf0\x9f\x98\x80"},
		{"\"\\ud83d\\n\"", "\xef\xbf\xbd\n"},
		{"\"\\udbff\\udfff\"", "\xf4\x8f\xbf\xbf"},
		{"\"\xc3\xa9\"", "\xc3\xa9"},
		{"\"a\xff"
		 "b\"",
		 "a\xef\xbf\xbd"
		 "b"},
		{"\"\xed\xa0\x80\"", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
	};
	static const char *const wrong[] = {"1", "null", "\"\\u0000\"", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"", "\"\\\""};
	size_t len;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		_cleanup_free_ char *text = span_dup(span_of(good[i].raw), &len);
		REQUIRE(text && strcmp(text, good[i].text) == 0 && len == strlen(text), "%s gives %s", good[i].raw, text);
	}
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) REQUIRE(!span_dup(span_of(wrong[i]), NULL), "%s", wrong[i]);
	ck_assert_ptr_null(span_dup(SPAN_NONE, NULL));
	ck_assert_ptr_null(span_dup((struct span){"\"a\0b\"", 5}, NULL));
}
END_TEST

#define START_SLACK 4 /* bytes of the longest character */

/* A beginning is that of the whole text and cuts no character; behind it the string may be wrong. */
START_TEST(the_beginning_of_a_string) {
	static const char *const raw[] = {"\"\"", "\"abcdef\"", "\"a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z\"",
									  "\"\\u00e9\\n\\ud83d\\ude00\\u20ac\"", "\"x\\\\\xc3\xa9\\\"\""};
	size_t whole, len;
	for (size_t i = 0; i < ARRAY_SIZE(raw); i++) {
		_cleanup_free_ char *all = span_dup(span_of(raw[i]), &whole);
		for (size_t max = 0; max < 16; max++) {
			_cleanup_free_ char *text = span_dup_start(span_of(raw[i]), max, &len);
			REQUIRE(text && len == strlen(text) && str_is_utf8(text, len), "%s, %zu", raw[i], max);
			REQUIRE(len <= max + START_SLACK && (len > max || len == whole), "%s, %zu: %zu bytes", raw[i], max, len);
			ck_assert_int_eq(memcmp(text, all, len), 0);
		}
	}
	_cleanup_free_ char *text = span_dup_start(span_of("\"abc\\x\""), 2, &len);
	ck_assert_str_eq(text, "abc");
	ck_assert_ptr_null(span_dup_start(span_of("\"abc\\x\""), 3, NULL));
}
END_TEST

/* The content of the known value could not be walked. */
START_TEST(a_known_value_is_not_looked_at) {
	static const char text[] = "{\"a\":1,\"b\":[\"}],\"c\":2}";
	const struct span all = span_of(text), known = {text + 11, 4};
	struct span key, value;
	size_t at = 0, n = 0;
	static const char *const want[] = {"1", "[\"}]", "2"};
	for (; span_next_member_past(all, &at, &key, &value, known); n++) ck_assert(span_same(value, span_of(want[n])));
	ck_assert_uint_eq(n, 3);
}
END_TEST

RUN_TESTS("scan", every_member, inner_of_a_response, the_last_one_counts,
		  a_later_request_that_is_no_object_hides_the_first, nothing_leaks_from_within, lines_that_are_none,
		  lines_of_the_child, a_raw_carriage_return_between_objects, deep_lines, string_lengths,
		  a_known_value_is_not_looked_at, random_lines_against_the_plain_loop, random_bytes_against_the_plain_loop,
		  random_lines_against_jansson, members_and_elements, walks, kinds, whole_numbers, unescaping,
		  the_beginning_of_a_string)
