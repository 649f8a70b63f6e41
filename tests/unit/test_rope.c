/* SPDX-License-Identifier: MIT */
#include "wire/rope.h"

#include "harness.h"

#include <string.h>

static struct chunk filled(size_t size, char letter) {
	struct block *b = block_new(size);
	memset(block_data(b), letter, size);
	return (struct chunk){b, block_data(b), size};
}

static void is_line(const struct rope *r, const char *want, size_t len) {
	struct chunk line = rope_join(r);
	ck_assert_uint_eq(r->len, len);
	ck_assert(line.len == len && memcmp(line.data, want, len) == 0);
	chunk_drop(&line);
}

START_TEST(a_chunk_is_a_rope_of_one_piece) {
	struct rope r = rope_of(chunk_copy("{}\n", 3)), same = rope_ref(&r), none = rope_of(CHUNK_NONE);
	ck_assert(r.n == 1 && same.parts[0].data == r.parts[0].data && r.parts[0].block->refs == 2);
	rope_drop(&r);
	ck_assert_uint_eq(r.n, 0);
	rope_drop(&r); /* twice is harmless */
	is_line(&same, "{}\n", 3);
	ck_assert_uint_eq(same.parts[0].block->refs, 1);
	rope_drop(&same);
	ck_assert_uint_eq(none.n, 0);
	ck_assert_ptr_null(rope_join(&none).data);
}
END_TEST

START_TEST(short_parts_are_one_piece) {
	struct chunk parts[] = {CHUNK_STATIC("a"), chunk_copy("bc", 2), CHUNK_NONE, CHUNK_STATIC("\n")};
	struct rope r = rope_make(parts, ARRAY_SIZE(parts));
	ck_assert(r.n == 1 && parts[1].block->refs == 1);
	is_line(&r, "abc\n", 4);
	rope_drop(&r);
	chunk_drop(&parts[1]);
}
END_TEST

/* Any row of parts gives its bytes; long ones with a block are views, if there is room for all pieces. */
START_TEST(bytes_in_are_bytes_out) {
	uint64_t seed = 1;
	struct chunk sources[] = {filled(ROPE_VIEW, 'a'), filled(2 * ROPE_VIEW, 'b'), filled(ROPE_FROM, 'c'),
							  filled(9, 'd')};
	char *want = malloc(16 * ROPE_FROM);
	for (int round = 0; round < rounds(400); round++) {
		struct chunk parts[16];
		size_t n = rng_below(&seed, ARRAY_SIZE(parts)), len = 0, views = 0;
		for (size_t i = 0; i < n; i++) {
			parts[i] = sources[rng_below(&seed, ARRAY_SIZE(sources))];
			if (rng_below(&seed, 3) == 0) parts[i].len = rng_below(&seed, 2) ? parts[i].len - 1 : 0;
			if (rng_below(&seed, 8) == 0) parts[i].block = NULL;
			if (parts[i].len) memcpy(want + len, parts[i].data, parts[i].len);
			len += parts[i].len;
			views += parts[i].block && parts[i].len >= ROPE_VIEW;
		}
		struct rope r = rope_make(parts, n), same = rope_ref(&r);
		ck_assert_uint_le(r.n, ROPE_PARTS);
		if (len < ROPE_FROM || views > ROPE_PARTS) ck_assert_uint_eq(r.n, 1);
		if (len >= ROPE_FROM && views <= ROPE_PARTS / 2 - 1) ck_assert_uint_ge(r.n, views);
		is_line(&r, want, len);
		rope_drop(&r);
		is_line(&same, want, len);
		rope_drop(&same);
	}
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
		ck_assert_uint_eq(sources[i].block->refs, 1);
		chunk_drop(&sources[i]);
	}
	free(want);
}
END_TEST

START_TEST(only_a_long_line_is_kept_as_a_view) {
	struct chunk small = filled(ROPE_FROM - 1, 'x'), large = filled(ROPE_FROM, 'y');
	struct chunk one = rope_keep(small), two = rope_keep(large);
	ck_assert(one.block != small.block && one.len == small.len && memcmp(one.data, small.data, one.len) == 0);
	ck_assert(two.block == large.block && two.data == large.data && two.len == large.len);
	struct chunk *all[] = {&small, &large, &one, &two};
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) chunk_drop(all[i]);
}
END_TEST

RUN_TESTS("rope", a_chunk_is_a_rope_of_one_piece, short_parts_are_one_piece, bytes_in_are_bytes_out,
		  only_a_long_line_is_kept_as_a_view)
