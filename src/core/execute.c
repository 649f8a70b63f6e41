/* SPDX-License-Identifier: MIT */
#include "core/execute.h"
#include "core/asks.h"
#include "core/guards.h"
#include "core/handshake.h"
#include "core/inquiry.h"
#include "core/notify.h"
#include "core/requests.h"
#include "core/rules.h"
#include "core/trust.h"

#include "base/log.h"
#include "plenum/protocol.h"
#include "wire/limits.h"
#include "wire/splice.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define GUARD_TEXT                                                                                                     \
	"a hook of the client %.100s guards %.100s and cannot be asked about this line: it is refused while that hook is " \
	"registered (let the agent run it by a prompt)"

/* --- the sender --------------------------------------------------------------------------------------------------- */

static void post_refusal(struct client *c, struct span id, struct span uuid, uint64_t number, const char *code,
						 const char *text) {
	const struct attachment *a = c->attachment;
	struct buf b = NOTICE_INIT;
	if (id.p) {
		notify_fail(c, id, code, "%s", text);
		return;
	}
	notice_error(&b, a ? a->session->name : NULL, code, text);
	notice_number(&b, "line", (int64_t)number);
	if (span_is_string(uuid)) notice_raw(&b, "uuid", uuid);
	client_tell(c, notice_end(&b));
}

/* Return the id under which the sender waits for an answer, or SPAN_NONE. */
static struct span id_of(const struct dialect *d, const struct envelope *e) {
	return d->calls && !d->calls->line_executes(e) ? e->request_id : SPAN_NONE;
}

static void refuse_line(struct client *c, const struct envelope *e, const char *code, const char *fmt, ...)
	PRINTF_LIKE(4, 5);

static void refuse_line(struct client *c, const struct envelope *e, const char *code, const char *fmt, ...) {
	char text[1024];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	post_refusal(c, id_of(c->dialect, e), e->uuid, c->lines_in, code, text);
}

/* Take the line out of the entry, so that nothing can run by it. The caller owns the chunk. */
static struct chunk take_act(struct pending *p) {
	struct chunk act = p->act;
	p->act = CHUNK_NONE;
	return act;
}

static void refuse_sender(struct pending *p, const char *code, const char *text) {
	struct chunk act = take_act(p);
	struct client *c = p->sender;
	struct envelope e;
	bool known = p->dialect->scan(act.data, act.len, &e);
	if (c && !c->dead) post_refusal(c, span_of(p->sender_id), known ? e.uuid : SPAN_NONE, p->sender_line, code, text);
	chunk_drop(&act);
}

/* --- running it --------------------------------------------------------------------------------------------------- */

static const char *name_of(const struct owner *o) {
	return o->name ? o->name : guards_stand_in(o) ? "with lost hooks" : "without a name";
}

#define UNKNOWN_TEXT                                                                                                   \
	"the file system of its paths does not answer (outside_timeout), so that no rule can be held against them"

/* Ask an errand for the verdict of the rules, if needed. False: this line of the client comes again. */
static bool know_rules(struct client *c, struct chunk line, const struct session *s, const char *tool,
					   struct span input) {
	if (!rules_need_errand(s->profile, tool, input)) return true;
	struct buf request = BUF_INIT(SIZE_MAX / 4);
	_cleanup_free_ char *place = rules_place(s->profile, tool, input);
	rules_ask(&request, s->profile, tool, input);
	bool known = inquiry_ask(c, line, RULES_ERRAND, &request, place ? place : "");
	buf_free(&request);
	return known;
}

/* Return the verdict, after know_rules(). by: the client; NULL: the daemon, which has judged the call already. */
static enum rule_verdict verdict_of(const struct client *by, const struct session *s, const char *tool,
									struct span input, const char **rule) {
	if (!rules_need_errand(s->profile, tool, input)) return rules_judge(s->profile, tool, input, rule);
	struct span answer = by ? inquiry_answer(by, RULES_ERRAND, NULL) : SPAN_NONE;
	return by ? rules_answer(s->profile, tool, input, answer, rule) : RULE_NONE;
}

static bool may_judge(struct client *c, struct chunk line, const struct pending *p, struct chunk answer) {
	struct envelope e;
	if (!p->dialect->scan(answer.data, answer.len, &e)) return true;
	return know_rules(c, line, p->session, p->tool, p->dialect->calls->answer_input(e.response));
}

/* Return true if the call may not run, with the reason in `why`: rules and guards may have changed since the question,
 * or by its answer. */
static bool is_forbidden(const struct pending *p, struct span input, const struct client *by, struct error *why) {
	struct session *s = p->session;
	const struct owner *guard = guards_covering(&s->registry, p->tool);
	const char *rule = NULL;
	if (by && rules_need_errand(s->profile, p->tool, input) && !inquiry_answer(by, RULES_ERRAND, NULL).n)
		error_set(why, "%s", UNKNOWN_TEXT);
	else if (verdict_of(by, s, p->tool, input, &rule) == RULE_DENY)
		error_set(why, "by rule %.200s of profile %.60s", rule ? rule : "", s->profile->name);
	else if (guard)
		error_set(why, GUARD_TEXT, name_of(guard), p->tool);
	else
		return false;
	return true;
}

/* Pass the line on with this input. The sender is notified of any obstacle. */
static void run(struct pending *p, struct span input, bool check) {
	struct session *s = p->session;
	struct chunk act = take_act(p);
	struct client *c = p->sender;
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	struct envelope e = {0};
	const struct dialect_calls *calls = p->dialect->calls;
	if (!p->dialect->scan(act.data, act.len, &e) || !calls->put_call(&b, splice_body(act), &e, input, check)) {
		refuse_line(c, &e, PLENUM_E_BAD_ANSWER, "the answer has an input that cannot be used; the tool did not run");
	} else if (!calls->line_executes(&e)) {
		requests_send(c, s, act, &e, requests_put, b.data);
	} else {
		buf_putc(&b, '\n');
		if (!session_write(s, notice_chunk(&b), false))
			refuse_line(c, &e, PLENUM_E_BUSY,
						"the child of session %s has too much to read already: send it again later", s->name);
	}
	buf_free(&b);
	chunk_drop(&act);
}

static bool on_answer(struct pending *p, struct chunk answer, const struct client *by) {
	struct envelope e;
	struct error why;
	const struct dialect *d = p->dialect;
	bool known = answer.data && d->scan(answer.data, answer.len, &e);
	struct span input = known ? d->calls->answer_input(e.response) : SPAN_NONE;
	if (!known) {
		refuse_sender(p, PLENUM_E_INTERNAL, "out of memory");
	} else if (strcmp(d->decision(p->kind, p->request, e.response), "allow") != 0) {
		_cleanup_free_ char *text = span_dup(d->answer_reason(e.response), NULL);
		error_set(&why, "denied: %.500s", text ? text : "the approver's answer was an error");
		refuse_sender(p, PLENUM_E_NOT_ALLOWED, why.text);
	} else if (is_forbidden(p, input, by, &why)) {
		log_warn("session %s: %s was allowed, and did not run: %s", p->session->name, p->tool, why.text);
		refuse_sender(p, PLENUM_E_NOT_ALLOWED, why.text);
	} else {
		run(p, input, false);
	}
	chunk_drop(&answer);
	return true;
}

static void on_no_answer(struct pending *p, const char *why) {
	char text[300];
	if (!p->sender->attachment) {
		snprintf(text, sizeof text, "you left session %.255s before this was decided", p->session->name);
		refuse_sender(p, PLENUM_E_NOT_ATTACHED, text);
	} else if (strcmp(why, "cancelled") == 0) {
		refuse_sender(p, PLENUM_E_NOT_ALLOWED, "withdrawn before it was decided; the tool did not run");
	} else {
		refuse_sender(p, PLENUM_E_CHILD_EXITED, "the child ended before this was decided; the tool did not run");
	}
}

const struct pending_events execute_events = {
	.late = asks_late, .may_judge = may_judge, .answered = on_answer, .unanswered = on_no_answer};

/* --- judging ------------------------------------------------------------------------------------------------------ */

/* Make the question in the child's format. */
static struct chunk question(const struct client *c, const char *tool, const struct buf *input,
							 const struct envelope *e) {
	const struct dialect_calls *calls = c->dialect->calls;
	struct buf b = BUF_INIT(SIZE_MAX / 4), by = NOTICE_INIT;
	char text[400];
	snprintf(text, sizeof text,
			 "The client %.100s (uid %u, pid %d, %.60s) runs this by %s; the agent did not ask for it.",
			 c->name ? c->name : "without a name", c->peer.uid, c->peer.pid, c->program, calls->way(e));
	notify_put_where(&by, c);
	calls->put_question(&b, tool, (struct span){input->data, input->len}, text, (struct span){by.data, by.len});
	b.failed |= by.failed;
	buf_free(&by);
	return notice_chunk(&b);
}

/* Open an entry for the line; NULL without memory. */
static struct pending *open_entry(struct client *c, struct session *s, struct chunk line, const struct envelope *e,
								  const char *tool, const struct buf *input) {
	const struct dialect *d = session_dialect(s);
	bool command = d->calls->line_executes(e);
	struct chunk asked = question(c, tool, input, e);
	struct envelope own;
	struct pending *p = NULL;
	if (asked.data && d->scan(asked.data, asked.len, &own))
		p = pending_new(&s->pendings, s, s->loop, d, &own, asked, SPLICE_NOTHING, &execute_events);
	chunk_drop(&asked);
	if (!p) return NULL;
	p->sender = c;
	share_begin(&p->charge, &c->member, false);
	p->sender_line = c->lines_in;
	if (!command) p->sender_id = strndup(e->request_id.p, e->request_id.n);
	if (command || p->sender_id) p->act = chunk_ref(line);
	if (p->act.data) return p;
	pending_settle(&s->pendings, p);
	return NULL;
}

static bool child_checks(const struct session *s, const struct envelope *e) {
	const struct dialect_calls *calls = session_dialect(s)->calls;
	return !calls->line_executes(e) && session_has_child(s) && handshake_is_answered(s) && handshake_is_current(s) &&
		   calls->checks_calls(handshake_kept(s));
}

static void judge(struct pending *p, const struct attachment *a, const struct envelope *e) {
	struct session *s = p->session;
	struct span input = pending_part(p, ASK_PART_INPUT);
	const struct owner *guard = guards_covering(&s->registry, p->tool);
	/* An approver's request is its own yes, even for an ask rule. Not if it speaks for another (check_permissions):
	 * then it is asked, too. */
	bool own = asks_may_answer(a, p) && trust_may_approve(s->world, a->client) &&
			   !a->client->dialect->calls->call_wants_check(e);
	if (verdict_of(a->client, s, p->tool, input, NULL) == RULE_DENY) {
		asks_decide(p);
	} else if (child_checks(s, e) && (guard || !own)) {
		run(p, input, true);
		asks_settle_own(p, a, "passed", "the child asks its guards and the approvers about it");
	} else if (guard) {
		struct buf b = NOTICE_INIT;
		char why[400];
		snprintf(why, sizeof why, GUARD_TEXT, name_of(guard), p->tool);
		p->dialect->put_tool_deny(&b, p->request, why);
		asks_answer_self(p, &b, "deny", why);
	} else if (own) {
		run(p, input, false);
		asks_settle_own(p, a, "allow", "the client that sent it is an approver");
	} else {
		asks_decide(p);
	}
}

void execute_line(struct client *c, struct session *s, struct chunk line, const struct envelope *e) {
	struct buf input = BUF_INIT(SIZE_MAX / 4);
	_cleanup_free_ char *tool = NULL;
	size_t length = splice_body(line).n;
	if (length > LIMITS_CALL) {
		refuse_line(c, e, PLENUM_E_TOO_LONG, "a line that runs a tool may have %zu bytes, this one has %zu",
					LIMITS_CALL, length);
		return;
	}
	if (!session_has_child(s) && !s->want_child) {
		refuse_line(c, e, PLENUM_E_CHILD_EXITED,
					"session %s is %s and has no child: send a prompt, or attach with \"wake\":true, and ask again",
					s->name, session_state_name(session_state(s)));
		return;
	}
	if (!session_has_child(s) || s->unnamed) { /* it would run under hooks other than the judged ones */
		refuse_line(c, e, PLENUM_E_BUSY, "the child of session %s is starting: send it again later", s->name);
		return;
	}
	if (handshake_blocks(c, id_of(c->dialect, e))) return;
	const char *limit = pendings_limit(&s->pendings, s->settings->limits.max_pending, 2, length);
	if (limit) { /* the other half is for the child */
		refuse_line(c, e, PLENUM_E_BUSY, "too many requests are open in session %s (%s): ask again later", s->name,
					limit);
		return;
	}
	const char *wrong = session_dialect(s)->calls->read_call(splice_body(line), e, &tool, &input);
	if (!wrong && !know_rules(c, line, s, tool, (struct span){input.data, input.len})) {
		buf_free(&input);
		return;
	}
	bool unknown = !wrong && rules_need_errand(s->profile, tool, (struct span){input.data, input.len}) &&
				   !inquiry_answer(c, RULES_ERRAND, NULL).n;
	struct pending *p = wrong || unknown ? NULL : open_entry(c, s, line, e, tool, &input);
	if (wrong)
		refuse_line(c, e, PLENUM_E_BAD_REQUEST, "%s", wrong);
	else if (unknown)
		refuse_line(c, e, PLENUM_E_TIMEOUT, "%s", UNKNOWN_TEXT);
	else if (!p)
		refuse_line(c, e, PLENUM_E_INTERNAL, "out of memory");
	else
		judge(p, c->attachment, e);
	buf_free(&input);
}

/* --- the sender's open questions ---------------------------------------------------------------------------------- */

struct pending *execute_open(struct session *s, const struct client *c, struct span id) {
	struct pending *p;
	LIST_FOR_EACH (p, &s->pendings.order, struct pending, node)
		if (p->act.data && p->sender == c && (!id.p || span_same(span_of(p->sender_id), id))) return p;
	return NULL;
}

void execute_left(struct session *s, struct client *c) {
	struct pending *p;
	while ((p = execute_open(s, c, SPAN_NONE)) != NULL)
		asks_settle_own(p, NULL, "cancelled", "the client that sent it has left");
}
