/* SPDX-License-Identifier: MIT */
#include "core/steps.h"

#include "world.h"

#define ONE "11111111-1111-4111-8111-111111111111"
#define TWO "22222222-2222-4222-8222-222222222222"

START_TEST(the_conversation_is_announced) {
	struct client *c = world_enter();
	world_said(c);
	steps_learn_conversation(world.session, span_of("\"" ONE "\""));
	ck_assert_str_eq(world.session->conversation_id, ONE);
	HAS(world_said(c), "\"conversation_id\":\"" ONE "\"");
	steps_learn_conversation(world.session, span_of("\"" ONE "\""));
	ck_assert_str_eq(world_said(c), "");
	steps_learn_conversation(world.session, span_of("\"" TWO "\"")); /* such as by /clear */
	HAS(world_said(c), "\"what\":\"conversation_id\"");
}
END_TEST

START_TEST(a_resume_may_become_another_conversation) {
	world.session->launch.resume = strdup(ONE);
	steps_learn_conversation(world.session, span_of("\"" TWO "\""));
	ck_assert_str_eq(world.session->conversation_id, TWO);
	ck_assert_str_eq(world.session->resumed_id, ONE); /* the next start tries it first */
}
END_TEST

/* Two children must not write to one conversation. */
START_TEST(the_second_child_of_a_conversation_is_ended) {
	struct session *other = world_session("other");
	session_set_conversation(other, ONE);
	steps_learn_conversation(world.session, span_of("\"" ONE "\""));
	ck_assert_int_eq(world.session->broken, BROKEN_SECOND);
	ck_assert_ptr_null(world.session->conversation_id);
	ck_assert_ptr_nonnull(strstr(world.session->reason, "session other"));
}
END_TEST

/* Clients of the one session may know nothing of the other. */
START_TEST(a_private_session_is_not_named) {
	struct session *other = world_session("other");
	session_set_conversation(other, ONE);
	session_lose_profile(other, "gone"); /* then it is unknown whether it is private */
	steps_learn_conversation(world.session, span_of("\"" ONE "\""));
	ck_assert_ptr_null(strstr(world.session->reason, "session other"));
}
END_TEST

START_TEST(only_lines_of_the_child_are_its_own) {
	ck_assert(!steps_is_told(world.session));
	world_enter(); /* a notice */
	ck_assert(!steps_is_told(world.session));
	world_prints("{\"type\":\"assistant\",\"message\":{}}\n");
	ck_assert(steps_is_told(world.session));
}
END_TEST

RUN_TESTS_WITH(world_begin, world_end, "steps", the_conversation_is_announced, a_resume_may_become_another_conversation,
			   the_second_child_of_a_conversation_is_ended, a_private_session_is_not_named,
			   only_lines_of_the_child_are_its_own)
