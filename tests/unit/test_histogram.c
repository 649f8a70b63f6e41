/* SPDX-License-Identifier: MIT */
#include "base/histogram.h"

#include "harness.h"

START_TEST(none_has_no_percentile) {
	struct histogram h = {0};
	ck_assert_uint_eq(histogram_percentile(&h, 99), 0);
	ck_assert_uint_eq(h.longest, 0);
}
END_TEST

/* Each value is in a bucket with an upper bound of at least the value and at most an eighth more. */
START_TEST(a_bucket_is_an_eighth_wide) {
	for (uint64_t v = 0; v <= HISTOGRAM_MAX; v = v < 100 ? v + 1 : v + v / 7) {
		struct histogram h = {0};
		histogram_add(&h, v);
		h.longest = UINT64_MAX; /* else the longest value is the bound */
		uint64_t got = histogram_percentile(&h, 100);
		ck_assert_msg(got >= v && got <= v + v / 8, "%llu: %llu", (unsigned long long)v, (unsigned long long)got);
	}
}
END_TEST

START_TEST(percentiles) {
	struct histogram h = {0};
	for (unsigned i = 0; i < 990; i++) histogram_add(&h, 3);
	for (unsigned i = 0; i < 10; i++) histogram_add(&h, 5000 + i);
	ck_assert_uint_eq(histogram_percentile(&h, 50), 3);
	ck_assert_uint_eq(histogram_percentile(&h, 99), 3);
	ck_assert_uint_eq(histogram_percentile(&h, 100), 5009);
	histogram_add(&h, 5000); /* now more than one in a hundred */
	ck_assert_uint_ge(histogram_percentile(&h, 99), 5000);
	ck_assert_uint_eq(h.longest, 5009);
	ck_assert_uint_eq(h.n, 1001);
}
END_TEST

START_TEST(what_is_too_long_is_counted) {
	struct histogram h = {0};
	histogram_add(&h, UINT64_MAX);
	ck_assert_uint_eq(h.longest, UINT64_MAX);
	ck_assert_uint_eq(histogram_percentile(&h, 99), HISTOGRAM_MAX);
}
END_TEST

RUN_TESTS("histogram", none_has_no_percentile, a_bucket_is_an_eighth_wide, percentiles, what_is_too_long_is_counted)
