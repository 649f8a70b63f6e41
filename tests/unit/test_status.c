/* SPDX-License-Identifier: MIT */
#include "core/status.h"

#include "world.h"

START_TEST(a_state_is_published_with_the_one_before) {
	struct client *c = world_enter();
	world_said(c);
	progress_turn(&world.session->progress, true);
	ck_assert(session_state_due(world.session));
	status_publish(world.session);
	const char *said = world_said(c);
	HAS(said, "\"state\":\"busy\"");
	HAS(said, "\"previous\":\"idle\"");
	HAS_NOT(said, "conversation_id");
	ck_assert(loop_timer_pending(world.session->stall.timer)); /* its turn is watched */
}
END_TEST

START_TEST(a_failure_has_its_reason) {
	struct client *c = world_enter();
	session_drop_agent(world.session);
	world.session->failed = true;
	session_set_reason(world.session, "no such program");
	session_changed(world.session);
	HAS(world_said(c), "\"reason\":\"no such program\"");
}
END_TEST

/* Before the notice that it explains; not once more at the end of the turn. */
START_TEST(a_state_may_be_published_at_once) {
	struct client *c = world_enter();
	world_said(c);
	session_set_conversation(world.session, "11111111-1111-4111-8111-111111111111");
	progress_turn(&world.session->progress, true);
	uint64_t seq = world.session->tape.next;
	status_publish_now(world.session);
	ck_assert_uint_eq(world.session->tape.next, seq + 1);
	world_turn();
	ck_assert_uint_eq(world.session->tape.next, seq + 1);
	HAS(world_said(c), "\"conversation_id\":\"11111111");
}
END_TEST

RUN_TESTS_WITH(world_begin, world_end, "status", a_state_is_published_with_the_one_before, a_failure_has_its_reason,
			   a_state_may_be_published_at_once)
