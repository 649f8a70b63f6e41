/* SPDX-License-Identifier: MIT */
#include "wire/chunk.h"

#include "harness.h"

#include <string.h>

START_TEST(a_copy_is_its_own) {
	char text[] = "hello";
	struct chunk c = chunk_copy(text, 5);
	text[0] = 'j';
	ck_assert_uint_eq(c.len, 5);
	ck_assert_mem_eq(c.data, "hello", 5);
	ck_assert_uint_eq(c.block->refs, 1);
	chunk_drop(&c);
	ck_assert_ptr_null(c.data);
	ck_assert_ptr_null(c.block);
	chunk_drop(&c); /* twice is harmless */
}
END_TEST

START_TEST(views_count) {
	struct chunk c = chunk_copy("one\ntwo\n", 8);
	struct chunk one = chunk_view(c, 0, 4), two = chunk_view(c, 4, 4), all = chunk_ref(c);
	ck_assert_uint_eq(c.block->refs, 4);
	chunk_drop(&c);
	chunk_drop(&all);
	ck_assert_mem_eq(one.data, "one\n", 4);
	chunk_drop(&one);
	ck_assert_uint_eq(two.block->refs, 1);
	ck_assert_mem_eq(two.data, "two\n", 4);
	chunk_drop(&two);
}
END_TEST

START_TEST(lines_of_a_chunk) {
	struct chunk c = chunk_copy("one\n\nthree\nrest", 15), line;
	size_t at = 0;
	static const char *const want[] = {"one\n", "\n", "three\n"};
	for (size_t i = 0; i < 3; i++) {
		line = chunk_next_line(c, &at);
		ck_assert_uint_eq(line.len, strlen(want[i]));
		ck_assert_mem_eq(line.data, want[i], line.len);
		chunk_drop(&line);
	}
	ck_assert_ptr_null(chunk_next_line(c, &at).data); /* the rest is no line */
	chunk_drop(&c);
	at = 0;
	ck_assert_ptr_null(chunk_next_line(CHUNK_NONE, &at).data);
}
END_TEST

START_TEST(static_bytes_are_not_freed) {
	struct chunk c = CHUNK_STATIC("static\n"), view = chunk_view(c, 1, 3);
	ck_assert_uint_eq(c.len, 7);
	ck_assert_mem_eq(view.data, "tat", 3);
	chunk_drop(&view);
	chunk_drop(&c);
}
END_TEST

START_TEST(joins) {
	struct chunk mine = chunk_copy("b", 1);
	const struct chunk parts[] = {CHUNK_STATIC("a"), CHUNK_NONE, mine, CHUNK_STATIC(""), CHUNK_STATIC("cd")};
	struct chunk all = chunk_join(parts, ARRAY_SIZE(parts)), none = chunk_join(NULL, 0);
	ck_assert_uint_eq(all.len, 4);
	ck_assert_mem_eq(all.data, "abcd", 4);
	ck_assert_uint_eq(mine.block->refs, 1);
	ck_assert_uint_eq(none.len, 0);
	ck_assert_ptr_nonnull(none.data);
	chunk_drop(&all);
	chunk_drop(&none);
	chunk_drop(&mine);
}
END_TEST

START_TEST(blocks_resize) {
	struct block *b = block_new(10);
	memcpy(block_data(b), "0123456789", 10);
	b = block_resize(b, 100000);
	ck_assert_uint_eq(b->cap, 100000);
	ck_assert_mem_eq(block_data(b), "0123456789", 10);
	b = block_resize(b, 4);
	ck_assert_uint_eq(b->cap, 4);
	ck_assert_mem_eq(block_data(b), "0123", 4);
	ck_assert_uint_eq(b->refs, 1);
	block_unref(b);
	block_unref(NULL);
	ck_assert_ptr_null(block_ref(NULL));
}
END_TEST

START_TEST(sizes_that_no_memory_has) {
	ck_assert_ptr_null(block_new(SIZE_MAX));
	ck_assert_ptr_null(block_new(SIZE_MAX - sizeof(struct block)));
	struct block *b = block_new(1);
	ck_assert_ptr_null(block_resize(b, SIZE_MAX));
	ck_assert_uint_eq(b->cap, 1);
	block_unref(b);
}
END_TEST

RUN_TESTS("chunk", a_copy_is_its_own, views_count, lines_of_a_chunk, static_bytes_are_not_freed, joins, blocks_resize,
		  sizes_that_no_memory_has)
