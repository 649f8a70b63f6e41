/* SPDX-License-Identifier: MIT */
#include "core/from_child.h"
#include "core/asks.h"
#include "core/client_handles.h"
#include "core/descent.h"
#include "core/handshake.h"
#include "core/hooks.h"
#include "core/kept.h"
#include "core/notify.h"
#include "core/pace.h"
#include "core/reconcile.h"
#include "core/requests.h"
#include "core/sessions.h"
#include "core/stall.h"
#include "core/starts.h"
#include "core/status.h"
#include "core/steps.h"
#include "core/turns.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "plenum/protocol.h"
#include "wire/lengths.h"
#include "wire/limits.h"
#include "wire/lines.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define CALLS_A_LOOK 256 /* between two looks at the clock */
#define STRAY_LOG_EVERY 100
#define CAUSE_MAX 1024
#define VERSION_MAX 258               /* bytes with its quotes */
#define STRAY_MAX ((size_t)64 * 1024) /* shown bytes of one stray line */

static void read_child(struct session *s, const struct envelope *e, const struct report *r) {
	steps_learn_conversation(s, e->session_id);
	progress_init(&s->progress);
	turns_child_begins(s);
	session_set_child(s, r->left_socket.n < PATH_MAX ? span_dup(r->left_socket, NULL) : NULL,
					  r->version.n <= VERSION_MAX ? span_dup(r->version, NULL) : NULL);
}

/* --- state reported by a line ------------------------------------------------------------------------------------- */

/* Learn the state reported by a line, before it goes to the tape. */
static void learn(struct session *s, enum line_kind kind, struct chunk line, const struct envelope *e,
				  const struct report *r) {
	const struct dialect *d = session_dialect(s);
	if (r->begins) read_child(s, e, r);
	if (r->state) turns_state(s, r->state);
	snapshot_read(&s->snapshot, d, line, r);
	if (kind == LINE_SYSTEM) progress_background(&s->progress, snapshot_has_tasks(&s->snapshot));
	if (d->read_timers) d->read_timers(&s->timers, kind, line, e, now_real_ms());
	if (r->fate) turns_fate(s, r->fate, r->prompt);
	if (r->echo) turns_echo(s, e);
	if (r->works) progress_turn(&s->progress, true);
}

/* --- destinations ------------------------------------------------------------------------------------------------- */

static void to_tape(struct session *s, enum line_kind kind, struct chunk line, unsigned flags) {
	if (!tape_append(&s->tape, chunk_ref(line), kind, flags)) session_no_memory(s, "a line of its child was lost");
}

/* A line about the conversation is for all clients. */
static bool may_be_addressed(const struct dialect *d, const struct envelope *e) {
	return d->read_addressee && !e->session_id.p;
}

/* Such names are kept, compared, and shown in lists. */
static bool has_long_name(const struct dialect *d, enum ask_kind kind, const struct envelope *e) {
	static const enum ask_part parts[] = {ASK_PART_TOOL, ASK_PART_AGENT, ASK_PART_DIALOG_KIND, ASK_PART_CALLBACK,
										  ASK_PART_SERVER};
	bool any = e->inner_subtype.n > LIMITS_MATCHER;
	for (size_t i = 0; !any && i < ARRAY_SIZE(parts); i++)
		any = d->ask_part(kind, e->request, parts[i]).n > LIMITS_MATCHER;
	return any;
}

static void refuse(struct session *s, enum ask_kind kind, struct chunk line, const struct envelope *e,
				   const char *why) {
	struct span callback = session_dialect(s)->ask_part(kind, e->request, ASK_PART_CALLBACK);
	if (kind == ASK_HOOK)
		hooks_refuse(s, e->request_id, callback.n <= LIMITS_MATCHER ? callback : SPAN_NONE, why);
	else
		asks_refuse(s, line, e, why);
}

static void on_request(struct session *s, struct chunk line, const struct envelope *e) {
	bool answerable = e->request_id.p && e->request_id.n <= LIMITS_MATCHER;
	if (!answerable || !span_is_object(e->request)) {
		to_tape(s, LINE_OTHER, line, 0);
		return;
	}
	const struct dialect *d = session_dialect(s);
	enum ask_kind kind = d->ask_kind(e);
	if (pending_find_child(&s->pendings, e->request_id)) {
		log_warn("session %s: the child asks twice under one id; the second is dropped", s->label);
		return;
	}
	const char *limit = pendings_limit(&s->pendings, s->settings->limits.max_pending, 1, line.len);
	if (limit) {
		char why[80];
		snprintf(why, sizeof why, "too many requests are open (%s)", limit);
		refuse(s, kind, line, e, why);
		return;
	}
	if (line.len > LIMITS_MATCHER && has_long_name(d, kind, e)) {
		refuse(s, kind, line, e, "a name in the request has more than 64 KiB");
		return;
	}
	if (may_be_addressed(d, e) && client_handles_ask(s, line, e)) return;
	switch (kind) {
	case ASK_HOOK:
		hooks_call(s, line, e);
		break;
	case ASK_MCP:
		hooks_mcp(s, line, e);
		break;
	default:
		asks_add(s, line, e, 0);
		break;
	}
}

static void on_step(struct call *call, const struct envelope *e) {
	struct session *s = call->session;
	_cleanup_free_ char *why = NULL;
	enum steps_end end = steps_answered(call, e, &why);
	const char *text = why ? why : "it refused its start";
	if (end == STEPS_TAKEN)
		kept_due(s);
	else if (end == STEPS_REFUSED && kept_failed(s, text))
		steps_again(s);
	else if (end == STEPS_REFUSED)
		session_kill_refused(s, text);
}

static void on_answer(struct session *s, struct call *call, struct chunk line, const struct envelope *e) {
	if (call->purpose != CALL_INIT) turns_cancelled(s, e, call);
	if (call->purpose == CALL_INIT)
		handshake_answered(s, call, line, e);
	else if (call->purpose == CALL_STEP)
		on_step(call, e);
	else if (call->purpose == CALL_PROMPT)
		turns_answered(call, line, e);
	else if (call->purpose == CALL_CLIENT || call->act == ACT_CHANGE) /* also if the client left meanwhile */
		requests_answered(call, line, e);
	else
		call_end(&s->calls, call);
}

/* Route answers to requests of clients. Without an open request it is the child's echo of a client's answer, or late:
 * no client gets it. */
static void on_response(struct session *s, struct chunk line, const struct envelope *e) {
	struct envelope own;
	struct call *call = call_find(&s->calls, e->inner_request_id);
	if (!call) {
		if (calls_made(&s->calls, e->inner_request_id)) s->dropped_answers++; /* one of ours, and late */
		return;
	}
	struct chunk answer = session_dialect(s)->frame->disown_answer(line, call->purpose == CALL_INIT);
	if (answer.data && session_dialect(s)->scan(answer.data, answer.len, &own))
		on_answer(s, call, answer, &own);
	else
		session_no_memory(s, "an answer of its child was lost");
	chunk_drop(&answer);
}

static void on_stray(struct session *s, struct chunk line);

/* Take a line for all clients that says something about the child or its turn. */
static void take_report(struct session *s, enum line_kind kind, struct chunk line, const struct envelope *e) {
	struct report r = {0};
	session_dialect(s)->read(line, kind, e, &r);
	bool asked = kind == LINE_SYSTEM && steps_name_line(s, e, &r);
	bool noted = session_dialect(s)->remember && session_dialect(s)->remember(&s->memo, e);
	learn(s, kind, line, e, &r);
	if (!asked && (noted || !s->replays)) to_tape(s, kind, line, r.echo ? TAPE_REPLAY : 0);
	if (!r.begins) return;
	snapshot_taped(&s->snapshot, s->tape.next - 1);
	if (session_state(s) == SESSION_BUSY && s->told_state != SESSION_BUSY)
		status_publish_now(s); /* one read may contain all of it */
	turns_begin(s, e);
}

/* A piece of an answer: by far the most frequent line. It shows that a turn runs if no request of ours does. */
static void take_piece(struct session *s, struct chunk line, const struct envelope *e) {
	if (s->replays) return;
	bool tells = !s->progress.turn && session_dialect(s)->prompt_id;
	if (tells && !span_is_string(e->parent_tool_use_id)) progress_turn(&s->progress, true);
	to_tape(s, LINE_STREAM_EVENT, line, 0);
}

/* Return true for a line of another conversation of the child, such as a subagent's: it says nothing about ours. */
static bool is_foreign(const struct session *s, enum line_kind kind, const struct envelope *e) {
	if (kind > LINE_OTHER || !session_dialect(s)->conversation_id || !s->conversation_id) return false;
	return e->session_id.p && !span_equals(e->session_id, s->conversation_id);
}

static void take_line(struct session *s, struct chunk line, const struct envelope *e) {
	const struct dialect *d = session_dialect(s);
	enum line_kind kind = d->kind(e);
	progress_line(&s->progress);
	if (kind <= LINE_OTHER && may_be_addressed(d, e) && client_handles_line(s, line, e)) return;
	if (is_foreign(s, kind, e)) {
		to_tape(s, LINE_OTHER, line, 0);
		return;
	}
	if (kind != LINE_RESPONSE) stall_line(s); /* not for what clients ask */
	if (kind == LINE_ASSISTANT || kind == LINE_REQUEST || kind == LINE_RESULT) turns_named(s);
	switch (kind) {
	case LINE_REQUEST:
		on_request(s, line, e);
		break;
	case LINE_RESPONSE:
		on_response(s, line, e);
		break;
	case LINE_CANCEL:
		asks_withdrawn(s, e->request_id);
		break;
	case LINE_STREAM_EVENT:
		take_piece(s, line, e);
		break;
	case LINE_RESULT:
		to_tape(s, kind, line, 0);
		if (s->progress.said_init || !span_is_true(e->is_error)) steps_learn_conversation(s, e->session_id);
		turns_end(s, line, e);
		break;
	default:
		if (kind == LINE_OTHER && d->hides_kind && d->hides_kind(line, e))
			on_stray(s, line);
		else
			take_report(s, kind, line, e);
		break;
	}
}

static void on_stray(struct session *s, struct chunk line) {
	struct buf b = NOTICE_INIT;
	size_t n = line.len && line.data[line.len - 1] == '\n' ? line.len - 1 : line.len;
	if (s->strays++ % STRAY_LOG_EVERY == 0)
		log_info("session %s: the child printed a line that is no message", s->label);
	notice_begin(&b, PLENUM_EV_STRAY_OUTPUT, s->name);
	notice_bytes(&b, "text", line.data, MIN(n, STRAY_MAX));
	if (n > STRAY_MAX) notice_number(&b, "size", (int64_t)n);
	notify_session(s, notice_end(&b));
}

/* --- lines that are not read -------------------------------------------------------------------------------------- */

/* The texts for a line that is too long, or has an object that would take too long to read. */
struct unread {
	const char *code, *line, *request, *answer;
};

static const struct unread too_long = {
	PLENUM_E_TOO_LONG,
	"the child printed a line over the limit (child_line); that line is left out",
	"the request is longer than Plenum's limit for a line (child_line)",
	"the child's answer is longer than the limit (child_line)",
};

static const struct unread too_wide = {
	PLENUM_E_TOO_MANY,
	"the child printed a line with an object of more than 32,768 members; that line is left out",
	"the request has an object of more than 32,768 members",
	"the child's answer has an object of more than 32,768 members",
};

static const struct unread too_named = {
	PLENUM_E_TOO_LONG,
	"the child printed a line with an id or a type of more than 64 KiB; that line is left out",
	"the request has an id or a type of more than 64 KiB",
	"the child's answer has an id or a type of more than 64 KiB",
};

static void fail_unread_answer(struct session *s, struct span id, const struct unread *why) {
	struct call *call = call_find(&s->calls, id);
	if (!call) return;
	if (call->purpose == CALL_INIT)
		handshake_unread(s, call, why->code, why->answer);
	else if (call->purpose == CALL_STEP)
		steps_unread(call, why->answer);
	else if (call->purpose == CALL_PROMPT)
		turns_unread(call, why->code, why->answer);
	else
		requests_fail(call, why->code, why->answer);
}

/* Answer a request that cannot be read, because the child waits: deny a permission, refuse anything else. */
static void answer_unread(struct session *s, const struct head *head, const struct unread *why) {
	const struct dialect *d = session_dialect(s);
	struct buf b = NOTICE_INIT, body = NOTICE_INIT;
	char text[200];
	if (!head->id.p) return;
	snprintf(text, sizeof text, "%s; %s", why->request,
			 head->ask == ASK_HOOK ? "its guard cannot see it" : "no client could be asked");
	if (head->ask == ASK_HOOK) {
		hooks_refuse(s, head->id, head->callback, text);
		return;
	}
	if (head->ask == ASK_TOOL) {
		d->put_tool_deny(&body, SPAN_NONE, text);
		dialect_put_built(d, &b, head->id, &body);
	} else {
		d->put_failure(&b, head->id, why->code, why->request);
	}
	session_must_write(s, notice_chunk(&b));
}

static void leave_out(struct session *s, struct chunk line, size_t size, const struct unread *why) {
	struct buf b = NOTICE_INIT;
	struct envelope nothing = {0};
	struct head h;
	line.len = MIN(line.len, (size_t)LINES_HEAD);
	session_dialect(s)->read_head(line, &h);
	log_warn("session %s: %s; it has %zu bytes", s->label, why->line, size);
	notice_error(&b, s->name, why->code, why->line);
	notice_number(&b, "size", (int64_t)size);
	notify_session(s, notice_end(&b));
	stall_line(s);
	if (h.kind == LINE_RESPONSE) fail_unread_answer(s, h.id, why);
	if (h.kind == LINE_REQUEST) answer_unread(s, &h, why);
	if (h.kind == LINE_RESULT) turns_end(s, CHUNK_NONE, &nothing);
}

static void on_long_line(struct session *s, struct chunk line, size_t size, bool wide) {
	leave_out(s, line, size, wide ? &too_wide : &too_long);
}

static bool is_wide(struct span object) {
	return object.p && lengths_is_wide(object.p);
}

/* Return true if the daemon would have to read a wide object, now or when the request is answered. */
static bool needs_wide(const struct session *s, const struct envelope *e) {
	static const enum ask_part parts[] = {ASK_PART_INPUT, ASK_PART_TOOL_INPUT, ASK_PART_MESSAGE};
	const struct dialect *d = session_dialect(s);
	if (is_wide(e->request) || is_wide(e->response) || is_wide(e->message) || is_wide(e->inner_response)) return true;
	for (size_t i = 0; e->request.p && i < ARRAY_SIZE(parts); i++)
		if (is_wide(d->ask_part(d->ask_kind(e), e->request, parts[i]))) return true;
	return false;
}

/* They are searched, compared and copied at once. */
static bool has_long_id(const struct envelope *e) {
	const struct span ids[] = {e->type,       e->subtype,          e->request_id,        e->uuid,
							   e->session_id, e->inner_request_id, e->user_message_uuid, e->parent_tool_use_id};
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		if (ids[i].n > LIMITS_MATCHER) return true;
	return false;
}

/* Take a line. If it uses a name of the daemon, clients get it under another name. */
static void on_line(struct session *s, struct chunk line, const struct envelope *e) {
	struct envelope own;
	bool named = UNLIKELY(line.len > LIMITS_MATCHER) && has_long_id(e);
	if (named || (UNLIKELY(lengths_in_use) && needs_wide(s, e))) {
		leave_out(s, line, line.len - 1, named ? &too_named : &too_wide);
		return;
	}
	if (LIKELY(!e->reserved)) {
		take_line(s, line, e);
		return;
	}
	struct chunk renamed = session_dialect(s)->frame->disown(line);
	if (renamed.data && session_dialect(s)->scan(renamed.data, renamed.len, &own))
		take_line(s, renamed, &own);
	else
		session_no_memory(s, "a line of its child was lost");
	chunk_drop(&renamed);
}

/* --- stderr, start, end ------------------------------------------------------------------------------------------- */

static void on_stderr(struct session *s, const char *data, size_t n) {
	struct attachment *a;
	LIST_FOR_EACH (a, &s->attachments, struct attachment, node) {
		if (!a->wants_stderr) continue;
		struct buf b = NOTICE_INIT;
		notice_begin(&b, PLENUM_EV_STDERR, s->name);
		notice_bytes(&b, "data", data, n);
		client_tell(a->client, notice_end(&b));
	}
}

static void put_stderr(struct buf *b, const struct session *s) {
	buf_puts(b, ",\"stderr\":[");
	for (size_t i = 0; i < tail_count(&s->tail); i++) {
		const char *line = tail_line(&s->tail, i);
		if (i) buf_putc(b, ',');
		str_put_json(b, line, strlen(line));
	}
	buf_putc(b, ']');
}

static struct chunk exit_notice(const struct session *s, const struct session_exit *e) {
	struct buf b = NOTICE_INIT;
	notice_begin(&b, PLENUM_EV_CHILD_EXITED, s->name);
	notice_number(&b, "status", e->status);
	if (e->signal)
		notice_number(&b, "signal", e->signal);
	else
		notice_text(&b, "signal", NULL);
	put_stderr(&b, s);
	notice_flag(&b, "wanted", e->wanted);
	if (s->reason && (!e->wanted || e->broken)) notice_text(&b, "reason", s->reason);
	if (e->broken) notice_flag(&b, "stopped", true);
	return notice_end(&b);
}

static struct chunk stuck_notice(const struct session *s) {
	struct buf b = NOTICE_INIT;
	notice_error(&b, s->name, PLENUM_E_CANNOT_STOP, s->reason ? s->reason : "the child cannot be ended");
	return notice_end(&b);
}

/* Notify the client that asked for the stop, unless it is notified as an attachment or a subscriber. */
static void tell_stopper(struct session *s, struct chunk notice) {
	struct client *c = router_client(s->world, s->stopper);
	if (c && !c->subscribed && !router_is_in(c, s)) client_tell(c, chunk_ref(notice));
}

/* ends: the session ends with its child. A shim's open request then gets no answer: its program must see the end of the
 * CLI. Return false if there are more: clients may have thousands open. */
static bool fail_calls(struct session *s, const char *text, bool ends) {
	struct call *call;
	size_t n = 0;
	LIST_FOR_EACH (call, &s->calls.order, struct call, node) {
		const struct client *c = call->purpose == CALL_CLIENT ? call->asker : NULL;
		if (call->purpose == CALL_PROMPT) continue; /* with its prompt */
		if (session_awaits(s, call->child)) continue;
		requests_fail(call, PLENUM_E_CHILD_EXITED, ends && c && router_is_shim(c) ? NULL : text);
		if (++n % CALLS_A_LOOK == 0 && loop_must_yield(s->loop)) return false;
	}
	return true;
}

/* Return true if the session ends: a shim's session ends with its child, except for a restart by the daemon. */
static bool session_ends(const struct session *s, const struct session_exit *e) {
	bool closed = session_has_steps(s) && e->wanted && s->then == THEN_SLEEP && !s->brief; /* by its client */
	if (s->ephemeral) return !closed && !(e->wanted && s->then == THEN_RESTART);
	return e->wanted && s->then == THEN_REMOVE;
}

static void tell_private_exit(struct session *s, struct chunk notice) {
	struct attachment *a;
	LIST_FOR_EACH (a, &s->attachments, struct attachment, node)
		if (a->client->filter.quiet && (a->ephemeral || a->wants_stderr)) client_tell(a->client, chunk_ref(notice));
}

/* The child does not know the id of its resume: let the next start try the other one. */
static void unlearn_resume(struct session *s, const struct session_exit *e) {
	const char *says = session_dialect(s)->no_conversation;
	if (e->wanted || s->progress.said_init || !s->resumed_id || !says) return;
	for (size_t i = 0; i < tail_count(&s->tail); i++)
		if (strstr(tail_line(&s->tail, i), says)) {
			session_set_resumed(s, NULL);
			return;
		}
}

/* Report a session that a user must look after: it cannot go on, or its child ended by itself during a turn. */
static void tell_failed(struct session *s, const char *reason) {
	struct buf b = NOTICE_INIT;
	notice_begin(&b, PLENUM_EV_FAILED, s->name);
	notice_text(&b, "reason", reason);
	notify_session(s, notice_end(&b));
	notify_alert(s, &(struct alert){.kind = ALERT_FAILED, .summary = reason});
}

/* Write why there will be no answer. */
static void put_cause(char text[CAUSE_MAX], const struct session *s, const struct session_exit *e) {
	_cleanup_free_ char *words = tail_words(&s->tail);
	const char *last = words ? words : "it wrote nothing to stderr";
	if (e->never_ran && !e->wanted)
		snprintf(text, CAUSE_MAX, "%s", s->reason ? s->reason : "the child could not be started");
	else if (e->stuck)
		snprintf(text, CAUSE_MAX, "%s", s->reason ? s->reason : "the child cannot be ended");
	else if (e->wanted)
		snprintf(text, CAUSE_MAX, "the child was stopped before it answered");
	else if ((e->broken == BROKEN_SECOND || e->broken == BROKEN_REFUSED) && s->reason)
		snprintf(text, CAUSE_MAX, "%s", s->reason);
	else if (e->broken)
		snprintf(text, CAUSE_MAX, "%s before it answered: %s", session_broken_text(e->broken), last);
	else if (e->signal)
		snprintf(text, CAUSE_MAX, "the child was killed by signal %d before it answered: %s", e->signal, last);
	else
		snprintf(text, CAUSE_MAX, "the child exited with status %d before it answered: %s", e->status, last);
}

static bool on_closing(struct session *s, const struct session_exit *e) {
	char text[CAUSE_MAX];
	put_cause(text, s, e);
	turns_named(s);
	if (!fail_calls(s, text, session_ends(s, e))) return false;
	asks_withdraw_all(s, "child_exited");
	return asks_tell_some(s);
}

static void on_exited(struct session *s, const struct session_exit *e) {
	struct router *r = s->world;
	char text[CAUSE_MAX];
	put_cause(text, s, e);
	turns_named(s);
	unlearn_resume(s, e);
	sessions_renew_profile(s);
	bool ends = session_ends(s, e), failed = s->failed || (!e->wanted && (e->in_turn || turns_is_open(s)));
	handshake_child_gone(s, text, ends);
	while (!fail_calls(s, text, ends)) continue;
	handles_child_gone(&s->handles, s->want_child ? s->child_no : UINT64_MAX);
	if (s->by_client && !s->conversation_id) memo_free(&s->memo); /* the next client's wishes count */
	asks_withdraw_all(s, "child_exited");
	turns_failed(s, e, text);
	bool no_child = e->never_ran && e->wanted;
	struct chunk notice = no_child ? CHUNK_NONE : e->stuck ? stuck_notice(s) : exit_notice(s, e);
	bool goes_on = (e->wanted && s->then == THEN_RESTART) || (s->ephemeral && !ends);
	if (notice.data && !goes_on) tell_private_exit(s, notice);
	if (notice.data && e->stuck) tell_stopper(s, notice);
	if (notice.data || !no_child) notify_session(s, notice);
	if (failed) tell_failed(s, s->reason ? s->reason : text);
	if (session_ends(s, e)) r->events->session_over(r, s);
}

/* A child that makes the daemon resolve very many requests waits until their clients are notified. */
static bool may_read(struct session *s) {
	return list_empty(&s->pendings.resolved) && pace_may_read(s);
}

static void on_started(struct session *s) {
	login_share(&s->launch.login, &s->world->login);
	handshake_started(s);
}

const struct session_events from_child_events = {
	.line = on_line,
	.stray = on_stray,
	.long_line = on_long_line,
	.stderr_data = on_stderr,
	.start_over = starts_over,
	.started = on_started,
	.ending = descent_record,
	.left = descent_child_gone,
	.closing = on_closing,
	.exited = on_exited,
	.changed = reconcile,
	.may_read = may_read,
	.read_done = notify_wake,
};
