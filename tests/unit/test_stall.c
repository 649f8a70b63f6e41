/* SPDX-License-Identifier: MIT */
#include "core/stall.h"

#include "core/status.h"
#include "world.h"

#define TOOL                                                                                                           \
	"{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"Bash\","        \
	"\"input\":{}}]}}\n"
#define TOOL_RESULT                                                                                                    \
	"{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"t1\"}]}}\n"

static struct loop_timer stop;
static struct loop_fd reader;

static void on_stop(void *arg) {
	loop_stop(arg);
}

static void on_readable(void *arg, bool readable, bool writable) {
	(void)writable;
	if (readable) loop_stop(arg);
}

static void begin(void) {
	world_begin();
	world.profile->stall_after = 1;
}

static void run_turn(void) {
	progress_turn(&world.session->progress, true);
	session_changed(world.session);
	world_turn();
}

/* Run the loop until the client can read something. */
static const char *heard(struct client *c) {
	struct world_client *one = world.clients;
	while (one->c != c) one++;
	loop_fd_init(&reader, world.loop, one->fd, on_readable, world.loop);
	ck_assert(loop_fd_want(&reader, true, false));
	loop_run(world.loop);
	loop_fd_stop(&reader);
	return world_said(c);
}

START_TEST(a_silent_turn_is_reported) {
	struct client *c = world_enter();
	world_prints(TOOL);
	run_turn();
	world_said(c);
	const char *said = heard(c);
	HAS(said, "\"event\":\"stalled\"");
	HAS(said, "\"open_tool\":\"Bash\"");
	HAS(said, "\"last\":\"assistant\"");
	ck_assert_uint_eq(world.alerts, 1);
	ck_assert(world.session->stall.told);
	stall_line(world.session);
	HAS(world_said(c), "\"event\":\"resumed\"");
	ck_assert(!world.session->stall.told);
}
END_TEST

START_TEST(a_finished_tool_is_not_open) {
	struct client *c = world_enter();
	world_prints(TOOL);
	world_prints(TOOL_RESULT);
	run_turn();
	world_said(c);
	HAS(heard(c), "\"open_tool\":null");
}
END_TEST

/* The timer fires in the first turn of the loop, and a turn later the test ends. */
static void run_briefly(void) {
	stall_watch(world.session, 0);
	loop_timer_init(&stop, world.loop, on_stop, world.loop);
	loop_timer_set(&stop, 1);
	loop_run(world.loop);
}

START_TEST(background_tasks_are_no_stall) {
	run_turn();
	progress_background(&world.session->progress, true);
	world.session->stall.since = 0;
	run_briefly();
	ck_assert(!world.session->stall.told);
	ck_assert(loop_timer_pending(world.session->stall.timer)); /* it looks again */
}
END_TEST

START_TEST(the_end_of_the_turn_ends_the_watch) {
	run_turn();
	ck_assert(loop_timer_pending(world.session->stall.timer));
	progress_turn(&world.session->progress, false);
	session_changed(world.session);
	world_turn();
	ck_assert(!loop_timer_pending(world.session->stall.timer));
}
END_TEST

RUN_TESTS_WITH(begin, world_end, "stall", a_silent_turn_is_reported, a_finished_tool_is_not_open,
			   background_tasks_are_no_stall, the_end_of_the_turn_ends_the_watch)
