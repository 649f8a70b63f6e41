/* SPDX-License-Identifier: MIT */
#include "core/owners.h"
#include "core/guards.h"
#include "core/hooks.h"
#include "core/notify.h"
#include "core/trust.h"

#include "base/log.h"
#include "base/str.h"
#include "plenum/protocol.h"

#include <string.h>

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
	const char *error = o && !b.failed ? registry_add_server(&a->session->registry, o, (struct span){b.data, b.len},
															 SPAN_NONE, true)
									   : "out of memory";
	buf_free(&b);
	return error;
}

/* --- owners come and go ------------------------------------------------------------------------------------------- */

struct owner *owners_get(struct attachment *a) {
	struct session *s = a->session;
	owners_return(a); /* its name may have changed since it attached */
	if (!a->owner)
		a->owner = registry_add_owner(&s->registry, s, s->loop, a, a->client->peer.uid, a->client->name, NULL);
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
	registry_drop_loose(&s->registry, o);
	registry_drop_servers(&s->registry, o, true); /* their names are free now */
	if (!owner_guards(o)) registry_drop_owner(&s->registry, o);
	session_changed(s);
}

void owners_leave(struct attachment *a) {
	struct session *s = a->session;
	struct owner *o = a->owner;
	if (!o || s->removed) return;
	a->owner = NULL;
	o->holder = NULL;
	hooks_owner_gone(s, o);
	if (owner_empty(o)) {
		registry_drop_owner(&s->registry, o);
		return;
	}
	tell_owner(s, o, PLENUM_EV_OWNER_GONE, o->uid);
	if (!o->name) registry_drop_loose(&s->registry, o); /* no client can come back to them */
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
	if (!guards_clear(&s->registry)) return false;
	log_warn("session %s: client %llu (uid %u, pid %d) goes on without the guards that were lost", s->name,
			 (unsigned long long)by->id, by->peer.uid, by->peer.pid);
	notify_changed(s, "guards_lost", span_of("false"), by);
	session_changed(s);
	return true;
}

/* Take over an absent owner. It has no open requests: those belong to present owners only. */
static void take_up(struct attachment *a, struct owner *o) {
	loop_timer_stop(&o->grace);
	o->grace_over = false;
	if (a->owner) {
		registry_merge(&a->session->registry, a->owner, o);
		return;
	}
	owner_claimed(o);
	o->holder = a;
	a->owner = o;
}

/* Take over all absent owners of this name: it is unknown which of them has come back. */
void owners_return(struct attachment *a) {
	struct session *s = a->session;
	struct owner *o = registry_absent_owner(&s->registry, a->client->peer.uid, a->client->name);
	if (!o || !owners_may_register(a)) return;
	for (; o; o = registry_absent_owner(&s->registry, a->client->peer.uid, a->client->name)) take_up(a, o);
	tell_owner(s, a->owner, PLENUM_EV_OWNER_BACK, a->owner->uid);
}

void owners_forget(struct session *s) {
	struct attachment *a;
	LIST_FOR_EACH (a, &s->attachments, struct attachment, node) a->owner = NULL;
}

void owners_carry(struct carry *c, struct session *s) {
	struct owner *o;
	registry_carry(c, &s->registry, s, s->loop, owners_grace_timer);
	LIST_FOR_EACH (o, &s->registry.owners, struct owner, node)
		if (o->holder) o->holder->owner = o;
}
