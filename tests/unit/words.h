/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of word lists: compare with these words exactly.
 */
#pragma once

#include "base/words.h"

#include <check.h>

static inline void words_are(const struct words *w, const char *const *want) {
	size_t n = 0;
	for (; want[n]; n++) {
		ck_assert_uint_lt(n, w->n);
		ck_assert_str_eq(w->v[n], want[n]);
	}
	ck_assert_uint_eq(w->n, n);
}
#define WORDS(w, ...) words_are(w, (const char *const[]){__VA_ARGS__, NULL})
