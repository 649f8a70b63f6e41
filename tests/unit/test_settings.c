/* SPDX-License-Identifier: MIT */
#include "base/log.h"
#include "core/settings.h"
#include "harness.h"

#include <check.h>

START_TEST(test_defaults) {
	struct settings *s = settings_new();
	ck_assert_ptr_nonnull(s);
	ck_assert_str_eq(s->profiles[0].name, "claude");
	ck_assert_str_eq(s->profiles[1].name, "fake");
	ck_assert_ptr_nonnull(settings_profile(s, "gemini"));
	ck_assert_ptr_null(s->socket);
	ck_assert_str_eq(s->default_profile, "claude");
	ck_assert_int_eq(s->log_level, LOG_INFO);
	ck_assert_uint_eq(s->max_sessions, 1024);
	ck_assert_uint_eq(s->max_children, 256);
	ck_assert_uint_eq(s->max_clients, 16384);
	ck_assert_uint_eq(s->limits.tape_lines, 65536);
	ck_assert(s->allow.n_uids == 0 && s->allow.n_gids == 0);
	settings_unref(s);
}
END_TEST

START_TEST(test_profile_claude) {
	struct settings *s = settings_new();
	const struct profile *p = settings_profile(s, "claude");
	ck_assert_ptr_nonnull(p);
	ck_assert_uint_eq(p->command.n, 11);
	ck_assert_str_eq(p->command.v[0], "claude");
	ck_assert_str_eq(p->command.v[10], "--replay-user-messages");
	ck_assert_ptr_null(p->command.v[11]);
	ck_assert_str_eq(p->env.v[0], "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS=1");
	ck_assert_str_eq(p->resume_args.v[0], "--resume={id}");
	ck_assert_uint_eq(p->session_id_args.n, 0);
	ck_assert_str_eq(p->pass_env.v[0], "*");
	ck_assert(p->permission_wait == SETTINGS_NEVER);
	ck_assert_int_eq(p->owner_grace, 15000);
	ck_assert_int_eq(p->control_timeout, 60000);
	ck_assert_int_eq(p->idle_sleep, 1800000);
	ck_assert_int_eq(p->stop_grace, 5000);
	ck_assert(!p->prompts_queue && !p->restart_never && !p->is_private);
	settings_unref(s);
}
END_TEST

START_TEST(test_profile_fake) {
	struct settings *s = settings_new();
	const struct profile *p = settings_profile(s, "fake");
	ck_assert_ptr_nonnull(p);
	ck_assert_str_eq(p->command.v[0], "plenum-fakeagent");
	ck_assert_uint_eq(p->session_id_args.n, 0);
	ck_assert_ptr_null(settings_profile(s, "other"));
	settings_unref(s);
}
END_TEST

START_TEST(test_refs_and_profiles) {
	struct settings *s = settings_new();
	struct settings *again = settings_ref(s);
	struct profile *p = settings_add_profile(s, "mine");
	ck_assert_ptr_nonnull(p);
	ck_assert_str_eq(p->dialect->name, "claude");
	settings_unref(s);
	ck_assert_ptr_nonnull(settings_profile(again, "mine"));
	settings_unref(again);
	settings_unref(NULL);
	ck_assert_ptr_null(settings_ref(NULL));
}
END_TEST

RUN_TESTS("settings", test_defaults, test_profile_claude, test_profile_fake, test_refs_and_profiles)
