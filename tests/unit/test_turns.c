/* SPDX-License-Identifier: MIT */
#include "core/turns.h"

#include "world.h"

#define UUID(n) "00000000-0000-4000-8000-00000000000" n
#define PROMPT(n)                                                                                                      \
	"{\"type\":\"user\",\"uuid\":\"" UUID(n) "\",\"message\":{\"role\":\"user\",\"content\":\"text " n "\"}}\n"
#define ECHO(n)                                                                                                        \
	"{\"type\":\"user\",\"uuid\":\"" UUID(n) "\",\"isReplay\":true,\"message\":{\"role\":\"user\",\"content\":\"x\"}}" \
											 "\n"
#define INIT                                                                                                           \
	"{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"11111111-1111-4111-8111-111111111111\",\"uuid\":"      \
	"\"i\"}\n"
#define RESULT(subtype, more)                                                                                          \
	"{\"type\":\"result\",\"subtype\":\"" subtype "\",\"is_error\":false,\"duration_ms\":7" more "}\n"

START_TEST(a_turn_names_its_prompts) {
	struct client *c = world_enter();
	world_sends(c, PROMPT("1"));
	world_said(c);
	world_prints(INIT);
	ck_assert(turns_is_open(world.session));
	world_prints(RESULT("success", ",\"total_cost_usd\":0.25"));
	const char *said = world_said(c);
	HAS(said, PLENUM_EV_TURN_STARTED);
	HAS(said, "\"uuids\":[\"" UUID("1") "\"]");
	HAS(said, PLENUM_EV_TURN_ENDED);
	HAS(said, "\"outcome\":\"success\"");
	HAS(said, "\"cost_usd\":0.25");
	ck_assert(!turns_is_open(world.session));
	ck_assert_uint_eq(world.session->turns.count, 1);
	ck_assert_uint_eq(world.alerts, 1); /* on_turn_end */
}
END_TEST

/* The child reports the sum of its conversation. */
START_TEST(the_cost_is_that_of_the_turn) {
	struct client *c = world_enter();
	struct buf b = NOTICE_INIT;
	world_prints(RESULT("success", ",\"total_cost_usd\":0.25"));
	world_said(c);
	world_prints(RESULT("success", ",\"total_cost_usd\":0.75"));
	HAS(world_said(c), "\"cost_usd\":0.5");
	turns_put_cost(&b, world.session);
	HAS(b.data, "\"cost_usd\":0.75");
	buf_free(&b);
}
END_TEST

START_TEST(echoed_prompts_are_the_turns_own) {
	struct client *c = world_enter();
	world_sends(c, PROMPT("1"));
	world_prints(ECHO("1"));
	world_sends(c, PROMPT("2")); /* the child has not taken it yet */
	world_prints(INIT);
	world_said(c);
	world_prints(ECHO("1"));
	world_prints(RESULT("success", ""));
	const char *said = world_said(c);
	HAS(said, UUID("1"));
	HAS_NOT(said, UUID("2"));
	ck_assert(turns_is_open(world.session));
}
END_TEST

START_TEST(the_end_of_the_child_ends_its_prompts) {
	struct client *c = world_enter();
	world_sends(c, PROMPT("1"));
	world_said(c);
	turns_failed(world.session, &(struct session_exit){.in_turn = true}, "the child ended");
	const char *said = world_said(c);
	HAS(said, PLENUM_E_CHILD_EXITED);
	HAS(said, UUID("1"));
	ck_assert(!turns_is_open(world.session));
}
END_TEST

START_TEST(a_withdrawn_prompt_gets_no_result) {
	struct client *c = world_enter();
	world_sends(c, PROMPT("1"));
	world_said(c);
	turns_fate(world.session, FATE_WITHDRAWN, span_of("\"" UUID("1") "\""));
	HAS(world_said(c), "prompt_cancelled");
	ck_assert(!turns_is_open(world.session));
}
END_TEST

RUN_TESTS_WITH(world_begin, world_end, "turns", a_turn_names_its_prompts, the_cost_is_that_of_the_turn,
			   echoed_prompts_are_the_turns_own, the_end_of_the_child_ends_its_prompts,
			   a_withdrawn_prompt_gets_no_result)
