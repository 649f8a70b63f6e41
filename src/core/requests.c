/* SPDX-License-Identifier: MIT */
#include "core/requests.h"
#include "core/gate.h"
#include "core/inquiry.h"
#include "core/notify.h"

#include "base/log.h"
#include "plenum/protocol.h"
#include "wire/limits.h"
#include "wire/splice.h"

#include <stdio.h>
#include <string.h>

#define URGENT_MAX ((size_t)64 * 1024)
#define LATE_MS (5 * 60 * 1000) /* extra time for the answer to a change */

#define ASLEEP_TEXT "session %s is %s and has no child: send a prompt, or attach with \"wake\":true, and ask again"
#define ENDED_TEXT "session %s is %s and has no child: no turn, process or watch of it is left (it needs no end)"

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
	if (text && call->asker) notify_fail(call->asker, span_of(call->asker_id), code, "%s", text);
	call_end(&s->calls, call);
}

static void tell_change(const struct call *call, struct span value, const struct envelope *e) {
	struct session *s = call->session;
	const struct dialect *d = session_dialect(s);
	struct client *c = call->asker;
	struct span name = SPAN_NONE, to = SPAN_NONE;
	struct buf b = NOTICE_INIT;
	if (d->read_option) d->read_option(e, call->what, value, &name, &to);
	notice_begin(&b, PLENUM_EV_CHANGED, s->name);
	notice_text(&b, "what", call->what);
	notice_raw(&b, "value", value);
	if (name.p) notice_raw(&b, "name", name);
	if (to.p) notice_raw(&b, "to", to);
	if (c) notify_put_by(&b, c);
	notify_session(s, notice_end(&b));
}

void requests_pass_answer(const struct call *call, struct chunk line, const struct envelope *e) {
	struct span id = e->inner_request_id;
	struct splice_edit own = {id.p, id.n, {span_of(call->asker_id)}};
	if (!call->asker) return;
	struct rope answer = splice_edits(line, (struct span){line.data, line.len}, &own, 1, CHUNK_NONE);
	client_post_rope(call->asker, &answer);
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
		if (d->read_settings) { /* the change may have changed more than was asked for */
			struct report r = {0};
			d->read_settings(e, &r);
			snapshot_mode(&s->snapshot, r.mode);
			snapshot_model(&s->snapshot, r.model);
		}
		if (d->remember_change) d->remember_change(&s->memo, call->what, told, e);
		tell_change(call, told, e);
	} else if (restores_mode(call)) {
		tell_mode_lost(call);
	}
	handles_answered(&s->handles, call, d->succeeded(e));
	call_end(&s->calls, call);
}

/* Make the edit that names the conversation where a request leaves it out, or names it as it was when the line was
 * taken. Return false if it need not be. */
static bool name_conversation(const struct session *s, const struct envelope *e, struct splice_edit *edit) {
	const char *name = session_dialect(s)->conversation_id, *id = s->conversation_id;
	struct span named = e->session_id;
	if (!name || !span_is_object(e->request)) return false;
	if (!id && (named.p || s->by_client)) return false; /* the client may never begin one */
	if (!id) id = "";                                   /* until the end of the start: session_set_conversation() */
	if (strpbrk(id, "\"\\")) return false;              /* no agent has such an id */
	*edit = splice_string(e->request, named, name, id);
	return !span_equals(named, id);
}

/* more: one more edit, or NULL. */
static struct rope line_for(const struct session *s, struct chunk line, const struct envelope *e, struct span id,
							const struct splice_edit *more) {
	struct splice_edit edits[SPLICE_EDITS] = {0}, conversation;
	size_t n = 0;
	if (name_conversation(s, e, &conversation)) splice_add(edits, &n, conversation);
	if (id.p) splice_add(edits, &n, (struct splice_edit){e->request_id.p, e->request_id.n, {id}});
	if (more) splice_add(edits, &n, *more);
	return splice_edits(line, splice_body(line), edits, n, CHUNK_NONE);
}

struct rope requests_line_for(const struct session *s, struct chunk line, const struct envelope *e, struct span id) {
	return line_for(s, line, e, id, NULL);
}

const struct gate_row *requests_row(const struct client *c, const struct envelope *e) {
	struct span name = span_content(e->inner_subtype);
	return dialect_gate_row(&gate_of(c)->rows, GATE_REQUEST, name.p, name.n);
}

/* Return the client's line under a fresh id. If its id is inside `request` (an old form) ours goes in front. */
static struct rope under_id(struct session *s, struct chunk line, const struct envelope *e, const struct call *call) {
	struct span body = splice_body(line);
	char raw[CALL_ID_MAX + 2];
	struct handles_edit own;
	bool inside = e->request_id.p > e->request.p && e->request_id.p < e->request.p + e->request.n;
	if (s->calls.numbers) {
		bool more = handles_edit(&s->calls, call->asker->id, requests_row(call->asker, e), e, &own);
		return line_for(s, line, e, call_raw_id(&s->calls, call, raw), more ? &own.edit : NULL);
	}
	struct splice_edit id = splice_string(body, inside ? SPAN_NONE : e->request_id, session_dialect(s)->request_id,
										  call->id);
	return splice_edits(line, body, &id, 1, CHUNK_NONE);
}

bool requests_has_bad_timeout(struct client *c, const struct envelope *e) {
	int64_t ms;
	struct span wanted = span_member(e->request, "plenum_timeout_ms");
	if (!wanted.p || (span_int(wanted, &ms) && ms > 0 && ms <= LIMITS_TIMEOUT_MS)) return false;
	notify_fail(c, e->request_id, PLENUM_E_BAD_REQUEST,
				"`plenum_timeout_ms` must be a whole number of milliseconds, 1 to %lld", (long long)LIMITS_TIMEOUT_MS);
	return true;
}

/* Return true for an interrupt, which is subject to no limit: one of each client at a time. */
static bool is_urgent(const struct client *c, const struct envelope *e, size_t len) {
	const struct gate_row *row = requests_row(c, e);
	return row && row->act == ACT_INTERRUPT && !c->member.urgent && len <= URGENT_MAX;
}

bool requests_may_send(struct client *c, const struct session *s, const struct envelope *e, struct span id,
					   size_t len) {
	struct error why;
	size_t max = s->settings->limits.max_calls;
	if (is_urgent(c, e, len)) return true;
	if (c->member.requests >= max)
		notify_fail(c, id, PLENUM_E_BUSY,
					"you have %zu requests open (max_calls): wait for the answers to some of them", max);
	else if (!share_allows(&s->world->shares, c->peer.uid, SHARE_REQUESTS, 1, &why))
		notify_fail(c, id, PLENUM_E_SHARE_EXCEEDED, "%s", why.text);
	else
		return true;
	return false;
}

/* Return true if the line may be queued for the child. False: the client was notified. */
static bool has_room(struct client *c, const struct session *s, size_t len, struct span id) {
	struct error why;
	if (!share_allows(&s->world->shares, c->peer.uid, SHARE_BYTES, len, &why))
		notify_fail(c, id, PLENUM_E_SHARE_EXCEEDED, "%s", why.text);
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

/* Start the child for the request, where its start is over only when it has the conversation again. Return true if
 * there is a child, or one to come; false: the client was notified. */
static bool wake_for(struct client *c, struct session *s, const struct envelope *e) {
	struct error error;
	if (session_has_child(s) || s->want_child) return true;
	const char *state = session_state_name(session_state(s));
	const struct gate_row *row = requests_row(c, e);
	bool about_child = row && (row->act == ACT_ABOUT || row->act == ACT_INTERRUPT);
	if (row && row->act == ACT_NAMES)
		about_child = dialect_gate_opens(c->dialect->gate, c->dialect->n_gate, row->member);
	if (!session_has_steps(s)) {
		notify_fail(c, e->request_id, PLENUM_E_CHILD_EXITED, ASLEEP_TEXT, s->name, state);
	} else if (about_child) { /* its subject has ended with the child */
		notify_fail(c, e->request_id, PLENUM_E_CHILD_EXITED, ENDED_TEXT, s->name, state);
	} else {
		inquiry_take_login(s, c);
		if (session_wake(s, &error)) return true;
		notify_fail(c, e->request_id, PLENUM_E_CHILD_EXITED, "%s", error.text);
	}
	return false;
}

struct call *requests_send(struct client *c, struct session *s, struct chunk line, const struct envelope *e,
						   requests_put_fn *put, const char *body) {
	struct buf b = NOTICE_INIT;
	bool urgent = is_urgent(c, e, line.len);
	if (!urgent && !has_room(c, s, line.len, e->request_id)) return NULL;
	if (!wake_for(c, s, e)) return NULL;
	struct call *call = call_new(&s->calls, s, s->loop, CALL_CLIENT, c, c->id, e->request_id, requests_timer);
	if (call && put) put(&b, s, call->id, body);
	struct rope out = {0};
	if (call) out = put ? rope_of(notice_chunk(&b)) : under_id(s, line, e, call);
	if (!call || !out.n || !session_write_charged(s, &out, c->member.share)) {
		if (call) call_end(&s->calls, call);
		notify_fail(c, e->request_id, PLENUM_E_INTERNAL, "out of memory");
		return NULL;
	}
	share_begin(&call->charge, &c->member, urgent);
	call->child = session_writes_to(s);
	int64_t ms;
	bool own = span_int(span_member(e->request, "plenum_timeout_ms"), &ms) && ms > 0;
	loop_timer_set(&call->timer, own ? ms : s->profile->control_timeout);
	return call;
}

void requests_need_change(struct client *c, const char *what) {
	free(c->refused_change);
	c->refused_change = strdup(what);
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
	struct client *asker = call->asker;
	if (asker && asker->refused_change && strcmp(asker->refused_change, row->what) == 0) {
		free(asker->refused_change); /* the child gets the change before the prompts behind it */
		asker->refused_change = NULL;
	}
	if (strcmp(row->what, PLENUM_WHAT_MODE) != 0) call->session->altered = true;
	call->act = ACT_CHANGE;
	call->what = row->what;
	call->value = shown_value(row, e->request);
}

void requests_announce_line(struct session *s, struct client *c, const struct gate_row *row, struct span body) {
	while (body.n && *body.p != '{') body.p++, body.n--;
	_cleanup_free_ char *value = shown_value(row, body);
	notify_changed(s, row->what, span_of(value), c);
}

bool requests_pass_line(struct client *c, struct session *s, struct chunk line, const struct envelope *e) {
	struct span body = splice_body(line);
	if (!session_has_child(s) && !s->want_child) {
		notify_fail(c, SPAN_NONE, PLENUM_E_CHILD_EXITED, ASLEEP_TEXT, s->name, session_state_name(session_state(s)));
		return false;
	}
	if (!has_room(c, s, line.len, SPAN_NONE)) return false;
	bool named = session_dialect(s)->conversation_id;
	struct rope out = named ? requests_line_for(s, line, e, SPAN_NONE) : rope_of(splice_line(line, body));
	if (session_write_charged(s, &out, c->member.share)) return true;
	notify_fail(c, SPAN_NONE, PLENUM_E_BUSY, "the child of session %s takes no input: send it again later", s->name);
	return false;
}
