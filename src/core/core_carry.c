/* SPDX-License-Identifier: MIT
 *
 * Serialize and restore the whole router for an upgrade (core/carry.h): the clients first, then each session with its
 * attachments, then everything that refers to them.
 */
#include "core/asks.h"
#include "core/attachment.h"
#include "core/core.h"
#include "core/descent.h"
#include "core/execute.h"
#include "core/from_client.h"
#include "core/handshake.h"
#include "core/hooks.h"
#include "core/owners.h"
#include "core/pace.h"
#include "core/requests.h"
#include "core/sessions.h"
#include "core/stall.h"
#include "core/steps.h"
#include "core/warm.h"

/* --- numbers ------------------------------------------------------------------------------------------------------ */

static uint64_t client_number(const struct client *c) {
	return c->id;
}

static uint64_t attachment_number(const struct attachment *a) {
	return a->client->id;
}

static struct client *find_client(void *arg, uint64_t number) {
	return router_client(arg, number);
}

static struct attachment *find_attachment(void *arg, uint64_t number) {
	struct client *c = router_client(arg, number);
	return c ? c->attachment : NULL;
}

/* An owner's number is its place in the registry, from 1. */
static uint64_t owner_number(struct session *s, const struct owner *owner) {
	struct owner *o;
	uint64_t n = 0;
	LIST_FOR_EACH (o, &s->registry.owners, struct owner, node) {
		n++;
		if (o == owner) return n;
	}
	return 0;
}

static struct owner *find_owner(struct session *s, uint64_t number) {
	struct owner *o;
	LIST_FOR_EACH (o, &s->registry.owners, struct owner, node)
		if (--number == 0) return o;
	return NULL;
}

static const struct pending_events *events_of(const struct pending *p) {
	if (p->act.data) return &execute_events;
	return p->kind == ASK_HOOK || p->kind == ASK_MCP ? &hooks_events : &asks_events;
}

static const struct pending_links links = {.number = owner_number, .find = find_owner, .events = events_of};

/* --- clients ------------------------------------------------------------------------------------------------------ */

static void carry_clients(struct carry *c, struct router *r) {
	struct client *one;
	size_t n = carry_count(c, r->n_clients), max_line = r->settings->limits.client_line;
	if (c->saving) {
		LIST_FOR_EACH (one, &r->clients, struct client, node)
			client_carry(c, &one, r->loop, &r->pool, &r->watches, max_line, &from_client_events, r);
	}
	for (size_t i = 0; !c->saving && i < n && carry_ok(c); i++) {
		client_carry(c, &one, r->loop, &r->pool, &r->watches, max_line, &from_client_events, r);
		if (!one) return;
		if (!share_join(&one->member, &r->shares, one->peer.uid)) carry_fail(c, "out of memory");
		list_add_tail(&r->clients, &one->node);
		r->n_clients++;
		r->n_subscribers += one->subscribed;
	}
	if (!carry_ok(c)) return;
	LIST_FOR_EACH (one, &r->clients, struct client, node) { /* after all clients: they may have any order */
		struct client *carrier = one->carrier;
		carry_client(c, &carrier);
		if (c->saving || !carry_ok(c)) continue;
		if ((carrier != NULL) == (one->io.fd >= 0) || (carrier && carrier->carrier))
			carry_fail(c, "a client has no socket");
		else if (carrier)
			client_carry_channel(one, carrier);
	}
}

/* --- sessions ----------------------------------------------------------------------------------------------------- */

/* The members needed to make a session. */
struct basics {
	char *name, *profile;
	uint64_t id;
	struct launch launch;
};

static void carry_basics(struct carry *c, struct basics *b) {
	carry_name(c, &b->name);
	carry_name(c, &b->profile);
	CARRY(c, b->id);
	launch_carry(c, &b->launch);
}

static struct session *make_session(struct carry *c, struct router *r, struct basics *b) {
	const struct profile *p = settings_profile(r->settings, b->profile);
	bool lost = p == NULL;
	if (lost) p = settings_profile(r->settings, r->settings->default_profile);
	if (!p || router_find(r, b->name)) {
		carry_fail(c, p ? "two sessions have one name" : "there is no profile for a session");
		return NULL;
	}
	struct session *s = sessions_add(r, b->name, p, &b->launch, b->id);
	if (!s) {
		carry_fail(c, "out of memory");
		return NULL;
	}
	if (lost && !session_lose_profile(s, b->profile)) carry_fail(c, "out of memory");
	return s;
}

/* Charge clients again for open requests and queued prompts. Lines in the child's queue are charged to no share any
 * more. */
static void charge_again(struct session *s) {
	struct call *call;
	struct pending *p;
	struct prompt *one;
	LIST_FOR_EACH (call, &s->calls.order, struct call, node)
		if (call->asker) share_begin(&call->charge, &call->asker->member, false);
	LIST_FOR_EACH (p, &s->pendings.order, struct pending, node)
		if (p->sender) share_begin(&p->charge, &p->sender->member, false);
	LIST_FOR_EACH (one, &s->prompts.open, struct prompt, node)
		if (one->held.data) one->payer = share_take(&s->world->shares, one->uid, SHARE_BYTES, one->held.len);
}

static void on_call_timer(void *arg) {
	const struct call *call = arg;
	if (call->purpose == CALL_STEP)
		steps_timer(arg);
	else
		requests_timer(arg);
}

static void carry_parts(struct carry *c, struct session *s) {
	session_carry(c, s);
	attachment_carry(c, s);
	owners_carry(c, s);
	calls_carry(c, &s->calls, s, s->loop, session_dialect(s), on_call_timer);
	handles_carry(c, &s->handles, session_dialect(s));
	pendings_carry(c, &s->pendings, s, s->loop, session_dialect(s), &links);
	handshake_carry(c, s);
	if (!c->saving) charge_again(s);
	if (carry_left(c, s->pace.timer) >= 0) pace_watch(s);
	CARRY(c, s->stall.told);
	CARRY(c, s->stall.since);
	int64_t left = carry_left(c, s->stall.timer);
	if (!c->saving && left >= 0) stall_watch(s, left);
	carry_timer(c, s->agent ? &s->agent->pace_timer : NULL);
	bool over = !list_empty(&s->over_task.node); /* tasks due at the end of this turn */
	CARRY(c, over);
	if (!c->saving && over) loop_defer(s->loop, &s->over_task);
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

static void carry_counters(struct carry *c, struct router *r) {
	carry_mark(c, "router");
	CARRY(c, r->clients_seen);
	CARRY(c, r->sessions_seen);
	CARRY(c, r->decisions);
	CARRY(c, r->bad_lines);
	CARRY(c, r->last_seq);
	CARRY(c, r->nofile);
	descent_carry(c, r->descent);
	warm_carry(c, r->warm);
	CARRY(c, r->guards_lost);
}

/* Complete the work of several turns, which would be carried otherwise. */
static void complete(struct router *r) {
	descent_settle(r);
	for (struct session *s = r->sessions; s; s = s->hh.next)
		while (!asks_tell_some(s)) continue;
}

void core_carry(struct carry *c, struct router *r) {
	const struct carry_world world = {client_number, attachment_number, find_client, find_attachment, r};
	c->world = &world;
	if (c->saving) complete(r);
	carry_counters(c, r);
	carry_clients(c, r);
	size_t n = carry_count(c, r->n_sessions);
	if (c->saving)
		for (struct session *s = r->sessions; s; s = s->hh.next) {
			struct basics b = {.name = s->name, .id = s->id, .profile = session_profile(s), .launch = s->launch};
			carry_basics(c, &b);
			carry_parts(c, s);
		}
	for (size_t i = 0; !c->saving && i < n && carry_ok(c); i++) {
		struct basics b = {0};
		carry_basics(c, &b);
		struct session *s = carry_ok(c) ? make_session(c, r, &b) : NULL;
		free(b.name);
		free(b.profile);
		launch_free(&b.launch);
		if (s) carry_parts(c, s);
	}
	c->world = NULL;
}

void core_resume(struct router *r) {
	struct client *c;
	LIST_FOR_EACH (c, &r->clients, struct client, node) client_resume(c);
	for (struct session *s = r->sessions; s; s = s->hh.next) {
		struct pending *p;
		session_resume(s);
		LIST_FOR_EACH (p, &s->pendings.order, struct pending, node)
			if (p->judging) asks_decide(p);
	}
	descent_resume(r->descent);
}
