/* SPDX-License-Identifier: MIT */
#include "core/router.h"

#include "world.h"

#define ONE "11111111-1111-4111-8111-111111111111"
#define TWO "22222222-2222-4222-8222-222222222222"

START_TEST(a_session_is_found_by_both_names) {
	struct session *two = world_session(ONE);
	session_set_conversation(world.session, ONE);
	ck_assert_ptr_eq(router_find(world.router, ONE), two);
	ck_assert_ptr_eq(router_find_conversation(world.router, ONE), world.session);
	ck_assert_ptr_eq(router_named(world.router, ONE), two); /* the name wins */
	ck_assert_ptr_eq(router_named(world.router, "s"), world.session);
	ck_assert_ptr_null(router_named(world.router, TWO));
}
END_TEST

/* The child reports another id than the one that it was asked to resume. */
START_TEST(a_resumed_conversation_is_its_own_too) {
	struct session *two = world_session("two");
	session_set_conversation(world.session, TWO);
	session_set_resumed(world.session, ONE);
	ck_assert(router_has_conversation(world.session, ONE) && router_has_conversation(world.session, TWO));
	ck_assert_ptr_eq(router_find_conversation(world.router, ONE), world.session);
	session_set_conversation(two, ONE);
	ck_assert_ptr_eq(router_find_conversation(world.router, ONE), two); /* it is in it */
}
END_TEST

START_TEST(a_hidden_holder_is_not_named) {
	struct error why;
	router_in_use_text(&why, "mine");
	HAS(why.text, "mine");
	router_in_use_text(&why, NULL);
	HAS_NOT(why.text, "mine");
	HAS(why.text, "fork");
}
END_TEST

/* The longest waiting client is served first. */
START_TEST(a_held_line_keeps_its_place) {
	struct client *one = world_client(), *two = world_client();
	struct chunk line = chunk_copy("x\n", 2);
	router_hold(two, line);
	router_hold(one, line);
	ck_assert_ptr_eq(LIST_TOP(&world.router->clients, struct client, node), two);
	ck_assert(client_holds(one) && client_holds(two));
	chunk_drop(&line);
}
END_TEST

START_TEST(subscribers_and_children_are_counted) {
	struct client *c = world_client();
	router_subscribe(c, true);
	router_subscribe(c, true);
	ck_assert_uint_eq(world.router->n_subscribers, 1);
	router_subscribe(c, false);
	router_subscribe(c, false);
	ck_assert_uint_eq(world.router->n_subscribers, 0);
	world_session("two");
	ck_assert_uint_eq(router_children(world.router), 1);
	ck_assert_ptr_eq(router_client(world.router, c->id), c);
	ck_assert_ptr_null(router_client(world.router, 77));
}
END_TEST

RUN_TESTS_WITH(world_begin, world_end, "router", a_session_is_found_by_both_names,
			   a_resumed_conversation_is_its_own_too, a_hidden_holder_is_not_named, a_held_line_keeps_its_place,
			   subscribers_and_children_are_counted)
