/* SPDX-License-Identifier: MIT */
#include "core/pace.h"

#include "base/fd.h"
#include "world.h"

/* Put so many bytes on the tape. */
static void print(size_t n) {
	for (size_t i = 0; i < n; i += 1000) {
		char line[1000];
		memset(line, 'x', sizeof line);
		line[sizeof line - 1] = '\n';
		tape_append(&world.session->tape, chunk_copy(line, sizeof line), LINE_OTHER, 0);
	}
}

/* A client that has not taken a byte for long. */
static struct client *stopped(enum lag_policy policy) {
	struct client *c = world_enter();
	world_said(c);
	c->blocked = true;
	c->blocked_since = 0;
	c->attachment->on_lag = policy;
	return c;
}

START_TEST(the_child_is_as_fast_as_its_fastest_reader) {
	ck_assert(pace_may_read(world.session));
	struct client *fast = world_enter();
	world_said(fast);
	print(3 << 20);
	ck_assert(!pace_may_read(world.session));
	ck_assert(loop_timer_pending(&world.session->agent->pace_timer)); /* it looks again */
	client_skip(fast);
	ck_assert(pace_may_read(world.session));
}
END_TEST

START_TEST(a_stopped_reader_does_not_count) {
	stopped(LAG_GAP);
	print(3 << 20);
	ck_assert(pace_may_read(world.session));
}
END_TEST

START_TEST(the_child_waits_for_a_client_that_asked_for_it) {
	struct client *c = stopped(LAG_WAIT);
	print(world.session->tape.max_bytes / 2);
	ck_assert(!pace_may_read(world.session));
	world.settings->limits.lag_wait = 0; /* its time is over */
	ck_assert(pace_may_read(world.session));
	client_skip(c);
	ck_assert(pace_may_read(world.session));
	ck_assert_int_eq(c->attachment->lag.waited_since, 0);
}
END_TEST

START_TEST(an_overtaken_client_has_a_gap) {
	struct client *c = world_enter();
	world_said(c);
	pace_overtaken(c, 3, 7);
	HAS(world_said(c), "\"event\":\"gap\"");
	ck_assert(!c->closing);
}
END_TEST

START_TEST(a_client_may_be_closed_instead) {
	struct client *c = stopped(LAG_CLOSE), *other = world_enter();
	world_said(other);
	pace_overtaken(c, 3, 7);
	ck_assert(c->closing);
	ck_assert_ptr_null(c->attachment);
	HAS(world_said(other), "too far behind");
}
END_TEST

START_TEST(readers_far_behind_are_watched) {
	struct client *c = stopped(LAG_GAP);
	print(1 << 20);
	world.settings->limits.client_lag_soft = 1;
	ck_assert_ptr_null(world.session->pace.timer);
	pace_may_read(world.session);
	ck_assert(loop_timer_pending(world.session->pace.timer));
	(void)c;
}
END_TEST

/* Its unread answers would fill the memory. */
START_TEST(a_child_that_reads_no_answers_waits) {
	struct client *c = world_enter();
	struct queue *q = &world.session->in;
	ck_assert(pace_may_read(world.session));
	while (!queue_is_flooded(q)) ck_assert(queue_put(q, CHUNK_STATIC("{}\n")));
	ck_assert(!pace_may_read(world.session));
	ck_assert(loop_timer_pending(&world.session->agent->pace_timer));
	queue_free(q);
	ck_assert(pace_may_read(world.session));
	(void)c;
}
END_TEST

static void stop(void *arg) {
	loop_stop(arg);
}

/* A client that does not read may have a million lines. */
START_TEST(unsent_lines_are_freed_over_many_turns) {
	struct client *c = world_enter();
	struct chunk line = chunk_copy("{}\n", 3);
	struct loop_task last;
	for (int i = 0; i < 10000; i++) client_post(c, chunk_ref(line));
	ck_assert_uint_gt(line.block->refs, 10000);
	client_kill(c);
	loop_task_init(&last, stop, world.loop);
	loop_defer(world.loop, &last);
	loop_run(world.loop);
	ck_assert_uint_gt(line.block->refs, 5000);
	world_turn();
	ck_assert_uint_eq(line.block->refs, 1);
	chunk_drop(&line);
}
END_TEST

RUN_TESTS_WITH(world_begin, world_end, "pace", the_child_is_as_fast_as_its_fastest_reader,
			   a_stopped_reader_does_not_count, the_child_waits_for_a_client_that_asked_for_it,
			   an_overtaken_client_has_a_gap, a_client_may_be_closed_instead, readers_far_behind_are_watched,
			   unsent_lines_are_freed_over_many_turns, a_child_that_reads_no_answers_waits)
