/* SPDX-License-Identifier: MIT */
#include "core/handshake.h"

#include "world.h"

#define INITIALIZE(id, more)                                                                                           \
	"{\"type\":\"control_request\",\"request_id\":\"" id "\",\"request\":{\"subtype\":\"initialize\"" more "}}\n"
#define HOOKS(id) ",\"hooks\":{\"PreToolUse\":[{\"hookCallbackIds\":[\"" id "\"]}]}"
#define PROMPT "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"text\"}}\n"

static char id[CALL_ID_MAX];

/* The child answers the newest initialize. */
static void answers(const char *subtype, const char *response) {
	char line[600];
	snprintf(line, sizeof line,
			 "{\"type\":\"control_response\",\"response\":{\"subtype\":\"%s\",\"request_id\":\"%s\",%s}}\n", subtype,
			 id, response);
	world_prints(line);
}

/* Read the id of the initialize that the child was sent. */
static const char *sent(void) {
	const char *written = world_written();
	HAS(written, "\"initialize\"");
	world_value(written, "request_id", id, sizeof id);
	return written;
}

START_TEST(the_first_one_is_passed_on) {
	struct client *c = world_enter();
	world_sends(c, INITIALIZE("a", ",\"appendSystemPrompt\":\"be kind\""));
	const char *written = sent();
	HAS(written, "be kind");
	ck_assert_str_ne(id, "a");
	ck_assert(handshake_waits(world.session, c, span_of("\"a\"")));
	answers("success", "\"response\":{\"models\":[1]}");
	const char *said = world_said(c);
	HAS(said, "\"request_id\":\"a\"");
	HAS(said, "\"models\":[1]");
	ck_assert(!handshake_waits(world.session, c, SPAN_NONE));
	ck_assert(handshake_is_answered(world.session) && handshake_is_current(world.session));
	ck_assert(handshake_asks(world.session));
}
END_TEST

START_TEST(a_later_one_gets_the_kept_answer) {
	struct client *one = world_enter(), *two = world_enter();
	world_sends(one, INITIALIZE("a", ""));
	sent();
	answers("success", "\"response\":{\"models\":[1]}");
	world_said(two);
	world_sends(two, INITIALIZE("b", ",\"appendSystemPrompt\":\"be kind\""));
	const char *said = world_said(two);
	HAS(said, "\"models\":[1]");
	HAS(said, "\"ignored\":[\"appendSystemPrompt\"]"); /* the child exists already */
	ck_assert_str_eq(world_written(), "");
}
END_TEST

START_TEST(the_child_gets_the_hooks_of_all) {
	struct client *one = world_enter(), *two = world_enter();
	world_sends(one, INITIALIZE("a", HOOKS("h1")));
	sent();
	answers("success", "\"response\":{}");
	world_sends(two, INITIALIZE("b", HOOKS("h2")));
	const char *written = sent();
	const char *first = strstr(written, "hookCallbackIds");
	ck_assert_ptr_nonnull(first);
	ck_assert_ptr_nonnull(strstr(first + 1, "hookCallbackIds"));
	ck_assert_uint_eq(world.session->registry.n_hooks, 2);
	ck_assert(!handshake_is_current(world.session));
	ck_assert(handshake_holds(world.session, two)); /* its prompts wait */
	world_said(two);
	answers("success", "\"response\":{\"hooks_applied\":true}");
	HAS(world_said(two), "\"request_id\":\"b\"");
}
END_TEST

START_TEST(a_refused_one_stops_the_prompts_of_its_client) {
	struct client *c = world_enter();
	world_sends(c, INITIALIZE("b", ",\"hooks\":{\"PreToolUse\":[7]}"));
	HAS(world_said(c), PLENUM_E_BAD_REQUEST);
	ck_assert(handshake_refused(c));
	world_sends(c, PROMPT);
	HAS(world_said(c), PLENUM_E_INITIALIZE_REFUSED);
	ck_assert_str_eq(world_written(), "");
	world_sends(c, INITIALIZE("d", HOOKS("h1")));
	sent();
	answers("success", "\"response\":{}");
	ck_assert(!handshake_refused(c));
}
END_TEST

START_TEST(a_lost_answer_fails_its_waiters) {
	struct client *c = world_enter();
	world_sends(c, INITIALIZE("a", ""));
	sent();
	world_said(c);
	handshake_child_gone(world.session, "the child ended", false);
	const char *said = world_said(c);
	HAS(said, "\"request_id\":\"a\"");
	HAS(said, PLENUM_E_CHILD_EXITED);
	ck_assert_uint_eq(c->inits_open, 0);
}
END_TEST

START_TEST(a_client_that_leaves_waits_no_more) {
	struct client *c = world_enter();
	world_sends(c, INITIALIZE("a", ""));
	sent();
	attachment_leave(c, "detached");
	HAS(world_said(c), PLENUM_E_NOT_ATTACHED);
	ck_assert_uint_eq(c->inits_open, 0);
	answers("success", "\"response\":{}");
	ck_assert_str_eq(world_said(c), "");
}
END_TEST

RUN_TESTS_WITH(world_begin, world_end, "handshake", the_first_one_is_passed_on, a_later_one_gets_the_kept_answer,
			   the_child_gets_the_hooks_of_all, a_refused_one_stops_the_prompts_of_its_client,
			   a_lost_answer_fails_its_waiters, a_client_that_leaves_waits_no_more)
