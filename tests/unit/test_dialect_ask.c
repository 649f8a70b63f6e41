/* SPDX-License-Identifier: MIT */
#include "dialect/dialect_ask.h"
#include "harness.h"

#include <check.h>

START_TEST(who_may_begin) {
	static const struct {
		struct dialect_ask ask;
		bool begun;
		enum dialect_kept want;
	} table[] = {
		{{.may_begin = true, .waits = true}, false, KEPT_LATER},
		{{.may_begin = true, .waits = true}, true, KEPT_ANOTHER}, /* by another request */
		{{.may_begin = true, .waits = true, .conversation = "c"}, false, KEPT_ANOTHER},
		{{.may_begin = true}, false, KEPT_ANOTHER},
		{{.waits = true}, false, KEPT_FORBIDDEN},
	};
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		const char *error = NULL;
		REQUIRE(dialect_ask_may_begin(&table[i].ask, table[i].begun, &error) == table[i].want, "row %zu", i);
		REQUIRE(!error == (table[i].want != KEPT_FORBIDDEN), "row %zu", i);
	}
}
END_TEST

START_TEST(the_conversation_of_the_session) {
	struct envelope e = {.session_id = span_of("\"c\"")};
	ck_assert(dialect_ask_names_own(&(struct dialect_ask){.e = &e, .conversation = "c"}));
	ck_assert(!dialect_ask_names_own(&(struct dialect_ask){.e = &e, .conversation = "d"}));
	ck_assert(!dialect_ask_names_own(&(struct dialect_ask){.e = &e}));
	e.session_id = SPAN_NONE;
	ck_assert(!dialect_ask_names_own(&(struct dialect_ask){.e = &e, .conversation = "c"}));
}
END_TEST

RUN_TESTS("dialect_ask", who_may_begin, the_conversation_of_the_session)
