/* SPDX-License-Identifier: MIT */
#include "core/owners.h"

#include "core/guards.h"
#include "world.h"

static struct client *named(const char *name) {
	struct client *c = world_enter();
	c->name = strdup(name);
	return c;
}

static bool is_taken(const struct client *c, const char *server) {
	const struct attachment *a = c->attachment;
	return owners_of_server(world.session, a, owners_takes_up_as(a), span_of(server)) != NULL;
}

START_TEST(an_own_driver_may_register) {
	struct client *own = world_enter(), *observer = world_enter_as(world.session, true, false), *other = world_enter();
	other->peer.uid = getuid() + 1;
	ck_assert(owners_may_register(own->attachment));
	ck_assert(!owners_may_register(observer->attachment) && !owners_may_register(other->attachment));
	ck_assert_ptr_nonnull(strstr(owners_why_not(observer->attachment), "observer"));
}
END_TEST

START_TEST(a_name_has_one_owner) {
	struct client *one = named("one"), *two = named("two");
	ck_assert_ptr_null(owners_add_server(one->attachment, "tools"));
	ck_assert(is_taken(two, "\"tools\"") && !is_taken(one, "\"tools\"") && !is_taken(two, "\"others\""));
	owners_refuse_server(two, span_of("\"r\""), span_of("\"tools\""), one->attachment->owner);
	HAS(world_said(two), PLENUM_E_NAME_TAKEN);
}
END_TEST

START_TEST(a_client_comes_back_by_its_name) {
	struct client *one = named("one"), *other = world_enter();
	ck_assert_ptr_null(owners_add_server(one->attachment, "tools"));
	world_said(other);
	world_leaves(one);
	HAS(world_said(other), PLENUM_EV_OWNER_GONE);
	ck_assert(is_taken(other, "\"tools\"")); /* its place is kept */
	struct client *again = named("one");
	owners_return(again->attachment);
	HAS(world_said(other), PLENUM_EV_OWNER_BACK);
	ck_assert_ptr_nonnull(again->attachment->owner);
	ck_assert(!is_taken(again, "\"tools\""));
}
END_TEST

START_TEST(its_place_is_kept_for_a_while) {
	struct client *one = named("one"), *other = world_enter();
	ck_assert_ptr_null(owners_add_server(one->attachment, "tools"));
	struct owner *o = one->attachment->owner;
	world_leaves(one);
	ck_assert(loop_timer_pending(&o->grace));
	owners_grace_timer(o);
	ck_assert(!is_taken(other, "\"tools\""));
	ck_assert(list_empty(&world.session->registry.owners));
}
END_TEST

START_TEST(a_client_without_a_name_cannot_come_back) {
	struct client *one = world_enter(), *other = world_enter();
	ck_assert_ptr_null(owners_add_server(one->attachment, "tools"));
	world_leaves(one);
	world_said(other);
	struct client *again = world_enter();
	owners_return(again->attachment);
	ck_assert_ptr_null(again->attachment->owner);
	HAS_NOT(world_said(other), PLENUM_EV_OWNER_BACK);
}
END_TEST

START_TEST(unreadable_guards_refuse_every_tool) {
	struct client *c = world_enter();
	ck_assert(!owners_restore_guards(world.session, "no JSON"));
	ck_assert_ptr_nonnull(guards_covering(&world.session->registry, "Bash"));
	world_said(c);
	ck_assert(owners_clear_lost(world.session, c));
	HAS(world_said(c), "guards_lost");
	ck_assert_ptr_null(guards_covering(&world.session->registry, "Bash"));
	ck_assert(!owners_clear_lost(world.session, c));
}
END_TEST

RUN_TESTS_WITH(world_begin, world_end, "owners", an_own_driver_may_register, a_name_has_one_owner,
			   a_client_comes_back_by_its_name, its_place_is_kept_for_a_while, a_client_without_a_name_cannot_come_back,
			   unreadable_guards_refuse_every_tool)
