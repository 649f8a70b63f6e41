/* SPDX-License-Identifier: MIT */
#include "dialect/memo.h"
#include "harness.h"

#include <stdlib.h>
#include <string.h>

static void is(const struct memo *m, const char *name, const char *json) {
	struct span s = memo_get(m, name);
	if (json)
		REQUIRE(span_same(s, span_of(json)), "%s: %.*s", name, (int)s.n, s.p ? s.p : "");
	else
		ck_assert_ptr_null(s.p);
}

START_TEST(values_come_and_go) {
	struct memo m = {0};
	memo_set(&m, "a", span_of("{\"x\":1}"));
	memo_set(&m, "b", span_of("\"text\""));
	is(&m, "a", "{\"x\":1}");
	uint64_t before = m.version;
	memo_set(&m, "b", span_of("\"text\"")); /* no change */
	ck_assert_uint_eq(m.version, before);
	memo_set(&m, "b", span_of("2"));
	is(&m, "b", "2");
	ck_assert_uint_gt(m.version, before);
	memo_set(&m, "a", SPAN_NONE);
	is(&m, "a", NULL);
	memo_set(&m, "b", span_of("{\"broken\":")); /* it cannot be kept, and the old one is not true any more */
	is(&m, "b", NULL);
	memo_set(&m, "a", span_of("1"));
	before = m.version;
	memo_free(&m);
	ck_assert_uint_gt(m.version, before); /* the table on disk must not keep its text */
}
END_TEST

START_TEST(a_text_restores_it) {
	struct memo m = {0}, other = {0};
	ck_assert_ptr_null(memo_text(&m, true));
	memo_set(&m, "a", span_of("[1,2]"));
	memo_set(&m, "~brief", span_of("3"));
	ck_assert_uint_eq(m.version, 1);
	char *all = memo_text(&m, true), *kept = memo_text(&m, false);
	ck_assert_str_eq(all, "{\"a\":[1,2],\"~brief\":3}");
	ck_assert_str_eq(kept, "{\"a\":[1,2]}");
	memo_restore(&other, all);
	is(&other, "a", "[1,2]");
	is(&other, "~brief", "3");
	memo_free(&other);
	memo_restore(&other, NULL);
	memo_restore(&other, "{\"a\":");
	is(&other, "a", NULL);
	free(all);
	free(kept);
	memo_free(&m);
}
END_TEST

RUN_TESTS("memo", values_come_and_go, a_text_restores_it)
