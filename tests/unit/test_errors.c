/* SPDX-License-Identifier: MIT */
#include "config/errors.h"

#include "harness.h"

static struct errors m;

static void setup(void) {
	m = (struct errors){0};
}

static void teardown(void) {
	errors_free(&m);
}

START_TEST(place_precedes_the_text) {
	ck_assert(!errors_add(&m, (struct place){"a.conf", 7}, "%s: unknown key", "colour"));
	ck_assert(!errors_add(&m, (struct place){"a.conf", 0}, "is empty"));
	ck_assert(!errors_add(&m, (struct place){0}, "no file"));
	ck_assert_uint_eq(m.n, 3);
	ck_assert_str_eq(errors_text(&m, 0), "a.conf:7: colour: unknown key");
	ck_assert_str_eq(errors_text(&m, 1), "a.conf: is empty");
	ck_assert_str_eq(errors_text(&m, 2), "no file");
}
END_TEST

START_TEST(text_is_safe_for_terminals) {
	errors_add(&m, (struct place){"a.conf", 1}, "bad value '%s'", "\033[2J\n");
	ck_assert_ptr_null(strchr(errors_text(&m, 0), '\033'));
	ck_assert_ptr_null(strchr(errors_text(&m, 0), '\n'));
}
END_TEST

START_TEST(long_value_is_cut) {
	char value[4000];
	memset(value, 'x', sizeof value);
	value[sizeof value - 1] = 0;
	errors_add(&m, (struct place){"a.conf", 1}, "bad value '%s'", value);
	ck_assert_uint_lt(strlen(errors_text(&m, 0)), 600);
}
END_TEST

START_TEST(summary_counts_the_rest) {
	struct error out;
	errors_add(&m, (struct place){"a.conf", 1}, "first");
	errors_sum_up(&m, &out);
	ck_assert_str_eq(out.text, "a.conf:1: first");
	errors_add(&m, (struct place){"a.conf", 2}, "second");
	errors_add_memory(&m);
	errors_sum_up(&m, &out);
	ck_assert_ptr_eq(strstr(out.text, "a.conf:1: first (and 2 more: "), out.text);
}
END_TEST

START_TEST(lost_text_is_still_counted) {
	m.n = 1; /* out of memory: counted, but not in the list */
	struct error out;
	ck_assert_str_eq(errors_text(&m, 0), "out of memory");
	errors_sum_up(&m, &out);
	ck_assert_str_eq(out.text, "out of memory");
}
END_TEST

RUN_TESTS_WITH(setup, teardown, "errors", place_precedes_the_text, text_is_safe_for_terminals, long_value_is_cut,
			   summary_counts_the_rest, lost_text_is_still_counted)
