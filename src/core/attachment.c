/* SPDX-License-Identifier: MIT */
#include "core/attachment.h"
#include "core/asks.h"
#include "core/client_handles.h"
#include "core/execute.h"
#include "core/handshake.h"
#include "core/intake.h"
#include "core/notify.h"
#include "core/owners.h"

#include "plenum/protocol.h"

static void tell_presence(struct attachment *a, const char *event, const char *why) {
	struct buf b = NOTICE_INIT;
	if (a->session->n_attachments > NOTIFY_CROWD && !a->session->world->n_subscribers) return;
	notice_begin(&b, event, a->session->name);
	buf_puts(&b, ",\"client\":");
	notify_put_where(&b, a->client);
	if (why) notice_text(&b, "reason", why);
	notify_present(a->session, notice_end(&b), a);
}

static void join(struct attachment *a, struct client *c, struct session *s) {
	a->session = s;
	a->client = c;
	list_add_tail(&s->attachments, &a->node);
	s->n_attachments++;
	c->attachment = a;
	c->spent = false;
	client_speak(c, session_dialect(s));
}

struct attachment *attachment_new(struct client *c, struct session *s, bool observer, bool approve) {
	struct attachment *a = calloc(1, sizeof *a);
	if (!a) return NULL;
	join(a, c, s);
	a->observer = observer;
	a->approve = approve;
	session_used(s);
	session_changed(s);
	return a;
}

void attachment_ready(struct attachment *a) {
	tell_presence(a, PLENUM_EV_ATTACHED, NULL);
	owners_return(a);
	asks_offer(a);
}

/* A client that only leaves the session gets an error for each open request. */
static void end_calls_of(struct session *s, struct client *c) {
	struct call *call;
	LIST_FOR_EACH (call, &s->calls.order, struct call, node)
		if (call->asker == c) {
			if (!c->dead) notify_fail(c, span_of(call->asker_id), PLENUM_E_NOT_ATTACHED, ROUTER_LEFT_TEXT, s->name);
			if (call->purpose == CALL_KEPT)
				call_end(&s->calls, call); /* the child has not got it */
			else
				call_orphan(&s->calls, call); /* drop the answer */
		}
}

bool attachment_copy(struct attachment *a, const struct attachment *from, bool ephemeral) {
	a->by_tool = from->by_tool;
	a->on_lag = from->on_lag;
	a->asked_approve = from->asked_approve;
	attachment_stand_in(a, ephemeral, from->deny_asks, from->wants_stderr);
	return names_copy(&a->tools, &from->tools);
}

void attachment_change(struct attachment *a, bool observer, enum lag_policy on_lag, struct approval *approval) {
	a->observer = observer;
	a->on_lag = on_lag;
	a->approve = approval->approve;
	if (!approval->asked) return;
	a->asked_approve = approval->approve;
	a->by_tool = approval->by_tool;
	names_free(&a->tools);
	a->tools = approval->tools;
	*approval = (struct approval){0};
}

void attachment_stand_in(struct attachment *a, bool ephemeral, bool deny_asks, bool wants_stderr) {
	a->ephemeral = ephemeral;
	if (ephemeral) session_set_ephemeral(a->session);
	a->deny_asks = ephemeral && deny_asks; /* any other session may get more clients */
	a->wants_stderr = wants_stderr;
}

void attachment_leave(struct client *c, const char *why) {
	struct attachment *a = c->attachment;
	if (!a) return;
	struct session *s = a->session;
	intake_leave(c);
	if (a->on_lag == LAG_CLOSE) a->on_lag = LAG_GAP; /* it is leaving: a gap now must not detach it again */
	client_leave_tape(c);
	tell_presence(a, PLENUM_EV_DETACHED, why);
	list_del(&a->node);
	s->n_attachments--;
	c->attachment = NULL;
	client_speak(c, NULL);
	client_filter_free(&c->filter);
	asks_leave(a);
	handshake_left(s, c);
	end_calls_of(s, c);
	client_handles_leave(s, c);
	execute_left(s, c);
	prompts_asker_gone(&s->prompts, c);
	owners_leave(a);
	bool unused = s->by_client && !s->conversation_id && !s->n_attachments; /* its client began nothing */
	bool ephemeral = (a->ephemeral || unused) && !s->removed;
	names_free(&a->tools);
	free(a);
	if (c->carrier) client_close(c); /* it has no other use */
	session_used(s);
	session_changed(s);
	/* not here: the caller may be walking through the session's lists */
	if (ephemeral && !s->world->shutting_down) loop_defer(s->loop, &s->over_task);
}

/* A half-closed client stays until everything that it waits for was sent (contract 7). */
void attachment_close_ended(struct client *c) {
	struct attachment *a = c->attachment;
	struct call *call;
	struct router *r = c->world;
	bool idle = c->carrier && a && a->session->by_client && !a->session->conversation_id; /* it has begun nothing */
	bool over = idle || (c->ended && !client_has_channels(c));
	if (!over || c->closing || c->dead || client_holds(c)) return;
	if (r->events->is_asker && r->events->is_asker(r, c)) return;
	if (a) {
		if (prompts_of(&a->session->prompts, c) || handshake_waits(a->session, c, SPAN_NONE)) return;
		if (execute_open(a->session, c, SPAN_NONE)) return;
		LIST_FOR_EACH (call, &a->session->calls.order, struct call, node)
			if (call->asker == c && (idle || !router_is_shim(c))) return; /* the CLI ends despite open requests */
		if (a->ephemeral && a->session->agent) { /* its session ends with it, and it gets the exit */
			session_end_input(a->session);
			return;
		}
		attachment_leave(c, "end of input");
	}
	client_close(c);
}

void attachment_end_input(struct attachment *a) {
	a->approve = false;
	if (a->ephemeral) a->session->ending = true;
}

void attachment_end(struct attachment *a, const char *why) {
	struct client *c = a->client;
	bool ephemeral = a->ephemeral;
	a->ephemeral = false; /* or its detachment would remove the session again */
	if (c->filter.quiet && !ephemeral)
		notify_fail(c, SPAN_NONE, PLENUM_E_NOT_ATTACHED, "session %s was removed: nothing more comes of it",
					a->session->name);
	attachment_leave(c, why);
	c->spent = ephemeral && client_has_channels(c);
	if ((ephemeral && !c->spent) || c->ended) client_close(c);
}

/* --- upgrade ----------------------------------------------------------------------------------------------------- */

static void carry_members(struct carry *c, struct attachment *a) {
	bool reads = a->client->tape != NULL;
	CARRY(c, a->observer);
	CARRY(c, a->approve);
	carry_set(c, &a->tools, &a->by_tool);
	CARRY_UPTO(c, a->on_lag, LAG_WAIT);
	CARRY(c, a->ephemeral);
	CARRY(c, a->wants_stderr);
	CARRY(c, a->deny_asks);
	CARRY(c, a->initialized);
	CARRY(c, a->asked_approve);
	CARRY(c, a->lag.behind_since);
	CARRY(c, a->lag.waited_since);
	CARRY(c, a->lag.waited_from);
	CARRY(c, reads);
	if (c->saving || !reads) return;
	if (!client_resume_tape(a->client, &a->session->tape)) carry_fail(c, "a client has read more than there is");
}

void attachment_carry(struct carry *c, struct session *s) {
	struct attachment *a = LIST_OF(s->attachments.next, struct attachment, node);
	carry_mark(c, "attachments");
	size_t n = carry_count(c, s->n_attachments);
	for (size_t i = 0; i < n && carry_ok(c); i++) {
		struct client *client = c->saving ? a->client : NULL;
		carry_client(c, &client);
		if (c->saving) {
			carry_members(c, a);
			a = LIST_OF(a->node.next, struct attachment, node);
			continue;
		}
		if (!client || client->attachment) {
			carry_fail(c, "an attachment has no client");
			return;
		}
		if (!(a = calloc(1, sizeof *a))) {
			carry_fail(c, "out of memory");
			return;
		}
		join(a, client, s);
		carry_members(c, a);
	}
}
