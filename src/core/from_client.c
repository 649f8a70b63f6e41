/* SPDX-License-Identifier: MIT */
#include "core/from_client.h"
#include "core/asks.h"
#include "core/attachment.h"
#include "core/channels.h"
#include "core/client_handles.h"
#include "core/execute.h"
#include "core/gate.h"
#include "core/handshake.h"
#include "core/implicit.h"
#include "core/inquiry.h"
#include "core/intake.h"
#include "core/kept.h"
#include "core/notify.h"
#include "core/owners.h"
#include "core/pace.h"
#include "core/requests.h"
#include "core/servers.h"
#include "core/sessions.h"
#include "core/starts.h"
#include "core/warm.h"

#include "base/log.h"
#include "base/str.h"
#include "plenum/protocol.h"
#include "wire/lengths.h"
#include "wire/limits.h"
#include "wire/splice.h"

#include <stdio.h>
#include <string.h>

#define CHECK_BYTES ((size_t)64 * 1024) /* bytes of a line between two looks at the clock */

static void on_end_session(struct client *c, struct session *s, const struct envelope *e) {
	struct buf b = NOTICE_INIT;
	if (!trust_may_stop(s, c)) {
		const char *why = trust_is_free(s->world, c) ? NULL : trust_why(s->world, c);
		notify_fail(c, e->request_id, PLENUM_E_NOT_ALLOWED, "session %s belongs to uid %u%s%s", s->name, s->launch.uid,
					why ? ": " : "", why ? why : "");
		return;
	}
	c->dialect->put_success(&b, e->request_id, "{}");
	client_post(c, notice_chunk(&b));
	log_info("session %s: client %llu asked to end it", s->label, (unsigned long long)c->id);
	notify_stopping(s, c, false);
	intake_cancel_held(s, c, true);
	session_stop(s, false, THEN_SLEEP);
}

/* Return true if the agent may do less in this mode than it may now. */
static bool restricts(const struct client *c, const struct gate_row *row, struct span request) {
	const struct attachment *a = c->attachment;
	const char *now = a ? a->session->snapshot.mode : NULL;
	const struct dialect *d = c->dialect;
	if (!row->what || strcmp(row->what, PLENUM_WHAT_MODE) != 0) return false;
	struct span mode = span_member(request, row->member);
	if (d->is_default_mode(mode) && now) /* from a laxer one */
		return !d->strict_mode(span_of(now)) && !span_same(mode, span_of(now));
	return d->strict_mode(mode) && (!now || !span_same(mode, span_of(now)));
}

/* Two answers under one id would be indistinguishable. */
static bool is_duplicate(struct client *c, struct span id) {
	if (!channels_with(c, id)) return false;
	notify_fail(c, id, PLENUM_E_DUPLICATE_REQUEST, "you have a request with this request_id open: use a fresh one");
	return true;
}

static void on_request(struct client *c, struct session *s, struct chunk line, const struct envelope *e,
					   const struct gate_row *row) {
	if (is_duplicate(c, e->request_id)) return;
	if (requests_has_bad_timeout(c, e) || !requests_may_send(c, s, e, e->request_id, line.len)) return;
	session_used(s);
	switch (row->act) {
	case ACT_INITIALIZE:
		if (!handshake_register(c, s, e)) break;
		if (handshake_is_for_first(s, e)) warm_take_back(s->world->warm, s);
		handshake_initialize(c, s, line, e);
		break;
	case ACT_KEPT:
		if (kept_ask(c, s, line, e)) channels_open(c, line, e);
		break;
	case ACT_INTERRUPT:
		intake_interrupt(c, s, line, e);
		break;
	case ACT_CANCEL_PROMPT:
		intake_cancel_prompt(c, s, line, e);
		break;
	case ACT_END_SESSION:
		on_end_session(c, s, e);
		break;
	case ACT_MCP_SET_SERVERS:
		servers_set(c, s, line, e, row);
		break;
	case ACT_EXECUTE:
		execute_line(c, s, line, e);
		break;
	case ACT_CHANGE:
		requests_announce_change(requests_send(c, s, line, e, NULL, NULL), row, e);
		break;
	case ACT_OPENS:
	case ACT_RUNS:
		client_handles_open(c, s, line, e, row);
		break;
	case ACT_NAMES:
		if (requests_send(c, s, line, e, NULL, NULL)) handles_ended(&s->handles, c->id, row, e);
		break;
	default:
		requests_send(c, s, line, e, NULL, NULL);
		break;
	}
}

/* A client withdraws its own request: the child knows it under our id. */
static void on_cancel(struct client *c, struct session *s, const struct envelope *e) {
	struct call *call = call_of(&s->calls, c->id, e->request_id);
	struct pending *asked = call || !e->request_id.p ? NULL : execute_open(s, c, e->request_id);
	if (asked) {
		asks_settle_own(asked, c->attachment, "cancelled", "the client withdrew its request");
		return;
	}
	if (!call) {
		notify_complain(c, e->request_id, PLENUM_E_UNKNOWN_REQUEST, "you have no open request with this request_id");
		return;
	}
	if (call->purpose == CALL_KEPT) {
		requests_fail(call, PLENUM_E_CANCELLED, "you withdrew this request");
		return;
	}
	if (call->purpose == CALL_PROMPT && intake_withdraw_held(s, call, c)) return;
	char id[CALL_ID_MAX + 2];
	struct buf b = NOTICE_INIT;
	session_dialect(s)->put_cancel(&b, call_raw_id(&s->calls, call, id), SPAN_NONE);
	if (!session_write(s, notice_chunk(&b), false))
		notify_complain(c, e->request_id, PLENUM_E_BUSY,
						"the child has too much to read already: cancel it again later");
}

static void on_other(struct client *c, struct session *s, struct chunk line, const struct envelope *e,
					 const struct gate_row *row) {
	if (row->act == ACT_EXECUTE && requests_may_send(c, s, e, SPAN_NONE, line.len))
		execute_line(c, s, line, e);
	else if (row->act == ACT_INTERRUPT)
		intake_interrupt_line(c, s, line, e);
	else if (row->act == ACT_KEPT && !session_has_child(s))
		return; /* the next child gets its own from the daemon */
	else if (row->act != ACT_EXECUTE && requests_pass_line(c, s, line, e) && row->act == ACT_CHANGE)
		requests_announce_line(s, c, row, splice_body(line));
}

/* --- every line --------------------------------------------------------------------------------------------------- */

static bool is_verb(const struct message *m) {
	struct span name = span_content(m->env.inner_subtype);
	size_t n = strlen(PLENUM_VERB_PREFIX);
	return m->kind == MESSAGE_REQUEST && name.p && name.n >= n && memcmp(name.p, PLENUM_VERB_PREFIX, n) == 0;
}

/* text: the line, or as much of it as is here. size: of a line that was not read to its end, else 0. A request is
 * answered under its id: the client waits for it. */
static void refuse(struct client *c, struct span text, bool request, struct span id, const char *code,
				   const char *error, size_t size) {
	const char *attach = c->dialect->frame->attach;
	bool needed = handshake_arrives_broken(c, text.p, text.n);
	if (memmem(text.p, text.n, attach, strlen(attach))) client_choose(c); /* it asks to attach, even if it is broken */
	if (!request)
		notify_complain_of_line(c, id, code, error, size);
	else if (size)
		notify_fail(c, id, code, "%s: it has %zu bytes", error, size);
	else
		notify_fail(c, id, code, "%s", error);
	if (needed) handshake_served(c);
}

/* The id's line was not checked. */
static bool is_plain(struct span id) {
	for (size_t i = 0; i < id.n; i++)
		if (id.p[i] < ' ' || id.p[i] > '~' || id.p[i] == '\\') return false;
	return id.p;
}

/* Refuse a line of which only the beginning is here, or is read. */
static void refuse_by_head(struct client *c, struct span text, const char *code, const char *error, size_t size) {
	struct span first = span_start(text, LINES_HEAD);
	struct head h;
	c->dialect->read_head((struct chunk){NULL, first.p, first.n}, &h);
	struct span id = is_plain(h.id) ? h.id : SPAN_NONE;
	refuse(c, text, id.p && h.kind == LINE_REQUEST, id, code, error, size);
}

#define OTHER_TEXT "this line is of the dialect %s, and %s%s speaks %s"

/* Refuse a line that did not pass its check. */
static void refuse_line(struct client *c, struct span body, const struct message *m, struct span id,
						const char *error) {
	const struct attachment *a = c->attachment;
	const char *code = m->code ? m->code : PLENUM_E_BAD_LINE;
	bool request = id.p && m->kind == MESSAGE_REQUEST;
	char text[SESSIONS_NAME_MAX + 200];
	c->world->bad_lines++;
	if (body.n > LIMITS_REFUSED) { /* it is not read once more for its id: that would be a long turn */
		refuse_by_head(c, span_start(body, LIMITS_REFUSED), code, error, 0);
		return;
	}
	const struct dialect *other = dialect_of_line(c->dialect, body);
	if (other) { /* nothing is translated */
		snprintf(text, sizeof text, OTHER_TEXT, other->name, a ? "session " : "a connection without a session",
				 a ? a->session->name : "", c->dialect->name);
		error = text;
	} else if (body.n <= CHECK_BYTES && router_is_shim(c) && c->dialect->skips && c->dialect->skips(body)) {
		return; /* as in the CLI, which gives no answer */
	}
	if (request && router_is_shim(c) && c->dialect->is_fatal_request)
		request = !c->dialect->is_fatal_request(&m->env); /* else the CLI would have ended */
	refuse(c, body, request, id, code, error, 0);
}

#define OBSERVER_TEXT "you are an observer of session %s: attach as a driver to write"
#define FOREIGN_TEXT "%s: a process of an agent writes to its own session alone"
#define LESS_TEXT "%s: needs an own peer: %s; you may prompt, interrupt and read here"

/* The only way of a client's line to the child. Return false if it is refused; the client was notified. */
static bool pass_gate(struct attachment *a, struct span body, const struct message *m, struct gate_verdict *v) {
	struct session *s = a->session;
	struct router *r = s->world;
	struct client *c = a->client;
	enum trust who = trust_in(r, a);
	bool foreign = who == TRUST_AGENT && trust_is_closed_to(s, c);
	gate_judge(gate_of(c), foreign ? TRUST_OBSERVER : who, m, body, v);
	if (v->passes) return true;
	if (notify_is_request(c, m) && is_duplicate(c, m->env.request_id)) return false;
	_cleanup_free_ char *text = who == TRUST_OBSERVER ? str_printf(OBSERVER_TEXT, s->name)
								: foreign             ? str_printf(FOREIGN_TEXT, v->thing)
													  : str_printf(LESS_TEXT, v->thing, trust_why(r, c));
	notify_refuse(c, m, PLENUM_E_NOT_ALLOWED, "%s", text ? text : v->thing);
	return false;
}

/* Return true if the line names another conversation than the session's; the client was notified. */
static bool is_of_another(struct client *c, const struct session *s, const struct message *m,
						  const struct gate_row *row) {
	struct span name = m->env.session_id;
	_cleanup_free_ char *text = session_dialect(s)->conversation_id ? span_dup(name, NULL) : NULL;
	if (!name.p || !session_dialect(s)->conversation_id || row->act == ACT_KEPT || m->kind == MESSAGE_ANSWER)
		return false;
	if (text && router_has_conversation(s, text)) return false;
	notify_refuse(
		c, m, PLENUM_E_BAD_REQUEST,
		"%s: no session of this connection has this conversation (load or resume it first); session %s has %s",
		session_dialect(s)->conversation_id, s->name, s->conversation_id ? s->conversation_id : "none yet");
	return true;
}

static void dispatch(struct client *c, struct attachment *a, struct chunk line, struct span body,
					 const struct message *m) {
	struct session *s = a->session;
	const struct envelope *e = &m->env;
	struct gate_verdict v = {0};
	if (!pass_gate(a, body, m, &v) || is_of_another(c, s, m, v.row)) return;
	switch (m->kind) {
	case MESSAGE_USER:
		if (notify_is_request(c, m) && /* it is one more open request */
			(is_duplicate(c, e->request_id) || !requests_may_send(c, s, e, e->request_id, line.len)))
			break;
		intake_prompt(c, s, line, m);
		break;
	case MESSAGE_REQUEST:
		on_request(c, s, line, e, v.row);
		break;
	case MESSAGE_ANSWER:
		asks_answer(c, line, e);
		break;
	case MESSAGE_CANCEL:
		on_cancel(c, s, e);
		break;
	default:
		on_other(c, s, line, e, v.row);
		break;
	}
}

static void serve(struct client *c, struct chunk line, struct span body, const struct message *m) {
	struct router *r = c->world;
	struct span id = notify_is_request(c, m) ? m->env.request_id : SPAN_NONE;
	struct attachment *a = c->attachment;
	const struct dialect *checked = c->dialect;
	if (is_verb(m)) {
		/* A line for one session must not run in another, even if the request fails. */
		if (span_equals(m->env.inner_subtype, PLENUM_ATTACH)) client_choose(c);
		if (is_duplicate(c, id)) return;
		r->events->verb(r, c, line, &m->env);
		return;
	}
	if (r->shutting_down) {
		notify_refuse(c, m, PLENUM_E_SHUTTING_DOWN, "the daemon is shutting down");
		return;
	}
	if (!a && c->chooses) {
		notify_refuse(c, m, PLENUM_E_NOT_ATTACHED, "you are attached to no session: attach to one first");
		return;
	}
	if (!a) a = implicit_attach(r, c, m->kind == MESSAGE_USER ? m->env.session_id : SPAN_NONE, id, line);
	if (!a) return;
	if (c->dialect == checked)
		dispatch(c, a, line, body, m);
	else
		notify_refuse(c, m, PLENUM_E_BAD_LINE, OTHER_TEXT, checked->name, "session ", a->session->name,
					  c->dialect->name);
}

/* The line of a client was served, and waits for nothing: the next one is about something else, after any refusal. */
static void line_over(struct client *c) {
	const struct attachment *a = c->attachment;
	if (a) session_changed(a->session);
	if (client_holds(c)) return;
	inquiry_over(c);
	starts_leave(c);
}

/* Serve a valid line of a connection in the session that it is for. */
static void route(struct client *from, struct chunk line, struct span body, const struct message *m) {
	struct client *c = channels_of(from, m);
	if (c != from && client_is_full(c)) {
		client_hold(from, line);
		return;
	}
	if (c != from) client_count_line(c);
	/* Note the changes needed by later prompts before the line is served: any kind of refusal then stops them. */
	const struct gate_row *row = m->kind == MESSAGE_REQUEST ? requests_row(c, &m->env) : NULL;
	bool needed = row && row->act == ACT_INITIALIZE && handshake_arrives(c, m->env.request);
	if (row && row->act == ACT_CHANGE && restricts(c, row, m->env.request)) requests_need_change(c, row->what);
	serve(c, line, body, m);
	if (needed) handshake_served(c);
	if (c != from) line_over(c);
}

/* Check the line. Return false if this turn is over before the check: the line waits with its client and comes again.
 * *k: the progress of a line over several turns; NULL: the line is short, or has no memory for a progress. */
static bool check_line(struct client *c, struct chunk line, struct span body, struct message_check **k) {
	*k = c->check;
	c->check = NULL;
	if (!*k) c->checker = c->dialect->check_steps;
	if (!*k && c->checker && body.n > CHECK_BYTES) *k = c->checker->new (body.p, body.n);
	if (!*k) return true;
	bool over = false;
	do {
		over = c->checker->step(*k, CHECK_BYTES);
		if (!over || body.n < LENGTHS_FROM) continue;
		/* It is measured, too: its readers step over its long values. */
		if (!c->lengths) c->lengths = lengths_new_checked(body.p, body.n, LENGTHS_VALUE);
		over = !c->lengths || lengths_step(c->lengths, CHECK_BYTES);
	} while (!over && !loop_must_yield(c->loop));
	/* a copy of the line follows: that is a turn's work, too */
	if (over && !(line.len > LIMITS_TURN_BYTES && loop_must_yield(c->loop))) return true;
	c->check = *k;
	client_hold(c, line);
	client_release(c);
	return false;
}

static void take_line(struct client *c, struct chunk line, struct span body, struct message_check *k) {
	struct chunk rewritten = CHUNK_NONE;
	struct message m;
	struct span id = SPAN_NONE;
	struct error unread;
	const char *error = unread.text;
	bool good = k ? c->checker->result(k, &m, &rewritten, &error, &id)
				  : c->dialect->check(body.p, body.n, &m, &rewritten, &unread, &id);
	if (!good)
		refuse_line(c, body, &m, id, error);
	else if (rewritten.data)
		route(c, rewritten, splice_body(rewritten), &m);
	else
		route(c, line, body, &m);
	chunk_drop(&rewritten);
}

static void on_line(struct client *c, struct chunk line) {
	struct span body = splice_body(line);
	struct message_check *k;
	if (trust_is_asked(c->world, c)) {
		client_hold(c, line);
		return;
	}
	if (router_is_shim(c) && c->dialect->after_mark)
		body = c->dialect->after_mark(body); /* the CLI decides on the mark, by its version */
	if (!c->check && span_is_blank(body)) return;
	if (!c->check) client_begin(c, body);
	if (check_line(c, line, body, &k)) {
		struct lengths *lengths = c->lengths;
		c->lengths = NULL;
		lengths_use(lengths);
		take_line(c, line, body, k);
		lengths_use(NULL);
		lengths_free(lengths);
		if (k) c->checker->free(k);
	}
	line_over(c);
}

static const char *why_skipped(const struct client *c, struct error *why) {
	static const char unused[] = "nothing of it was used";
	switch (c->starved) {
	case STARVED_SHARE:
		error_set(why, "uid %u had no room for this line in its %zu bytes (uid_bytes); %s", c->peer.uid,
				  c->world->shares.max[SHARE_BYTES], unused);
		return PLENUM_E_SHARE_EXCEEDED;
	case STARVED_MEMORY:
		error_set(why, "the daemon has no memory for this line; %s", unused);
		return PLENUM_E_INTERNAL;
	default:
		error_set(why, "this line is longer than the limit (client_line); %s", unused);
		return PLENUM_E_TOO_LONG;
	}
}

static void on_long_line(struct client *c, struct chunk head, size_t size) {
	struct error why;
	const char *code = why_skipped(c, &why);
	client_begin(c, (struct span){head.data, head.len});
	refuse_by_head(c, (struct span){head.data, head.len}, code, why.text, size);
}

/* The client's input is not read any more; its unread output is dropped. */
static void on_evicted(struct client *c, size_t held) {
	struct router *r = c->world;
	router_subscribe(c, false);
	r->shares.refused++;
	log_warn("client %llu of uid %u is closed: its uid holds too much (uid_bytes), of which it held %zu bytes",
			 (unsigned long long)c->id, c->peer.uid, held);
	notify_complain(
		c, SPAN_NONE, PLENUM_E_SHARE_EXCEEDED,
		"uid %u holds more than %zu bytes (uid_bytes), %zu of them for this connection, which is closed: read "
		"your answers, or send less at a time",
		c->peer.uid, r->shares.max[SHARE_BYTES], held);
	attachment_leave(c, "share exceeded");
	client_close(c);
}

/* --- the end of a client ------------------------------------------------------------------------------------------ */

static void on_no_more(struct client *c) {
	struct attachment *a = c->attachment;
	if (a) {
		attachment_end_input(a);
		asks_leave(a);
		owners_leave(a);
		session_changed(a->session);
	} else {
		attachment_close_ended(c);
	}
}

static void on_gone(struct client *c) {
	struct router *r = c->world;
	inquiry_over(c);
	starts_leave(c);
	if (c->check) c->checker->free(c->check);
	c->check = NULL;
	lengths_free(c->lengths);
	c->lengths = NULL;
	attachment_leave(c, "disconnected");
	if (c->carrier) channels_gone(c->carrier);
	share_leave(&c->member);
	router_subscribe(c, false);
	r->n_clients--;
	r->events->client_gone(r);
}

const struct client_events from_client_events = {
	.line = on_line,
	.long_line = on_long_line,
	.no_more = on_no_more,
	.gone = on_gone,
	.evicted = on_evicted,
	.overtaken = pace_overtaken,
	.pace = pace_blocked,
};
