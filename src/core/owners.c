/* SPDX-License-Identifier: MIT
 *
 * Send the child's hook callbacks and MCP messages to their owners. An absent or silent owner never lets a guard fail
 * open (contract 6, protocol-facts 4.4, 5).
 */
#include "core/guards.h"
#include "core/router.h"
#include "core/trust.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "plenum/protocol.h"

#include <stdio.h>
#include <string.h>

/* --- hook callbacks ----------------------------------------------------------------------------------------------- */

#define GONE_TEXT "the client %.300s guards this with a hook and is not there; Plenum refuses until it is back"
#define NAMELESS_TEXT                                                                                                  \
	"the client that guards this with a hook is gone and gave itself no name to come back by; Plenum refuses for as "  \
	"long as it keeps the session"
#define LOST_TEXT                                                                                                      \
	"the hooks that guarded this session could not be read when Plenum started; it refuses every tool until its user " \
	"goes on without them (plenumctl clear-lost)"
#define SILENT_TEXT                                                                                                    \
	"the client that guards this with a hook did not answer in time; Plenum refuses before the CLI's own deadline"

#define REPLACED_TEXT                                                                                                  \
	"the hooks that guard this are being replaced; Plenum refuses until the CLI has the new ones: try again"

/* Answer no for a guard that cannot be asked: an error would let the tool run (protocol-facts 4.2). event: raw JSON, or
 * absent if unknown. */
static void refuse_hook(struct session *s, struct span id, bool guard, struct span event, const char *why) {
	struct buf b = NOTICE_INIT, body = NOTICE_INIT;
	if (guard)
		session_dialect(s)->hooks->put_hook_deny(&body, event, why);
	else
		buf_puts(&body, session_dialect(s)->hooks->neutral);
	dialect_put_built(session_dialect(s), &b, id, &body);
	log_info("session %s: a hook callback was answered %s: %s", s->label, guard ? "deny" : "neutrally", why);
	session_must_write(s, notice_chunk(&b)); /* in the CLI a hook without an answer is none */
}

void hooks_refuse(struct session *s, struct span id, struct span callback, const char *why) {
	const struct hook *h = registry_hook(&s->registry, callback);
	const struct hook_entry *e = h ? h->entry : NULL;
	refuse_hook(s, id, !e || e->guard, e ? span_of(e->event) : SPAN_NONE, why);
}

static void answer_hook(struct pending *p, const char *why) {
	struct buf b = NOTICE_INIT;
	if (p->guard)
		p->dialect->hooks->put_hook_deny(&b, span_of(p->event), why);
	else
		buf_puts(&b, p->dialect->hooks->neutral);
	asks_answer_self(p, &b, p->guard ? "deny" : "neutral", why);
}

static void answer_for_gone(struct pending *p, const struct owner *o) {
	_cleanup_free_ char *name = o->name ? str_word(o->name) : NULL;
	char gone[400];
	snprintf(gone, sizeof gone, GONE_TEXT, name ? name : "");
	answer_hook(p, o->name ? gone : guards_stand_in(o) ? LOST_TEXT : NAMELESS_TEXT);
}

static void answer_mcp(struct pending *p, const char *why) {
	struct buf b = NOTICE_INIT;
	p->dialect->hooks->put_mcp_error(&b, pending_part(p, ASK_PART_MESSAGE), why);
	asks_answer_self(p, &b, "owner_gone", NULL);
}

/* A server that its owner has registered meanwhile has no deadline. */
static void mcp_deadline(struct pending *p) {
	if (!p->owner || owner_claims_server(&p->session->registry, p->owner, pending_part(p, ASK_PART_SERVER)))
		answer_mcp(p, "the client that took over this MCP server by its name does not answer");
}

void hooks_deadline(struct pending *p) {
	if (p->kind == ASK_MCP)
		mcp_deadline(p);
	else
		answer_hook(p, SILENT_TEXT);
}

void hooks_unanswered(struct pending *p) {
	answer_hook(p, "the client that guards this with a hook gave no decision in its answer; Plenum refuses");
}

static void on_hook_timer(void *arg) {
	hooks_deadline(arg);
}

void hooks_call(struct session *s, struct chunk line, const struct envelope *e) {
	const struct dialect *d = session_dialect(s);
	struct span callback = d->ask_part(ASK_HOOK, e->request, ASK_PART_CALLBACK);
	struct hook *h = registry_hook(&s->registry, callback);
	if (!h) {
		asks_refuse(s, line, e, "no client has registered this callback");
		return;
	}
	if (!h->entry->owner) {
		refuse_hook(s, e->request_id, h->entry->guard, span_of(h->entry->event), REPLACED_TEXT);
		return;
	}
	struct owner *o = h->entry->owner;
	struct pending *p = pending_new(&s->pendings, s, s->loop, d, e, line, on_hook_timer);
	if (!p || !pending_set_part(p, ASK_PART_CALLBACK, h->callback) || !(p->event = strdup(h->entry->event))) {
		if (p) pending_settle(&s->pendings, p);
		hooks_refuse(s, e->request_id, callback, "the daemon is out of memory");
		return;
	}
	p->guard = h->entry->guard;
	p->owner = o;
	struct attachment *a = o->holder;
	if (!a) {
		answer_for_gone(p, o);
		return;
	}
	if (!pending_ask(p, a)) {
		answer_hook(p, "the daemon is out of memory");
		return;
	}
	loop_timer_set(&p->timer, h->entry->timeout / 10 * 9);
	client_post(a->client, chunk_ref(p->line));
}

/* --- MCP ---------------------------------------------------------------------------------------------------------- */

#define MCP_GONE_TEXT "the client that serves this MCP server is not there"

/* The child waits no more for a cancelled call, and reports that only by a notification (protocol-facts 4.2). */
static void end_cancelled(struct session *s, const struct pending *notice) {
	struct span id = notice->dialect->hooks->cancels_call(pending_part(notice, ASK_PART_MESSAGE));
	struct pending *p;
	if (!id.p) return;
	LIST_FOR_EACH (p, &s->pendings.order, struct pending, node) {
		struct span other = pending_part(p, ASK_PART_MESSAGE);
		if (p == notice || p->kind != ASK_MCP || p->owner != notice->owner) continue;
		if (!span_same(span_member(other, "id"), id) || !span_member(other, "method").p) continue;
		if (!span_same(pending_part(p, ASK_PART_SERVER), pending_part(notice, ASK_PART_SERVER))) continue;
		pending_settle(&s->pendings, p);
		return;
	}
}

void hooks_mcp(struct session *s, struct chunk line, const struct envelope *e) {
	const struct dialect *d = session_dialect(s);
	struct owner *o = registry_server(&s->registry, d->ask_part(ASK_MCP, e->request, ASK_PART_SERVER));
	if (!o) {
		asks_refuse(s, line, e, "no client serves an MCP server of this name");
		return;
	}
	struct pending *p = pending_new(&s->pendings, s, s->loop, d, e, line, on_hook_timer);
	if (!p) {
		asks_refuse(s, line, e, "the daemon is out of memory");
		return;
	}
	p->owner = o;
	struct attachment *a = o->holder;
	if (!a || !pending_ask(p, a)) {
		answer_mcp(p, MCP_GONE_TEXT);
		return;
	}
	if (owner_claims_server(&s->registry, o, pending_part(p, ASK_PART_SERVER)))
		loop_timer_set(&p->timer, s->profile->owner_grace);
	client_post(a->client, chunk_ref(p->line));
	end_cancelled(s, p);
}

bool owners_may_register(const struct attachment *a) {
	return trust_in(a->client->world, a) == TRUST_OWN;
}

const char *owners_why_not(const struct attachment *a) {
	const char *why = trust_why(a->client->world, a->client);
	return why ? why : "an observer registers nothing: attach as a driver";
}

const char *owners_takes_up_as(const struct attachment *a) {
	return owners_may_register(a) ? a->client->name : NULL;
}

struct owner *owners_of_server(struct session *s, const struct attachment *a, const char *as, struct span name) {
	return registry_server_taken(&s->registry, name, a, a->client->peer.uid, as);
}

void owners_refuse_server(struct client *c, struct span id, struct span name, const struct owner *o) {
	struct buf b = NOTICE_INIT;
	if (o->name) str_put_json(&b, o->name, strlen(o->name));
	if (o->holder)
		notify_fail(c, id, PLENUM_E_NAME_TAKEN, "MCP server %.*s belongs to another attachment: choose another name",
					(int)name.n, name.p);
	else
		notify_fail(c, id, PLENUM_E_NAME_TAKEN,
					"MCP server %.*s belongs to client %s, which is away and has its owner_grace to come back: choose "
					"another name, or try again later",
					(int)name.n, name.p, b.data ? b.data : "?");
	buf_free(&b);
}

const char *owners_add_server(struct attachment *a, const char *name) {
	struct buf b = NOTICE_INIT;
	str_put_json(&b, name, strlen(name));
	struct owner *o = owners_get(a);
	const char *error = o && !b.failed
							? owner_add_server(&a->session->registry, o, (struct span){b.data, b.len}, SPAN_NONE, true)
							: "out of memory";
	buf_free(&b);
	return error;
}

static bool is_taken(struct client *c, struct session *s, struct span id, struct span servers) {
	struct span name, config;
	const char *as = owners_takes_up_as(c->attachment);
	for (size_t at = 0; span_next_member(servers, &at, &name, &config);) {
		const struct owner *o = owners_of_server(s, c->attachment, as, name);
		if (!o) continue;
		owners_refuse_server(c, id, name, o);
		return true;
	}
	return false;
}

/* The request drops all servers that it does not name: add those of other attachments. */
void servers_set(struct client *c, struct session *s, struct chunk line, const struct envelope *e,
				 const struct gate_row *row) {
	struct attachment *a = c->attachment;
	const struct dialect_hooks *d = session_dialect(s)->hooks;
	struct span servers = d->servers_of(e), name, config;
	if (!span_is_object(servers)) {
		notify_fail(c, e->request_id, PLENUM_E_BAD_REQUEST, "%s", d->bad_servers);
		return;
	}
	const char *error = registry_check_servers(&s->registry, a->owner, servers);
	if (error) {
		notify_fail(c, e->request_id, registry_code(error), "%s: %s", d->set_servers_name, error);
		return;
	}
	if (is_taken(c, s, e->request_id, servers)) return;
	if (!owners_get(a)) {
		notify_fail(c, e->request_id, PLENUM_E_INTERNAL, "out of memory");
		return;
	}
	bool current = handshake_is_current(s); /* or hooks still wait to be sent */
	owner_drop_servers(&s->registry, a->owner, true);
	for (size_t at = 0; !error && span_next_member(servers, &at, &name, &config);)
		error = owner_add_server(&s->registry, a->owner, name, config, d->is_own_server(config));
	if (error) {
		notify_fail(c, e->request_id, registry_code(error), "%s: %s", d->set_servers_name, error);
		return;
	}
	if (current) handshake_made_current(s); /* the child gets them by this request */
	struct buf body = NOTICE_INIT;
	buf_puts(&body, d->set_servers);
	registry_put_servers(&s->registry, &body);
	buf_putc(&body, '}');
	if (body.failed)
		notify_fail(c, e->request_id, PLENUM_E_INTERNAL, "out of memory");
	else
		requests_announce_change(requests_send(c, s, line, e, requests_put, body.data), row, e);
	buf_free(&body);
}

/* --- owners come and go ------------------------------------------------------------------------------------------- */

struct owner *owners_get(struct attachment *a) {
	struct session *s = a->session;
	owners_return(a); /* its name may have changed since it attached */
	if (!a->owner) a->owner = owner_new(&s->registry, s, s->loop, a, a->client->peer.uid, a->client->name, NULL);
	return a->owner;
}

static void tell_owner(struct session *s, const struct owner *o, const char *event, uid_t uid) {
	struct buf b = NOTICE_INIT;
	struct mcp_server *server;
	bool first = true;
	notice_begin(&b, event, s->name);
	notice_text(&b, "name", o->name);
	notice_number(&b, "uid", uid);
	notice_flag(&b, "guards", owner_guards(o));
	buf_puts(&b, ",\"servers\":[");
	LIST_FOR_EACH (server, &o->servers, struct mcp_server, node) {
		buf_printf(&b, "%s%s", first ? "" : ",", server->name);
		first = false;
	}
	buf_putc(&b, ']');
	notify_session(s, notice_end(&b));
}

void owners_grace_timer(void *arg) {
	struct owner *o = arg;
	struct session *s = o->session;
	o->grace_over = true;
	owner_drop_loose(&s->registry, o);
	owner_drop_servers(&s->registry, o, true); /* their names are free now */
	if (!owner_guards(o)) owner_free(&s->registry, o);
	session_changed(s);
}

static void settle_owned(struct session *s, const struct owner *o) {
	struct pending *p;
	LIST_FOR_EACH (p, &s->pendings.order, struct pending, node) {
		if (p->owner != o) continue;
		p->n_asked = 0;
		if (p->kind == ASK_HOOK)
			answer_for_gone(p, o);
		else if (p->kind == ASK_MCP)
			answer_mcp(p, MCP_GONE_TEXT);
	}
}

void owners_leave(struct attachment *a) {
	struct session *s = a->session;
	struct owner *o = a->owner;
	if (!o || s->removed) return;
	a->owner = NULL;
	o->holder = NULL;
	settle_owned(s, o);
	if (owner_empty(o)) {
		owner_free(&s->registry, o);
		return;
	}
	tell_owner(s, o, PLENUM_EV_OWNER_GONE, o->uid);
	if (!o->name) owner_drop_loose(&s->registry, o); /* no client can come back to them */
	o->grace.fn = owners_grace_timer;
	loop_timer_set(&o->grace, s->profile->owner_grace);
}

bool owners_restore_guards(struct session *s, const char *guards) {
	struct owner *o;
	bool ok = guards_restore(&s->registry, s, s->loop, guards, owners_grace_timer);
	if (!ok)
		log_error(
			"session %s: every tool is refused, because its guards cannot be read (plenumctl clear-lost): %.1000s",
			s->label, guards);
	LIST_FOR_EACH (o, &s->registry.owners, struct owner, node) loop_timer_set(&o->grace, s->profile->owner_grace);
	return ok;
}

bool owners_clear_lost(struct session *s, const struct client *by) {
	struct buf b = NOTICE_INIT;
	if (!guards_clear(&s->registry)) return false;
	log_warn("session %s: client %llu (uid %u, pid %d) goes on without the guards that were lost", s->name,
			 (unsigned long long)by->id, by->peer.uid, by->peer.pid);
	notice_begin(&b, PLENUM_EV_CHANGED, s->name);
	notice_text(&b, "what", "guards_lost");
	notice_flag(&b, "value", false);
	notify_put_by(&b, by);
	notify_session(s, notice_end(&b));
	session_changed(s);
	return true;
}

/* Take over an absent owner. It has no open requests: those belong to present owners only. */
static void take_up(struct attachment *a, struct owner *o) {
	loop_timer_stop(&o->grace);
	o->grace_over = false;
	if (a->owner) {
		owner_merge(&a->session->registry, a->owner, o);
		return;
	}
	owner_claimed(o);
	o->holder = a;
	a->owner = o;
}

/* Take over all absent owners of this name: it is unknown which of them has come back. */
void owners_return(struct attachment *a) {
	struct session *s = a->session;
	struct owner *o = owner_waiting(&s->registry, a->client->peer.uid, a->client->name);
	if (!o || !owners_may_register(a)) return;
	for (; o; o = owner_waiting(&s->registry, a->client->peer.uid, a->client->name)) take_up(a, o);
	tell_owner(s, a->owner, PLENUM_EV_OWNER_BACK, a->owner->uid);
}
