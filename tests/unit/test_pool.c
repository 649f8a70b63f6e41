/* SPDX-License-Identifier: MIT */
#include "core/pool.h"

#include "world.h"

/* Another session with a child, used at this time. */
static struct session *another(const char *name, int64_t used_at) {
	struct session *s = world_session(name);
	world_wake(s);
	s->used_at = used_at;
	return s;
}

START_TEST(the_least_recently_used_one_sleeps) {
	struct session *old = another("old", 1), *older = another("older", 0);
	world.settings->max_children = 2;
	ck_assert_uint_eq(pool_children(world.router), 3);
	pool_keep_to_limit(world.router, NULL);
	ck_assert(older->stopping && !old->stopping && !world.session->stopping);
	ck_assert_int_eq(older->then, THEN_SLEEP);
	pool_keep_to_limit(world.router, NULL); /* an ending one counts no more */
	ck_assert(!old->stopping);
}
END_TEST

START_TEST(the_new_one_does_not_sleep) {
	struct session *older = another("older", 0);
	world.settings->max_children = 1;
	pool_keep_to_limit(world.router, older);
	ck_assert(!older->stopping && world.session->stopping);
}
END_TEST

/* The limit is exceeded until one of them is idle. */
START_TEST(a_child_at_work_does_not_sleep) {
	struct session *older = another("older", 0);
	world.settings->max_children = 1;
	progress_turn(&older->progress, true);
	progress_background(&world.session->progress, true);
	pool_keep_to_limit(world.router, NULL);
	ck_assert(!older->stopping && !world.session->stopping);
	older->ephemeral = true;
	progress_turn(&older->progress, false);
	pool_keep_to_limit(world.router, NULL);
	ck_assert(!older->stopping); /* it ends with its client */
}
END_TEST

START_TEST(short_memory_ends_one_child) {
	struct session *older = another("older", 0);
	pool_relieve(world.router);
	ck_assert(older->stopping && !world.session->stopping);
	pool_relieve(world.router);
	ck_assert(world.session->stopping);
	pool_relieve(world.router); /* none is left */
}
END_TEST

RUN_TESTS_WITH(world_begin, world_end, "pool", the_least_recently_used_one_sleeps, the_new_one_does_not_sleep,
			   a_child_at_work_does_not_sleep, short_memory_ends_one_child)
