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

/* The same of a body with one edit. */
static void is_edited(struct span body, struct splice_edit edit, const char *want) {
	struct rope r = splice_edits((struct chunk){NULL, body.p, body.n}, body, &edit, 1, CHUNK_NONE);
	is_chunk(rope_join(&r), want);
	rope_drop(&r);
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
	is_edited(body, splice_string(body, span_in(body, "\"u-1\""), "uuid", "u-2"),
			  " {\"uuid\" : \"u-2\", \"n\":1.00 }\n");
	body = span_of("{\"request_id\":17}");
	is_edited(body, splice_string(body, span_in(body, "17"), "request_id", "req_1"), "{\"request_id\":\"req_1\"}\n");
}
END_TEST

START_TEST(a_string_that_was_not_there_comes_first) {
	struct span body = span_of("  { \"type\":\"user\"}");
	is_edited(body, splice_string(body, SPAN_NONE, "uuid", "u-2"), "  {\"uuid\":\"u-2\", \"type\":\"user\"}\n");
	body = span_of("{ }");
	is_edited(body, splice_string(body, SPAN_NONE, "uuid", "u-2"), "{\"uuid\":\"u-2\" }\n");
}
END_TEST

/* Return a chunk of size bytes of this letter; it ends with a newline. */
static struct chunk long_line(size_t size, char letter) {
	struct block *b = block_new(size);
	memset(block_data(b), letter, size - 1);
	block_data(b)[size - 1] = '\n';
	return (struct chunk){b, block_data(b), size};
}

/* A long line with other bytes in three places, one of them a long value of another line: nothing long is copied, if
 * there is room for so many pieces. */
START_TEST(long_pieces_are_shared) {
	static const size_t size = 1 << 20, firsts[] = {10, ROPE_VIEW};
	struct chunk line = long_line(3 * size, 'x'), other = long_line(size, 'y');
	for (int i = 0; i < 4; i++) {
		size_t first = firsts[i / 2];
		struct splice_edit edits[SPLICE_EDITS];
		size_t n = 0;
		splice_add(edits, &n, (struct splice_edit){line.data + 2 * size, 3, {{"c", 1}}});
		splice_add(edits, &n, (struct splice_edit){line.data + first, 2, {{"a", 1}}});
		splice_add(edits, &n, (struct splice_edit){line.data + size, 0, {{"(", 1}, {other.data, size - 1}, {")", 1}}});
		struct span body = i % 2 ? (struct span){line.data, line.len} : splice_body(line);
		struct rope r = splice_edits(line, body, edits, n, other);
		struct chunk got = rope_join(&r), want = long_line(4 * size - 2, 'x');
		char *text = block_data(want.block);
		text[first] = 'a';
		text[size - 1] = '(';
		memset(text + size, 'y', size - 1);
		text[2 * size - 1] = ')';
		text[3 * size] = 'c';
		ck_assert_uint_eq(r.len, want.len);
		ck_assert_uint_eq(r.n, first == 10 ? ROPE_PARTS : 1);
		ck_assert_uint_eq(line.block->refs, first == 10 ? 4 : 1);
		ck_assert_uint_eq(other.block->refs, first == 10 ? 2 : 1);
		ck_assert(got.len == r.len && memcmp(got.data, text, got.len) == 0);
		chunk_drop(&got);
		chunk_drop(&want);
		rope_drop(&r);
	}
	ck_assert(line.block->refs == 1 && other.block->refs == 1);
	chunk_drop(&line);
	chunk_drop(&other);
}
END_TEST

/* Short lines are copied: a view would keep the memory of their neighbours. */
START_TEST(short_lines_are_copied) {
	struct chunk line = long_line(ROPE_FROM - 10, 'x');
	struct splice_edit edit = {line.data + 10, 1, {{"abc", 3}}};
	struct rope r = splice_edits(line, splice_body(line), &edit, 1, CHUNK_NONE);
	ck_assert(r.n == 1 && r.len == line.len + 2 && r.parts[0].block != line.block && line.block->refs == 1);
	ck_assert_mem_eq(r.parts[0].data, "xxxxxxxxxxabcx", 14);
	rope_drop(&r);
	chunk_drop(&line);
}
END_TEST

RUN_TESTS("splice", long_pieces_are_shared, short_lines_are_copied, bodies, a_line_has_one_lf,
		  a_line_that_is_so_already_is_shared, only_those_bytes_are_replaced, a_string_takes_the_place_of_another,
		  a_string_that_was_not_there_comes_first)
