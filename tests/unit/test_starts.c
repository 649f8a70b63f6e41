/* SPDX-License-Identifier: MIT */
#include "core/starts.h"

#include "world.h"

static struct session *asleep;
static struct client *waiting;
static const char text[] = "{\"type\":\"x\"}\n";
static struct chunk line;

/* The line of a client waits for the start of a session that it has made. */
static void begin(void) {
	world_begin();
	line = (struct chunk){NULL, text, sizeof text - 1};
	asleep = world_session("asleep");
	asleep->want_child = true;
	waiting = world_client();
	starts_await(waiting, asleep, line, true);
}

static struct session *awaited(bool *made, const char **code, struct error *error) {
	return starts_awaited(waiting, line, made, code, error);
}

START_TEST(it_waits_on_while_the_start_does) {
	struct error error;
	const char *code;
	bool made;
	ck_assert(client_holds(waiting));
	ck_assert_ptr_null(awaited(&made, &code, &error));
	ck_assert_ptr_null(code);
	ck_assert_uint_eq(waiting->starting, asleep->id);
}
END_TEST

START_TEST(a_started_session_is_returned) {
	struct error error;
	const char *code;
	bool made;
	asleep->want_child = false;
	world_wake(asleep);
	ck_assert_ptr_eq(awaited(&made, &code, &error), asleep);
	ck_assert(made);
	ck_assert_uint_eq(waiting->starting, 0);
}
END_TEST

START_TEST(a_session_whose_start_failed_is_removed) {
	struct error error;
	const char *code;
	bool made;
	asleep->want_child = false;
	session_end_start(asleep, "no such program");
	ck_assert_ptr_null(awaited(&made, &code, &error));
	ck_assert_str_eq(code, PLENUM_E_SPAWN_FAILED);
	ck_assert_str_eq(error.text, "no such program");
	ck_assert_ptr_null(router_find(world.router, "asleep"));
}
END_TEST

START_TEST(a_removed_session_is_an_error) {
	struct error error;
	const char *code;
	bool made;
	sessions_remove(world.router, asleep, "forgotten");
	ck_assert_ptr_null(awaited(&made, &code, &error));
	ck_assert_str_eq(code, PLENUM_E_SPAWN_FAILED);
}
END_TEST

/* No other client knows the session. */
START_TEST(the_session_of_a_client_that_left_ends_if_its_start_fails) {
	starts_leave(waiting);
	ck_assert(asleep->unclaimed);
	asleep->want_child = false;
	session_end_start(asleep, "no such program");
	ck_assert_uint_eq(world.over, 0); /* after the clients that wait for it */
	world_turn();
	ck_assert_uint_eq(world.over, 1);
}
END_TEST

START_TEST(it_stays_if_its_start_succeeds) {
	starts_leave(waiting);
	asleep->want_child = false;
	world_wake(asleep);
	starts_over(asleep);
	world_turn();
	ck_assert_uint_eq(world.over, 0);
	ck_assert(!asleep->unclaimed);
}
END_TEST

RUN_TESTS_WITH(begin, world_end, "starts", it_waits_on_while_the_start_does, a_started_session_is_returned,
			   a_session_whose_start_failed_is_removed, a_removed_session_is_an_error,
			   the_session_of_a_client_that_left_ends_if_its_start_fails, it_stays_if_its_start_succeeds)
