/* SPDX-License-Identifier: MIT
 *
 * Lines of clients: check them, replace their ids by the daemon's, forward them (contract 4, "From a client").
 */
#include "core/gate.h"
#include "core/router.h"
#include "core/trust.h"

#include "base/log.h"
#include "base/str.h"
#include "plenum/protocol.h"
#include "wire/lengths.h"
#include "wire/splice.h"

#include <stdio.h>
#include <string.h>

#define URGENT_MAX ((size_t)64 * 1024)
#define CHECK_BYTES ((size_t)64 * 1024) /* bytes of a line between two looks at the clock */
#define LATE_MS (5 * 60 * 1000)         /* extra time for the answer to a change */

#define ASLEEP_TEXT "session %s is %s and has no child: send a prompt, or attach with \"wake\":true, and ask again"

/* --- requests ----------------------------------------------------------------------------------------------------- */

/* Return true for a change by the daemon itself: it restores the previous child's mode (handshake.c). */
static bool restores_mode(const struct call *call) {
	return call->act == ACT_CHANGE && !call->asker_id;
}

static void tell_mode_lost(const struct call *call) {
	struct session *s = call->session;
	struct buf b = NOTICE_INIT;
	char text[200];
	snprintf(text, sizeof text,
			 "the child was resumed, but not in permission mode %.20s, as it was before: it is in its default mode",
			 call->value ? call->value : "plan");
	log_warn("session %s: %s", s->label, text);
	notice_error(&b, s->name, PLENUM_E_INTERNAL, text);
	notify_session(s, notice_end(&b));
}

/* A change may be confirmed after its timeout, and must still be announced: keep waiting for its answer. */
void requests_timer(void *arg) {
	struct call *call = arg;
	struct session *s = call->session;
	struct client *c = call->purpose == CALL_CLIENT ? call->asker : NULL;
	const char *text =
		"the child did not answer in time; a later answer will be dropped (plenum_stop ends a child that hangs)";
	session_changed(s);
	if (restores_mode(call)) tell_mode_lost(call);
	if (call->purpose == CALL_STEP) {
		steps_late(call);
		return;
	}
	if (!c || call->act != ACT_CHANGE) {
		requests_fail(call, PLENUM_E_TIMEOUT, text);
		return;
	}
	notify_fail(c, span_of(call->asker_id), PLENUM_E_TIMEOUT, "%s", text);
	call_orphan(&s->calls, call);
	loop_timer_set(&call->timer, LATE_MS);
}

void requests_fail(struct call *call, const char *code, const char *text) {
	struct session *s = call->session;
	struct client *c = text ? call->asker : NULL;
	struct span id = {call->asker_id, call->asker_id ? strlen(call->asker_id) : 0};
	if (c) notify_fail(c, id, code, "%s", text);
	call_end(&s->calls, call);
}

static void tell_change(const struct call *call, struct span value) {
	struct session *s = call->session;
	struct client *c = call->asker;
	struct buf b = NOTICE_INIT;
	notice_begin(&b, PLENUM_EV_CHANGED, s->name);
	notice_text(&b, "what", call->what);
	notice_raw(&b, "value", value);
	if (c) notify_put_by(&b, c);
	notify_session(s, notice_end(&b));
}

void requests_pass_answer(const struct call *call, struct chunk line, const struct envelope *e) {
	if (!call->asker) return;
	client_post(call->asker,
				splice_replace(line.data, line.len, e->inner_request_id, call->asker_id, strlen(call->asker_id)));
}

void requests_answered(struct call *call, struct chunk line, const struct envelope *e) {
	struct session *s = call->session;
	const struct dialect *d = session_dialect(s);
	struct span value = span_of(call->value);
	requests_pass_answer(call, line, e);
	if (call->act == ACT_CHANGE && d->succeeded(e)) {
		struct span told = d->confirmed ? d->confirmed(e) : SPAN_NONE;
		if (!told.p) told = value;
		snapshot_changed(&s->snapshot, d, call->what, told);
		if (d->remember_change) d->remember_change(&s->memo, call->what, told, e);
		tell_change(call, told);
	} else if (restores_mode(call)) {
		tell_mode_lost(call);
	}
	call_end(&s->calls, call);
}

/* Make the edit that names the conversation where a request leaves it out, or names it as it was when the line was
 * taken. Return false if it need not be. */
static bool name_conversation(const struct session *s, const struct envelope *e, struct splice_edit *edit) {
	const char *name = session_dialect(s)->conversation_id;
	struct span key, value, named = e->session_id;
	size_t at = 0;
	if (!name || !s->conversation_id || !span_is_object(e->request)) return false;
	if (strpbrk(s->conversation_id, "\"\\")) return false; /* no agent has such an id */
	if (named.p) {
		*edit = (struct splice_edit){named.p, named.n, {{"\"", 1}, span_of(s->conversation_id), {"\"", 1}}};
		return !span_equals(named, s->conversation_id);
	}
	bool more = span_next_member(e->request, &at, &key, &value);
	*edit = (struct splice_edit){
		e->request.p + 1, 0, {{"\"", 1}, span_of(name), {"\":\"", 3}, span_of(s->conversation_id)}};
	edit->parts[SPLICE_PARTS - 1] = more ? (struct span){"\",", 2} : (struct span){"\"", 1};
	return true;
}

struct chunk requests_line_for(const struct session *s, struct span body, const struct envelope *e, struct span id) {
	struct splice_edit edits[SPLICE_EDITS], conversation;
	size_t n = 0;
	bool names = name_conversation(s, e, &conversation), first = id.p && e->request_id.p < conversation.at;
	if (names && !first) edits[n++] = conversation;
	if (id.p) edits[n++] = (struct splice_edit){e->request_id.p, e->request_id.n, {id}};
	if (names && first) edits[n++] = conversation;
	return splice_edits(body, edits, n);
}

/* Return the client's line under a fresh id. If its id is inside `request` (an old form) ours goes in front. */
static struct chunk under_id(const struct session *s, struct span body, const struct envelope *e,
							 const struct call *call) {
	char raw[CALL_ID_MAX + 2];
	bool inside = e->request_id.p > e->request.p && e->request_id.p < e->request.p + e->request.n;
	if (s->calls.numbers) return requests_line_for(s, body, e, call_raw_id(&s->calls, call, raw));
	return splice_string(body, inside ? SPAN_NONE : e->request_id, session_dialect(s)->request_id, call->id);
}

static bool bad_timeout(struct client *c, const struct envelope *e) {
	int64_t ms;
	struct span wanted = span_member(e->request, "plenum_timeout_ms");
	if (!wanted.p || (span_int(wanted, &ms) && ms > 0 && ms <= LIMITS_TIMEOUT_MS)) return false;
	notify_fail(c, e->request_id, PLENUM_E_BAD_REQUEST,
				"`plenum_timeout_ms` must be a whole number of milliseconds, 1 to %lld", (long long)LIMITS_TIMEOUT_MS);
	return true;
}

static int64_t timeout_of(const struct session *s, const struct envelope *e) {
	int64_t ms;
	struct span wanted = span_member(e->request, "plenum_timeout_ms");
	return span_int(wanted, &ms) && ms > 0 ? ms : s->profile->control_timeout;
}

/* Return the row of a request, or NULL. */
static const struct gate_row *row_of(const struct client *c, const struct envelope *e) {
	struct span name = span_content(e->inner_subtype);
	return dialect_gate_row(&router_gate(c)->rows, GATE_REQUEST, name.p, name.n);
}

/* Return true for an interrupt, which is subject to no limit: one of each client at a time. */
static bool is_urgent(const struct client *c, const struct envelope *e, size_t len) {
	const struct gate_row *row = row_of(c, e);
	return row && row->act == ACT_INTERRUPT && !c->member.urgent && len <= URGENT_MAX;
}

/* Return true if the client may have one more open request. False: it was notified. */
static bool may_ask(struct client *c, const struct session *s, const struct envelope *e, struct span id, size_t len) {
	char why[SHARE_TEXT_MAX];
	size_t max = s->settings->limits.max_calls;
	if (is_urgent(c, e, len)) return true;
	if (c->member.requests >= max)
		notify_fail(c, id, PLENUM_E_BUSY,
					"you have %zu requests open (max_calls): wait for the answers to some of them", max);
	else if (!share_allows(&s->world->shares, c->peer.uid, SHARE_REQUESTS, 1, why))
		notify_fail(c, id, PLENUM_E_SHARE_EXCEEDED, "%s", why);
	else
		return true;
	return false;
}

/* Return true if the line may be queued for the child. False: the client was notified. */
static bool has_room(struct client *c, const struct session *s, size_t len, struct span id) {
	char why[SHARE_TEXT_MAX];
	if (!share_allows(&s->world->shares, c->peer.uid, SHARE_BYTES, len, why))
		notify_fail(c, id, PLENUM_E_SHARE_EXCEEDED, "%s", why);
	else if (!queue_has_room(session_queue(s), len))
		notify_fail(c, id, PLENUM_E_BUSY, "the child of session %s has too much to read already: send it again later",
					s->name);
	else
		return true;
	return false;
}

void requests_put(struct buf *b, const struct session *s, const char *id, const char *body) {
	session_dialect(s)->put_request(b, id, body);
}

struct call *requests_send(struct client *c, struct session *s, struct chunk line, const struct envelope *e,
						   requests_put_fn *put, const char *body) {
	struct buf b = NOTICE_INIT;
	bool urgent = is_urgent(c, e, line.len);
	if (!session_has_child(s) && !s->want_child) {
		notify_fail(c, e->request_id, PLENUM_E_CHILD_EXITED, ASLEEP_TEXT, s->name,
					session_state_name(session_state(s)));
		return NULL;
	}
	if (!urgent && !has_room(c, s, line.len, e->request_id)) return NULL;
	struct call *call = call_new(&s->calls, s, s->loop, CALL_CLIENT, c, c->id, e->request_id, requests_timer);
	if (call && put) put(&b, s, call->id, body);
	struct chunk out = !call ? CHUNK_NONE : put ? notice_chunk(&b) : under_id(s, splice_body(line), e, call);
	if (!call || !out.data || !session_write_charged(s, out, true, c->member.share)) {
		if (call) call_end(&s->calls, call);
		notify_fail(c, e->request_id, PLENUM_E_INTERNAL, "out of memory");
		return NULL;
	}
	share_begin(&call->charge, &c->member, urgent);
	call->child = session_writes_to(s);
	loop_timer_set(&call->timer, timeout_of(s, e));
	return call;
}

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

static void need_change(struct client *c, const char *what) {
	free(c->refused_change);
	c->refused_change = strdup(what);
}

/* The child gets the change before the prompts behind it. */
static void change_taken(struct client *c, const char *what) {
	if (!c->refused_change || strcmp(c->refused_change, what) != 0) return;
	free(c->refused_change);
	c->refused_change = NULL;
}

/* Return the names of the members of an object, as a JSON array; the caller frees. NULL: no object, or no memory. */
static char *keys_of(struct span object) {
	struct buf b = NOTICE_INIT;
	struct span key, value;
	if (!span_is_object(object)) return NULL;
	buf_putc(&b, '[');
	for (size_t at = 0; span_next_member(object, &at, &key, &value);) {
		if (b.len > 1) buf_putc(&b, ',');
		buf_put(&b, key.p, key.n);
	}
	buf_putc(&b, ']');
	return buf_steal(&b, NULL);
}

/* Return the announced value of a change: only the names of members with possibly secret values. object: the request,
 * or the line. The caller frees. */
static char *shown_value(const struct gate_row *row, struct span object) {
	struct span value = row->member ? span_member(object, row->member) : SPAN_NONE;
	if (row->show == GATE_KEYS) return keys_of(value);
	return value.p ? strndup(value.p, value.n) : NULL;
}

void requests_announce_change(struct call *call, const struct gate_row *row, const struct envelope *e) {
	if (!call) return;
	if (call->asker) change_taken(call->asker, row->what);
	if (strcmp(row->what, PLENUM_WHAT_MODE) != 0) call->session->altered = true;
	call->act = ACT_CHANGE;
	call->what = row->what;
	call->value = shown_value(row, e->request);
}

/* Two answers under one id would be indistinguishable. */
static bool is_duplicate(struct client *c, struct session *s, struct span id) {
	if (!call_is_open(&s->calls, c->id, id) && !handshake_waits(s, c, id) && !(id.p && execute_open(s, c, id)))
		return false;
	notify_fail(c, id, PLENUM_E_DUPLICATE_REQUEST, "you have a request with this request_id open: use a fresh one");
	return true;
}

static void on_request(struct client *c, struct session *s, struct chunk line, const struct envelope *e,
					   const struct gate_row *row) {
	if (is_duplicate(c, s, e->request_id)) return;
	if (bad_timeout(c, e) || !may_ask(c, s, e, e->request_id, line.len)) return;
	session_used(s);
	switch (row->act) {
	case ACT_INITIALIZE:
		handshake_initialize(c, s, line, e);
		break;
	case ACT_KEPT:
		kept_ask(c, s, line, e);
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

/* Announce a line without an answer as soon as it was sent. */
static void announce_line(struct session *s, struct client *c, const struct gate_row *row, struct span body) {
	struct call call = {.session = s, .asker = c, .what = row->what};
	while (body.n && *body.p != '{') body.p++, body.n--;
	_cleanup_free_ char *value = shown_value(row, body);
	tell_change(&call, span_of(value));
}

static struct chunk out_line(const struct session *s, struct chunk line, const struct envelope *e) {
	struct span body = splice_body(line);
	return session_dialect(s)->conversation_id ? requests_line_for(s, body, e, SPAN_NONE) : splice_line(line, body);
}

bool requests_pass_line(struct client *c, struct session *s, struct chunk line, const struct envelope *e) {
	if (!session_has_child(s) && !s->want_child)
		notify_fail(c, SPAN_NONE, PLENUM_E_CHILD_EXITED, ASLEEP_TEXT, s->name, session_state_name(session_state(s)));
	else if (!has_room(c, s, line.len, SPAN_NONE))
		return false;
	else if (!session_write_charged(s, out_line(s, line, e), true, c->member.share))
		notify_fail(c, SPAN_NONE, PLENUM_E_BUSY, "the child of session %s takes no input: send it again later",
					s->name);
	else
		return true;
	return false;
}

static void on_other(struct client *c, struct session *s, struct chunk line, const struct envelope *e,
					 const struct gate_row *row) {
	if (row->act == ACT_EXECUTE && may_ask(c, s, e, SPAN_NONE, line.len))
		execute_line(c, s, line, e);
	else if (row->act == ACT_INTERRUPT)
		intake_interrupt_line(c, s, line, e);
	else if (row->act != ACT_EXECUTE && requests_pass_line(c, s, line, e) && row->act == ACT_CHANGE)
		announce_line(s, c, row, splice_body(line));
}

/* --- every line --------------------------------------------------------------------------------------------------- */

static bool is_verb(const struct message *m) {
	struct span name = span_content(m->env.inner_subtype);
	size_t n = strlen(PLENUM_VERB_PREFIX);
	return m->kind == MESSAGE_REQUEST && name.p && name.n >= n && memcmp(name.p, PLENUM_VERB_PREFIX, n) == 0;
}

/* A line for one session must not run in another, even if the request fails. */
static void note_choice(struct client *c, struct span subtype) {
	if (span_equals(subtype, PLENUM_ATTACH)) c->chooses = true;
}

/* Return true if the CLI would skip the refused line without an answer, and so does the daemon. */
static bool skips_like_the_cli(const struct client *c, struct span body) {
	return body.n <= CHECK_BYTES && router_is_shim(c) && c->dialect->skips && c->dialect->skips(body);
}

/* Return true if this line, which may be broken, asks to attach. */
static bool mentions_attach(const struct client *c, const char *p, size_t n) {
	const char *verb = c->dialect->frame->attach;
	return memmem(p, n, verb, strlen(verb)) != NULL;
}

static void refuse_line(struct client *c, struct span body, struct span id, const char *code, const char *error) {
	struct envelope e;
	bool request = id.p && c->dialect->scan(body.p, body.n, &e) && c->dialect->kind(&e) == LINE_REQUEST;
	if (request && router_is_shim(c) && c->dialect->is_fatal_request)
		request = !c->dialect->is_fatal_request(body); /* else the CLI would have ended */
	bool needed = handshake_arrives_broken(c, body.p, body.n);
	c->chooses |= mentions_attach(c, body.p, body.n);
	c->world->bad_lines++;
	if (request)
		notify_fail(c, id, code, "%s", error);
	else
		notify_complain_of_line(c, id, code, error, 0);
	if (needed) handshake_served(c);
}

#define OTHER_TEXT "this line is of the dialect %s, and %s%s speaks %s"

/* Nothing is translated. */
static void refuse_other(struct client *c, struct span body, struct span id, const char *code,
						 const struct dialect *other) {
	const struct attachment *a = c->attachment;
	char text[SESSIONS_NAME_MAX + 200];
	snprintf(text, sizeof text, OTHER_TEXT, other->name, a ? "session " : "a connection without a session",
			 a ? a->session->name : "", c->dialect->name);
	refuse_line(c, body, id, code, text);
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
	gate_judge(router_gate(c), foreign ? TRUST_OBSERVER : who, m, body, v);
	if (v->passes) return true;
	if (notify_is_request(c, m) && is_duplicate(c, s, m->env.request_id)) return false;
	_cleanup_free_ char *text = who == TRUST_OBSERVER ? str_printf(OBSERVER_TEXT, s->name)
								: foreign             ? str_printf(FOREIGN_TEXT, v->thing)
													  : str_printf(LESS_TEXT, v->thing, trust_why(r, c));
	notify_refuse(c, m, PLENUM_E_NOT_ALLOWED, "%s", text ? text : v->thing);
	return false;
}

/* Return true if a prompt may be one more open request. False: the client was notified. */
static bool may_prompt(struct client *c, struct session *s, struct chunk line, const struct envelope *e) {
	return !is_duplicate(c, s, e->request_id) && may_ask(c, s, e, e->request_id, line.len);
}

/* Return true if the line names another conversation than the session's; the client was notified. */
static bool is_of_another(struct client *c, const struct session *s, const struct message *m,
						  const struct gate_row *row) {
	struct span name = m->env.session_id;
	_cleanup_free_ char *text = session_dialect(s)->conversation_id ? span_dup(name, NULL) : NULL;
	if (!name.p || !session_dialect(s)->conversation_id || row->act == ACT_KEPT || m->kind == MESSAGE_ANSWER)
		return false;
	if (text && router_has_conversation(s, text)) return false;
	notify_refuse(c, m, PLENUM_E_BAD_REQUEST,
				  "%s: this connection is attached to session %s, whose conversation is %s (leave it out, or open "
				  "another connection)",
				  session_dialect(s)->conversation_id, s->name,
				  s->conversation_id ? s->conversation_id : "not known yet");
	return true;
}

static void dispatch(struct client *c, struct attachment *a, struct chunk line, struct span body,
					 const struct message *m) {
	struct session *s = a->session;
	struct gate_verdict v = {0};
	if (!pass_gate(a, body, m, &v) || is_of_another(c, s, m, v.row)) return;
	switch (m->kind) {
	case MESSAGE_USER:
		if (!notify_is_request(c, m) || may_prompt(c, s, line, &m->env)) intake_prompt(c, s, line, m);
		break;
	case MESSAGE_REQUEST:
		on_request(c, s, line, &m->env, v.row);
		break;
	case MESSAGE_ANSWER:
		asks_answer(c, line, &m->env);
		break;
	case MESSAGE_CANCEL:
		on_cancel(c, s, &m->env);
		break;
	default:
		on_other(c, s, line, &m->env, v.row);
		break;
	}
}

static void serve(struct client *c, struct chunk line, struct span body, const struct message *m) {
	struct router *r = c->world;
	struct span id = notify_is_request(c, m) ? m->env.request_id : SPAN_NONE;
	struct attachment *a = c->attachment;
	const struct dialect *checked = c->dialect;
	if (is_verb(m)) {
		note_choice(c, m->env.inner_subtype);
		if (a && is_duplicate(c, a->session, id)) return;
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

/* Note the changes needed by later prompts before the line is served: any kind of refusal then stops them. */
static void on_message(struct client *c, struct chunk line, struct span body, const struct message *m) {
	const struct gate_row *row = m->kind == MESSAGE_REQUEST ? row_of(c, &m->env) : NULL;
	bool needed = row && row->act == ACT_INITIALIZE && handshake_arrives(c, m->env.request);
	if (row && row->act == ACT_CHANGE && restricts(c, row, m->env.request)) need_change(c, row->what);
	serve(c, line, body, m);
	if (needed) handshake_served(c);
}

/* Measure a part of a long line that was checked: its readers step over its long values. Return true at the end. */
static bool measure(struct client *c, struct span body) {
	if (body.n < LENGTHS_FROM) return true;
	if (!c->lengths) c->lengths = lengths_new_checked(body.p, body.n, LENGTHS_VALUE);
	return !c->lengths || lengths_step(c->lengths, CHECK_BYTES);
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
	do over = c->checker->step(*k, CHECK_BYTES) && measure(c, body);
	while (!over && !loop_must_yield(c->loop));
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
	char text[MESSAGE_ERROR_MAX];
	const char *error = text;
	const struct dialect *other = NULL;
	bool good = k ? c->checker->result(k, &m, &rewritten, &error, &id)
				  : c->dialect->check(body.p, body.n, &m, &rewritten, text, sizeof text, &id);
	const char *code = m.code ? m.code : PLENUM_E_BAD_LINE;
	if (!good && (other = dialect_of_line(c->dialect, body)) != NULL)
		refuse_other(c, body, id, code, other);
	else if (!good && skips_like_the_cli(c, body))
		c->world->bad_lines++;
	else if (!good)
		refuse_line(c, body, id, code, error);
	else if (rewritten.data)
		on_message(c, rewritten, splice_body(rewritten), &m);
	else
		on_message(c, line, body, &m);
	chunk_drop(&rewritten);
}

void from_client_line(struct client *c, struct chunk line) {
	struct span body = splice_body(line);
	struct message_check *k;
	if (trust_is_asked(c->world, c)) {
		client_hold(c, line);
		return;
	}
	if (router_is_shim(c) && c->dialect->after_mark)
		body = c->dialect->after_mark(body); /* the CLI decides on the mark, by its version */
	if (!c->check && span_is_blank(body)) return;
	client_begin(c, body);
	if (check_line(c, line, body, &k)) {
		struct lengths *lengths = c->lengths;
		c->lengths = NULL;
		lengths_use(lengths);
		take_line(c, line, body, k);
		lengths_use(NULL);
		lengths_free(lengths);
		if (k) c->checker->free(k);
	}
	const struct attachment *a = c->attachment;
	if (a) session_changed(a->session);
	if (client_holds(c)) return;
	inquiry_over(c);
	starts_leave(c); /* after any refusal: the next line is about something else */
}

/* The id's line was not checked. */
static bool is_plain(struct span id) {
	for (size_t i = 0; i < id.n; i++)
		if (id.p[i] < ' ' || id.p[i] > '~' || id.p[i] == '\\') return false;
	return id.p;
}

static const char *why_skipped(const struct client *c, char why[SHARE_TEXT_MAX]) {
	static const char unused[] = "nothing of it was used";
	switch (c->starved) {
	case STARVED_SHARE:
		snprintf(why, SHARE_TEXT_MAX, "uid %u had no room for this line in its %zu bytes (uid_bytes); %s", c->peer.uid,
				 c->world->shares.max[SHARE_BYTES], unused);
		return PLENUM_E_SHARE_EXCEEDED;
	case STARVED_MEMORY:
		snprintf(why, SHARE_TEXT_MAX, "the daemon has no memory for this line; %s", unused);
		return PLENUM_E_INTERNAL;
	default:
		snprintf(why, SHARE_TEXT_MAX, "this line is longer than the limit (client_line); %s", unused);
		return PLENUM_E_TOO_LONG;
	}
}

void from_client_long_line(struct client *c, struct chunk head, size_t size) {
	char why[SHARE_TEXT_MAX];
	const char *code = why_skipped(c, why);
	struct head h;
	client_begin(c, (struct span){head.data, head.len});
	c->dialect->read_head(head, &h);
	struct span id = h.id;
	bool needed = handshake_arrives_broken(c, head.data, head.len);
	c->chooses |= mentions_attach(c, head.data, head.len);
	if (!is_plain(id)) id = SPAN_NONE;
	if (id.p && h.kind == LINE_REQUEST)
		notify_fail(c, id, code, "%s: it has %zu bytes", why, size); /* the client waits for it */
	else
		notify_complain_of_line(c, id, code, why, size);
	if (needed) handshake_served(c);
}

/* The client's input is not read any more; its unread output is dropped. */
void from_client_evicted(struct client *c, size_t held) {
	struct router *r = c->world;
	if (c->subscribed) r->n_subscribers--;
	c->subscribed = false;
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

void from_client_no_more(struct client *c) {
	struct attachment *a = c->attachment;
	if (a) { /* it can answer nothing any more */
		a->approve = false;
		if (a->ephemeral) a->session->ending = true;
		asks_leave(a);
		owners_leave(a);
		session_changed(a->session);
	} else {
		attachment_close_ended(c);
	}
}

void from_client_gone(struct client *c) {
	struct router *r = c->world;
	inquiry_over(c);
	starts_leave(c);
	if (c->check) c->checker->free(c->check);
	c->check = NULL;
	lengths_free(c->lengths);
	c->lengths = NULL;
	attachment_leave(c, "disconnected");
	share_leave(&c->member);
	if (c->subscribed) r->n_subscribers--;
	r->n_clients--;
	r->events->client_gone(r);
}
