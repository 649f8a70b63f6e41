/* SPDX-License-Identifier: MIT */
#include "core/implicit.h"

#include "base/str.h"
#include "world.h"

static struct chunk line;

static struct attachment *attach(struct client *c, const char *session) {
	_cleanup_free_ char *raw = session ? str_printf("\"%s\"", session) : NULL;
	return implicit_attach(world.router, c, span_of(raw), span_of("\"r\""), line);
}

START_TEST(a_line_finds_its_session) {
	struct client *c = world_client();
	const struct attachment *a = attach(c, "s");
	ck_assert_ptr_nonnull(a);
	ck_assert_ptr_eq(a->session, world.session);
	ck_assert(!a->observer && a->approve);
	ck_assert_uint_eq(c->cursor, world.session->tape.next); /* it has read nothing that was before it */
}
END_TEST

START_TEST(a_conversation_is_a_name_as_well) {
	session_set_conversation(world.session, "11111111-1111-4111-8111-111111111111");
	const struct attachment *a = attach(world_client(), "11111111-1111-4111-8111-111111111111");
	ck_assert_ptr_nonnull(a);
	ck_assert_ptr_eq(a->session, world.session);
}
END_TEST

/* Nothing is made for it, and the reason is the answer. */
static void is_refused(struct client *c, const char *session, const char *code) {
	ck_assert_ptr_null(attach(c, session));
	ck_assert(!client_holds(c));
	HAS(world_said(c), code);
	ck_assert_uint_eq(world.router->n_sessions, 1);
}

START_TEST(a_session_is_not_made_for_all) {
	struct client *agent = world_client(), *other = world_client(), *own = world_client();
	client_set_origin(agent, ORIGIN_AGENT, 0);
	is_refused(agent, "new", PLENUM_E_NOT_ALLOWED);
	is_refused(own, "a\\nb", PLENUM_E_BAD_REQUEST);
	is_refused(own, "a\\u0000", PLENUM_E_BAD_REQUEST);
	other->peer.uid = getuid() + 1;
	world.profile->is_private = true;
	is_refused(other, "new", PLENUM_E_NOT_ALLOWED);
	is_refused(other, "s", PLENUM_E_NOT_ALLOWED); /* nor does it get the present one */
	world.settings->max_sessions = 1;
	is_refused(own, "new", PLENUM_E_TOO_MANY);
	free(world.settings->default_profile);
	world.settings->default_profile = strdup("missing");
	is_refused(own, "new", PLENUM_E_NO_SUCH_PROFILE);
}
END_TEST

/* The next session of this name is meant. */
START_TEST(a_line_for_an_ending_session_waits) {
	struct client *c = world_client();
	line = chunk_copy("x\n", 2);
	session_stop(world.session, false, THEN_REMOVE);
	ck_assert_ptr_null(attach(c, "s"));
	ck_assert(client_holds(c));
	ck_assert_str_eq(world_said(c), "");
	chunk_drop(&line);
}
END_TEST

RUN_TESTS_WITH(world_begin, world_end, "implicit", a_line_finds_its_session, a_conversation_is_a_name_as_well,
			   a_session_is_not_made_for_all, a_line_for_an_ending_session_waits)
