/* SPDX-License-Identifier: MIT */
#include "base/buf.h"

#include "harness.h"

#include <string.h>

START_TEST(grows_and_stays_terminated) {
	struct buf b = BUF_INIT(1000);
	ck_assert(buf_puts(&b, "one"));
	ck_assert(buf_putc(&b, ','));
	ck_assert(buf_put(&b, "t\0o", 3));
	ck_assert(buf_printf(&b, " %d%s", 42, "!"));
	ck_assert(buf_puts(&b, ""));
	ck_assert(buf_put(&b, NULL, 0));
	ck_assert_uint_eq(b.len, 11);
	ck_assert_mem_eq(b.data, "one,t\0o 42!", 12);
	buf_free(&b);
	ck_assert_ptr_null(b.data);
	ck_assert_uint_eq(b.max, 1000);
}
END_TEST

START_TEST(any_sizes) {
	uint64_t seed = 1;
	char model[20000];
	size_t len = 0;
	struct buf b = BUF_INIT(sizeof model);
	while (len < 19000) {
		size_t n = rng_below(&seed, 300);
		for (size_t i = 0; i < n; i++) model[len + i] = (char)rng_next(&seed);
		REQUIRE(buf_put(&b, model + len, n), "at %zu", len);
		len += n;
		REQUIRE(b.len == len && b.cap > b.len && (n == 0 || b.data[len] == 0), "at %zu", len);
	}
	ck_assert_mem_eq(b.data, model, len);
	buf_free(&b);
}
END_TEST

START_TEST(the_maximum_is_hard) {
	struct buf b = BUF_INIT(5);
	ck_assert(buf_puts(&b, "12345"));
	ck_assert(!buf_putc(&b, '6'));
	ck_assert(b.failed);
	ck_assert_str_eq(b.data, "12345");
	ck_assert(!buf_puts(&b, "")); /* a failure is kept */
	ck_assert_ptr_null(buf_steal(&b, NULL));
	ck_assert_ptr_null(b.data);
	struct buf p = BUF_INIT(3);
	ck_assert(!buf_printf(&p, "%s", "four"));
	ck_assert(p.failed && p.len == 0);
	buf_free(&p);
}
END_TEST

START_TEST(sizes_that_cannot_be) {
	struct buf b = BUF_INIT(SIZE_MAX);
	ck_assert(buf_puts(&b, "x"));
	ck_assert(!buf_reserve(&b, SIZE_MAX - 1));
	ck_assert(b.failed);
	ck_assert_str_eq(b.data, "x");
	buf_free(&b);
}
END_TEST

START_TEST(stealing) {
	struct buf b = BUF_INIT(100), empty = BUF_INIT(100);
	size_t len = 99;
	buf_puts(&b, "mine");
	_cleanup_free_ char *text = buf_steal(&b, &len), *none = buf_steal(&empty, NULL);
	ck_assert_str_eq(text, "mine");
	ck_assert_uint_eq(len, 4);
	ck_assert_str_eq(none, "");
	ck_assert_ptr_null(b.data);
	ck_assert(buf_puts(&b, "again")); /* the buffer is usable again */
	ck_assert_str_eq(b.data, "again");
	buf_free(&b);
}
END_TEST

RUN_TESTS("buf", grows_and_stays_terminated, any_sizes, the_maximum_is_hard, sizes_that_cannot_be, stealing)
