/* SPDX-License-Identifier: MIT */
#include "core/notify.h"

#include "world.h"

static struct chunk notice(const char *what) {
	struct buf b = NOTICE_INIT;
	notice_begin(&b, PLENUM_EV_CHANGED, "s");
	notice_text(&b, "what", what);
	return notice_end(&b);
}

START_TEST(an_error_answers_a_request_or_is_an_event) {
	struct client *c = world_enter();
	notify_fail(c, span_of("\"7\""), PLENUM_E_BUSY, "%d of %d", 1, 2);
	const char *said = world_said(c);
	HAS(said, "\"control_response\"");
	HAS(said, "\"request_id\":\"7\"");
	HAS(said, "1 of 2");
	c->lines_in = 9;
	notify_fail(c, SPAN_NONE, PLENUM_E_BUSY, "later");
	said = world_said(c);
	HAS_NOT(said, "\"control_response\"");
	HAS(said, "\"line\":9");
	notify_complain(c, span_of("\"7\""), PLENUM_E_BUSY, "about it");
	said = world_said(c);
	HAS_NOT(said, "\"control_response\""); /* the request is answered another time */
	HAS(said, "\"request_id\":\"7\"");
}
END_TEST

START_TEST(a_refused_prompt_is_named_by_its_uuid) {
	struct client *c = world_enter();
	struct message m = {.kind = MESSAGE_USER, .env.uuid = span_of("\"u1\"")};
	notify_refuse(c, &m, PLENUM_E_BUSY, "no");
	HAS(world_said(c), "\"uuid\":\"u1\"");
	m = (struct message){.kind = MESSAGE_REQUEST, .env.request_id = span_of("\"r1\"")};
	notify_refuse(c, &m, PLENUM_E_BUSY, "no");
	HAS(world_said(c), "\"request_id\":\"r1\"");
}
END_TEST

START_TEST(a_notice_reaches_the_session_and_subscribers) {
	struct client *in = world_enter(), *subscriber = world_client(), *other = world_client();
	router_subscribe(subscriber, true);
	world_said(in);
	notify_session(world.session, notice("one"));
	HAS(world_said(in), "\"one\"");
	HAS(world_said(subscriber), "\"one\"");
	ck_assert_str_eq(world_said(other), "");
	ck_assert_int_eq(tape_at(&world.session->tape, world.session->tape.next - 1)->kind, LINE_NOTICE);
	uint64_t seq = world.session->tape.next;
	notify_present(world.session, notice("two"), in->attachment);
	ck_assert_str_eq(world_said(in), ""); /* the exception */
	HAS(world_said(subscriber), "\"two\"");
	ck_assert_uint_eq(world.session->tape.next, seq); /* not on the tape */
}
END_TEST

START_TEST(a_private_session_is_not_for_subscribers_of_others) {
	struct client *subscriber = world_client();
	router_subscribe(subscriber, true);
	subscriber->peer.uid = getuid() + 1;
	world.profile->is_private = true;
	notify_session(world.session, notice("one"));
	ck_assert_str_eq(world_said(subscriber), "");
	world.profile->is_private = false;
	notify_session(world.session, notice("two"));
	HAS(world_said(subscriber), "\"two\"");
}
END_TEST

START_TEST(a_crowd_is_not_notified_of_presence) {
	struct client *one = world_enter();
	for (size_t i = 1; i < NOTIFY_CROWD; i++) world_enter();
	world_said(one);
	notify_present(world.session, notice("few"), NULL);
	HAS(world_said(one), "\"few\"");
	world_enter();
	world_said(one);
	notify_present(world.session, notice("crowd"), NULL);
	ck_assert_str_eq(world_said(one), "");
}
END_TEST

/* A reader must see that something is missing. */
START_TEST(a_notice_without_memory_leaves_a_mark) {
	struct client *c = world_enter();
	world_said(c);
	notify_session(world.session, CHUNK_NONE);
	HAS(world_said(c), session_dialect(world.session)->frame->lost);
}
END_TEST

START_TEST(alerts_need_a_command) {
	ck_assert(notify_alert_wanted(world.session, ALERT_FAILED));
	notify_alert(world.session, &(struct alert){.kind = ALERT_FAILED});
	ck_assert_uint_eq(world.alerts, 1);
	words_free(&world.settings->on[ALERT_FAILED]);
	notify_alert(world.session, &(struct alert){.kind = ALERT_FAILED});
	ck_assert_uint_eq(world.alerts, 1);
}
END_TEST

RUN_TESTS_WITH(world_begin, world_end, "notify", an_error_answers_a_request_or_is_an_event,
			   a_refused_prompt_is_named_by_its_uuid, a_notice_reaches_the_session_and_subscribers,
			   a_private_session_is_not_for_subscribers_of_others, a_crowd_is_not_notified_of_presence,
			   a_notice_without_memory_leaves_a_mark, alerts_need_a_command)
