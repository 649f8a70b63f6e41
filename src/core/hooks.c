/* SPDX-License-Identifier: MIT */
#include "core/hooks.h"
#include "core/asks.h"
#include "core/guards.h"

#include "base/hash.h"
#include "base/log.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

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
static void on_late(struct pending *p) {
	if (p->kind != ASK_MCP)
		answer_hook(p, SILENT_TEXT);
	else if (!p->owner || registry_is_claimed(&p->session->registry, p->owner, pending_part(p, ASK_PART_SERVER)))
		answer_mcp(p, "the client that took over this MCP server by its name does not answer");
}

static void on_undecided(struct pending *p) {
	answer_hook(p, "the client that guards this with a hook gave no decision in its answer; Plenum refuses");
}

const struct pending_events hooks_events = {.late = on_late, .undecided = on_undecided};

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
	struct pending *p = pending_new(&s->pendings, s, s->loop, d, e, line, SPLICE_NOTHING, &hooks_events);
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
	asks_send(p, a->client);
}

#define MCP_GONE_TEXT "the client that serves this MCP server is not there"

static uint64_t hash_call(struct span server, struct span id) {
	return (uint64_t)hash_keyed(server.p, server.n) << 32 | hash_keyed(id.p, id.n);
}

#define NO_CALL 1

static uint64_t call_hash(struct pending *p) {
	if (p->call) return p->call;
	struct span message = pending_part(p, ASK_PART_MESSAGE), id = span_member(message, "id");
	if (id.p && span_member(message, "method").p) p->call = hash_call(pending_part(p, ASK_PART_SERVER), id);
	if (!p->call) p->call = NO_CALL;
	return p->call;
}

/* The child waits no more for a cancelled call, and reports that only by a notification (protocol-facts 4.2). Messages
 * may be long: they are compared by their hashes first. */
static void end_cancelled(struct session *s, const struct pending *notice) {
	struct span id = notice->dialect->hooks->cancels_call(pending_part(notice, ASK_PART_MESSAGE));
	struct span server = pending_part(notice, ASK_PART_SERVER);
	struct pending *p;
	if (!id.p) return;
	uint64_t call = hash_call(server, id);
	LIST_FOR_EACH (p, &s->pendings.order, struct pending, node) {
		if (p->kind != ASK_MCP || p->owner != notice->owner || call_hash(p) != call) continue;
		struct span other = pending_part(p, ASK_PART_MESSAGE);
		if (p == notice || !span_same(span_member(other, "id"), id) ||
			!span_same(pending_part(p, ASK_PART_SERVER), server))
			continue;
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
	struct pending *p = pending_new(&s->pendings, s, s->loop, d, e, line, SPLICE_NOTHING, &hooks_events);
	if (!p) {
		asks_refuse(s, line, e, "the daemon is out of memory");
		return;
	}
	p->owner = o;
	(void)call_hash(p);
	struct attachment *a = o->holder;
	if (!a || !pending_ask(p, a)) {
		answer_mcp(p, MCP_GONE_TEXT);
		return;
	}
	if (registry_is_claimed(&s->registry, o, pending_part(p, ASK_PART_SERVER)))
		loop_timer_set(&p->timer, s->profile->owner_grace);
	asks_send(p, a->client);
	end_cancelled(s, p);
}

void hooks_owner_gone(struct session *s, const struct owner *o) {
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
