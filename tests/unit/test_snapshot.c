/* SPDX-License-Identifier: MIT */
#include "core/snapshot.h"

#include "dialect/claude/claude.h"
#include "harness.h"
#include "plenum/protocol.h"

static const struct dialect plain = {.name = "plain"}; /* with nothing that may be absent */

START_TEST(models) {
	struct snapshot sn = {0};
	snapshot_changed(&sn, &claude_dialect, PLENUM_WHAT_MODEL, span_of("\"x\""));
	ck_assert_str_eq(sn.model, "\"x\"");
	snapshot_changed(&sn, &claude_dialect, PLENUM_WHAT_MODEL, span_of("\"default\"")); /* only the child knows it */
	ck_assert_ptr_null(sn.model);
	snapshot_changed(&sn, &plain, PLENUM_WHAT_MODEL, span_of("\"default\""));
	ck_assert_str_eq(sn.model, "\"default\"");
	snapshot_free(&sn);
}
END_TEST

START_TEST(modes) {
	struct snapshot sn = {0};
	snapshot_mode(&sn, span_of("\"plan\""));
	ck_assert_ptr_null(snapshot_strict(&sn, &plain));
	ck_assert_str_eq(snapshot_strict(&sn, &claude_dialect), "plan");
	snapshot_child_gone(&sn, &claude_dialect);
	ck_assert_str_eq(snapshot_strict(&sn, &claude_dialect), "plan");
	snapshot_set_strict(&sn, &plain, "plan");
	ck_assert_ptr_null(sn.strict);
	snapshot_set_strict(&sn, &claude_dialect, "unknown");
	ck_assert_str_eq(sn.strict, "\"plan\"");
	snapshot_free(&sn);
}
END_TEST

RUN_TESTS("snapshot", models, modes)
