/* SPDX-License-Identifier: MIT */
#include "core/steps.h"
#include "core/notify.h"
#include "core/status.h"

#include "base/log.h"
#include "base/str.h"
#include "wire/limits.h"

#include <string.h>

#define WHY_MAX ((size_t)4096)
#define NAME_WAIT 10000 /* ms for one answer; after that the id in the first line is compared */

/* Compare the child's own report, even if the command line named an id. */
static struct session *other_holder(const struct session *s, const char *id) {
	for (struct session *o = s->world->sessions; o; o = o->hh.next)
		if (o != s && router_has_conversation(o, id) && !o->ending && !session_is_going(o)) return o;
	return NULL;
}

/* A resume that reports another id than requested: remember both; the next start tries the one known to exist first. A
 * later change (/clear) is the child's own and true. */
static void learn(struct session *s, struct span id, bool asked_for) {
	_cleanup_free_ char *text = span_dup(id, NULL);
	if (!text || !*text || (s->conversation_id && strcmp(s->conversation_id, text) == 0)) return;
	if (strlen(text) > LIMITS_CONVERSATION) {
		log_warn("session %s: an id of a conversation with %zu bytes is ignored", s->label, strlen(text));
		return;
	}
	struct session *other = other_holder(s, text);
	if (other) { /* clients of the one session may know nothing of the other (trust_is_closed_to()) */
		struct error why;
		bool hidden = s->made_by || (session_is_private(other) && !session_is_private(s));
		router_in_use_text(&why, hidden ? NULL : other->name);
		session_kill_second(s, other, why.text);
	}
	if (s->broken == BROKEN_SECOND) return;
	const char *asked = session_resumes(s);
	bool first = !s->progress.said_init && asked && !(s->launch.fork && !s->conversation_id);
	_cleanup_free_ char *resumed = first && asked_for && strcmp(asked, text) != 0 ? strdup(asked) : NULL;
	bool another = s->conversation_id != NULL;
	session_set_resumed(s, resumed);
	session_set_conversation(s, text);
	snapshot_forget_init(&s->snapshot);
	/* the state that follows a start is published with the conversation */
	if (another || session_state(s) != SESSION_STARTING) status_publish_now(s);
	if (another) notify_changed_text(s, "conversation_id", s->conversation_id, NULL);
}

void steps_learn_conversation(struct session *s, struct span id) {
	learn(s, id, true);
	if (s->broken != BROKEN_SECOND && !session_has_steps(s)) session_named(s);
}

/* --- the steps of a start ----------------------------------------------------------------------------------------- */

bool steps_is_told(const struct session *s) {
	const struct tape *t = &s->tape;
	for (uint64_t seq = t->oldest; seq < t->next; seq++)
		if (tape_at(t, seq)->kind != LINE_NOTICE) return true;
	return false;
}

void steps_next(struct session *s) {
	const struct dialect *d = session_dialect(s);
	bool asks = s->unnamed && d->put_step;
	struct call *call = asks ? call_new(&s->calls, s, s->loop, CALL_STEP, NULL, 0, SPAN_NONE, steps_timer) : NULL;
	struct dialect_start start = {s->launch.cwd, session_conversation(s), steps_is_told(s), s->by_client, &s->memo};
	struct buf b = NOTICE_INIT;
	if (asks && !call) session_no_memory(s, "it cannot be asked for its conversation");
	enum dialect_step step = call ? d->put_step(&b, call->id, s->unnamed - 1, &start) : STEP_NONE;
	if (call && step != STEP_SENT && step != STEP_REPLAYS) call_end(&s->calls, call);
	if (step == STEP_NONE) { /* the start is over: its child may have the lines of clients */
		const char *resumed = s->conversation_id || !session_has_steps(s) ? NULL : session_conversation(s);
		_cleanup_free_ char *id = resumed ? str_printf("\"%s\"", resumed) : NULL;
		if (id) learn(s, span_of(id), true); /* its answer need not repeat it */
		if (s->broken != BROKEN_SECOND) session_named(s);
		session_changed(s);
		return;
	}
	if (step == STEP_WAITS) {
		session_step_waits(s);
		return;
	}
	session_step_sent(s, step == STEP_REPLAYS && start.told);
	loop_timer_set(&call->timer, d->take_step ? s->profile->control_timeout : NAME_WAIT);
	session_must_write(s, notice_chunk(&b));
}

/* Without this answer the start cannot go on; a child that is only asked for its conversation can. */
void steps_unread(struct call *call, const char *why) {
	struct session *s = call->session;
	call_end(&s->calls, call);
	if (session_has_steps(s))
		session_kill_refused(s, why);
	else
		steps_next(s);
}

void steps_timer(void *arg) {
	struct call *call = arg;
	session_changed(call->session);
	steps_unread(call, "the child did not answer a step of its start in time (control_timeout)");
}

void steps_again(struct session *s) {
	session_step_answered(s, false);
	steps_next(s);
}

enum steps_end steps_answered(struct call *call, const struct envelope *e, char **why) {
	struct session *s = call->session;
	const struct dialect *d = session_dialect(s);
	struct buf text = BUF_INIT(WHY_MAX);
	unsigned n = s->unnamed - 2; /* of the step */
	bool good = !d->take_step || d->take_step(n, e, &s->memo, &text);
	call_end(&s->calls, call);
	session_step_answered(s, true);
	*why = buf_steal(&text, NULL);
	if (!good) return STEPS_REFUSED;
	if (d->take_step && d->confirmed) snapshot_mode(&s->snapshot, d->confirmed(e));
	if (d->step_model) snapshot_model(&s->snapshot, d->step_model(e));
	if (d->take_step && e->session_id.p) learn(s, e->session_id, true);
	if (s->broken == BROKEN_SECOND) return STEPS_ENDED;
	if (d->take_step && n > 0 && !session_conversation(s)) { /* its lines could not be told from those of others */
		session_kill_refused(s, "the agent named no conversation");
		return STEPS_ENDED;
	}
	steps_next(s);
	return STEPS_TAKEN;
}

bool steps_name_line(struct session *s, const struct envelope *e, const struct report *r) {
	const struct call *call;
	bool asked = false;
	if (r->named) {
		LIST_FOR_EACH (call, &s->calls.order, struct call, node) asked |= call->purpose == CALL_STEP;
	}
	if (!s->unnamed || session_has_steps(s) || !span_is_string(e->session_id) || r->starting) return asked;
	learn(s, e->session_id, false); /* found by a title, or as the newest: no id was requested */
	if (s->broken != BROKEN_SECOND) session_named(s);
	return asked;
}
