/* SPDX-License-Identifier: MIT */
#include "core/intake.h"

#include "world.h"

#define UUID(n) "00000000-0000-4000-8000-00000000000" n
#define PROMPT(n)                                                                                                      \
	"{\"type\":\"user\",\"uuid\":\"" UUID(n) "\",\"message\":{\"role\":\"user\",\"content\":\"text " n "\"}}\n"
#define RESULT "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"ok\"}\n"

/* Nothing else comes before a prompt. */
static struct client *ready(void) {
	struct client *c = world_enter();
	world_sends(c, PROMPT("0"));
	world_written();
	world_prints(RESULT);
	world_said(c);
	ck_assert_uint_eq(world.session->prompts.n_open, 0);
	return c;
}

START_TEST(a_prompt_reaches_the_child_once) {
	struct client *c = ready();
	world_sends(c, PROMPT("1"));
	HAS(world_written(), "text 1");
	world_sends(c, PROMPT("1"));
	ck_assert_str_eq(world_written(), "");
	HAS(world_said(c), PLENUM_E_DUPLICATE_REQUEST);
	world_prints(RESULT);
	world_sends(c, PROMPT("1")); /* also after its end */
	ck_assert_str_eq(world_written(), "");
}
END_TEST

/* Two clients may choose one uuid: the second prompt gets another. */
START_TEST(a_prompt_of_another_client_is_no_repetition) {
	struct client *one = ready(), *two = world_enter();
	one->peer.uid = getuid() + 1;
	world_sends(one, PROMPT("1"));
	world_said(two), world_written();
	world_sends(two, PROMPT("1"));
	const char *written = world_written();
	HAS(written, "text 1");
	HAS_NOT(written, UUID("1"));
	HAS(world_said(two), "\"was\":\"" UUID("1") "\"");
}
END_TEST

START_TEST(queued_prompts_wait_for_the_turn_of_another) {
	world.profile->prompts_queue = true;
	struct client *one = ready(), *two = world_enter();
	world_sends(one, PROMPT("1"));
	world_sends(one, PROMPT("2")); /* its own turn goes on */
	const char *written = world_written();
	HAS(written, "text 1");
	HAS(written, "text 2");
	world_sends(two, PROMPT("3"));
	ck_assert_str_eq(world_written(), "");
	HAS(world_said(one), "prompt_held");
	world_prints(RESULT);
	HAS(world_written(), "text 3");
}
END_TEST

START_TEST(a_queued_prompt_is_cancelled_here) {
	world.profile->prompts_queue = true;
	struct client *one = ready(), *two = world_enter();
	world_sends(one, PROMPT("1"));
	world_sends(two, PROMPT("2"));
	world_written(), world_said(two);
	intake_cancel_held(world.session, one, false);
	ck_assert_uint_eq(world.session->prompts.n_held, 1); /* it is not its own */
	intake_cancel_held(world.session, two, false);
	ck_assert_uint_eq(world.session->prompts.n_held, 0);
	HAS(world_said(two), "prompt_cancelled");
	world_prints(RESULT);
	HAS_NOT(world_written(), "text 2");
}
END_TEST

START_TEST(a_cancelled_prompt_may_come_again) {
	world.profile->prompts_queue = true;
	struct client *one = ready(), *two = world_enter();
	world_sends(one, PROMPT("1"));
	world_sends(two, PROMPT("2"));
	intake_cancel_held(world.session, two, true);
	world_prints(RESULT);
	world_written();
	world_sends(two, PROMPT("2"));
	HAS(world_written(), "text 2");
}
END_TEST

START_TEST(a_full_queue_refuses_a_prompt) {
	world.profile->prompts_queue = true;
	struct client *one = ready(), *two = world_enter();
	world_sends(one, PROMPT("1"));
	world.session->in.max = 10; /* one line always has room */
	world_sends(two, PROMPT("2"));
	world_said(two);
	world_sends(two, PROMPT("3"));
	HAS(world_said(two), PLENUM_E_BUSY);
	ck_assert_uint_eq(world.session->prompts.n_held, 1);
}
END_TEST

/* A child may read any number of prompts and answer none. */
START_TEST(prompts_without_a_result_are_limited) {
	struct client *c = ready();
	while (world.session->prompts.n_open < LIMITS_PROMPTS) {
		world_sends(c, "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"x\"}}\n");
		if (world.session->prompts.n_open % 100 == 0) world_written();
	}
	world_written(), world_said(c);
	world_sends(c, PROMPT("1"));
	HAS(world_said(c), PLENUM_E_BUSY);
	ck_assert_str_eq(world_written(), "");
	world_prints(RESULT);
	world_sends(c, PROMPT("1")); /* it is no repetition */
	HAS(world_written(), "text 1");
}
END_TEST

RUN_TESTS_WITH(world_begin, world_end, "intake", a_prompt_reaches_the_child_once,
			   a_prompt_of_another_client_is_no_repetition, queued_prompts_wait_for_the_turn_of_another,
			   a_queued_prompt_is_cancelled_here, a_cancelled_prompt_may_come_again, a_full_queue_refuses_a_prompt,
			   prompts_without_a_result_are_limited)
