/* SPDX-License-Identifier: MIT */
#include "harness.h"
#include "words.h"

#include <stdlib.h>

START_TEST(test_list) {
	struct words w = {0};
	ck_assert(words_add(&w, "one") && words_add(&w, ""));
	ck_assert_uint_eq(w.n, 2);
	ck_assert_str_eq(w.v[1], "");
	ck_assert_ptr_null(w.v[2]);
	words_free(&w);
	ck_assert_ptr_null(w.v);
	words_free(&w);
}
END_TEST

START_TEST(test_named) {
	struct words w = {0};
	ck_assert_int_eq(words_named(&w, "A", 1), -1);
	ck_assert(words_add(&w, "AB=1") && words_add(&w, "A=2") && words_add(&w, "A=3") && words_add(&w, "B"));
	ck_assert_int_eq(words_named(&w, "A", 1), 1);
	ck_assert_int_eq(words_named(&w, "AB=x", 2), 0);
	ck_assert_int_eq(words_named(&w, "B", 1), -1);
	ck_assert_int_eq(words_named(&w, "", 0), -1);
	words_free(&w);
}
END_TEST

START_TEST(test_split) {
	struct words w = {0};
	const char *why = NULL;
	ck_assert(words_split(&w, "  a\t'b c'd \"e\\\"f\\n\" g\\ h '' ", &why));
	WORDS(&w, "a", "b cd", "e\"f\\n", "g h", "");
	words_free(&w);
	ck_assert(words_split(&w, "", &why));
	ck_assert_uint_eq(w.n, 0);
	ck_assert(!words_split(&w, "a 'b", &why));
	ck_assert_ptr_nonnull(why);
	ck_assert_uint_eq(w.n, 0);
}
END_TEST

RUN_TESTS("words", test_list, test_named, test_split)
