/* SPDX-License-Identifier: MIT */
#include "core/asks.h"
#include "core/notify.h"
#include "core/rules.h"
#include "core/trust.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "plenum/protocol.h"
#include "wire/lengths.h"
#include "wire/splice.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TOLD_AT_ONCE ((size_t)1024) /* lines to clients for the requests of a session that are resolved in one turn */
#define NOTICE_LINES ((size_t)8)    /* the cost of a notice with its line in the log, in such lines */
#define FREED_LINE ((size_t)8192)   /* bytes of a long request that are freed at the cost of such a line */

/* --- notices ------------------------------------------------------------------------------------------------------ */

static struct chunk cancel_line(const struct pending *p) {
	char id[PENDING_ID_MAX + 2];
	int n = snprintf(id, sizeof id, "\"%s\"", p->id);
	struct buf b = NOTICE_INIT;
	p->dialect->put_cancel(&b, (struct span){id, (size_t)n}, p->request);
	return notice_chunk(&b);
}

static void cancel_others(const struct pending *p, const struct attachment *except) {
	struct chunk line = cancel_line(p);
	for (size_t i = 0; i < p->n_asked; i++) {
		struct attachment *a = p->asked[i];
		if (a != except && line.data && !a->client->ended) client_offer(a->client, chunk_ref(line));
	}
	chunk_drop(&line);
}

static void put_daemon(struct buf *b) {
	buf_printf(b, ",\"by\":{\"name\":\"plenumd\",\"uid\":%u,\"pid\":%d,\"program\":\"plenumd\"}", getuid(), getpid());
}

/* Append the changes made by the answer. Grants without a text of their own are counted. */
static void put_changes(struct buf *b, const struct changes *ch) {
	size_t shown = MIN(ch->n_grants, (size_t)DIALECT_GRANTS);
	if (ch->input) notice_flag(b, "input_changed", true);
	if (!ch->n_grants) return;
	buf_puts(b, ",\"permissions\":[");
	for (size_t i = 0; i < shown; i++) {
		if (i) buf_putc(b, ',');
		str_put_json(b, ch->grants[i], strlen(ch->grants[i]));
	}
	if (ch->n_grants > shown) buf_printf(b, ",\"... %zu more\"", ch->n_grants - shown);
	buf_putc(b, ']');
}

static char *grants_text(const struct changes *ch) {
	size_t shown = MIN(ch->n_grants, (size_t)DIALECT_GRANTS);
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	buf_puts(&b, "");
	for (size_t i = 0; i < shown; i++) buf_printf(&b, "%s%s", i ? "; " : "", ch->grants[i]);
	if (ch->n_grants > shown) buf_printf(&b, "; ... %zu more", ch->n_grants - shown);
	return buf_steal(&b, NULL);
}

static void tell_settled(struct session *s, const struct pending *p, const struct client *by, const char *decision,
						 const char *why, const struct changes *ch) {
	struct buf b = NOTICE_INIT;
	notice_begin(&b, PLENUM_EV_SETTLED, s->name);
	notice_text(&b, "request_id", p->id);
	notice_text(&b, "decision", decision);
	if (by)
		notify_put_by(&b, by);
	else
		put_daemon(&b);
	notice_number(&b, "ms", now_ms() - p->since);
	if (p->subtype) notice_text(&b, "request_subtype", p->subtype);
	if (p->tool) notice_text(&b, PLENUM_M_TOOL, p->tool);
	if (why) notice_text(&b, "reason", why);
	if (ch) put_changes(&b, ch);
	notify_session(s, notice_end(&b));
}

/* Return the tool; for a hook the one in its input. */
static char *tool_of(const struct pending *p) {
	if (p->kind != ASK_HOOK) return str_dup(p->tool);
	return span_dup(pending_part(p, ASK_PART_TOOL), NULL);
}

/* Name the client as "desk (uid 1000, python3)"; names are quoted, so that none forges the rest of a line. */
static void put_who(struct buf *b, const struct client *by) {
	if (!by) {
		buf_puts(b, " by plenumd");
		return;
	}
	_cleanup_free_ char *name = by->name ? str_word(by->name) : NULL, *program = str_word(by->program);
	buf_printf(b, " by %s%s", name ? name : "", name ? " (" : "");
	buf_printf(b, "uid %u, %s%s", by->peer.uid, program ? program : "?", name ? ")" : "");
}

#define COMMAND_LOGGED ((size_t)200) /* bytes */

/* Return the command or path of the request, shortened; NULL: none, or it must not be logged. */
static char *command_of(const struct session *s, const struct pending *p) {
	size_t n = 0;
	struct span subject = pending_part(p, ASK_PART_SUBJECT);
	_cleanup_free_ char *text = s->world->settings->log_commands && subject.p
									? span_dup_start(subject, COMMAND_LOGGED, &n)
									: NULL;
	if (!text) return NULL;
	bool cut = n > COMMAND_LOGGED;
	n = MIN(n, COMMAND_LOGGED);
	while (cut && n && ((unsigned char)text[n] & 0xc0) == 0x80) n--; /* whole characters */
	return str_printf("%.*s%s", (int)n, text, cut ? "..." : "");
}

static char *decision_text(const struct session *s, const struct pending *p, const struct client *by, const char *tool,
						   const char *command, const char *decision) {
	struct buf b = BUF_INIT(65536);
	_cleanup_free_ char *what = str_word(tool ? tool : p->subtype ? p->subtype : "request");
	_cleanup_free_ char *agent = span_dup(pending_part(p, ASK_PART_AGENT), NULL);
	_cleanup_free_ char *asker = agent ? str_word(agent) : NULL;
	int64_t ms = now_ms() - p->since;
	buf_printf(&b, "session %s: %s %s", s->label, what ? what : "?", decision);
	if (asker) buf_printf(&b, " for subagent %s", asker);
	put_who(&b, by);
	buf_printf(&b, " after %lld.%lld s", (long long)ms / 1000, (long long)ms / 100 % 10);
	if (command) buf_puts(&b, ": "), str_put_quoted(&b, command, strlen(command));
	return buf_steal(&b, NULL);
}

/* Log one structured line for each decision. */
static void log_decision(const struct session *s, const struct pending *p, const struct client *by,
						 const char *decision, const char *why, const struct changes *ch) {
	char uid[16], pid[16], ms[24];
	_cleanup_free_ char *tool = tool_of(p), *grants = ch && ch->n_grants ? grants_text(ch) : NULL;
	s->world->decisions++;
	snprintf(uid, sizeof uid, "%u", by ? by->peer.uid : getuid());
	snprintf(pid, sizeof pid, "%d", by ? by->peer.pid : getpid());
	snprintf(ms, sizeof ms, "%lld", (long long)(now_ms() - p->since));
	_cleanup_free_ char *command = command_of(s, p);
	_cleanup_free_ char *text = decision_text(s, p, by, tool, command, decision);
	const char *fields[] = {"event",
							"decision",
							"session",
							s->name,
							"request_id",
							p->id,
							"subtype",
							p->subtype,
							"tool",
							tool,
							"decision",
							decision,
							"uid",
							uid,
							"pid",
							pid,
							"program",
							by ? by->program : "plenumd",
							"name",
							by ? by->name : NULL,
							"command",
							command,
							"ms",
							ms,
							"reason",
							why,
							"input_changed",
							ch && ch->input ? "yes" : "no",
							"permissions",
							grants,
							NULL};
	log_event(LOG_INFO, text ? text : "a decision", fields);
}

/* Send an answer to the asker: the child, or the daemon for a client's line. Takes the rope over. */
/* by: NULL: the daemon itself. */
static bool hand_over(struct pending *p, struct rope *answer, const struct client *by) {
	if (!p->act.data) return session_answer(p->session, answer);
	struct chunk whole = rope_join(answer);
	rope_drop(answer);
	return p->events->answered(p, whole, by);
}

/* Notify the clients of the end of a request, log it, and free the entry. */
static void tell(struct session *s, struct pending *p, const struct attachment *a, const char *decision,
				 const char *why, const struct changes *ch) {
	bool person = p->kind != ASK_HOOK && p->kind != ASK_MCP;
	const struct client *by = a ? a->client : NULL;
	cancel_others(p, p->dialect->tells_answerer ? NULL : a);
	if (person) tell_settled(s, p, by, decision, why, ch);
	if (p->kind != ASK_MCP) log_decision(s, p, by, decision, why, ch);
	pending_drop(p);
}

/* Thousands of requests may end together. By a count and not by the clock: the order of notices does not depend on the
 * load of the machine. */
static bool must_wait(struct pendings *all, const struct pending *p) {
	bool waits = !list_empty(&all->resolved) || all->told >= TOLD_AT_ONCE;
	all->told += NOTICE_LINES + p->n_asked + p->line.len / FREED_LINE;
	return waits;
}

bool asks_tell_some(struct session *s) {
	struct pendings *all = &s->pendings;
	struct pending *p;
	all->told = 0;
	while ((p = LIST_TOP(&all->resolved, struct pending, node)) != NULL) {
		tell(s, p, NULL, p->decision, p->why, NULL);
		if (loop_must_yield(s->loop)) break;
	}
	return list_empty(&all->resolved);
}

/* decision: static, except for an answer of a client. ch: the changes made by the answer; NULL: none, or it is the
 * daemon's own. */
static void settle(struct session *s, struct pending *p, const struct attachment *a, const char *decision,
				   const char *why, const struct changes *ch) {
	bool waits = !a && must_wait(&s->pendings, p);
	if (p->act.data) p->events->unanswered(p, decision);
	pending_resolve(&s->pendings, p);
	if (waits) {
		p->decision = decision;
		p->why = str_dup(why);
	} else {
		tell(s, p, a, decision, why, ch);
	}
	session_changed(s);
}

void asks_answer_self(struct pending *p, struct buf *body, const char *decision, const char *why) {
	struct session *s = p->session;
	struct buf b = BUF_INIT(SIZE_MAX / 4); /* it may hold a line of the child */
	struct span id = {p->child_id, strlen(p->child_id)};
	if (body)
		dialect_put_built(p->dialect, &b, id, body);
	else
		p->dialect->put_failure(&b, id, PLENUM_E_UNKNOWN_REQUEST, why ? why : "no client can answer this");
	struct chunk answer = notice_chunk(&b);
	if (p->act.data)
		p->events->answered(p, answer, NULL);
	else
		session_must_write(s, answer);
	settle(s, p, NULL, decision, why, NULL);
}

void asks_settle_own(struct pending *p, const struct attachment *a, const char *decision, const char *why) {
	settle(p->session, p, a, decision, why, NULL);
}

void asks_refuse(struct session *s, struct chunk line, const struct envelope *e, const char *why) {
	struct buf b = NOTICE_INIT, body = NOTICE_INIT;
	const struct dialect *d = session_dialect(s);
	(void)line;
	if (d->ask_kind(e) == ASK_TOOL) {
		d->put_tool_deny(&body, e->request, why);
		dialect_put_built(d, &b, e->request_id, &body);
	} else {
		d->put_failure(&b, e->request_id, PLENUM_E_UNKNOWN_REQUEST, why);
	}
	session_must_write(s, notice_chunk(&b));
}

/* --- asked clients ------------------------------------------------------------------------------------------------ */

static bool takes_tool(const struct attachment *a, const struct pending *p) {
	if (!a->by_tool || p->kind != ASK_TOOL) return true;
	return p->tool && names_have(&a->tools, p->tool, strlen(p->tool));
}

bool asks_may_answer(const struct attachment *a, const struct pending *p) {
	if (a->client->ended || a->client->closing || p->judging) return false;
	if (p->only) return p->only == a->client->id && trust_may_approve(p->session->world, a->client);
	switch (p->kind) {
	case ASK_TOOL:
	case ASK_ELICITATION:
		return a->approve && takes_tool(a, p);
	case ASK_DIALOG:
		return a->approve && a->owner && owner_takes_dialog(a->owner, pending_part(p, ASK_PART_DIALOG_KIND));
	case ASK_UNKNOWN:
		return !a->observer && trust_may_approve(p->session->world, a->client);
	default:
		return false;
	}
}

static void hold(struct pending *p) {
	loop_timer_stop(&p->timer);
	p->timer_on = false;
}

static void cancel(struct pending *p, const char *decision, const char *why) {
	struct buf b = NOTICE_INIT;
	p->dialect->put_cancel_form(&b, p->request);
	asks_answer_self(p, &b, decision, why);
}

/* Wait for a client that may answer. Return false if none ever can: the request is answered, and gone. */
static bool wait_for_client(struct pending *p) {
	struct session *s = p->session;
	if (p->only && !p->n_asked) {
		cancel(p, "cancelled", "the client whose request it is about cannot answer");
		return false;
	}
	if (p->n_asked || p->timer_on || p->kind == ASK_DIALOG) return true;
	p->timer_on = true;
	loop_timer_set(&p->timer, s->profile->permission_wait);
	return true;
}

void asks_send(const struct pending *p, struct client *c) {
	struct rope line = rope_ref(&p->shown);
	client_post_rope(c, &line);
}

static void offer_one(struct attachment *a, struct pending *p) {
	if (!asks_may_answer(a, p) || pending_was_asked(p, a)) return;
	if (!pending_ask(p, a)) {
		client_post(a->client, CHUNK_NONE); /* no memory: it is cut off, and asked again when it comes back */
		return;
	}
	asks_send(p, a->client);
	hold(p);
}

void asks_offer(struct attachment *a) {
	struct pending *p;
	LIST_FOR_EACH (p, &a->session->pendings.order, struct pending, node) offer_one(a, p);
}

/* Return true if the session's only client has ended its input and can answer nothing any more. */
static bool closed_to_all(const struct session *s) {
	struct attachment *a;
	LIST_FOR_EACH (a, &s->attachments, struct attachment, node)
		if (a->approve) return false;
	return s->ending;
}

static void alert(struct session *s, const struct pending *p) {
	if (p->n_asked || !notify_alert_wanted(s, ALERT_PENDING)) return; /* an approver has it */
	_cleanup_free_ char *summary = pending_summary(p);
	notify_alert(
		s, &(struct alert){
			   .kind = ALERT_PENDING, .request = p->id, .tool = p->tool ? p->tool : p->subtype, .summary = summary});
}

void asks_leave(struct attachment *a) {
	struct session *s = a->session;
	struct pending *p;
	LIST_FOR_EACH (p, &s->pendings.order, struct pending, node) {
		if (p->kind == ASK_HOOK || p->kind == ASK_MCP || !pending_was_asked(p, a)) continue;
		if (a->client->attachment == a && asks_may_answer(a, p)) continue;
		pending_forget(p, a);
		if (!a->client->dead && !a->client->ended) client_offer(a->client, cancel_line(p));
		if (closed_to_all(s)) { /* the CLI's text for the same end of input without a daemon */
			asks_answer_self(p, NULL, "deny", "Tool permission stream closed before response received");
			continue;
		}
		if (wait_for_client(p) && pending_for_person(p)) alert(s, p);
	}
	LIST_FOR_EACH (p, &s->pendings.resolved, struct pending, node)
		if (pending_forget(p, a) && !a->client->dead && !a->client->ended) client_offer(a->client, cancel_line(p));
}

/* --- the daemon's own decisions ----------------------------------------------------------------------------------- */

static void deny(struct pending *p, const char *decision, const char *why) {
	struct buf b = NOTICE_INIT;
	p->dialect->put_tool_deny(&b, p->request, why);
	asks_answer_self(p, &b, decision, why);
}

void asks_late(struct pending *p) {
	char why[160];
	snprintf(why, sizeof why, "no client answered within %g s (permission_wait); no user has seen this request",
			 (double)p->session->profile->permission_wait / 1000);
	if (p->kind == ASK_TOOL)
		deny(p, "timeout", why);
	else if (p->kind == ASK_ELICITATION)
		cancel(p, "timeout", why);
	else
		asks_answer_self(p, NULL, "timeout", why);
}

static bool allow_by_rule(struct pending *p, const char *why) {
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	p->dialect->put_tool_allow(&b, p->request);
	if (!b.len && !b.failed) return false;
	asks_answer_self(p, &b, "allow", why);
	return true;
}

/* Return true if a rule of the profile has decided. */
static bool is_decided(struct pending *p, enum rule_verdict v, const char *rule) {
	char why[300];
	snprintf(why, sizeof why, "by rule %.200s of profile %.60s", rule ? rule : "", p->session->profile->name);
	if (v == RULE_ALLOW) return allow_by_rule(p, why);
	if (v == RULE_DENY) deny(p, "deny", why);
	return v == RULE_DENY;
}

/* Return true in a client's own session (ephemeral) without an approver: denied at once, like by the CLI itself. Other
 * sessions may get an approver later. */
static bool has_no_approver_ever(const struct session *s) {
	struct attachment *a;
	bool deny_asks = false;
	LIST_FOR_EACH (a, &s->attachments, struct attachment, node) {
		if (a->approve) return false;
		deny_asks = deny_asks || a->deny_asks;
	}
	return deny_asks;
}

/* --- asking ------------------------------------------------------------------------------------------------------- */

static void tell_attention(struct session *s, const struct pending *p) {
	struct router *r = s->world;
	if (!pending_for_person(p)) return;
	if (r->n_subscribers) {
		struct buf b = NOTICE_INIT;
		notice_begin(&b, PLENUM_EV_ATTENTION, s->name);
		notice_text(&b, "request_id", p->id);
		notice_text(&b, "request_subtype", p->subtype);
		if (p->tool) notice_text(&b, PLENUM_M_TOOL, p->tool);
		_cleanup_free_ char *summary = pending_summary(p);
		notice_text(&b, "summary", summary);
		notice_number(&b, "asked", (int64_t)p->n_asked);
		notify_subscribers(s, notice_end(&b));
	}
	alert(s, p);
}

const struct pending_events asks_events = {.late = asks_late};

void asks_add(struct session *s, struct chunk line, const struct envelope *e, uint64_t only) {
	asks_add_edited(s, line, e, SPLICE_NOTHING, only);
}

void asks_add_edited(struct session *s, struct chunk line, const struct envelope *e, struct splice_edit edit,
					 uint64_t only) {
	struct pending *p = pending_new(&s->pendings, s, s->loop, session_dialect(s), e, line, edit, &asks_events);
	if (p) p->only = only;
	if (p)
		asks_decide(p);
	else
		asks_refuse(s, line, e, "the daemon is out of memory");
}

static void ask_people(struct pending *p);

/* A rule that names the title denies or asks as well; it allows nothing, for the agent writes it freely. */
static enum rule_verdict with_title(const struct pending *p, enum rule_verdict v, const char **rule) {
	struct span tool = pending_part(p, ASK_PART_TOOL), title = pending_part(p, ASK_PART_TITLE);
	_cleanup_free_ char *text = span_dup(title, NULL);
	const char *by = NULL;
	if (!span_is_string(title)) return v;
	enum rule_verdict w = rules_answer(p->session->profile, text, pending_part(p, ASK_PART_INPUT), SPAN_NONE, &by);
	if (w == RULE_DENY || (w == RULE_ASK && v != RULE_DENY)) {
		*rule = by;
		return w;
	}
	if (v != RULE_ALLOW || title.p != tool.p) return v;
	const struct profile *profile = p->session->profile; /* a rule for all tools needs no name, if no other one does */
	bool all = strcmp(*rule, "*") == 0 && !profile->deny_tools.n && !profile->ask_tools.n;
	return all ? v : RULE_NONE;
}

static void on_judged(void *arg, enum errand_end end) {
	struct pending *p = arg;
	struct session *s = p->session;
	const char *rule = NULL;
	struct span answer = {p->judge.answer.data, end == ERRAND_DONE ? p->judge.answer.len : 0};
	p->judging = false;
	if (!answer.n)
		log_warn("session %s: %s: the links in its paths could not be followed%s", s->label, p->tool,
				 end == ERRAND_TIMEOUT ? " in time (outside_timeout)" : "");
	enum rule_verdict v = rules_answer(s->profile, p->tool, pending_part(p, ASK_PART_INPUT), answer, &rule);
	if (!is_decided(p, with_title(p, v, &rule), rule)) ask_people(p);
}

/* Follow links in its paths by an errand: only this request waits. */
static void judge_outside(struct pending *p, struct span input) {
	struct session *s = p->session;
	struct error error;
	struct buf request = BUF_INIT(SIZE_MAX / 4);
	_cleanup_free_ char *place = rules_place(s->profile, p->tool, input);
	rules_ask(&request, s->profile, p->tool, input);
	struct errand_spec spec = {.kind = RULES_ERRAND,
							   .request = request.data,
							   .n = request.len,
							   .place = place ? place : "",
							   .uid = s->launch.uid,
							   .limit = s->settings->outside_timeout,
							   .answer_max = 65536};
	p->judging = true;
	if (request.failed || errand_begin(&p->judge, s->children, &spec, on_judged, p, &error) != CHILD_OK)
		on_judged(p, ERRAND_LOST);
	buf_free(&request);
}

void asks_decide(struct pending *p) {
	const struct profile *profile = p->session->profile;
	struct span input = pending_part(p, ASK_PART_INPUT);
	const char *rule = NULL;
	if (p->kind == ASK_TOOL && rules_need_errand(profile, p->tool, input)) {
		judge_outside(p, input);
		return;
	}
	enum rule_verdict v = p->kind == ASK_TOOL ? rules_judge(profile, p->tool, input, &rule) : RULE_NONE;
	if (!is_decided(p, p->kind == ASK_TOOL ? with_title(p, v, &rule) : v, rule)) ask_people(p);
}

static void ask_people(struct pending *p) {
	struct session *s = p->session;
	struct attachment *a;
	if (p->kind == ASK_TOOL && has_no_approver_ever(s)) {
		deny(p, "deny", "This command requires approval");
		return;
	}
	if (p->kind != ASK_DIALOG && closed_to_all(s)) {
		asks_answer_self(p, NULL, "deny", "Stream closed");
		return;
	}
	LIST_FOR_EACH (a, &s->attachments, struct attachment, node) offer_one(a, p);
	if (wait_for_client(p)) tell_attention(s, p);
}

void asks_withdrawn(struct session *s, struct span child_id) {
	struct pending *p = pending_find_child(&s->pendings, child_id);
	if (!p) return;
	struct buf b = NOTICE_INIT;
	if (p->dialect->answers_withdrawn) {
		p->dialect->put_failure(&b, child_id, PLENUM_E_CANCELLED, "the request was cancelled");
		session_must_write(s, notice_chunk(&b));
	}
	settle(s, p, NULL, "cancelled", NULL, NULL);
}

static void answer_cancelled(struct session *s, const struct pending *p) {
	struct buf body = NOTICE_INIT, b = NOTICE_INIT;
	p->dialect->put_cancel_form(&body, p->request);
	dialect_put_built(p->dialect, &b, span_of(p->child_id), &body);
	session_must_write(s, notice_chunk(&b));
}

void asks_withdraw_turn(struct session *s) {
	struct pending *p;
	LIST_FOR_EACH (p, &s->pendings.order, struct pending, node) {
		if (p->kind != ASK_TOOL || p->act.data || pending_part(p, ASK_PART_AGENT).p) continue;
		if (p->dialect->answers_withdrawn) answer_cancelled(s, p);
		settle(s, p, NULL, "cancelled", NULL, NULL);
	}
}

void asks_cancel_turn(struct session *s) {
	struct pending *p;
	LIST_FOR_EACH (p, &s->pendings.order, struct pending, node) {
		if (p->kind != ASK_TOOL || p->act.data) continue;
		answer_cancelled(s, p);
		settle(s, p, NULL, "cancelled", "the turn was interrupted", NULL);
	}
}

void asks_withdraw_all(struct session *s, const char *why) {
	struct pending *p;
	while ((p = LIST_TOP(&s->pendings.order, struct pending, node)) != NULL) settle(s, p, NULL, why, NULL, NULL);
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

/* Make the client's answer under the child's id, with fields needed by the child filled in if `mend`. Without memory it
 * has no pieces. */
static struct rope answer_line(const struct pending *p, struct chunk line, const struct envelope *e, bool mend) {
	const struct dialect *d = p->dialect;
	struct splice_edit id = {e->inner_request_id.p, e->inner_request_id.n, {span_of(p->child_id)}};
	struct splice_edit body, edits[SPLICE_EDITS];
	size_t n = 0;
	splice_add(edits, &n, id);
	if (mend && d->mend && d->mend(p->kind, p->request, e, &body)) splice_add(edits, &n, body);
	return splice_edits(line, splice_body(line), edits, n, p->line);
}

/* Return false if the answer to a client's line cannot be judged yet: it comes again. */
static bool may_judge(struct client *c, struct chunk line, const struct pending *p, const struct rope *answer) {
	struct chunk whole = p->act.data ? rope_join(answer) : CHUNK_NONE;
	bool may = !whole.data || p->events->may_judge(c, line, p, whole);
	chunk_drop(&whole);
	return may;
}

static bool may_use(struct client *c, const struct pending *p) {
	struct router *r = c->world;
	if (c->ended) return false;
	return p->kind == ASK_MCP || p->kind == ASK_HOOK ? trust_is_free(r, c) : trust_may_approve(r, c);
}

/* Return true if one of several asked clients does not know the request: its error leaves it open. */
static bool declined(struct pending *p, struct attachment *a, const char *decision) {
	bool several = p->kind == ASK_UNKNOWN || p->kind == ASK_ELICITATION || p->kind == ASK_DIALOG ||
				   (p->kind == ASK_TOOL &&
					p->dialect->answers_withdrawn); /* it must answer, even what it does not know */
	if (!several || strcmp(decision, "error") != 0 || p->n_asked < 2) return false;
	pending_forget(p, a);
	return true;
}

static bool may_answer(struct client *c, struct pending *p, const struct envelope *e) {
	if (!pending_was_asked(p, c->attachment)) {
		notify_complain(c, e->inner_request_id, PLENUM_E_UNKNOWN_REQUEST, "this request was not sent to you");
		return false;
	}
	if (!may_use(c, p)) {
		const char *why = trust_why(p->session->world, c);
		notify_complain(c, e->inner_request_id, PLENUM_E_NOT_ALLOWED, "you may not answer: %s",
						why ? why : "your input has ended");
		return false;
	}
	return true;
}

/* Return true for an answer of a program's callback through an SDK: that answers once and reads no complaint. The CLI
 * refuses a bad answer, like without a daemon. */
static bool is_refusal(const struct client *c, const struct pending *p, const struct envelope *e) {
	return c->filter.quiet && (p->kind == ASK_TOOL || p->kind == ASK_HOOK) && p->dialect->succeeded(e);
}

/* Return true if any answer goes to the CLI as it is: a hook's, after which it lets the tool run, and in a session of
 * the program's own that of an MCP server. */
static bool is_for_the_cli(const struct client *c, const struct pending *p, const struct envelope *e) {
	if (p->kind == ASK_MCP) return router_is_shim(c) && p->dialect->succeeded(e);
	return p->kind == ASK_HOOK && is_refusal(c, p, e);
}

static struct rope empty_line(const struct pending *p, const struct envelope *e) {
	struct buf b = NOTICE_INIT;
	p->dialect->put_empty(&b, span_of(p->child_id), p->kind, p->request, e->response);
	return rope_of(notice_chunk(&b));
}

/* Report that the request is still open. */
static void tell_not_answered(struct client *c, const struct session *s, struct span id) {
	if (session_has_child(s) && agent_hears(s->agent))
		notify_complain(c, id, PLENUM_E_INTERNAL, "out of memory: the answer was not passed on, send it again");
	else
		notify_complain(c, id, PLENUM_E_CHILD_EXITED, "the child can take no answer any more");
}

void asks_answer(struct client *c, struct chunk line, const struct envelope *e) {
	struct attachment *a = c->attachment;
	struct session *s = a->session;
	struct pending *p = pending_find(&s->pendings, e->inner_request_id);
	struct changes ch = {0};
	if (!p) {
		bool late = pending_was_settled(&s->pendings, e->inner_request_id);
		if (late && session_dialect(s)->answers_withdrawn) return;
		notify_complain(c, e->inner_request_id, late ? PLENUM_E_ALREADY_SETTLED : PLENUM_E_UNKNOWN_REQUEST,
						late ? "this request was settled before your answer came"
							 : "no request with this request_id is open here");
		return;
	}
	if (!may_answer(c, p, e)) return;
	(void)lengths_use_also(p->lengths);
	const struct dialect *d = p->dialect;
	bool once = is_for_the_cli(c, p, e);
	bool empty = !once && d->is_empty && d->is_empty(p->kind, p->request, e->response);
	const char *wrong = once || empty ? NULL : d->check_answer(p->kind, p->request, e->response);
	empty |= wrong && p->kind == ASK_MCP && c->filter.quiet; /* it answers once: an error to the child */
	if (empty) wrong = NULL;
	if (wrong && !is_refusal(c, p, e)) {
		notify_complain(c, e->inner_request_id, PLENUM_E_BAD_ANSWER, "%s; the request is still open", wrong);
		return;
	}
	if (p->guard && empty && !c->filter.quiet) { /* the CLI would run the tool */
		p->events->undecided(p);
		return;
	}
	const char *decision = wrong ? "error" : d->decision(p->kind, p->request, e->response);
	if (declined(p, a, decision)) return;
	struct rope out = empty ? empty_line(p, e) : answer_line(p, line, e, !wrong && !once);
	if (!may_judge(c, line, p, &out)) {
		rope_drop(&out);
		return;
	}
	if (!out.n || !hand_over(p, &out, c)) {
		tell_not_answered(c, s, e->inner_request_id);
		return;
	}
	session_used(s);
	if (!wrong) d->read_changes(p->kind, p->request, e->response, &ch);
	settle(s, p, a, decision, NULL, &ch);
}
