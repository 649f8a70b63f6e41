/* SPDX-License-Identifier: MIT */
#include "wire/splice.h"

#include "harness.h"

#include <stdio.h>
#include <string.h>

static struct span span_in(struct span line, const char *text) {
	const char *at = strstr(line.p, text);
	return at ? (struct span){at, strlen(text)} : SPAN_NONE;
}

static void is_chunk(struct chunk c, const char *want) {
	REQUIRE(c.data && c.len == strlen(want) && memcmp(c.data, want, c.len) == 0, "%.*s", (int)c.len, c.data);
	chunk_drop(&c);
}

START_TEST(bodies) {
	static const char *const lines[] = {"{}\n", "{}\r\n", "{}", "{}\r\n\n"};
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		struct span body = splice_body((struct chunk){NULL, lines[i], strlen(lines[i])});
		ck_assert_uint_eq(body.n, 2);
		ck_assert_ptr_eq(body.p, lines[i]);
	}
	ck_assert_uint_eq(splice_body((struct chunk){NULL, "\n", 1}).n, 0);
}
END_TEST

START_TEST(a_line_has_one_lf) {
	static const char *const lines[] = {"{}\r\n", "{}"};
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		struct chunk line = {NULL, lines[i], strlen(lines[i])};
		is_chunk(splice_line(line, splice_body(line)), "{}\n");
	}
}
END_TEST

START_TEST(a_line_that_is_so_already_is_shared) {
	struct chunk line = chunk_copy("{\"a\":1}\n", 8), out = splice_line(line, splice_body(line));
	ck_assert_ptr_eq(out.block, line.block);
	ck_assert_ptr_eq(out.data, line.data);
	ck_assert_uint_eq(out.len, line.len);
	chunk_drop(&out);
	chunk_drop(&line);
}
END_TEST

START_TEST(only_those_bytes_are_replaced) {
	static const char line[] = " { \"request_id\" : \"1\" , \"n\":1.00}\n";
	static const char *const ids[] = {"\"1\"", "\"\"", "\"req_1_0123456789\""};
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		char want[200];
		struct span old = span_in(span_of(line), "\"1\"");
		snprintf(want, sizeof want, " { \"request_id\" : %s , \"n\":1.00}\n", ids[i]);
		is_chunk(splice_replace(line, sizeof line - 1, old, ids[i], strlen(ids[i])), want);
	}
}
END_TEST

START_TEST(a_string_takes_the_place_of_another) {
	struct span body = span_of(" {\"uuid\" : \"u-1\", \"n\":1.00 }");
	is_chunk(splice_string(body, span_in(body, "\"u-1\""), "uuid", "u-2"), " {\"uuid\" : \"u-2\", \"n\":1.00 }\n");
	body = span_of("{\"request_id\":17}");
	is_chunk(splice_string(body, span_in(body, "17"), "request_id", "req_1"), "{\"request_id\":\"req_1\"}\n");
}
END_TEST

START_TEST(a_string_that_was_not_there_comes_first) {
	struct span body = span_of("  { \"type\":\"user\"}");
	is_chunk(splice_string(body, SPAN_NONE, "uuid", "u-2"), "  {\"uuid\":\"u-2\", \"type\":\"user\"}\n");
}
END_TEST

RUN_TESTS("splice", bodies, a_line_has_one_lf, a_line_that_is_so_already_is_shared, only_those_bytes_are_replaced,
		  a_string_takes_the_place_of_another, a_string_that_was_not_there_comes_first)
