/* SPDX-License-Identifier: MIT */
#include "core/turns.h"
#include "core/asks.h"
#include "core/handshake.h"
#include "core/notify.h"
#include "core/requests.h"

#include "base/str.h"
#include "plenum/protocol.h"

#include <stdio.h>
#include <string.h>

#define NANO 1000000000

struct turn {
	struct buf uuids, clients;
	size_t n;
};

static void turn_add(struct turn *t, const struct prompt *p) {
	const char *comma = t->n++ ? "," : "";
	buf_puts(&t->uuids, comma);
	str_put_json(&t->uuids, p->uuid, strlen(p->uuid));
	buf_printf(&t->clients, "%s{\"name\":", comma);
	if (p->name)
		str_put_json(&t->clients, p->name, strlen(p->name));
	else
		buf_puts(&t->clients, "null");
	buf_printf(&t->clients, ",\"uid\":%u,\"client\":%llu}", p->uid, (unsigned long long)p->client);
}

/* Begin the notice, and free the turn. */
static void begin_notice(struct buf *b, const struct session *s, const char *event, struct turn *t) {
	notice_begin(b, event, s->name);
	buf_printf(b, ",\"uuids\":[%s],\"clients\":[%s]", t->uuids.data ? t->uuids.data : "",
			   t->clients.data ? t->clients.data : "");
	b->failed |= t->uuids.failed || t->clients.failed;
	buf_free(&t->uuids);
	buf_free(&t->clients);
}

static void tell_started(struct session *s, struct turn *t) {
	struct buf b = NOTICE_INIT;
	begin_notice(&b, s, PLENUM_EV_TURN_STARTED, t);
	notify_session(s, notice_end(&b));
}

static const char *outcome_name(enum turn_outcome outcome) {
	static const char *const names[] = {[TURN_SUCCESS] = PLENUM_OUT_SUCCESS,
										[TURN_ERROR] = PLENUM_OUT_ERROR,
										[TURN_LIMIT] = PLENUM_OUT_LIMIT,
										[TURN_INTERRUPTED] = PLENUM_OUT_INTERRUPTED};
	return names[outcome];
}

static void put_count(struct buf *b, const char *key, int64_t n) {
	if (n == TURN_UNKNOWN)
		notice_text(b, key, NULL);
	else
		notice_number(b, key, n);
}

/* Return the cost of this turn: the child reports the sum of its conversation, an old one that of its own turns. */
static int64_t turn_cost(struct cost *c, int64_t sum) {
	int64_t cost = c->unknown ? TURN_UNKNOWN : c->nano_usd <= sum ? sum - c->nano_usd : sum; /* less: it counts anew */
	if (sum == TURN_UNKNOWN) return sum;
	*c = (struct cost){.nano_usd = sum};
	return cost;
}

static void put_cost(struct buf *b, int64_t nano) {
	char text[40];
	int n = snprintf(text, sizeof text, "%lld.%09lld", (long long)(nano / NANO), (long long)(nano % NANO));
	while (text[n - 1] == '0' && text[n - 2] != '.') n--;
	notice_raw(b, "cost_usd", nano == TURN_UNKNOWN ? SPAN_NONE : (struct span){text, (size_t)n});
}

void turns_put_cost(struct buf *b, const struct session *s) {
	put_cost(b, s->turns.cost.unknown || !s->turns.cost.nano_usd ? TURN_UNKNOWN : s->turns.cost.nano_usd);
}

static void put_tokens(struct buf *b, const struct turn_result *r) {
	struct buf o = NOTICE_INIT;
	put_count(&o, PLENUM_TOKENS_INPUT, r->input);
	put_count(&o, PLENUM_TOKENS_OUTPUT, r->output);
	put_count(&o, PLENUM_TOKENS_CACHE_READ, r->cache_read);
	put_count(&o, PLENUM_TOKENS_CACHE_WRITE, r->cache_write);
	if (o.data) buf_printf(b, ",\"tokens\":{%s}", o.data + 1);
	b->failed |= o.failed;
	buf_free(&o);
}

/* result NULL: there is none, or it is too long to read. */
static void tell_ended(struct session *s, struct turn *t, struct span is_error, const struct turn_result *result) {
	struct buf b = NOTICE_INIT;
	begin_notice(&b, s, PLENUM_EV_TURN_ENDED, t);
	if (is_error.p) notice_raw(&b, PLENUM_M_FAILED, is_error);
	notice_text(&b, "outcome", result ? outcome_name(result->outcome) : PLENUM_OUT_UNKNOWN);
	if (result) {
		put_count(&b, "ms", result->ms);
		put_cost(&b, turn_cost(&s->turns.cost, result->nano_usd));
		put_tokens(&b, result);
	}
	notify_session(s, notice_end(&b));
}

static void alert_end(struct session *s, const struct turn_result *result) {
	struct buf b = BUF_INIT(ALERT_SUMMARY_MAX);
	if (!notify_alert_wanted(s, ALERT_TURN_END)) return;
	bool answers = result && result->outcome != TURN_INTERRUPTED; /* the text of an interrupted turn is for no user */
	_cleanup_free_ char *text = answers ? span_dup(result->text, NULL) : NULL;
	buf_puts(&b, result ? outcome_name(result->outcome) : PLENUM_OUT_UNKNOWN);
	if (result && result->ms != TURN_UNKNOWN) buf_printf(&b, ", %lld s", (long long)(result->ms / 1000));
	if (text) buf_puts(&b, ": ");
	if (text) str_put_safe(&b, text, str_fit(text, ALERT_TEXT_MAX));
	_cleanup_free_ char *summary = buf_steal(&b, NULL);
	notify_alert(s, &(struct alert){.kind = ALERT_TURN_END, .summary = summary});
}

/* This child was not sent it: it is held, or goes to the next child, as this one has exited and only its last output is
 * read. */
static bool is_unsent(const struct session *s, const struct prompt *p) {
	return p->state == PROMPT_HELD || session_awaits(s, p->child);
}

static bool some_are_sent(const struct session *s) {
	struct prompt *p;
	LIST_FOR_EACH (p, &s->prompts.open, struct prompt, node)
		if (p->state == PROMPT_SENT && !is_unsent(s, p)) return true;
	return false;
}

bool turns_is_open(const struct session *s) {
	struct prompt *p;
	LIST_FOR_EACH (p, &s->prompts.open, struct prompt, node)
		if (p->state == PROMPT_TAKEN) return true;
	return some_are_sent(s);
}

void turns_named(struct session *s) {
	struct turn t = {.uuids = NOTICE_INIT, .clients = NOTICE_INIT};
	struct prompt *p;
	if (!s->prompts.unnamed) return;
	s->prompts.unnamed = false;
	LIST_FOR_EACH (p, &s->prompts.open, struct prompt, node)
		if (p->state == PROMPT_TAKEN) turn_add(&t, p);
	tell_started(s, &t);
}

/* Return true for a turn of more prompts than a line can name: the others are the echoed ones. */
static bool names_few(const struct session *s, const struct envelope *e) {
	struct span uuid;
	size_t n = 0, max = session_dialect(s)->names_max;
	for (size_t at = 0; span_next(e->user_message_uuids, &at, &uuid);) n++;
	return max && n >= max;
}

/* An old child names no prompts here: announce the turn, which has begun, with the first echoed prompt, or with the
 * first line of the answer. */
void turns_begin(struct session *s, const struct envelope *e) {
	struct turn t = {.uuids = NOTICE_INIT, .clients = NOTICE_INIT};
	struct span uuid;
	turns_named(s);
	struct prompt *p;
	bool few = names_few(s, e);
	for (size_t at = 0; span_next(e->user_message_uuids, &at, &uuid);) {
		p = prompt_find(&s->prompts, uuid);
		if (p && !(few && p->state == PROMPT_TAKEN)) turn_add(&t, p);
	}
	if (t.n == 0 || few) {
		LIST_FOR_EACH (p, &s->prompts.open, struct prompt, node)
			if (p->state == PROMPT_TAKEN || (!few && !is_unsent(s, p) && !s->prompts.replays)) turn_add(&t, p);
	}
	s->prompts.unnamed = t.n == 0 && s->prompts.replays && some_are_sent(s);
	if (!s->prompts.unnamed) tell_started(s, &t);
}

static void finish(struct session *s, struct turn *t, struct prompt *p) {
	if (p->state == PROMPT_DONE || is_unsent(s, p)) return;
	turn_add(t, p);
	prompt_done(&s->prompts, p);
}

/* An old child echoes neither its own commands nor a prompt blocked by a hook: a result without a turn, for no echoed
 * prompt, is the oldest prompt's. Of several merged prompts blocked by a hook it echoes all but the last one, before it
 * prints init. */
static void finish_unechoed(struct session *s, struct chunk line, struct turn *t) {
	const struct dialect *d = session_dialect(s);
	bool none = !line.data || (d->ran_no_turn && d->ran_no_turn((struct span){line.data, line.len}));
	struct prompt *p;
	LIST_FOR_EACH (p, &s->prompts.open, struct prompt, node) {
		if (is_unsent(s, p)) continue;
		if (none || (p->command && t->n == 0)) finish(s, t, p);
		return;
	}
}

/* Finish the prompts answered by this result: the named ones; if it names none, or not all, those echoed since the last
 * one; if the child echoes nothing, all sent ones. */
static void finish_prompts(struct session *s, struct chunk line, const struct envelope *e, struct turn *t) {
	struct span uuid;
	struct prompt *p;
	bool named = e->user_message_uuids.p || e->user_message_uuid.p;
	for (size_t at = 0; span_next(e->user_message_uuids, &at, &uuid);)
		if ((p = prompt_find(&s->prompts, uuid))) finish(s, t, p);
	if ((p = prompt_find(&s->prompts, e->user_message_uuid))) finish(s, t, p);
	if (named && !names_few(s, e)) return;
	LIST_FOR_EACH (p, &s->prompts.open, struct prompt, node)
		if (p->state == PROMPT_TAKEN || (!named && !s->prompts.replays)) finish(s, t, p);
	if (!named && (t->n == 0 || !s->prompts.echoed)) finish_unechoed(s, line, t);
}

void turns_end(struct session *s, struct chunk line, const struct envelope *e) {
	struct turn t = {.uuids = NOTICE_INIT, .clients = NOTICE_INIT};
	struct turn_result found;
	const struct turn_result *result = NULL;
	const struct dialect *d = session_dialect(s);
	finish_prompts(s, line, e, &t);
	if (line.data) {
		found = d->read_result((struct span){line.data, line.len});
		if (d->noted_cost) found.nano_usd = d->noted_cost(&s->memo);
		if (found.outcome == TURN_INTERRUPTED) asks_withdraw_turn(s);
		result = &found;
	}
	progress_turn(&s->progress, false);
	s->turns.count++;
	tell_ended(s, &t, e->is_error, result);
	alert_end(s, result);
	session_turn_ended(s);
}

void turns_sent(struct session *s, struct prompt *p) {
	struct turn t = {.uuids = NOTICE_INIT, .clients = NOTICE_INIT};
	p->state = PROMPT_TAKEN;
	turn_add(&t, p);
	tell_started(s, &t);
}

/* The child has answered a prompt. line: data NULL: the answer was not read. */
static void prompt_answered(struct call *call, struct chunk line, struct span is_error) {
	struct session *s = call->session;
	_cleanup_free_ char *uuid = call->value ? str_printf("\"%s\"", call->value) : NULL;
	struct envelope end = {.is_error = is_error, .user_message_uuid = span_of(uuid)};
	call_end(&s->calls, call);
	if (!session_dialect(s)->accepts_prompts) {
		turns_end(s, line, &end);
		return;
	}
	/* The child has taken or refused the prompt. Only the taken ones have a part in the end of its turn. */
	struct prompt *p = prompt_find(&s->prompts, end.user_message_uuid);
	if (!p || p->state != PROMPT_SENT) return;
	if (span_is_true(is_error)) {
		prompt_forget(&s->prompts, p);
		session_changed(s);
	} else {
		s->prompts.replays = s->prompts.echoed = true;
		turns_sent(s, p);
	}
}

void turns_answered(struct call *call, struct chunk line, const struct envelope *e) {
	struct session *s = call->session;
	const struct dialect *d = session_dialect(s);
	bool good = d->succeeded(e);
	requests_pass_answer(call, line, e);
	if (good && d->remember) d->remember(&s->memo, e);
	prompt_answered(call, line, span_of(good ? "false" : "true"));
}

void turns_unread(struct call *call, const char *code, const char *why) {
	if (call->asker) notify_fail(call->asker, span_of(call->asker_id), code, "%s", why);
	prompt_answered(call, CHUNK_NONE, SPAN_NONE);
}

void turns_child_begins(struct session *s) {
	s->prompts.echoed = false;
}

void turns_echo(struct session *s, const struct envelope *e) {
	struct prompt *p = prompt_find(&s->prompts, e->uuid);
	s->prompts.replays = s->prompts.echoed = true;
	if (!p || p->state != PROMPT_SENT) return;
	p->state = PROMPT_TAKEN;
	turns_named(s);
}

/* Return the client that asked for the removal of a waiting prompt: the child reports it before its answer. If the
 * daemon withdraws it for an interrupt, the interrupt follows (intake_interrupt). */
static const struct client *canceller(const struct session *s, const struct prompt *p) {
	const struct call *call, *interrupt = NULL;
	bool ours = false;
	LIST_FOR_EACH (call, &s->calls.order, struct call, node) {
		if (call->act == ACT_CANCEL_PROMPT && span_equals(span_of(call->value), p->uuid)) {
			if (call->asker_id) return call->asker;
			ours = true;
		}
		if (call->act == ACT_INTERRUPT) interrupt = call;
		if (ours && interrupt == call) break;
	}
	if (interrupt) return interrupt->asker;
	return ours ? p->asker : NULL; /* the withdrawal was answered first */
}

/* Handle the child's report on a prompt: a dropped one gets no result. */
void turns_fate(struct session *s, enum report_fate fate, struct span uuid) {
	struct prompt *p = prompt_find(&s->prompts, uuid);
	if (!p || p->state == PROMPT_HELD || p->state == PROMPT_DONE) return;
	if (p->state == PROMPT_SENT && fate == FATE_WITHDRAWN)
		turns_prompt_cancelled(s, p, canceller(s, p));
	else
		prompt_done(&s->prompts, p);
}

/* Notify the sender: a prompt that is a request is answered. */
static void tell_asker(struct session *s, const struct prompt *p, const char *code, const char *text) {
	struct client *c = p->asker;
	struct call *call = call_of_prompt(&s->calls, p->uuid);
	if (call) {
		requests_fail(call, code, text);
		return;
	}
	if (!c) return;
	/* A program unaware of the daemon would wait indefinitely in a session that goes on without its prompt. */
	const struct attachment *a = c->attachment;
	bool waits = a && !a->ephemeral && a->wants_stderr && strcmp(code, PLENUM_E_CHILD_EXITED) == 0;
	if (c->filter.quiet && !waits) return;
	struct buf b = NOTICE_INIT;
	notice_error(&b, s->name, code, text);
	notice_text(&b, "uuid", p->uuid);
	client_tell(c, notice_end(&b));
}

/* Echoed without a turn: its uuid is in the conversation already, from before a restart or from the resumed one. The
 * CLI runs no uuid twice. */
static void end_swallowed(struct session *s) {
	struct prompt *p;
	LIST_FOR_EACH (p, &s->prompts.open, struct prompt, node) {
		if (p->state != PROMPT_TAKEN) continue;
		tell_asker(s, p, PLENUM_E_DUPLICATE_REQUEST,
				   "the conversation has a prompt with this uuid already; this one was not run");
		prompt_done(&s->prompts, p);
	}
}

/* End prompts of a turn without a result: none will come. */
static void end_unresolved(struct session *s) {
	struct turn t = {.uuids = NOTICE_INIT, .clients = NOTICE_INIT};
	struct prompt *p;
	LIST_FOR_EACH (p, &s->prompts.open, struct prompt, node)
		if (p->state == PROMPT_TAKEN) finish(s, &t, p);
	if (!t.n) return;
	tell_ended(s, &t, span_of("true"), NULL);
	alert_end(s, NULL);
}

/* Idle comes after the last result, and with nothing left in the child's queue. */
void turns_state(struct session *s, enum report_state state) {
	if (state == REPORT_RUNS) progress_turn(&s->progress, true);
	if (state != REPORT_RESTS) return;
	if (s->progress.turn)
		end_unresolved(s);
	else
		end_swallowed(s);
	progress_turn(&s->progress, false);
}

static void cancelled(struct session *s, struct span uuid, const struct call *call) {
	struct prompt *p = prompt_find(&s->prompts, uuid);
	if (!p || p->state == PROMPT_DONE || p->state == PROMPT_HELD) return;
	turns_prompt_cancelled(s, p, call->asker ? call->asker : canceller(s, p));
}

/* End prompts dropped on request: an old child reports that in its answer alone, without the uuid. */
void turns_cancelled(struct session *s, const struct envelope *e, const struct call *call) {
	const struct dialect *d = session_dialect(s);
	struct span what = d->cancelled ? d->cancelled(e) : SPAN_NONE, uuid;
	if (span_is_true(what) && call->act == ACT_CANCEL_PROMPT) cancelled(s, span_of(call->value), call);
	for (size_t at = 0; span_next(what, &at, &uuid);) cancelled(s, uuid, call);
}

/* A prompt that did not run may be sent again under the same uuid. */
static bool never_ran(const struct session *s, const struct session_exit *e, const struct prompt *p) {
	return e->never_ran || p->state == PROMPT_HELD ||
		   (p->state == PROMPT_SENT && (s->prompts.replays || !s->progress.got_line));
}

void turns_failed(struct session *s, const struct session_exit *e, const char *text) {
	const char *code = e->never_ran && !e->wanted ? PLENUM_E_SPAWN_FAILED : PLENUM_E_CHILD_EXITED;
	bool steps = session_has_steps(s), last = s->world->shutting_down && steps; /* a request must get an answer */
	bool start_failed = steps && (e->never_ran || s->unnamed); /* the child has never been ready for prompts */
	struct prompt *p;
	LIST_FOR_EACH (p, &s->prompts.open, struct prompt, node) {
		bool lost = !s->want_child &&
					(last || handshake_holds_prompt(s, p) || start_failed); /* with what it waits for */
		if (p->state == PROMPT_HELD ? !lost : session_awaits(s, p->child)) continue;
		tell_asker(s, p, code, text);
		if (never_ran(s, e, p))
			prompt_forget(&s->prompts, p);
		else
			prompt_done(&s->prompts, p);
	}
}

void turns_prompt_cancelled(struct session *s, struct prompt *p, const struct client *by) {
	struct call *call = call_of_prompt(&s->calls, p->uuid);
	notify_changed_text(s, "prompt_cancelled", p->uuid, by);
	if (call && call->asker) {
		struct buf b = NOTICE_INIT;
		session_dialect(s)->put_prompt_cancelled(&b, span_of(call->asker_id), SPAN_NONE);
		client_post(call->asker, notice_chunk(&b));
	}
	if (call) call_end(&s->calls, call);
	if (p->state == PROMPT_HELD)
		prompt_forget(&s->prompts, p); /* the child never saw its uuid: it may be sent again */
	else
		prompt_done(&s->prompts, p);
	session_changed(s);
}
