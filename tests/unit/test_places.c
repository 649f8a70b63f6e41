/* SPDX-License-Identifier: MIT
 *
 * The processes are only numbers: none is started.
 */
#include "io/places.h"

#include "base/str.h"
#include "harness.h"

#include <poll.h>
#include <unistd.h>

#define OTHER 54321 /* a uid */

struct world {
	struct loop *loop;
	struct places *p;
	pid_t last;
	size_t n_went;
	int went[400];
	enum places_state state;
};

struct waiter {
	struct places_turn turn;
	struct world *w;
	int number;
};

static void begin(struct world *w) {
	*w = (struct world){.loop = loop_new(), .last = 1000};
	w->p = places_new(w->loop);
}

static void end(struct world *w) {
	places_free(w->p);
	loop_free(w->loop);
}

static pid_t out(struct world *w, const char *place, uid_t uid) {
	ck_assert(places_out(w->p, ++w->last, place, uid));
	return w->last;
}

static void on_go(void *arg, enum places_state state) {
	struct waiter *at = arg;
	struct world *w = at->w;
	w->went[w->n_went++] = at->number;
	w->state = state;
	loop_stop(w->loop);
}

static bool waits(struct world *w, struct waiter *at, int number, const char *place, uid_t uid) {
	*at = (struct waiter){.w = w, .number = number};
	return places_wait(w->p, &at->turn, place, uid, false, on_go, at);
}

static bool waits_to_start(struct world *w, struct waiter *at, int number, uid_t uid) {
	*at = (struct waiter){.w = w, .number = number};
	return places_wait(w->p, &at->turn, "/a", uid, true, on_go, at);
}

static struct world world;

static void setup(void) {
	begin(&world);
}

static void teardown(void) {
	end(&world);
}

START_TEST(one_place_is_full) {
	struct waiter at, other;
	pid_t first = out(&world, "/a", 0);
	for (int i = 1; i < 16; i++) out(&world, "/a/b", 0);
	ck_assert_int_eq(places_look(world.p, "/a/b/c", 0), PLACES_FULL);
	ck_assert_int_eq(places_look(world.p, "/ab", 0), PLACES_OPEN);
	ck_assert_int_eq(places_look(world.p, "", 0), PLACES_OPEN);
	ck_assert(waits(&world, &at, 1, "/a/b", 0) && waits(&world, &other, 2, "/ab", 0));
	loop_finish(world.loop);
	ck_assert(world.n_went == 1 && world.went[0] == 2 &&
			  world.state == PLACES_OPEN); /* the next one does not wait for it */
	places_back(world.p, first);
	loop_finish(world.loop);
	ck_assert(world.n_went == 2 && world.went[1] == 1 && world.state == PLACES_OPEN);
}
END_TEST

/* The queue of a place that turns out to be dead is notified at once; a single slow process closes nothing. */
START_TEST(closed) {
	struct waiter at;
	pid_t pids[16];
	for (int i = 0; i < 16; i++) pids[i] = out(&world, "/dead", 0);
	ck_assert(waits(&world, &at, 1, "/dead/x", 0));
	poll(NULL, 0, 1100);
	ck_assert_int_eq(places_look(world.p, "/dead", 0), PLACES_FULL);
	ck_assert_int_eq(places_look(world.p, "/live", 0), PLACES_OPEN);
	places_left(world.p, pids[0]);
	places_left(world.p, pids[1]);
	loop_finish(world.loop);
	ck_assert(world.n_went == 1 && world.state == PLACES_CLOSED);
	ck_assert_int_eq(places_look(world.p, "/live", 0), PLACES_OPEN);
	places_back(world.p, pids[0]);
	ck_assert_int_eq(places_look(world.p, "/dead", 0), PLACES_OPEN); /* 14 are there */
}
END_TEST

START_TEST(moved) {
	for (int i = 0; i < 2; i++) {
		pid_t pid = out(&world, "/home", 0);
		places_move(world.p, pid, "/dead/program");
		places_left(world.p, pid);
	}
	poll(NULL, 0, 1100);
	ck_assert_int_eq(places_look(world.p, "/home", 0), PLACES_OPEN);
	ck_assert_int_eq(places_look(world.p, "/dead/program", 0), PLACES_CLOSED);
}
END_TEST

/* Two names in one mount are one place, once processes are slow there. */
START_TEST(one_mount) {
	for (int i = 0; i < 2; i++) places_left(world.p, out(&world, i ? "/proc/a" : "/proc/b", 0));
	ck_assert_int_eq(places_look(world.p, "/proc/c", 0), PLACES_OPEN);
	poll(NULL, 0, 1100);
	ck_assert_int_eq(places_look(world.p, "/proc/c", 0), PLACES_CLOSED);
	ck_assert_int_eq(places_look(world.p, "/process", 0), PLACES_OPEN);
	ck_assert_int_eq(places_look(world.p, "/", 0), PLACES_OPEN);
}
END_TEST

/* A crowd at as many places is only waiting: after a second others may start. */
START_TEST(slow_ones_make_room) {
	struct waiter at;
	char place[32];
	for (int i = 0; i < 64; i++) {
		snprintf(place, sizeof place, "/p%d", i);
		out(&world, place, OTHER);
	}
	ck_assert_int_eq(places_look(world.p, "/live", 0), PLACES_FULL);
	ck_assert(waits(&world, &at, 1, "/live", 0));
	loop_run(world.loop);
	ck_assert(world.n_went == 1 && world.state == PLACES_OPEN);
	for (int i = 64; i < 128; i++) {
		snprintf(place, sizeof place, "/p%d", i);
		out(&world, place, OTHER);
	}
	poll(NULL, 0, 1100);
	ck_assert_int_eq(places_look(world.p, "/live", OTHER), PLACES_FULL); /* half of the room is reserved */
	ck_assert_int_eq(places_look(world.p, "/live", 0), PLACES_OPEN);
}
END_TEST

/* The queue serves the uid with the fewest processes first. */
START_TEST(fair) {
	struct waiter many[4], one;
	pid_t pids[64];
	char place[32];
	for (int i = 0; i < 64; i++) {
		snprintf(place, sizeof place, "/p%d", i);
		pids[i] = out(&world, place, OTHER);
	}
	for (int i = 0; i < 4; i++) ck_assert(waits(&world, &many[i], i, "/live", OTHER));
	ck_assert(waits(&world, &one, 9, "/live", OTHER + 1));
	places_back(world.p, pids[0]);
	loop_finish(world.loop);
	ck_assert_int_eq(world.went[0], 9);
	loop_finish(world.loop);
	ck_assert_int_eq(world.went[1], 0);
}
END_TEST

START_TEST(the_queue_is_bounded) {
	static struct waiter all[257];
	for (int i = 0; i < 16; i++) out(&world, "/a", 0);
	for (int i = 0; i < 128; i++) ck_assert(waits(&world, &all[i], i, "/a", OTHER));
	ck_assert(!waits(&world, &all[128], 0, "/a", OTHER + 1));
	for (int i = 128; i < 256; i++) ck_assert(waits(&world, &all[i], i, "/a", getuid()));
	ck_assert(!waits(&world, &all[256], 0, "/a", 0));
	places_wait_no_more(&all[256].turn);
	places_wait_no_more(&all[0].turn);
	places_wait_no_more(&all[0].turn);
	ck_assert(waits(&world, &all[0], 0, "/a", 0));
}
END_TEST

/* More than other requests may be: 300 sessions at once. */
START_TEST(starts_wait_in_line) {
	static struct waiter all[4097], other;
	static pid_t pids[16];
	for (int i = 0; i < 16; i++) pids[i] = out(&world, "/a", 0);
	for (int i = 0; i < 2048; i++) ck_assert(waits_to_start(&world, &all[i], i, OTHER));
	ck_assert(!waits_to_start(&world, &all[2048], 0, OTHER));
	for (int i = 2048; i < 4096; i++) ck_assert(waits_to_start(&world, &all[i], i, getuid()));
	ck_assert(!waits_to_start(&world, &all[4096], 0, 0));
	ck_assert(waits(&world, &other, 5000, "/a", 0)); /* has its own room */
	for (int i = 300; i < 4096; i++) places_wait_no_more(&all[i].turn);
	for (int i = 0; i < 16; i++) places_back(world.p, pids[i]);
	loop_finish(world.loop); /* none of them takes room here */
	for (int i = 0; i < 300; i++) ck_assert_int_eq(world.went[i], i);
	ck_assert(world.n_went == 301 && world.went[300] == 5000);
	ck_assert_uint_eq(places_served(world.p), 301);
}
END_TEST

RUN_TESTS_WITH(setup, teardown, "places", one_place_is_full, closed, moved, one_mount, slow_ones_make_room, fair,
			   the_queue_is_bounded, starts_wait_in_line)
