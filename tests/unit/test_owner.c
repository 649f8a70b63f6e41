/* SPDX-License-Identifier: MIT */
#include "core/owner.h"
#include "harness.h"

#include <check.h>

#define ENTRIES 8

static char none[] = "", stop[] = "\"Stop\"", a_id[] = "\"a\"", b_id[] = "\"b\"";

struct world {
	struct owner o;
	struct hook_entry entries[ENTRIES];
	struct hook hooks[ENTRIES];
	size_t n;
};

static struct world world;

static void setup(void) {
	world = (struct world){0};
	list_init(&world.o.entries);
	list_init(&world.o.servers);
	list_init(&world.o.staged);
}

static void teardown(void) {
	names_free(&world.o.dialogs);
}

/* Add an entry with one hook to a list of the owner. */
static struct hook_entry *add(struct list *to, char *callback) {
	struct hook_entry *e = &world.entries[world.n];
	struct hook *h = &world.hooks[world.n++];
	e->event = stop;
	e->members = none;
	list_init(&e->hooks);
	h->callback = callback;
	list_add_tail(&e->hooks, &h->node);
	list_add_tail(to, &e->node);
	return e;
}

START_TEST(entries) {
	ck_assert(owner_empty(&world.o) && !owner_guards(&world.o) && !owner_unproven(&world.o));
	struct hook_entry *e = add(&world.o.entries, a_id);
	ck_assert(!owner_empty(&world.o) && !owner_guards(&world.o) && owner_unproven(&world.o));
	e->proven = true;
	ck_assert(!owner_unproven(&world.o));
	add(&world.o.entries, a_id)->guard = true;
	ck_assert(owner_guards(&world.o) && owner_unproven(&world.o));
}
END_TEST

START_TEST(servers) {
	struct mcp_server s[2] = {0};
	for (size_t i = 0; i < ARRAY_SIZE(s); i++) list_add_tail(&world.o.servers, &s[i].node);
	ck_assert(!owner_empty(&world.o));
	owner_claimed(&world.o);
	ck_assert(s[0].claimed && s[1].claimed);
}
END_TEST

START_TEST(dialogs) {
	struct span kind = span_of("\"a\"");
	ck_assert(!owner_takes_dialog(&world.o, kind));
	ck_assert(names_add(&world.o.dialogs, kind.p, kind.n));
	ck_assert(owner_takes_dialog(&world.o, kind));
	ck_assert(!owner_takes_dialog(&world.o, span_of("\"ab\"")) && !owner_takes_dialog(&world.o, SPAN_NONE));
}
END_TEST

/* Each present entry is the twin of one staged entry at most. */
START_TEST(twins) {
	struct hook_entry *one = add(&world.o.entries, a_id), *two = add(&world.o.entries, a_id);
	struct hook_entry *other = add(&world.o.entries, b_id);
	struct hook_entry *guard = add(&world.o.staged, b_id);
	struct hook_entry *a = add(&world.o.staged, a_id), *b = add(&world.o.staged, a_id);
	struct hook_entry *third = add(&world.o.staged, a_id);
	one->proven = two->proven = other->proven = true;
	guard->guard = true;
	ck_assert(owner_find_twins(&world.o));
	ck_assert((a->twin == one && b->twin == two) || (a->twin == two && b->twin == one));
	ck_assert(a->proven && b->proven);
	ck_assert(!third->twin && !third->proven);
	ck_assert(!guard->twin && !guard->proven);
}
END_TEST

RUN_TESTS_WITH(setup, teardown, "owner", entries, servers, dialogs, twins)
