/* SPDX-License-Identifier: MIT */
#include "core/sessions.h"

#include "dialect/dialect.h"
#include "world.h"

START_TEST(names) {
	char longest[SESSIONS_NAME_MAX + 2], made_up[SESSIONS_MADE_UP_MAX];
	memset(longest, 'x', sizeof longest);
	longest[SESSIONS_NAME_MAX] = 0;
	ck_assert(sessions_is_name("a") && sessions_is_name("über/die welt") && sessions_is_name(longest));
	longest[SESSIONS_NAME_MAX] = 'x';
	longest[SESSIONS_NAME_MAX + 1] = 0;
	ck_assert(!sessions_is_name(longest) && !sessions_is_name("") && !sessions_is_name("a\nb"));
	ck_assert(!sessions_is_name("\xff") && !sessions_is_name("a\xe2\x80\xae"));
	sessions_make_up_name(world.router, made_up);
	ck_assert(sessions_is_name(made_up));
	ck_assert_ptr_null(router_find(world.router, made_up));
}
END_TEST

START_TEST(a_new_one_is_announced) {
	struct client *subscriber = world_client();
	router_subscribe(subscriber, true);
	struct session *s = world_session("two");
	HAS(world_said(subscriber), PLENUM_EV_SESSION_CREATED);
	ck_assert_ptr_eq(router_find(world.router, "two"), s);
	ck_assert_uint_ne(s->id, world.session->id);
	ck_assert_uint_eq(world.router->n_sessions, 2);
	sessions_remove(world.router, s, "over");
	HAS(world_said(subscriber), PLENUM_EV_SESSION_REMOVED);
	ck_assert_ptr_null(router_find(world.router, "two"));
	ck_assert_uint_eq(world.router->n_sessions, 1);
}
END_TEST

/* A client that has read the old session must not take the lines of the new one for known. */
START_TEST(the_numbers_of_a_name_do_not_come_again) {
	struct session *s = world_session("two");
	tape_append(&s->tape, chunk_copy("x\n", 2), LINE_OTHER, 0);
	uint64_t seq = s->tape.next;
	sessions_remove(world.router, s, "over");
	ck_assert_uint_ge(world_session("two")->tape.next, seq);
}
END_TEST

START_TEST(a_rename_moves_it_in_the_table) {
	struct session *s = world_session("two");
	struct client *c = world_enter_as(s, false, true);
	world_said(c);
	ck_assert(sessions_rename(s, "three"));
	ck_assert_ptr_eq(router_find(world.router, "three"), s);
	ck_assert_ptr_null(router_find(world.router, "two"));
	HAS(world_said(c), "\"three\"");
}
END_TEST

START_TEST(there_is_a_limit) {
	struct error why;
	struct client *c = world_client();
	ck_assert_ptr_null(sessions_refused(world.router, c, &why));
	world.settings->max_sessions = 1;
	ck_assert_str_eq(sessions_refused(world.router, c, &why), PLENUM_E_TOO_MANY);
	HAS(why.text, "max_sessions");
}
END_TEST

/* Of those on disk, by their words; a launch without words always fits. */
START_TEST(the_words_of_all_sessions_have_a_limit) {
	struct error why;
	char *word = malloc(LIMITS_MIB - 2); /* with its quotes and a comma: 1 MiB */
	memset(word, 'w', LIMITS_MIB - 3);
	word[LIMITS_MIB - 3] = 0;
	struct launch launch = {0}, none = {0};
	struct launch_more more = {.has_args = true};
	char name[16];
	ck_assert(words_add(&launch.args, word) && words_add(&more.args, word));
	for (size_t i = 0; i < LIMITS_TABLE_STARTS / LIMITS_MIB - 1; i++) {
		struct launch one = {.cwd = strdup("/")};
		snprintf(name, sizeof name, "full-%zu", i);
		ck_assert(words_add(&one.env, word) && !sessions_full(world.router, &one, &why));
		ck_assert_ptr_nonnull(sessions_create(world.router, name, world.profile, &one));
	}
	struct session *last = world_session("last");
	ck_assert_ptr_null(sessions_full(world.router, &launch, &why));
	ck_assert(launch_bring(&last->launch, &more));
	ck_assert_str_eq(sessions_full(world.router, &launch, &why), PLENUM_E_TOO_MANY);
	HAS(why.text, "16777216 bytes of args and env (table_starts): they have 16777216, and this is 1048576 more");
	ck_assert_ptr_null(sessions_full(world.router, &none, &why));
	last->ephemeral = true;
	ck_assert_ptr_null(sessions_full(world.router, &launch, &why));
	launch_free(&launch);
	words_free(&more.args);
	free(word);
}
END_TEST

START_TEST(a_sleeping_session_gets_the_present_configuration) {
	struct settings *newer = settings_new();
	settings_unref(world.router->settings);
	world.router->settings = newer;
	sessions_renew_profile(world.session); /* it has a child */
	ck_assert_ptr_eq(world.session->profile, world.profile);
	session_drop_agent(world.session);
	sessions_renew_profile(world.session);
	ck_assert_ptr_eq(world.session->profile, &newer->profiles[0]);
	world.profile = &newer->profiles[0];
}
END_TEST

START_TEST(an_ending_session_is_waited_for) {
	struct client *c = world_client();
	ck_assert(!sessions_must_wait(world.session, c));
	session_stop(world.session, false, THEN_REMOVE);
	ck_assert(sessions_must_wait(world.session, c));
	sessions_remove(world.router, world.session, "over");
	world.session = world_session("s");
	ck_assert(!sessions_must_wait(world.session, c));
}
END_TEST

RUN_TESTS_WITH(world_begin, world_end, "sessions", names, a_new_one_is_announced,
			   the_numbers_of_a_name_do_not_come_again, a_rename_moves_it_in_the_table, there_is_a_limit,
			   the_words_of_all_sessions_have_a_limit, a_sleeping_session_gets_the_present_configuration,
			   an_ending_session_is_waited_for)
