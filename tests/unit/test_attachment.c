/* SPDX-License-Identifier: MIT */
#include "core/attachment.h"

#include "world.h"

#define REQUEST "{\"type\":\"control_request\",\"request_id\":\"r\",\"request\":{\"subtype\":\"get_context_usage\"}}\n"

START_TEST(others_are_notified) {
	struct client *one = world_enter();
	world_said(one);
	struct client *two = world_enter();
	HAS(world_said(one), PLENUM_EV_ATTACHED);
	HAS_NOT(world_said(two), PLENUM_EV_ATTACHED);
	attachment_leave(two, "had enough");
	const char *said = world_said(one);
	HAS(said, PLENUM_EV_DETACHED);
	HAS(said, "had enough");
	ck_assert_ptr_null(two->attachment);
	ck_assert_uint_eq(world.session->n_attachments, 1);
	attachment_leave(two, "again");
	ck_assert_str_eq(world_said(one), "");
}
END_TEST

START_TEST(a_half_closed_client_waits_for_its_answers) {
	struct client *c = world_enter();
	char id[CALL_ID_MAX], line[400];
	world_sends(c, REQUEST);
	world_value(world_written(), "request_id", id, sizeof id);
	c->ended = true;
	attachment_close_ended(c);
	ck_assert(!c->closing);
	snprintf(line, sizeof line,
			 "{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"%s\"}}\n", id);
	world_prints(line); /* the consequences are computed: it is closed */
	ck_assert_uint_eq(world.router->n_clients, 0);
	HAS(world_said(c), "\"request_id\":\"r\"");
}
END_TEST

START_TEST(without_input_it_approves_nothing) {
	struct client *c = world_enter();
	attachment_end_input(c->attachment);
	ck_assert(!c->attachment->approve && !world.session->ending);
	c->attachment->ephemeral = true;
	attachment_end_input(c->attachment);
	ck_assert(world.session->ending);
	c->attachment->ephemeral = false;
}
END_TEST

START_TEST(its_client_changes_it) {
	struct attachment *a = world_enter()->attachment;
	struct approval one_tool = {.approve = true, .asked = true, .by_tool = true};
	ck_assert(names_add(&one_tool.tools, "Bash", 4));
	attachment_change(a, false, LAG_WAIT, &one_tool);
	ck_assert(a->approve && a->asked_approve && a->by_tool && names_have(&a->tools, "Bash", 4));
	ck_assert_int_eq(a->on_lag, LAG_WAIT);
	attachment_change(a, true, LAG_GAP, &(struct approval){.approve = false});
	ck_assert(a->observer && !a->approve && a->asked_approve && a->by_tool); /* it has not asked for another filter */
	attachment_change(a, false, LAG_GAP, &(struct approval){.approve = true, .asked = true});
	ck_assert(!a->observer && a->approve && !a->by_tool && !names_have(&a->tools, "Bash", 4));
}
END_TEST

START_TEST(a_program_stands_in_for_the_cli) {
	struct attachment *a = world_enter()->attachment;
	attachment_stand_in(a, false, true, true);
	ck_assert(!a->ephemeral && !a->deny_asks && a->wants_stderr && !world.session->ephemeral);
	attachment_stand_in(a, true, true, false);
	ck_assert(a->ephemeral && a->deny_asks && !a->wants_stderr && world.session->ephemeral);
	a->ephemeral = false;
}
END_TEST

START_TEST(an_ephemeral_session_ends_with_its_client) {
	struct client *c = world_enter();
	session_drop_agent(world.session);
	c->attachment->ephemeral = true;
	attachment_leave(c, "over");
	ck_assert_uint_eq(world.over, 0); /* the caller may walk through its lists */
	world_turn();
	ck_assert_uint_eq(world.over, 1);
}
END_TEST

/* The place of a session that was removed. */
START_TEST(the_removal_detaches_all) {
	struct client *one = world_enter(), *two = world_enter();
	sessions_remove(world.router, world.session, "forgotten");
	world.session = NULL;
	HAS(world_said(one), PLENUM_EV_SESSION_REMOVED);
	HAS(world_said(two), "forgotten");
	ck_assert(!one->attachment && !two->attachment);
}
END_TEST

RUN_TESTS_WITH(world_begin, world_end, "attachment", others_are_notified, a_half_closed_client_waits_for_its_answers,
			   without_input_it_approves_nothing, its_client_changes_it, a_program_stands_in_for_the_cli,
			   an_ephemeral_session_ends_with_its_client, the_removal_detaches_all)
