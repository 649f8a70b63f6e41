/* SPDX-License-Identifier: MIT */
#include "core/starts.h"
#include "core/sessions.h"
#include "core/trust.h"

#include "plenum/protocol.h"

void starts_await(struct client *c, struct session *s, struct chunk line, bool makes) {
	c->starting = s->id;
	c->makes = makes;
	router_hold(c, line);
}

struct session *starts_awaited(struct client *c, struct chunk line, bool *made, const char **code,
							   struct error *error) {
	struct router *r = c->world;
	struct session *s = router_find_number(r, c->starting);
	*made = c->makes;
	*code = NULL;
	if (s && !s->agent && s->want_child) {
		router_hold(c, line);
		return NULL;
	}
	c->starting = 0;
	c->makes = false;
	if (s && !s->start_error && trust_is_closed_to(s, c)) { /* since the wait began */
		*code = PLENUM_E_NOT_ALLOWED;
		error_set(error, TRUST_PRIVATE_TEXT, s->name);
		return NULL;
	}
	if (s && !s->start_error) return s;
	*code = s && s->start_result == CHILD_TIMEOUT ? PLENUM_E_TIMEOUT : PLENUM_E_SPAWN_FAILED;
	error_set(error, "%s", s ? s->start_error : "the session was removed before its child had started");
	if (s && *made && !s->n_attachments && !s->agent && !s->want_child) sessions_remove(r, s, error->text);
	return NULL;
}

void starts_leave(struct client *c) {
	struct router *r = c->world;
	struct session *s = c->makes ? router_find_number(r, c->starting) : NULL;
	c->starting = 0;
	c->makes = false;
	if (!s || s->n_attachments || r->shutting_down) return;
	if (s->ephemeral)
		loop_defer(s->loop, &s->over_task);
	else
		s->unclaimed = true;
}

void starts_over(struct session *s) {
	struct client *c;
	LIST_FOR_EACH (c, &s->world->clients, struct client, node)
		if (c->starting == s->id) client_release(c);
	bool gone = s->unclaimed && s->start_error && !s->n_attachments && !s->agent && !s->want_child;
	s->unclaimed = false;
	if (gone) loop_defer(s->loop, &s->over_task); /* after the clients that wait to be notified */
}
