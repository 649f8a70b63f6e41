/* SPDX-License-Identifier: MIT */
#include "verbs/verbs.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "config/config.h"
#include "core/asks.h"
#include "core/attachment.h"
#include "core/descent.h"
#include "core/guards.h"
#include "core/inquiry.h"
#include "core/intake.h"
#include "core/login.h"
#include "core/notify.h"
#include "core/owners.h"
#include "core/sessions.h"
#include "core/trust.h"
#include "core/turns.h"
#include "core/warm.h"
#include "io/proc.h"
#include "plenum/protocol.h"
#include "verbs/attach.h"
#include "verbs/reply.h"
#include "wire/limits.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define MATCHER_SHOWN ((size_t)200) /* shown bytes of a guard's matcher in plenum_status */

static struct verbs_host *host(const struct router *r) {
	return r->server;
}

/* Return the session named by the request, or the client's own. NULL: an error was sent. */
static struct session *named_session(struct request *q) {
	json_t *name = json_object_get(q->body, "session");
	struct attachment *a = q->client->attachment;
	if (!name) {
		if (a) return a->session;
		reply_error(q, PLENUM_E_NOT_ATTACHED, "you are attached to no session: name one with `session`");
		return NULL;
	}
	struct session *s = router_named(q->router, json_string_value(name));
	if (!s) {
		reply_no_session(q, json_string_value(name));
	} else if (trust_is_closed_to(s, q->client)) {
		reply_private(q, json_string_value(name));
		s = NULL;
	}
	return s;
}

static bool profile_is_open(const struct request *q, const struct profile *p) {
	return !p->is_private || client_is_ours(q->client);
}

/* NULL: none, or closed to this client. */
static const char *default_profile(const struct request *q) {
	const struct settings *set = q->router->settings;
	const struct profile *p = set->default_profile ? settings_profile(set, set->default_profile) : NULL;
	return p && !profile_is_open(q, p) ? NULL : set->default_profile;
}

/* --- hello, list, status ------------------------------------------------------------------------------------------ */

static void put_limits(struct buf *b, const struct settings *s) {
	const struct limits *l = &s->limits;
	const struct {
		const char *name;
		int64_t value;
	} limits[] = {
		{"child_line", (int64_t)l->child_line},
		{"client_line", (int64_t)l->client_line},
		{"tape_bytes", (int64_t)l->tape_bytes},
		{"tape_lines", (int64_t)l->tape_lines},
		{"stdin_queue", (int64_t)l->stdin_queue},
		{"max_sessions", (int64_t)s->max_sessions},
		{"max_children", (int64_t)s->max_children},
		{"max_clients", (int64_t)s->max_clients},
		{"max_pending", (int64_t)l->max_pending},
		{"max_calls", (int64_t)l->max_calls},
		{"outside_timeout", s->outside_timeout},
		{"plenum_timeout_ms", LIMITS_TIMEOUT_MS},
		{"turn_lines", LIMITS_TURN_LINES},
		{"turn_bytes", LIMITS_TURN_BYTES},
		{"uid_sessions", (int64_t)l->uid_sessions},
		{"uid_clients", (int64_t)l->uid_clients},
		{"uid_bytes", (int64_t)l->uid_bytes},
		{"uid_requests", (int64_t)l->uid_requests},
		{"request", LIMITS_REQUEST},
		{"call", LIMITS_CALL},
		{"values", LIMITS_VALUES},
		{"members", LIMITS_MEMBERS},
		{"child_members", LIMITS_CHILD_MEMBERS},
		{"words", LIMITS_WORDS},
		{"types", LIMITS_WORDS},
		{"names", LIMITS_NAMES},
		{"hooks", LIMITS_NAMES},
		{"hooks_text", LIMITS_HOOKS_TEXT},
		{"matcher", LIMITS_MATCHER},
		{"table", LIMITS_TABLE},
		{"table_starts", LIMITS_TABLE_STARTS},
		{PLENUM_M_INITS, LIMITS_INITS},
		{"conversation_id", LIMITS_CONVERSATION},
		{"prompts", LIMITS_PROMPTS},
		{"stdin_lines", LIMITS_STDIN_LINES},
		{"pending_bytes", LIMITS_PENDING_BYTES},
	};
	size_t from = reply_begin_object(b, "limits");
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) notice_number(b, limits[i].name, limits[i].value);
	reply_end_object(b, from);
}

/* List each uid with charges; a client of another uid sees only its own. */
static void put_shares(struct buf *b, const struct request *q) {
	const struct shares *all = &q->router->shares;
	reply_begin_list(b, "shares");
	for (const struct share *s = all->by_uid; s; s = s->hh.next) {
		size_t from = b->len;
		if (s->uid != q->client->peer.uid && !client_is_ours(q->client)) continue;
		notice_number(b, "uid", s->uid);
		notice_flag(b, "limited", share_is_limited(all, s->uid));
		notice_number(b, "sessions", (int64_t)s->held[SHARE_SESSIONS]);
		notice_number(b, "clients", (int64_t)s->held[SHARE_CLIENTS]);
		notice_number(b, "bytes", (int64_t)s->held[SHARE_BYTES]);
		notice_number(b, "requests", (int64_t)s->held[SHARE_REQUESTS]);
		reply_end_entry(b, from);
	}
	reply_end_list(b);
}

/* Write the names of all that a client may rely on: features, verbs, members of verbs, events. */
static void put_capabilities(struct buf *b);

static void verb_hello(struct request *q) {
	struct router *r = q->router;
	struct client *c = q->client;
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	if (!attach_name(q)) return;
	notice_text(&b, "version", PLENUM_VERSION);
	notice_number(&b, "protocol", PLENUM_PROTOCOL_VERSION);
	put_limits(&b, r->settings);
	size_t from = reply_begin_object(&b, "peer");
	notice_number(&b, "uid", c->peer.uid);
	notice_number(&b, "gid", c->peer.gid);
	notice_number(&b, "pid", c->peer.pid);
	notice_text(&b, "program", c->program);
	notice_flag(&b, "may_approve", trust_may_approve(r, c));
	reply_put_peer(&b, c);
	reply_end_object(&b, from);
	notice_text(&b, "socket", host(r)->socket_path);
	notice_number(&b, "pid", getpid());
	notice_text(&b, "default_profile", default_profile(q));
	notice_number(&b, "client", (int64_t)c->id);
	put_capabilities(&b);
	reply(q, &b);
}

/* Return true if an owner has guards that refuse until it returns. */
static bool has_guard_away(const struct session *s) {
	const struct owner *o;
	LIST_FOR_EACH (o, &s->registry.owners, struct owner, node)
		if (!o->holder && owner_guards(o) && !guards_stand_in(o)) return true;
	return false;
}

/* Write its members, each with a comma before it. */
static void put_session(struct buf *b, struct session *s) {
	notice_text(b, "session", s->name);
	notice_text(b, "state", session_state_name(session_name_state(s)));
	notice_text(b, "profile", session_profile(s));
	notice_text(b, "dialect", session_dialect(s)->name);
	notice_text(b, "cwd", s->launch.cwd);
	notice_text(b, "program", s->agent ? s->agent->program : NULL);
	notice_text(b, "conversation_id", session_conversation(s));
	notice_number(b, "attachments", (int64_t)s->n_attachments);
	notice_number(b, "pending", (int64_t)s->pendings.n);
	notice_number(b, "seq", (int64_t)s->tape.next);
	notice_number(b, "created_ms", s->created_at);
	notice_number(b, "idle_ms", now_ms() - s->used_at);
	notice_number(b, "uid", s->launch.uid);
	notice_raw(b, PLENUM_M_MODE, span_of(s->snapshot.mode));
	notice_raw(b, "model", span_of(s->snapshot.model));
	notice_text(b, "version", s->version);
	notice_text(b, "reason", s->reason);
	reply_put_pid(b, s);
	if (s->resumed_id) notice_text(b, "resumed_id", s->resumed_id);
	if (guards_lost(&s->registry)) notice_flag(b, "guards_lost", true);
	if (has_guard_away(s)) notice_flag(b, "guards_away", true);
}

static size_t count(const char *list) {
	struct span one;
	size_t n = 0;
	for (size_t at = 0; span_next(span_of(list), &at, &one);) n++;
	return n;
}

#define SESSION_TEXT 512 /* bytes, estimated */

static void put_sessions(struct buf *b, struct request *q) {
	struct trust_view view = trust_view(q->router, q->client);
	buf_reserve(b, q->router->n_sessions * SESSION_TEXT);
	reply_begin_list(b, "sessions");
	for (struct session *s = q->router->sessions; s; s = s->hh.next) {
		if (!trust_view_has(&view, s)) continue;
		size_t at = b->len;
		size_t tasks = count(s->snapshot.tasks);
		put_session(b, s);
		notice_number(b, "tasks", tasks ? (int64_t)tasks : s->progress.background); /* lost tasks count as one */
		notice_number(b, "timers", (int64_t)timers_count(&s->timers, now_real_ms()));
		notice_number(b, "leftovers", (int64_t)descent_count(s->world, s));
		reply_end_entry(b, at);
	}
	reply_end_list(b);
}

/* ,"tasks":[...],"timers":[...] as reported by the child; tasks null: too long to keep. */
static void put_background(struct buf *b, struct session *s) {
	const struct snapshot *sn = &s->snapshot;
	timers_count(&s->timers, now_real_ms());
	notice_raw(b, "tasks", span_of(sn->tasks ? sn->tasks : s->progress.background ? NULL : "[]"));
	notice_raw(b, "timers", span_of(s->timers.armed ? s->timers.armed : "[]"));
}

/* List detached processes of a session; NULL: all that this client may see, each with its session. */
static void put_leftovers(struct buf *b, const struct request *q, const struct session *of) {
	size_t n;
	struct descent_entry *list = descent_list(q->router, of, &n);
	b->failed |= !list;
	reply_begin_list(b, "leftovers");
	for (size_t i = 0; list && i < n; i++) {
		const struct session *s = of ? of : descent_session(q->router, &list[i]);
		size_t from = b->len;
		if (s ? trust_is_closed_to(s, q->client) : !client_is_ours(q->client)) continue;
		notice_number(b, "pid", list[i].pid);
		notice_text(b, "program", list[i].program);
		notice_number(b, "since_ms", list[i].since_ms);
		if (!of) notice_text(b, "session", s ? s->name : NULL);
		reply_end_entry(b, from);
	}
	reply_end_list(b);
	free(list);
}

static void verb_list(struct request *q) {
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	put_sessions(&b, q);
	reply(q, &b);
}

static void put_client(struct buf *b, const struct client *c) {
	const struct attachment *a = c->attachment;
	size_t from = b->len;
	reply_put_client(b, c);
	notice_number(b, "bytes_in", (int64_t)c->bytes_in);
	notice_number(b, "bytes_out", (int64_t)c->bytes_out);
	notice_number(b, "lines_in", (int64_t)c->lines_in);
	notice_number(b, "lag_bytes", (int64_t)client_behind(c));
	notice_number(b, "held_bytes", (int64_t)c->member.bytes);
	notice_number(b, "requests", (int64_t)c->member.requests);
	notice_number(b, "lag_ms", c->blocked_since ? now_ms() - c->blocked_since : 0);
	notice_text(b, "session", a ? a->session->name : NULL);
	reply_end_entry(b, from);
}

static void put_queue(struct buf *b, const struct session *s, bool held_only) {
	static const char *const states[] = {"held", "sent", "taken", "done"};
	struct prompt *p;
	reply_begin_list(b, "prompts");
	LIST_FOR_EACH (p, &s->prompts.open, struct prompt, node) {
		size_t from = b->len;
		if (held_only && p->state != PROMPT_HELD) continue;
		notice_text(b, "uuid", p->uuid);
		notice_text(b, "state", states[p->state]);
		notice_text(b, "name", p->name);
		notice_number(b, "uid", p->uid);
		notice_number(b, "client", (int64_t)p->client);
		notice_number(b, "since_ms", now_ms() - p->since);
		reply_end_entry(b, from);
	}
	reply_end_list(b);
}

/* Write one entry of a guard's hooks, with its owner. */
static void put_guard(struct buf *b, const struct owner *o, const struct hook_entry *e) {
	const struct attachment *a = o->holder;
	size_t from = b->len;
	_cleanup_free_ char *members = str_printf("{%s}", e->members);
	_cleanup_free_ char *event = span_dup(span_of(e->event), NULL);
	_cleanup_free_ char *matcher = members ? span_dup(span_member(span_of(members), "matcher"), NULL) : NULL;
	notice_text(b, "event", event);
	if (matcher)
		notice_bytes(b, "matcher", matcher, MIN(strlen(matcher), MATCHER_SHOWN));
	else
		notice_text(b, "matcher", NULL);
	notice_text(b, "name", o->name);
	notice_number(b, "uid", o->uid);
	notice_flag(b, "here", a != NULL);
	if (a) notice_number(b, "client", (int64_t)a->client->id);
	reply_end_entry(b, from);
}

static void put_guards(struct buf *b, const struct session *s) {
	const struct owner *o;
	const struct hook_entry *e;
	reply_begin_list(b, "guards");
	LIST_FOR_EACH (o, &s->registry.owners, struct owner, node) {
		if (guards_stand_in(o)) continue;
		LIST_FOR_EACH (e, &o->entries, struct hook_entry, node)
			if (e->guard) put_guard(b, o, e);
	}
	reply_end_list(b);
}

static void status_session(struct request *q) {
	struct session *s = named_session(q);
	if (!s) return;
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	struct attachment *a;
	notice_number(&b, "oldest_seq", (int64_t)s->tape.oldest);
	notice_number(&b, "tape_bytes", (int64_t)s->tape.bytes);
	notice_number(&b, "tape_lines", (int64_t)s->tape.count);
	notice_number(&b, "stdin_queue", (int64_t)s->in.bytes);
	notice_number(&b, "lines_out", (int64_t)s->lines_out);
	notice_number(&b, "bytes_out", (int64_t)s->bytes_out);
	notice_number(&b, "stray_lines", (int64_t)s->strays);
	notice_number(&b, "dropped_answers", (int64_t)s->dropped_answers);
	notice_number(&b, "turns", (int64_t)s->turns.count);
	notice_number(&b, "calls", (int64_t)s->calls.n);
	notice_number(&b, "hooks", (int64_t)s->registry.n_hooks);
	put_leftovers(&b, q, s);
	if (session_pid(s)) {
		notice_number(&b, "output_ms", now_ms() - s->agent->heard_at);
		notice_number(&b, "child_rss", (int64_t)proc_rss(session_pid(s)));
	}
	turns_put_cost(&b, s);
	reply_begin_list(&b, "clients");
	LIST_FOR_EACH (a, &s->attachments, struct attachment, node) put_client(&b, a->client);
	reply_end_list(&b);
	put_queue(&b, s, false);
	put_guards(&b, s);
	put_session(&b, s);
	put_background(&b, s);
	reply(q, &b);
}

static void put_profile(struct buf *b, struct router *r, const struct profile *p) {
	size_t from = b->len;
	notice_text(b, "name", p->name);
	notice_text(b, "dialect", p->dialect->name);
	notice_text(b, "program", p->command.n ? p->command.v[0] : NULL);
	notice_flag(b, "private", p->is_private);
	notice_number(b, "warm", (int64_t)warm_ready(r->warm, p));
	notice_number(b, "warm_wanted", (int64_t)p->warm);
	reply_end_entry(b, from);
}

static void status_daemon(struct request *q) {
	struct router *r = q->router;
	struct trust_view view = trust_view(r, q->client);
	struct client *c;
	size_t sessions = 0;
	for (const struct session *s = r->sessions; s; s = s->hh.next) sessions += trust_view_has(&view, s);
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	notice_text(&b, "version", PLENUM_VERSION);
	notice_number(&b, "pid", getpid());
	notice_text(&b, "socket", host(r)->socket_path);
	notice_text(&b, "state_dir", host(r)->state_dir);
	notice_text(&b, "default_profile", default_profile(q));
	notice_number(&b, "started_ms", host(r)->started_ms);
	notice_number(&b, "sessions", (int64_t)sessions);
	notice_number(&b, "decisions", (int64_t)r->decisions);
	notice_number(&b, "bad_lines", (int64_t)r->bad_lines);
	notice_number(&b, "rss", (int64_t)proc_rss(getpid()));
	reply_begin_list(&b, "profiles");
	for (size_t i = 0; i < r->settings->n_profiles; i++)
		if (profile_is_open(q, &r->settings->profiles[i])) put_profile(&b, r, &r->settings->profiles[i]);
	reply_end_list(&b);
	put_limits(&b, r->settings);
	put_shares(&b, q);
	put_leftovers(&b, q, NULL);
	if (r->guards_lost && client_is_ours(q->client)) notice_flag(&b, "guards_lost", true);
	reply_begin_list(&b, "clients");
	LIST_FOR_EACH (c, &r->clients, struct client, node) {
		const struct attachment *a = c->attachment;
		if (c == q->client || !a || trust_view_has(&view, a->session)) put_client(&b, c);
	}
	reply_end_list(&b);
	reply(q, &b);
}

/* The program that a session of this profile would start for this client. */
static void status_profile(struct request *q, const char *name) {
	const struct profile *p = settings_profile(q->router->settings, name);
	enum errand_end end;
	if (!p || !profile_is_open(q, p)) {
		reply_error(q, PLENUM_E_NO_SUCH_PROFILE, "profile %s: does not exist (`plenumctl status` lists them)", name);
		return;
	}
	if (!p->command.n) {
		reply_error(q, PLENUM_E_SPAWN_FAILED, "profile %s has no command", name);
		return;
	}
	if (!inquiry_find_program(q->client, q->line, p)) return;
	struct span answer = inquiry_answer(q->client, PROGRAM_ERRAND, &end);
	const char *at = answer.p, *stop = at ? at + answer.n : NULL;
	const char *program = at ? errand_next(&at, stop) : NULL, *from = at ? errand_next(&at, stop) : NULL;
	const char *error = at ? errand_next(&at, stop) : NULL;
	if (!program || !from || !error) {
		reply_error(q, end == ERRAND_TIMEOUT ? PLENUM_E_TIMEOUT : PLENUM_E_BUSY,
					"no process could look for the program");
		return;
	}
	struct buf b = NOTICE_INIT;
	notice_text(&b, "profile", name);
	notice_text(&b, "program", *program ? program : NULL);
	notice_text(&b, "from", *from ? from : NULL);
	notice_text(&b, "error", *error ? error : NULL);
	reply(q, &b);
}

static void verb_status(struct request *q) {
	const char *profile = json_string_value(json_object_get(q->body, "profile"));
	if (profile) {
		status_profile(q, profile);
		return;
	}
	if (json_object_get(q->body, "session") ||
		(q->client->attachment && !json_is_true(json_object_get(q->body, "daemon"))))
		status_session(q);
	else if (reply_peer_ok(q, LEAST_FREE, "plenum_status without a session"))
		status_daemon(q);
}

static void verb_logs(struct request *q) {
	struct session *s = named_session(q);
	if (!s) return;
	struct buf b = NOTICE_INIT;
	notice_text(&b, "session", s->name);
	reply_begin_list(&b, "stderr");
	for (size_t i = 0; i < tail_count(&s->tail); i++) reply_item(&b, tail_line(&s->tail, i));
	reply_end_list(&b);
	notice_text(&b, "reason", s->reason);
	reply(q, &b);
}

static void verb_queue(struct request *q) {
	struct session *s = named_session(q);
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	if (!s) return;
	notice_text(&b, "session", s->name);
	put_queue(&b, s, true);
	reply(q, &b);
}

/* --- pending ------------------------------------------------------------------------------------------------------ */

#define INPUT_MAX ((size_t)64 * 1024) /* longest input of a tool shown in full */
#define INPUT_SHOWN ((size_t)1000)    /* shown bytes of a longer one */
#define NAME_SHOWN ((size_t)1000)     /* of a name */

/* Bytes that are left in the answer. */
struct room {
	size_t inputs; /* and suggestions */
	size_t asked;
};

/* A name of the child, cut if it is long. */
static void put_name(struct buf *b, const char *key, const char *name) {
	if (name)
		notice_bytes(b, key, name, str_fit(name, NAME_SHOWN));
	else
		notice_text(b, key, NULL);
}

/* List the clients that were asked, as far as there is room, and their number. */
static void put_asked(struct buf *b, const struct pending *p, size_t *room) {
	reply_begin_list(b, "asked");
	for (size_t i = 0; i < p->n_asked && *room; i++) {
		size_t at = b->len;
		reply_put_client(b, p->asked[i]->client);
		reply_end_entry(b, at);
		*room -= MIN(*room, b->len - at);
	}
	reply_end_list(b);
	notice_number(b, "asked_total", (int64_t)p->n_asked);
}

static void put_pending(struct buf *b, const struct session *s, const struct pending *p, struct room *room) {
	struct span input = pending_part(p, ASK_PART_INPUT), agent = pending_part(p, ASK_PART_AGENT);
	struct span suggestions = pending_part(p, ASK_PART_SUGGESTIONS);
	size_t from = b->len;
	_cleanup_free_ char *agent_id = span_dup(agent, NULL);
	notice_text(b, "session", s->name);
	notice_text(b, "request_id", p->id);
	put_name(b, "subtype", p->subtype);
	put_name(b, PLENUM_M_TOOL, p->tool);
	notice_number(b, "since_ms", now_ms() - p->since);
	notice_number(b, "asked_at_ms", p->since_real);
	put_name(b, PLENUM_M_AGENT, agent_id);
	put_asked(b, p, &room->asked);
	if (input.p && input.n < MIN(INPUT_MAX, room->inputs)) {
		notice_raw(b, "input", input);
		room->inputs -= input.n;
	} else if (input.p) {
		notice_bytes(b, "input", input.p, MIN(input.n, INPUT_SHOWN));
	} else {
		_cleanup_free_ char *summary = pending_summary(p);
		notice_text(b, "summary", summary);
	}
	if (span_is_array(suggestions) &&
		suggestions.n < MIN(INPUT_MAX, room->inputs)) { /* a part of them would be another rule */
		notice_raw(b, "suggestions", suggestions);
		room->inputs -= suggestions.n;
	}
	reply_end_entry(b, from);
}

static void verb_pending(struct request *q) {
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	struct session *one = NULL;
	struct pending *p;
	struct room room = {LIMITS_MIB, LIMITS_MIB};
	if (json_object_get(q->body, "session") && !(one = named_session(q))) return;
	struct trust_view view = trust_view(q->router, q->client);
	reply_begin_list(&b, "pending");
	for (struct session *s = one ? one : q->router->sessions; s; s = one ? NULL : s->hh.next) {
		if (!one && !trust_view_has(&view, s)) continue;
		LIST_FOR_EACH (p, &s->pendings.order, struct pending, node)
			if (p->kind != ASK_HOOK && p->kind != ASK_MCP) put_pending(&b, s, p, &room);
	}
	reply_end_list(&b);
	reply(q, &b);
}

/* --- detach, register --------------------------------------------------------------------------------------------- */

static void verb_detach(struct request *q) {
	struct attachment *a = q->client->attachment;
	if (!a) {
		reply_error(q, PLENUM_E_NOT_ATTACHED, "you are attached to no session");
		return;
	}
	struct buf b = NOTICE_INIT;
	notice_text(&b, "session", a->session->name);
	attachment_leave(q->client, "detached");
	client_choose(q->client);
	reply(q, &b);
}

static void verb_register(struct request *q) {
	struct attachment *a = q->client->attachment;
	if (!a) {
		reply_error(q, PLENUM_E_NOT_ATTACHED, "attach to a session first");
		return;
	}
	if (!attach_apply(q, a, false)) return;
	/* Before its consequences, as with plenum_attach: a client that has read up to the answer has missed no request. */
	struct buf b = NOTICE_INIT;
	notice_text(&b, "session", a->session->name);
	notice_text(&b, "role", a->observer ? "observer" : "driver");
	notice_flag(&b, "approve", a->approve);
	reply(q, &b);
	if (a->observer)
		owners_leave(a); /* its registrations needed a driver */
	else
		owners_return(a); /* a driver again, or named like an absent owner */
	asks_leave(a);
	asks_offer(a);
	client_wake(q->client);
}

static void verb_subscribe(struct request *q) {
	struct client *c = q->client;
	bool on = !json_is_true(json_object_get(q->body, "off"));
	router_subscribe(c, on);
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	notice_flag(&b, "subscribed", on);
	put_sessions(&b, q);
	reply(q, &b);
}

/* --- stop, hibernate ---------------------------------------------------------------------------------------------- */

static bool may_stop(struct request *q, const struct session *s) {
	if (trust_may_stop(s, q->client)) return true;
	return reply_error(q, PLENUM_E_NOT_ALLOWED, "session %s belongs to uid %u", s->name, s->launch.uid);
}

static bool read_how(struct request *q, bool *kill_now) {
	const char *how = json_string_value(json_object_get(q->body, "how"));
	*kill_now = how && strcmp(how, "kill") == 0;
	if (!how || *kill_now || strcmp(how, "graceful") == 0) return true;
	return reply_error(q, PLENUM_E_BAD_REQUEST, "`how` must be \"graceful\" or \"kill\"");
}

static void verb_stop(struct request *q) {
	struct session *s = named_session(q);
	bool kill_now, forget = json_is_true(json_object_get(q->body, "forget"));
	if (!s || !read_how(q, &kill_now) || !may_stop(q, s)) return;
	bool running = s->agent != NULL, starts = s->starting != NULL;
	struct error error;
	forget = forget || s->ephemeral;
	if (!running && !forget && session_is_stuck(s, &error)) {
		reply_error(q, PLENUM_E_CANNOT_STOP, "%s", error.text);
		return;
	}
	log_info("session %s: client %llu asks to stop it%s", s->label, (unsigned long long)q->client->id,
			 forget ? " and forget it" : "");
	bool sweeps = !running && (starts || descent_count(q->router, s)); /* then it is removed later */
	struct buf b = NOTICE_INIT;
	notice_text(&b, "session", s->name);
	notice_flag(&b, "stopping", running || (sweeps && forget));
	notice_flag(&b, "forget", forget);
	put_leftovers(&b, q, s);
	notice_flag(&b, "end_leftovers", true);
	reply(q, &b);
	enum leftovers leftovers = !running ? LEFTOVERS_AS_SET : kill_now ? LEFTOVERS_KILL : LEFTOVERS_END;
	session_stop_for(s, q->client->id, leftovers);
	notify_stopping(s, q->client, kill_now);
	intake_cancel_held(s, q->client, true); /* they would start it again at once */
	session_stop(s, kill_now, forget ? THEN_REMOVE : THEN_SLEEP);
	if (sweeps && descent_end(s, kill_now, forget)) return;
	if (!running && forget) q->router->events->session_over(q->router, s);
}

/* Refuse with the list of losses; `force` accepts them. */
static void reply_would_lose(struct request *q, struct session *s) {
	struct buf list = NOTICE_INIT, b = NOTICE_INIT;
	char text[SESSIONS_NAME_MAX + 200];
	size_t tasks = count(s->snapshot.tasks), timers = timers_count(&s->timers, now_real_ms());
	snprintf(text, sizeof text,
			 "session %s: sleep would end what runs in the background (tasks: %zu) and stop its timers (%zu): let them "
			 "end, or say \"force\":true",
			 s->name, tasks ? tasks : s->progress.background, timers);
	put_background(&list, s);
	list.failed |= !buf_putc(&list, 0);
	_cleanup_free_ char *more = list.failed ? NULL : str_printf(",\"would_lose\":{%s}", list.data + 1);
	q->client->dialect->put_error(&b, q->id, PLENUM_E_BUSY, text, more ? more : "");
	client_post(q->client, notice_chunk(&b));
	buf_free(&list);
}

static void verb_hibernate(struct request *q) {
	struct session *s = named_session(q);
	if (!s || !may_stop(q, s)) return;
	enum session_state now = session_state(s);
	bool at_rest = now == SESSION_IDLE || now == SESSION_STARTING, awake = s->agent || s->want_child;
	if (awake && (!at_rest || !list_empty(&s->prompts.open))) { /* a starting child may have its prompt already */
		reply_error(q, PLENUM_E_BUSY, "session %s is %s: let its turn end, or interrupt or stop it", s->name,
					session_state_name(now));
		return;
	}
	if (awake && session_works_on(s) && !json_is_true(json_object_get(q->body, "force"))) {
		reply_would_lose(q, s);
		return;
	}
	struct buf b = NOTICE_INIT;
	notice_text(&b, "session", s->name);
	notice_flag(&b, "stopping", s->agent != NULL);
	notice_text(&b, "state", session_state_name(session_name_state(s)));
	put_leftovers(&b, q, s);
	notice_flag(&b, "end_leftovers", s->agent && s->profile->leftovers_end);
	reply(q, &b);
	session_stop_for(s, q->client->id, LEFTOVERS_AS_SET);
	notify_stopping(s, q->client, false);
	if (awake) session_stop(s, false, THEN_SLEEP); /* cancel a deferred start */
}

/* --- rename ------------------------------------------------------------------------------------------------------- */

static bool may_rename(struct request *q, const struct session *s, const char *name) {
	if (!may_stop(q, s)) return false;
	if (!name)
		reply_error(q, PLENUM_E_BAD_REQUEST, "`name` is missing");
	else if (!sessions_is_name(name))
		reply_error(q, PLENUM_E_BAD_NAME, "a session name has " SESSIONS_NAME_TEXT, SESSIONS_NAME_MAX);
	else if (router_find(q->router, name))
		reply_error(q, PLENUM_E_NAME_TAKEN, "session %s: exists already", name);
	else if (s->agent || s->want_child || s->starting || descent_count(q->router, s))
		reply_error(q, PLENUM_E_BUSY, "session %s: its processes know the old name (`plenumctl %s` it first)", s->name,
					s->agent || s->want_child || s->starting ? "sleep" : "stop");
	else
		return true;
	return false;
}

static void verb_rename(struct request *q) {
	struct session *s = named_session(q);
	const char *name = json_string_value(json_object_get(q->body, "name"));
	if (!s || !may_rename(q, s, name)) return;
	log_info("session %s: client %llu names it anew", s->label, (unsigned long long)q->client->id);
	struct buf b = NOTICE_INIT;
	notice_text(&b, "session", name);
	notice_text(&b, "previous", s->name);
	if (sessions_rename(s, name)) {
		reply(q, &b);
		return;
	}
	buf_free(&b);
	reply_error(q, PLENUM_E_INTERNAL, "out of memory");
}

/* --- lost guards ------------------------------------------------------------------------------------------------- */

static void verb_clear_lost(struct request *q) {
	struct router *r = q->router;
	bool all = json_is_true(json_object_get(q->body, "daemon")), was = r->guards_lost;
	struct session *s = NULL;
	bool root = q->client->peer.uid == 0; /* approve_uids may exclude all own peers */
	if (!root && trust_of(q->router, q->client) != TRUST_OWN) {
		reply_error(q, PLENUM_E_NOT_ALLOWED, "lost guards are cleared by the user of the daemon: %s",
					trust_why(q->router, q->client));
		return;
	}
	if (!all && !(s = named_session(q))) return;
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	reply_begin_list(&b, "cleared");
	if (all) {
		if (was)
			log_warn("client %llu: new sessions may run tools again, as nothing was lost",
					 (unsigned long long)q->client->id);
		r->guards_lost = false;
		for (s = r->sessions; s; s = s->hh.next)
			if (owners_clear_lost(s, q->client)) reply_item(&b, s->name);
		r->events->changed(r);
	} else if (owners_clear_lost(s, q->client)) {
		reply_item(&b, s->name);
	}
	reply_end_list(&b);
	notice_flag(&b, "daemon", all && was);
	reply(q, &b);
}

/* --- the daemon --------------------------------------------------------------------------------------------------- */

static void reply_done(struct request *q, const char *what) {
	struct buf b = NOTICE_INIT;
	notice_flag(&b, what, true);
	reply(q, &b);
}

static void verb_reload(struct request *q) {
	struct error error;
	struct buf request = BUF_INIT(PATH_MAX + 1);
	enum errand_end end;
	_cleanup_free_ char *place = config_ask(&request, host(q->router)->config);
	bool known = inquiry_ask(q->client, q->line, CONFIG_ERRAND, &request, place ? place : "");
	buf_free(&request);
	if (!known) return;
	struct span answer = inquiry_answer(q->client, CONFIG_ERRAND, &end);
	struct buf text = {.data = (char *)(uintptr_t)answer.p, .len = answer.n};
	if (end == ERRAND_TIMEOUT)
		reply_error(q, PLENUM_E_TIMEOUT, "the old configuration is kept: %s does not answer (outside_timeout)",
					place ? place : "a file");
	else if (end == ERRAND_LOST)
		reply_error(q, PLENUM_E_BUSY,
					"the old configuration is kept: no process could read its files (see the log, try again)");
	else if (host(q->router)->reload(host(q->router), &text, &error))
		reply_done(q, "reloaded");
	else
		reply_error(q, PLENUM_E_BAD_REQUEST, "the old configuration is kept: %s", error.text);
}

static void verb_shutdown(struct request *q) {
	bool kill_now;
	if (!read_how(q, &kill_now)) return;
	reply_done(q, "shutting_down");
	host(q->router)->shut_down(host(q->router), kill_now);
}

static void verb_upgrade(struct request *q) {
	host(q->router)->upgrade(host(q->router), q->client, q->id);
}

static void verb_metrics(struct request *q) {
	struct router *r = q->router;
	struct trust_view view = trust_view(r, q->client);
	uint64_t lines = 0, bytes = 0, strays = 0, dropped = 0, turns = 0;
	size_t sessions = 0, pending = 0, children = 0, attachments = 0, tape = 0;
	for (struct session *s = r->sessions; s; s = s->hh.next) {
		if (!trust_view_has(&view, s)) continue;
		sessions++;
		lines += s->lines_out, bytes += s->bytes_out, strays += s->strays, dropped += s->dropped_answers,
			turns += s->turns.count;
		pending += s->pendings.n, children += s->agent != NULL, attachments += s->n_attachments, tape += s->tape.bytes;
	}
	struct buf b = NOTICE_INIT;
	notice_number(&b, "sessions", (int64_t)sessions);
	notice_number(&b, "children", (int64_t)children);
	notice_number(&b, "warm", (int64_t)warm_running(r->warm));
	notice_number(&b, "clients", (int64_t)r->n_clients);
	notice_number(&b, "clients_seen", (int64_t)r->clients_seen);
	notice_number(&b, "attachments", (int64_t)attachments);
	notice_number(&b, "pending", (int64_t)pending);
	notice_number(&b, "decisions", (int64_t)r->decisions);
	notice_number(&b, "bad_lines", (int64_t)r->bad_lines);
	notice_number(&b, "lines_out", (int64_t)lines);
	notice_number(&b, "bytes_out", (int64_t)bytes);
	notice_number(&b, "stray_lines", (int64_t)strays);
	notice_number(&b, "dropped_answers", (int64_t)dropped);
	notice_number(&b, "turns", (int64_t)turns);
	notice_number(&b, "tape_bytes", (int64_t)tape);
	notice_number(&b, "rss", (int64_t)proc_rss(getpid()));
	const struct histogram *took = loop_turns(r->loop);
	notice_number(&b, "loop_turns", (int64_t)took->n);
	notice_number(&b, "turn_longest_us", (int64_t)took->longest);
	notice_number(&b, "turn_p99_us", (int64_t)histogram_percentile(took, 99));
	notice_number(&b, "held_bytes", (int64_t)shares_held(&r->shares, SHARE_BYTES));
	notice_number(&b, "requests", (int64_t)shares_held(&r->shares, SHARE_REQUESTS));
	notice_number(&b, "share_exceeded", (int64_t)r->shares.refused);
	reply(q, &b);
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

#define MEMBERS 32

/* Each verb with the least peer that may use it; a member may need more than its verb. */
static const struct verb {
	const char *name;
	enum least least;
	void (*run)(struct request *q);
	struct member members[MEMBERS];
} verbs[] = {
	{PLENUM_HELLO, LEAST_ANY, verb_hello, {{"name", "s"}, {"protocol", "i"}}},
	{PLENUM_ATTACH,
	 LEAST_AGENT,
	 attach_verb,
	 {{"session", "s"},
	  {"create", "s"},
	  {"profile", "s"},
	  {"cwd", "s", LEAST_OURS},
	  {"env", "o", LEAST_OURS},
	  {"args", "a", LEAST_OURS},
	  {"resume", "s", LEAST_FREE},
	  {"fork", "b", LEAST_FREE},
	  {"role", "s"},
	  {"approve", "bo"},
	  {"replay", "so"},
	  {"tag", "b"},
	  {"types", "a"},
	  {"partial", "b"},
	  {"on_lag", "s"},
	  {"wake", "b"},
	  {"echo", "b"},
	  {"name", "s"},
	  {"argv", "a", LEAST_OURS},
	  {"env_only", "b", LEAST_OURS},
	  {"ephemeral", "b", LEAST_OURS},
	  {"quiet", "b"},
	  {"mcp_servers", "a", LEAST_FREE},
	  {"raw_init", "b"},
	  {"deny_asks", "b", LEAST_FREE},
	  {"stderr", "b"}}},
	{PLENUM_DETACH, LEAST_AGENT, verb_detach, {{NULL, NULL}}},
	{PLENUM_REGISTER,
	 LEAST_AGENT,
	 verb_register,
	 {{"role", "s"},
	  {"approve", "bo"},
	  {"tag", "b"},
	  {"types", "a"},
	  {"partial", "b"},
	  {"echo", "b"},
	  {"on_lag", "s"},
	  {"name", "s"}}},
	{PLENUM_LIST, LEAST_AGENT, verb_list, {{NULL, NULL}}},
	{PLENUM_STATUS, LEAST_AGENT, verb_status, {{"session", "s"}, {"daemon", "b"}, {"profile", "s", LEAST_FREE}}},
	{PLENUM_PENDING, LEAST_AGENT, verb_pending, {{"session", "s"}}},
	{PLENUM_STOP, LEAST_FREE, verb_stop, {{"session", "s"}, {"how", "s"}, {"forget", "b"}}},
	{PLENUM_HIBERNATE, LEAST_FREE, verb_hibernate, {{"session", "s"}, {"force", "b"}}},
	{PLENUM_RENAME, LEAST_FREE, verb_rename, {{"session", "s"}, {"name", "s"}}},
	{PLENUM_SUBSCRIBE, LEAST_FREE, verb_subscribe, {{"off", "b"}}},
	{PLENUM_RELOAD, LEAST_OURS, verb_reload, {{NULL, NULL}}},
	{PLENUM_SHUTDOWN, LEAST_OURS, verb_shutdown, {{"how", "s"}}},
	{PLENUM_UPGRADE, LEAST_OURS, verb_upgrade, {{NULL, NULL}}},
	{PLENUM_METRICS, LEAST_FREE, verb_metrics, {{NULL, NULL}}},
	{PLENUM_LOGS, LEAST_AGENT, verb_logs, {{"session", "s"}}},
	{PLENUM_QUEUE, LEAST_AGENT, verb_queue, {{"session", "s"}}},
	{PLENUM_CLEAR_LOST, LEAST_OURS, verb_clear_lost, {{"session", "s"}, {"daemon", "b"}}},
};

static const char *const features[] = {"attach",      "replay", "tag",       "types",     "hooks", "mcp",
									   "permissions", "lag",    "subscribe", "hibernate", "rules", "shim"};

/* All of plenum/protocol.h. */
static const char *const events[] = {
	PLENUM_EV_SESSION_CREATED, PLENUM_EV_SESSION_STATE, PLENUM_EV_CHILD_EXITED, PLENUM_EV_SESSION_REMOVED,
	PLENUM_EV_ATTACHED,        PLENUM_EV_DETACHED,      PLENUM_EV_SETTLED,      PLENUM_EV_OWNER_GONE,
	PLENUM_EV_OWNER_BACK,      PLENUM_EV_CHANGED,       PLENUM_EV_TURN_STARTED, PLENUM_EV_TURN_ENDED,
	PLENUM_EV_STRAY_OUTPUT,    PLENUM_EV_LAG,           PLENUM_EV_GAP,          PLENUM_EV_ERROR,
	PLENUM_EV_SHUTTING_DOWN,   PLENUM_EV_LEFTOVERS,     PLENUM_EV_ATTENTION,    PLENUM_EV_STDERR,
	PLENUM_EV_FAILED,          PLENUM_EV_STALLED,       PLENUM_EV_RESUMED,
};

static void put_capabilities(struct buf *b) {
	reply_begin_list(b, "capabilities");
	for (size_t i = 0; i < ARRAY_SIZE(features); i++) buf_printf(b, "\"%s\",", features[i]);
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		buf_printf(b, "\"%s\",", verbs[i].name);
		for (const struct member *m = verbs[i].members; m->name; m++)
			buf_printf(b, "\"%s.%s\",", verbs[i].name, m->name);
	}
	for (size_t i = 0; i < ARRAY_SIZE(events); i++) buf_printf(b, "\"" PLENUM_EVENT_SUBTYPE ".%s\",", events[i]);
	reply_end_list(b);
}

/* Return true if the line can be parsed into a tree in little time and memory. */
static bool is_small(struct request *q, struct span body) {
	if (q->line.len > LIMITS_REQUEST)
		return reply_error(q, PLENUM_E_TOO_LONG, "a plenum_ request may have %zu bytes, this one has %zu",
						   LIMITS_REQUEST, q->line.len);
	size_t n = span_values(body);
	if (n <= LIMITS_VALUES) return true;
	return reply_error(q, PLENUM_E_TOO_MANY, "a plenum_ request may have %zu JSON values, this one has %zu",
					   LIMITS_VALUES, n);
}

void verbs_run(struct router *r, struct client *c, struct chunk line, const struct envelope *e) {
	struct request q = {.router = r, .client = c, .line = line, .id = e->request_id};
	const struct verb *verb = NULL;
	const char *error = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(verbs) && !verb; i++)
		if (span_equals(e->inner_subtype, verbs[i].name)) verb = &verbs[i];
	if (!verb) {
		reply_error(&q, PLENUM_E_BAD_REQUEST, "there is no verb %.*s (plenum-protocol(7) lists them)",
					(int)MIN(e->inner_subtype.n, (size_t)100), e->inner_subtype.p);
		return;
	}
	if (!is_small(&q, e->request)) return;
	q.body = reply_read(e->request, &error);
	if (!q.body)
		reply_error(&q, error ? PLENUM_E_BAD_REQUEST : PLENUM_E_INTERNAL, "the request cannot be read: %s",
					error ? error : "out of memory");
	else if (reply_peer_ok(&q, verb->least, verb->name) && reply_members_ok(&q, verb->members))
		verb->run(&q);
	json_decref(q.body);
}
