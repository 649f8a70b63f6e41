/* SPDX-License-Identifier: MIT */
#include "base/bundle.h"

#include "harness.h"

START_TEST(what_has_one_key_comes_together) {
	struct bundle b = {0};
	struct buf out = BUF_INIT(1000);
	bundle_put(&b, &out);
	ck_assert_str_eq(out.data, "{}");
	buf_puts(bundle_part(&b, "\"x\""), "1");
	buf_puts(bundle_part(&b, "\"y\""), "2");
	buf_puts(bundle_part(&b, "\"x\""), ",3");
	out.len = 0;
	bundle_put(&b, &out);
	ck_assert_str_eq(out.data, "{\"x\":[1,3],\"y\":[2]}");
	out.len = 0;
	bundle_put_elements(&b, &out);
	ck_assert_str_eq(out.data, "1,3,2");
	ck_assert(!out.failed);
	bundle_free(&b);
	buf_free(&out);
}
END_TEST

RUN_TESTS("bundle", what_has_one_key_comes_together)
