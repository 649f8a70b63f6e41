/* SPDX-License-Identifier: MIT */
#include "base/names.h"

#include "harness.h"

START_TEST(each_once_and_in_order) {
	struct names s = {0};
	ck_assert(!names_have(&s, "a", 1));
	ck_assert(names_add(&s, "b", 1) && names_add(&s, "a", 1) && names_add(&s, "b", 1) && names_add(&s, "", 0));
	ck_assert_uint_eq(names_count(&s), 3);
	ck_assert(names_have(&s, "ab", 1) && names_have(&s, "", 0) && !names_have(&s, "ab", 2));
	ck_assert_str_eq(s.table->text, "b");
	const struct name *second = s.table->hh.next;
	ck_assert_str_eq(second->text, "a");
	names_free(&s);
	ck_assert_uint_eq(names_count(&s), 0);
}
END_TEST

START_TEST(any_bytes) {
	struct names s = {0};
	ck_assert(names_add(&s, "a\0b", 3));
	ck_assert(names_have(&s, "a\0b", 3) && !names_have(&s, "a\0c", 3) && !names_have(&s, "a", 1));
	names_free(&s);
}
END_TEST

RUN_TESTS("names", each_once_and_in_order, any_bytes)
