/* SPDX-License-Identifier: MIT */
#include "base/words.h"

#include <check.h>
#include <stdlib.h>

START_TEST(test_list) {
	struct words a = {0}, b = {0};
	ck_assert(words_add(&a, "one") && words_add(&a, ""));
	ck_assert(words_copy(&b, &a) && words_copy(&b, &a));
	ck_assert_uint_eq(b.n, 4);
	ck_assert_ptr_null(b.v[4]);
	words_free(&a);
	ck_assert_str_eq(b.v[2], "one");
	words_free(&b);
	ck_assert_ptr_null(b.v);
	words_free(&b);
}
END_TEST

static void words_are(const struct words *w, const char *const *want) {
	size_t n = 0;
	for (; want[n]; n++) {
		ck_assert_uint_lt(n, w->n);
		ck_assert_str_eq(w->v[n], want[n]);
	}
	ck_assert_uint_eq(w->n, n);
}
#define WORDS(w, ...) words_are(w, (const char *const[]){__VA_ARGS__, NULL})

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

int main(void) {
	Suite *suite = suite_create("words");
	TCase *tc = tcase_create("all");
	suite_add_tcase(suite, tc);
	tcase_add_test(tc, test_list);
	tcase_add_test(tc, test_split);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
