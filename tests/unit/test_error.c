/* SPDX-License-Identifier: MIT */
#include "base/error.h"

#include "harness.h"

#include <string.h>

START_TEST(text_is_formatted) {
	struct error e;
	ck_assert(!error_set(&e, "file %s: line %d", "x", 7));
	ck_assert_str_eq(e.text, "file x: line 7");
}
END_TEST

START_TEST(long_text_is_truncated) {
	struct error e;
	error_set(&e, "%0*d", 2 * ERROR_TEXT_MAX, 1);
	ck_assert_uint_eq(strlen(e.text), ERROR_TEXT_MAX - 1);
}
END_TEST

RUN_TESTS("error", text_is_formatted, long_text_is_truncated)
