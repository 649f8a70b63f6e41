/* SPDX-License-Identifier: MIT
 *
 * Find out which conversation a child has taken up. If the command line leaves that to the child (the newest one, a
 * title, a file), it is asked before it gets a client's line: of two children that write to one conversation the second
 * is ended before it writes (contract 8, protocol-facts 1.4).
 */
#include "core/router.h"

#include "base/log.h"
#include "base/str.h"
#include "plenum/protocol.h"

#include <string.h>

#define NAME_WAIT 10000 /* ms for one answer; after that the id in the first line is compared */

static void tell_conversation(struct session *s, bool another) {
	router_tell_state(s);
	if (another) {
		struct buf b = NOTICE_INIT;
		notice_begin(&b, PLENUM_EV_CHANGED, s->name);
		notice_text(&b, "what", "conversation_id");
		notice_text(&b, "value", s->conversation_id);
		router_tell(s, notice_end(&b));
	}
}

/* Compare the child's own report, even if the command line named an id. */
static struct session *other_holder(const struct session *s, const char *id) {
	for (struct session *o = s->world->sessions; o; o = o->hh.next)
		if (o != s && router_has_conversation(o, id) && !o->ending && !session_is_going(o)) return o;
	return NULL;
}

/* Clients of the one session may know nothing of the other (router_is_closed_to()). */
static void kill_second(struct session *s, const struct session *other) {
	char why[ROUTER_IN_USE_MAX];
	bool hidden = s->made_by || (router_is_private(other) && !router_is_private(s));
	router_in_use_text(why, hidden ? NULL : other->name);
	session_kill_second(s, other, why);
}

/* A resume that reports another id than requested: remember both; the next start tries the one known to exist first. A
 * later change (/clear) is the child's own and true. */
static void learn(struct session *s, struct span id, bool asked_for) {
	_cleanup_free_ char *text = span_dup(id, NULL);
	if (!text || !*text || (s->conversation_id && strcmp(s->conversation_id, text) == 0)) return;
	struct session *other = other_holder(s, text);
	if (other) kill_second(s, other);
	if (s->broken == BROKEN_SECOND) return;
	const char *asked = s->resumed_id ? s->resumed_id : s->conversation_id ? s->conversation_id : s->launch.resume;
	bool first = !s->said_init && asked && !(s->launch.fork && !s->conversation_id);
	char *resumed = first && asked_for && strcmp(asked, text) != 0 ? strdup(asked) : NULL;
	bool another = s->conversation_id != NULL;
	free(s->resumed_id);
	s->resumed_id = resumed;
	session_set_conversation(s, text);
	snapshot_forget_init(&s->snapshot);
	tell_conversation(s, another);
}

void router_learn_conversation(struct session *s, struct span id) {
	learn(s, id, true);
	if (s->broken != BROKEN_SECOND) session_named(s);
}

static bool is_asked(const struct session *s) {
	const struct call *call;
	LIST_FOR_EACH (call, &s->calls.order, struct call, node)
		if (call->purpose == CALL_NAME) return true;
	return false;
}

void router_name_ask(struct session *s) {
	const struct dialect *d = session_dialect(s);
	bool asks = s->unnamed && d->put_ask_name;
	struct call *call = asks ? call_new(&s->calls, s, s->loop, CALL_NAME, NULL, 0, SPAN_NONE, router_call_timer) : NULL;
	struct buf b = NOTICE_INIT;
	if (asks && !call) session_no_memory(s, "it cannot be asked for its conversation");
	if (!call || !d->put_ask_name(&b, call->id, s->unnamed - 1)) {
		if (call) call_end(&s->calls, call);
		session_named(s);
		return;
	}
	s->unnamed++;
	loop_timer_set(&call->timer, NAME_WAIT);
	session_must_write(s, notice_chunk(&b));
}

void router_name_over(struct call *call) {
	struct session *s = call->session;
	call_end(&s->calls, call);
	router_name_ask(s);
}

bool router_name_line(struct session *s, const struct envelope *e, const struct report *r) {
	bool asked = r->named && is_asked(s);
	if (!s->unnamed || !span_is_string(e->session_id) || r->starting) return asked;
	learn(s, e->session_id, false); /* found by a title, or as the newest: no id was requested */
	if (s->broken != BROKEN_SECOND) session_named(s);
	return asked;
}
