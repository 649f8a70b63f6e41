/* SPDX-License-Identifier: MIT */
#include "core/kept.h"
#include "core/attachment.h"
#include "core/inquiry.h"
#include "core/notify.h"
#include "core/requests.h"
#include "core/steps.h"
#include "core/trust.h"

#include "base/str.h"
#include "plenum/protocol.h"
#include "wire/limits.h"
#include "wire/splice.h"

#include <string.h>

#define FIRST_ANSWERED 2 /* s->unnamed while the first step waits for its answer */

/* again: it has waited before. Return KEPT_LATER, KEPT_PASS or KEPT_ANOTHER for a request that is not answered. */
static enum dialect_kept answer(struct client *c, struct session *s, const struct envelope *e, bool again) {
	struct buf body = NOTICE_INIT, b = NOTICE_INIT;
	struct dialect_ask ask = {.e = e,
							  .conversation = session_conversation(s),
							  .ready = session_is_ready(s),
							  .waits = s->by_client,
							  .told = steps_is_told(s),
							  .again = again,
							  .may_begin = trust_in(s->world, c->attachment) == TRUST_OWN,
							  .memo = &s->memo};
	const char *error = "out of memory";
	enum dialect_kept kept = c->dialect->kept(&ask, &body, &error);
	if (ask.cwd.p) launch_move(&s->launch, span_dup(ask.cwd, NULL));
	if (ask.resumes.p) launch_resume(&s->launch, span_dup(ask.resumes, NULL));
	if (ask.mutes.p && !client_mute(c, ask.mutes)) body.failed = true;
	if (body.failed) kept = KEPT_REFUSED;
	if (kept == KEPT_REPLAY) client_repeat_tape(c); /* at the pace of its reading */
	if (kept == KEPT_REFUSED || kept == KEPT_FORBIDDEN) {
		const char *code = kept == KEPT_FORBIDDEN ? PLENUM_E_NOT_ALLOWED : PLENUM_E_BAD_REQUEST;
		notify_fail(c, e->request_id, code, "%s", error);
	} else if (kept == KEPT_ANSWER || kept == KEPT_REPLAY) {
		c->dialect->put_success(&b, e->request_id, body.data);
		client_post(c, notice_chunk(&b));
	}
	buf_free(&body);
	return kept;
}

static void add_waiter(struct client *c, struct session *s, struct chunk line, const struct envelope *e) {
	struct span body = splice_body(line);
	struct call *call = call_new(&s->calls, s, s->loop, CALL_KEPT, c, c->id, e->request_id, requests_timer);
	if (call) call->value = strndup(body.p, body.n);
	if (!call || !call->value) {
		if (call) call_end(&s->calls, call);
		notify_fail(c, e->request_id, PLENUM_E_INTERNAL, "out of memory");
		return;
	}
	share_begin(&call->charge, &c->member, false);
	call->child = session_writes_to(s);
}

void kept_post(struct attachment *a) {
	const struct session *s = a->session;
	const struct dialect *d = session_dialect(s);
	struct buf b = NOTICE_INIT;
	if (!d->put_noted || !s->conversation_id) return;
	d->put_noted(&b, &s->memo, s->conversation_id);
	struct chunk all = notice_chunk(&b), line;
	for (size_t at = 0; (line = chunk_next_line(all, &at)).data;) client_offer(a->client, line);
	chunk_drop(&all);
}

struct session *kept_holder(struct client *c, const struct envelope *e) {
	_cleanup_free_ char *id = c->dialect->takes_up(e) ? span_dup(e->session_id, NULL) : NULL;
	struct session *s = id ? router_find_conversation(c->world, id) : NULL;
	return s && !trust_is_closed_to(s, c) && !session_is_going(s) ? s : NULL;
}

/* Two children must not write to one conversation: the client joins its session instead. Return false without memory.
 */
static bool join(struct client *c, struct session *s) {
	bool observer = c->attachment->observer, approve = c->attachment->approve;
	attachment_leave(c, "joins another session");
	struct attachment *a = attachment_new(c, s, observer, approve);
	if (!a) return false;
	kept_post(a);
	client_read_tape(c, &s->tape, s->tape.next);
	attachment_ready(a);
	return true;
}

/* Return false if the request goes on with a conversation whose id is too long to be kept; the client is notified. */
static bool id_fits(struct client *c, const struct envelope *e) {
	_cleanup_free_ char *id = c->dialect->takes_up(e) ? span_dup(e->session_id, NULL) : NULL;
	size_t n = id ? strlen(id) : 0;
	if (n <= LIMITS_CONVERSATION) return true;
	notify_fail(c, e->request_id, PLENUM_E_TOO_LONG, "the id of a conversation may have %zu bytes, this one has %zu",
				LIMITS_CONVERSATION, n);
	return false;
}

bool kept_ask(struct client *c, struct session *s, struct chunk line, const struct envelope *e) {
	struct error error;
	if (!id_fits(c, e)) return false;
	struct session *other = !s->by_client || s->conversation_id ? NULL : kept_holder(c, e); /* it has begun none here */
	if (other == s) other = NULL;
	if (other && session_dialect(other) != c->dialect) {
		router_in_use_text(&error, other->name);
		notify_fail(c, e->request_id, PLENUM_E_CONVERSATION_IN_USE, "%s", error.text);
		return false;
	}
	if (other && !join(c, other)) {
		notify_fail(c, e->request_id, PLENUM_E_INTERNAL, "out of memory");
		return false;
	}
	if (other) s = other;
	inquiry_take_login(s, c);
	enum dialect_kept kept = answer(c, s, e, false);
	if (kept == KEPT_PASS) requests_send(c, s, line, e, NULL, NULL);
	if (kept != KEPT_LATER) return kept == KEPT_ANOTHER;
	if (!session_wake(s, &error)) {
		notify_fail(c, e->request_id, PLENUM_E_CHILD_EXITED, "%s", error.text);
		return false;
	}
	add_waiter(c, s, line, e);
	if (s->waits && session_has_child(s)) steps_next(s);
	return false;
}

void kept_due(struct session *s) {
	struct call *call;
	LIST_FOR_EACH (call, &s->calls.order, struct call, node) {
		struct envelope e;
		if (call->purpose != CALL_KEPT || !call->asker) continue;
		_cleanup_free_ char *line = call->value;
		call->value = NULL;
		struct client *c = call->asker;
		bool known = session_dialect(s)->scan(line, strlen(line), &e);
		enum dialect_kept kept = known ? answer(c, s, &e, true) : KEPT_REFUSED;
		if (kept == KEPT_LATER) {
			call->value = line;
			line = NULL;
			continue;
		}
		call_end(&s->calls, call);
		if (kept == KEPT_PASS) requests_send(c, s, (struct chunk){NULL, line, strlen(line)}, &e, NULL, NULL);
	}
}

bool kept_failed(struct session *s, const char *why) {
	struct call *call;
	if (!s->by_client || s->conversation_id || s->unnamed <= FIRST_ANSWERED) return false;
	launch_resume(&s->launch, NULL);
	LIST_FOR_EACH (call, &s->calls.order, struct call, node)
		if (call->purpose == CALL_KEPT) requests_fail(call, PLENUM_E_BAD_REQUEST, why);
	return true;
}
