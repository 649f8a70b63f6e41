/* SPDX-License-Identifier: MIT */
#include "core/router.h"
#include "core/gate.h"
#include "core/guards.h"
#include "core/trust.h"
#include "core/warm.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "io/proc.h"
#include "plenum/protocol.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CROWD 64 /* with more attachments only subscribers are notified of comings and goings */

const struct client_events from_client_events = {
	.line = from_client_line,
	.long_line = from_client_long_line,
	.no_more = from_client_no_more,
	.gone = from_client_gone,
	.evicted = from_client_evicted,
	.overtaken = pace_overtaken,
	.pace = pace_blocked,
};

static struct gate *new_gates(void) {
	size_t n = 0;
	while (dialect_list[n]) n++;
	struct gate *gates = calloc(n, sizeof *gates);
	for (size_t i = 0; gates && i < n; i++) gate_init(&gates[i], dialect_list[i]);
	return gates;
}

struct gate *router_gate(const struct client *c) {
	struct gate *g = c->world->gates;
	while (g->dialect != c->dialect) g++;
	return g;
}

struct router *core_new(struct loop *loop, struct children *children, struct settings *settings,
						const struct router_events *events, void *server) {
	struct router *r = calloc(1, sizeof *r);
	if (!r) return NULL;
	r->loop = loop;
	r->children = children;
	r->settings = settings_ref(settings);
	r->events = events;
	r->server = server;
	list_init(&r->clients);
	list_init(&r->asked);
	shares_init(&r->shares, getuid());
	shares_limit(&r->shares, &settings->limits);
	descent_init(&r->descent, r);
	r->gates = new_gates();
	r->warm = r->gates ? warm_new(r) : NULL;
	if (r->warm) return r;
	settings_unref(r->settings);
	free(r->gates);
	free(r);
	return NULL;
}

void core_free(struct router *r) {
	if (!r) return;
	warm_free(r->warm);
	free(r->gates);
	login_unref(r->login);
	descent_free(&r->descent);
	lines_pool_free(&r->pool);
	settings_unref(r->settings);
	free(r);
}

/* --- notices ------------------------------------------------------------------------------------------------------ */

/* size: of a line that was not read; 0: it was. */
static void post_error_event(struct client *c, struct span id, struct span uuid, const char *code, const char *text,
							 size_t size) {
	struct attachment *a = c->attachment;
	struct buf b = NOTICE_INIT;
	notice_error(&b, a ? a->session->name : NULL, code, text);
	notice_number(&b, "line", (int64_t)c->lines_in);
	if (size) notice_number(&b, "size", (int64_t)size);
	if (id.p) notice_raw(&b, "request_id", id);
	if (uuid.p) notice_raw(&b, "uuid", uuid);
	client_tell(c, notice_end(&b));
}

static void post_error_answer(struct client *c, struct span id, const char *code, const char *text, const char *more) {
	struct buf b = NOTICE_INIT;
	c->dialect->put_error(&b, id, code, text, more);
	client_post(c, notice_chunk(&b));
}

void notify_fail(struct client *c, struct span id, const char *code, const char *fmt, ...) {
	char text[1024];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (id.p)
		post_error_answer(c, id, code, text, "");
	else
		post_error_event(c, SPAN_NONE, SPAN_NONE, code, text, 0);
}

void notify_complain(struct client *c, struct span id, const char *code, const char *fmt, ...) {
	char text[1024];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	post_error_event(c, id, SPAN_NONE, code, text, 0);
}

void notify_complain_of_line(struct client *c, struct span id, const char *code, const char *text, size_t size) {
	struct buf more = NOTICE_INIT;
	if (!c->dialect->frame->answers_bad_lines) {
		post_error_event(c, id, SPAN_NONE, code, text, size);
		return;
	}
	notice_number(&more, "line", (int64_t)c->lines_in);
	if (size) notice_number(&more, "size", (int64_t)size);
	post_error_answer(c, SPAN_NONE, code, text, more.data ? more.data : "");
	buf_free(&more);
}

bool notify_is_request(const struct client *c, const struct message *m) {
	return m->kind == MESSAGE_REQUEST || (m->kind == MESSAGE_USER && !c->dialect->prompt_id);
}

void notify_refuse(struct client *c, const struct message *m, const char *code, const char *fmt, ...) {
	char text[1024];
	struct span uuid = m->kind == MESSAGE_USER && span_is_string(m->env.uuid) ? m->env.uuid : SPAN_NONE;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (notify_is_request(c, m))
		post_error_answer(c, m->env.request_id, code, text, "");
	else
		post_error_event(c, SPAN_NONE, uuid, code, text, 0);
}

bool session_is_private(const struct session *s) {
	return s->lost_profile || s->profile->is_private; /* with a lost profile: unknown */
}

static bool is_private_to(const struct session *s, const struct client *c) {
	return session_is_private(s) && !client_is_ours(c);
}

void notify_subscribers(struct session *s, struct chunk notice) {
	struct router *r = s->world;
	struct client *c;
	if (r->n_subscribers && notice.data && !s->spare) {
		LIST_FOR_EACH (c, &r->clients, struct client, node) {
			struct attachment *a = c->attachment;
			if (c->subscribed && !(a && a->session == s) && !is_private_to(s, c)) client_tell(c, chunk_ref(notice));
		}
	}
	chunk_drop(&notice);
}

void notify_wake(struct session *s) {
	struct attachment *a;
	LIST_FOR_EACH (a, &s->attachments, struct attachment, node) client_wake(a->client);
}

void notify_session(struct session *s, struct chunk notice) {
	const struct dialect_frame *f = session_dialect(s)->frame, *plain = dialect_default()->frame;
	if (!notice.data) notice = (struct chunk){NULL, plain->lost, strlen(plain->lost)};
	struct chunk line = f->put_notice(notice);
	if (!line.data) line = (struct chunk){NULL, f->lost, strlen(f->lost)};
	notify_subscribers(s, notice);
	tape_append(&s->tape, line, LINE_NOTICE, 0);
	notify_wake(s);
}

void notify_present(struct session *s, struct chunk notice, const struct attachment *except) {
	struct attachment *a;
	if (!notice.data) return;
	if (s->n_attachments <= CROWD) {
		LIST_FOR_EACH (a, &s->attachments, struct attachment, node)
			if (a != except && !a->client->filter.quiet) client_tell(a->client, chunk_ref(notice));
	}
	notify_subscribers(s, notice);
}

bool notify_alert_wanted(const struct session *s, enum alert_kind kind) {
	return s->world->settings->on[kind].n && !s->spare;
}

void notify_alert(struct session *s, const struct alert *alert) {
	if (notify_alert_wanted(s, alert->kind)) s->world->events->attention(s->world, s, alert);
}

/* Begin an object; the caller closes it. */
static void put_who(struct buf *b, const struct client *c) {
	buf_puts(b, "{\"name\":");
	if (c->name)
		str_put_json(b, c->name, strlen(c->name));
	else
		buf_puts(b, "null");
	buf_printf(b, ",\"uid\":%u,\"pid\":%d,\"program\":", c->peer.uid, c->peer.pid);
	str_put_json(b, c->program, strlen(c->program));
}

void notify_put_where(struct buf *b, const struct client *c) {
	const struct attachment *a = c->attachment;
	put_who(b, c);
	buf_printf(b, ",\"client\":%llu", (unsigned long long)c->id);
	if (a)
		buf_printf(b, ",\"role\":\"%s\",\"approve\":%s", a->observer ? "observer" : "driver",
				   a->approve ? "true" : "false");
	buf_putc(b, '}');
}

void notify_put_by(struct buf *b, const struct client *c) {
	buf_puts(b, ",\"by\":");
	put_who(b, c);
	buf_putc(b, '}');
}

void notify_stopping(struct session *s, const struct client *by, bool kill_now) {
	struct buf b = NOTICE_INIT;
	if (!s->agent || (s->stopping && !kill_now)) return;
	notice_begin(&b, PLENUM_EV_CHANGED, s->name);
	notice_text(&b, "what", "stopping");
	notice_text(&b, "value", kill_now ? "kill" : "graceful");
	notify_put_by(&b, by);
	notify_session(s, notice_end(&b));
}

/* --- sessions ----------------------------------------------------------------------------------------------------- */

static void on_over(void *arg) {
	struct session *s = arg;
	struct router *r = s->world;
	if (s->agent || s->starting) session_stop(s, false, THEN_REMOVE);
	if (!s->agent && !s->removed) r->events->session_over(r, s);
}

struct session *router_find(struct router *r, const char *name) {
	struct session *s = NULL;
	HASH_FIND_STR(r->sessions, name, s);
	return s;
}

static bool is_in(const struct session *s, const char *id) {
	return s->conversation_id && strcmp(s->conversation_id, id) == 0;
}

static bool has_asked_for(const struct session *s, const char *id) {
	bool silent = !s->conversation_id && !s->launch.fork; /* the child has printed nothing yet */
	if (s->resumed_id) return strcmp(s->resumed_id, id) == 0;
	return silent && launch_asks_for(&s->launch, session_dialect(s), id);
}

bool router_has_conversation(const struct session *s, const char *id) {
	return is_in(s, id) || has_asked_for(s, id);
}

struct session *router_find_conversation(struct router *r, const char *id) {
	for (struct session *s = r->sessions; s; s = s->hh.next)
		if (is_in(s, id)) return s;
	for (struct session *s = r->sessions; s; s = s->hh.next)
		if (has_asked_for(s, id)) return s;
	return NULL;
}

void router_in_use_text(char out[ROUTER_IN_USE_MAX], const char *holder) {
	if (holder)
		snprintf(out, ROUTER_IN_USE_MAX,
				 "it is that of session %.255s: attach to that (PLENUM_SESSION=%.255s for plenum-shim), or fork the "
				 "conversation",
				 holder, holder);
	else
		snprintf(out, ROUTER_IN_USE_MAX, "it is that of another session: fork the conversation");
}

struct session *router_named(struct router *r, const char *name) {
	struct session *s = router_find(r, name);
	return s ? s : router_find_conversation(r, name);
}

struct session *sessions_add(struct router *r, const char *name, const struct profile *profile, struct launch *launch) {
	launch->instance = r->instance;
	launch->nofile = r->nofile;
	login_share(&launch->login, &r->login);
	struct share *payer = share_take(&r->shares, launch->uid, SHARE_SESSIONS, 1);
	struct session *s = payer ? session_new(r->loop, &r->pool, r->children, r->settings, profile, name, launch,
											&from_child_events, r)
							  : NULL;
	if (s && handshake_begin(s) && HASH_TRY_ADD(hh, r->sessions, s->name, strlen(s->name), s)) {
		s->payer = payer;
		s->id = ++r->sessions_seen;
		loop_task_init(&s->over_task, on_over, s);
		r->n_sessions++;
		return s;
	}
	share_give(payer, SHARE_SESSIONS, 1);
	if (s) handshake_free(s);
	if (s) session_remove(s);
	return NULL;
}

struct session *sessions_create(struct router *r, const char *name, const struct profile *profile,
								struct launch *launch) {
	struct session *s = sessions_add(r, name, profile, launch);
	if (!s) return NULL;
	struct buf b = NOTICE_INIT;
	if (r->guards_lost) guards_lose(&s->registry, s, s->loop, owners_grace_timer);
	tape_begin(&s->tape, r->last_seq + 1, true); /* above the numbers of an earlier session of this name */
	notice_begin(&b, PLENUM_EV_SESSION_CREATED, s->name);
	notice_text(&b, "profile", profile->name);
	notice_text(&b, "cwd", s->launch.cwd);
	notify_subscribers(s, notice_end(&b));
	r->events->changed(r);
	return s;
}

enum child_result sessions_start(struct router *r, struct session *s, char *error) {
	if (warm_give(r->warm, s)) return CHILD_OK;
	s->only_asked = true;
	return session_start(s, error);
}

void sessions_renew_profile(struct session *s) {
	struct router *r = s->world;
	const struct profile *p = settings_profile(r->settings, session_profile(s));
	if (!p || s->agent || s->settings == r->settings) return; /* a removed profile lives on with its sessions */
	if (p->dialect != s->profile->dialect) return; /* its clients, hooks, kept answers and tape are of the old one */
	struct settings *old = s->settings;
	s->settings = settings_ref(r->settings);
	s->profile = p;
	free(s->lost_profile); /* the profile is configured again */
	s->lost_profile = NULL;
	settings_unref(old);
}

/* A client keeps its place in the list while it waits, so that the longest waiting client is served first. */
void router_hold(struct client *c, struct chunk line) {
	client_hold(c, line);
	if (c->releasing) return;
	list_del(&c->node);
	list_add_tail(&c->world->clients, &c->node);
}

void starts_await(struct client *c, struct session *s, struct chunk line, bool makes) {
	c->starting = s->id;
	c->makes = makes;
	router_hold(c, line);
}

static struct session *find_id(const struct router *r, uint64_t id) {
	struct session *s = r->sessions;
	while (s && s->id != id) s = s->hh.next;
	return s;
}

struct session *starts_awaited(struct client *c, struct chunk line, bool *made, const char **code, char *error) {
	struct router *r = c->world;
	struct session *s = find_id(r, c->starting);
	*made = c->makes;
	*code = NULL;
	if (s && !s->agent && s->want_child) {
		router_hold(c, line);
		return NULL;
	}
	c->starting = 0;
	c->makes = false;
	if (s && !s->start_error && trust_is_closed_to(s, c)) { /* since the wait began */
		*code = PLENUM_E_NOT_ALLOWED;
		snprintf(error, CHILD_ERROR_MAX, TRUST_PRIVATE_TEXT, s->name);
		return NULL;
	}
	if (s && !s->start_error) return s;
	*code = s && s->start_result == CHILD_TIMEOUT ? PLENUM_E_TIMEOUT : PLENUM_E_SPAWN_FAILED;
	snprintf(error, CHILD_ERROR_MAX, "%s", s ? s->start_error : "the session was removed before its child had started");
	if (s && *made && !s->n_attachments && !s->agent && !s->want_child) sessions_remove(r, s, error);
	return NULL;
}

void starts_leave(struct client *c) {
	struct router *r = c->world;
	struct session *s = c->starting && c->makes ? find_id(r, c->starting) : NULL;
	c->starting = 0;
	c->makes = false;
	if (!s || s->n_attachments || r->shutting_down) return;
	if (s->ephemeral)
		loop_defer(s->loop, &s->over_task);
	else
		s->unclaimed = true;
}

/* Release the clients that wait for a free name. */
static void release_all(struct router *r) {
	struct client *c;
	LIST_FOR_EACH (c, &r->clients, struct client, node) client_release(c);
}

void sessions_remove(struct router *r, struct session *s, const char *why) {
	struct attachment *a;
	struct buf b = NOTICE_INIT;
	if (s->removed) return;
	asks_withdraw_all(s, why);
	notice_begin(&b, PLENUM_EV_SESSION_REMOVED, s->name);
	notice_text(&b, "reason", why);
	notify_session(s, notice_end(&b));
	LIST_FOR_EACH (a, &s->attachments, struct attachment, node) a->owner = NULL; /* notify no client of owners now */
	LIST_FOR_EACH (a, &s->attachments, struct attachment, node) {
		struct client *c = a->client;
		bool ephemeral = a->ephemeral;
		a->ephemeral = false; /* or its detachment would remove the session again */
		if (c->filter.quiet && !ephemeral)
			notify_fail(c, SPAN_NONE, PLENUM_E_NOT_ATTACHED, "session %s was removed: nothing more comes of it",
						s->name);
		attachment_leave(c, why);
		if (ephemeral || c->ended) client_close(c);
	}
	if (!s->ephemeral) r->last_seq = MAX(r->last_seq, s->tape.next - 1);
	HASH_DELETE(hh, r->sessions, s);
	r->n_sessions--;
	share_give(s->payer, SHARE_SESSIONS, 1);
	s->payer = NULL;
	release_all(r);
	handshake_free(s);
	loop_timer_stop(s->lag_timer);
	stall_over(s);
	loop_task_stop(&s->over_task);
	session_remove(s);
	r->events->changed(r);
}

bool sessions_rename(struct session *s, const char *name) {
	struct router *r = s->world;
	struct buf b = NOTICE_INIT;
	notice_begin(&b, PLENUM_EV_CHANGED, s->name);
	notice_text(&b, "what", "name");
	notice_text(&b, "value", name);
	HASH_DELETE(hh, r->sessions, s); /* its key is the name */
	bool done = session_rename(s, name);
	HASH_ADD_KEYPTR(hh, r->sessions, s->name, strlen(s->name), s);
	struct chunk notice = notice_end(&b);
	if (done)
		notify_session(s, notice);
	else
		chunk_drop(&notice);
	r->events->changed(r);
	return done;
}

/* Return the least recently used idle session other than `but`, or NULL. */
static struct session *oldest_idle(const struct router *r, const struct session *but) {
	struct session *oldest = NULL;
	for (struct session *s = r->sessions; s; s = s->hh.next) {
		if (!s->agent || session_state(s) != SESSION_IDLE || s->stopping || s->pendings.n || s->calls.n ||
			s->ephemeral || s == but)
			continue;
		if ((!oldest || s->used_at < oldest->used_at) && !session_works_on(s)) oldest = s;
	}
	return oldest;
}

size_t pool_children(const struct router *r) {
	size_t n = warm_running(r->warm);
	for (const struct session *s = r->sessions; s; s = s->hh.next) n += s->agent || s->starting;
	return n;
}

/* Count without the prestarted children and those being ended. */
static size_t count_children(const struct router *r) {
	size_t n = 0;
	for (const struct session *s = r->sessions; s; s = s->hh.next) n += s->starting || (s->agent && !s->stopping);
	return n;
}

static bool send_to_sleep(struct router *r, const struct session *but) {
	struct session *oldest = oldest_idle(r, but);
	if (!oldest) return false;
	log_info("session %s: goes to sleep, there are more than %zu children (max_children)", oldest->label,
			 r->settings->max_children);
	session_stop(oldest, false, THEN_SLEEP);
	return true;
}

void pool_keep_to_limit(struct router *r, const struct session *but) {
	size_t n = count_children(r);
	while (n > r->settings->max_children && send_to_sleep(r, but)) n--;
}

void pool_relieve(struct router *r) {
	if (warm_relieve(r->warm)) return;
	struct session *oldest = oldest_idle(r, NULL);
	if (!oldest) {
		log_debug("memory is short, and no session is idle");
		return;
	}
	log_info("session %s: goes to sleep, memory is short", oldest->label);
	session_stop(oldest, false, THEN_SLEEP);
}

/* --- attachments -------------------------------------------------------------------------------------------------- */

static void tell_presence(struct attachment *a, const char *event, const char *why) {
	struct buf b = NOTICE_INIT;
	if (a->session->n_attachments > CROWD && !a->session->world->n_subscribers) return;
	notice_begin(&b, event, a->session->name);
	buf_puts(&b, ",\"client\":");
	notify_put_where(&b, a->client);
	if (why) notice_text(&b, "reason", why);
	notify_present(a->session, notice_end(&b), a);
}

struct attachment *attachment_new(struct router *r, struct client *c, struct session *s, bool observer, bool approve) {
	struct attachment *a = calloc(1, sizeof *a);
	(void)r;
	if (!a) return NULL;
	a->session = s;
	a->client = c;
	a->observer = observer;
	a->approve = approve;
	list_add_tail(&s->attachments, &a->node);
	s->n_attachments++;
	c->attachment = a;
	client_speak(c, session_dialect(s));
	session_used(s);
	session_changed(s);
	return a;
}

void attachment_ready(struct router *r, struct attachment *a) {
	(void)r;
	tell_presence(a, PLENUM_EV_ATTACHED, NULL);
	owners_return(a);
	asks_offer(a);
}

static void free_attachment(struct attachment *a) {
	names_free(&a->tools);
	free(a);
}

/* A client that only leaves the session gets an error for each open request. */
static void end_calls_of(struct session *s, struct client *c) {
	struct call *call;
	LIST_FOR_EACH (call, &s->calls.order, struct call, node)
		if (call->asker == c) {
			struct span id = {call->asker_id, call->asker_id ? strlen(call->asker_id) : 0};
			if (!c->dead) notify_fail(c, id, PLENUM_E_NOT_ATTACHED, ATTACHMENT_LEFT_TEXT, s->name);
			if (call->purpose == CALL_KEPT)
				call_end(&s->calls, call); /* the child has not got it */
			else
				call_orphan(&s->calls, call); /* drop the answer */
		}
}

void attachment_leave(struct client *c, const char *why) {
	struct attachment *a = c->attachment;
	if (!a) return;
	struct session *s = a->session;
	intake_leave(c);
	c->init_due = 0;
	if (a->on_lag == LAG_CLOSE) a->on_lag = LAG_GAP; /* it is leaving: a gap now must not detach it again */
	if (!c->dead) client_leave_tape(c);
	c->tape = NULL;
	tell_presence(a, PLENUM_EV_DETACHED, why);
	list_del(&a->node);
	s->n_attachments--;
	c->attachment = NULL;
	client_speak(c, NULL);
	client_filter_free(&c->filter);
	asks_leave(a);
	handshake_left(s, c);
	end_calls_of(s, c);
	execute_left(s, c);
	prompts_asker_gone(&s->prompts, c);
	owners_leave(a);
	bool unused = s->by_client && !s->conversation_id && !s->n_attachments; /* its client began nothing */
	bool ephemeral = (a->ephemeral || unused) && !s->removed;
	free_attachment(a);
	session_used(s);
	session_changed(s);
	/* not here: the caller may be walking through the session's lists */
	if (ephemeral && !s->world->shutting_down) loop_defer(s->loop, &s->over_task);
}

/* A half-closed client stays until everything that it waits for was sent (contract 7). */
void attachment_close_ended(struct client *c) {
	struct attachment *a = c->attachment;
	struct call *call;
	struct router *r = c->world;
	if (!c->ended || c->closing || c->dead || client_holds(c)) return;
	if (r->events->is_asker && r->events->is_asker(r, c)) return;
	if (a) {
		if (prompts_of(&a->session->prompts, c) || handshake_waits(a->session, c, SPAN_NONE)) return;
		if (execute_open(a->session, c, SPAN_NONE)) return;
		LIST_FOR_EACH (call, &a->session->calls.order, struct call, node)
			if (call->asker == c && !router_is_shim(c)) return; /* the CLI ends despite open requests */
		if (a->ephemeral && a->session->agent) {                /* its session ends with it, and it gets the exit */
			session_end_input(a->session);
			return;
		}
		attachment_leave(c, "end of input");
	}
	client_close(c);
}

bool sessions_is_name(const char *name) {
	size_t n = strlen(name), len;
	if (n == 0 || n > SESSIONS_NAME_MAX) return false;
	for (size_t i = 0; i < n; i += len) {
		len = str_utf8(name + i, n - i);
		if (!len || str_misleads(str_char(name + i, len))) return false;
	}
	return true;
}

struct session *trust_home(struct router *r, struct client *c) {
	struct session *home = trust_session(r, c);
	return home && !home->profile->agent_peers_none ? home : NULL;
}

struct trust_view trust_view(struct router *r, struct client *c) {
	bool agent = trust_of(r, c) == TRUST_AGENT;
	return (struct trust_view){.ours = client_is_ours(c), .agent = agent, .home = agent ? trust_home(r, c) : NULL};
}

bool trust_view_has(const struct trust_view *v, const struct session *s) {
	if (session_is_private(s) && !v->ours) return false;
	return !v->agent || (v->home && (s == v->home || s->made_by == v->home->id));
}

bool trust_is_closed_to(const struct session *s, struct client *c) {
	struct trust_view v = trust_view(s->world, c);
	return !trust_view_has(&v, s);
}

bool router_is_shim(const struct client *c) {
	const struct attachment *a = c->attachment;
	return a && a->ephemeral && c->filter.quiet;
}

bool trust_may_stop(const struct session *s, struct client *c) {
	return trust_is_free(s->world, c) && (client_is_ours(c) || c->peer.uid == s->launch.uid);
}

/* The client that the session ends with may have ended its input in this turn. */
static void close_owner(struct session *s) {
	struct attachment *a;
	LIST_FOR_EACH (a, &s->attachments, struct attachment, node) {
		if (!a->ephemeral || !a->client->ended) continue;
		attachment_close_ended(a->client);
		return;
	}
}

bool sessions_must_wait(struct session *s, struct client *c) {
	if (s->ending) close_owner(s);
	if (!session_is_going(s)) return false;
	if (s->agent && trust_may_stop(s, c)) session_stop(s, false, THEN_REMOVE);
	return true;
}

/* The root is the directory of services, such as the sshd of a forwarded socket, and not the user's choice. */
char *inquiry_usual_cwd(const struct client *c, const struct profile *p) {
	char *own = c->peer.uid == getuid() ? proc_cwd(c->peer.pid) : NULL;
	const char *home = getenv("HOME");
	if (own && strcmp(own, "/") != 0) return own;
	free(own);
	return str_dup(p->cwd ? p->cwd : home && *home == '/' ? home : "/");
}

const char *sessions_refused(struct router *r, const struct client *c, char why[SHARE_TEXT_MAX]) {
	size_t max = r->settings->max_sessions, kept = client_is_ours(c) ? 0 : share_reserve(max);
	if (!share_allows(&r->shares, c->peer.uid, SHARE_SESSIONS, 1, why)) return PLENUM_E_SHARE_EXCEEDED;
	if (r->n_sessions + kept >= max)
		snprintf(why, SHARE_TEXT_MAX, "there are %zu of %zu sessions (max_sessions)%s: forget one first", r->n_sessions,
				 max, kept ? ", the rest is the daemon's user's" : "");
	else if (kept && fd_is_short(SHARE_RESERVE_MAX))
		snprintf(why, SHARE_TEXT_MAX, "too few descriptors are free (ulimit -n, LimitNOFILE): forget a session first");
	else
		return NULL;
	return PLENUM_E_TOO_MANY;
}

/* An agent's program has an environment made by the agent; the pid of an ended process may have been reused. */
void inquiry_take_login(struct session *s, struct client *c) {
	uid_t me = getuid();
	if (s->agent || s->want_child || s->launch.uid != me) return;
	inquiry_take_umask(&s->launch, c);
	if (!s->launch.env_only) inquiry_set_asker(&s->launch, c);
}

/* Return true if a line of this client may make a session of this name. False: the client was notified. */
static bool may_make(struct router *r, struct client *c, const char *name, const struct profile *p, struct span id) {
	char why[SHARE_TEXT_MAX];
	const char *code;
	if (trust_of(r, c) == TRUST_AGENT)
		notify_fail(c, id, PLENUM_E_NOT_ALLOWED, TRUST_AGENT_TEXT);
	else if (!sessions_is_name(name))
		notify_fail(c, id, PLENUM_E_BAD_REQUEST, "%s names the session: " SESSIONS_NAME_TEXT, c->dialect->session_id,
					SESSIONS_NAME_MAX);
	else if (!p)
		notify_fail(c, id, PLENUM_E_NO_SUCH_PROFILE, "session %s is not there and the default profile is missing",
					name);
	else if (p->dialect->frame != c->dialect->frame)
		notify_fail(c, id, PLENUM_E_BAD_REQUEST, ROUTER_OTHER_TEXT, "the default profile", p->name, p->dialect->name,
					c->dialect->name);
	else if (p->is_private && !client_is_ours(c))
		notify_fail(c, id, PLENUM_E_NOT_ALLOWED,
					"session %s is not there, and the default profile is private to the user who runs the daemon",
					name);
	else if ((code = sessions_refused(r, c, why)) != NULL)
		notify_fail(c, id, code, "%s", why);
	else
		return true;
	return false;
}

void sessions_leave_begin(struct session *s) {
	s->by_client = session_has_steps(s);
}

static struct session *make_implicitly(struct router *r, struct client *c, const char *name, const struct profile *p,
									   struct span id, struct chunk line) {
	char error[CHILD_ERROR_MAX];
	struct launch launch = {.uid = c->peer.uid};
	if (!inquiry_look_for(c, line, p, NULL)) return NULL;
	launch.cwd = inquiry_usual_cwd(c, p);
	launch.place = inquiry_place_of(c);
	launch.login = inquiry_login_of(c, p);
	if (!launch.login) inquiry_set_asker(&launch, c);
	inquiry_take_umask(&launch, c);
	struct session *s = launch.cwd ? sessions_create(r, name, p, &launch) : NULL;
	launch_free(&launch);
	if (!s) {
		notify_fail(c, id, PLENUM_E_INTERNAL, "out of memory");
		return NULL;
	}
	sessions_leave_begin(s);
	enum child_result result = sessions_start(r, s, error);
	if (s->starting) starts_await(c, s, line, true);
	if (result == CHILD_OK) return s->starting ? NULL : s;
	notify_fail(c, id, result == CHILD_TIMEOUT ? PLENUM_E_TIMEOUT : PLENUM_E_SPAWN_FAILED, "%s", error);
	sessions_remove(r, s, error);
	return NULL;
}

/* The line has waited for the start of its session. */
static struct session *awaited_implicitly(struct client *c, struct span id, struct chunk line) {
	char error[CHILD_ERROR_MAX];
	const char *code;
	bool made;
	struct session *s = starts_awaited(c, line, &made, &code, error);
	if (code) notify_fail(c, id, code, "%s", error);
	return s;
}

/* Return the default profile. An editor starts its agent without a word to the daemon: it gets the first one of its
 * dialect. */
static const struct profile *implicit_profile(const struct router *r, const struct client *c) {
	const struct profile *p = settings_profile(r->settings, r->settings->default_profile);
	if (!c->dialect->take_step || (p && p->dialect == c->dialect)) return p;
	for (size_t i = 0; i < r->settings->n_profiles; i++)
		if (r->settings->profiles[i].dialect == c->dialect) return &r->settings->profiles[i];
	return p;
}

static struct session *implicit_session(struct router *r, struct client *c, const char *name, struct span id,
										struct chunk line) {
	const struct profile *p = implicit_profile(r, c);
	if (c->starting) return awaited_implicitly(c, id, line);
	struct session *s = router_named(r, name);
	if (!s) return may_make(r, c, name, p, id) ? make_implicitly(r, c, name, p, id, line) : NULL;
	if (!trust_is_closed_to(s, c)) {
		if (session_dialect(s)->frame != c->dialect->frame) {
			notify_fail(c, id, PLENUM_E_BAD_REQUEST, ROUTER_OTHER_TEXT, "session", name, session_dialect(s)->name,
						c->dialect->name);
			return NULL;
		}
		if (!sessions_must_wait(s, c)) return s;
		router_hold(c, line); /* later lines are for the next session of that name */
		return NULL;
	}
	if (trust_of(r, c) == TRUST_AGENT)
		notify_fail(c, id, PLENUM_E_NOT_ALLOWED, TRUST_AGENT_TEXT);
	else
		notify_fail(c, id, PLENUM_E_NOT_ALLOWED, TRUST_PRIVATE_TEXT, name);
	return NULL;
}

void sessions_make_up_name(struct router *r, char out[SESSIONS_MADE_UP_MAX]) {
	char hex[9];
	do {
		str_random_hex(hex, 8);
		snprintf(out, SESSIONS_MADE_UP_MAX, "s-%s", hex);
	} while (router_find(r, out));
}

struct attachment *implicit_attach(struct router *r, struct client *c, struct span session, struct span request_id,
								   struct chunk line) {
	_cleanup_free_ char *wanted = session.p ? span_dup(session, NULL) : NULL;
	char made_up[SESSIONS_MADE_UP_MAX];
	const char *name = wanted && *wanted ? wanted : "default";
	if (name != wanted && c->dialect->take_step) { /* such a client begins a conversation of its own */
		sessions_make_up_name(r, made_up);
		name = made_up;
	} else if (c->dialect->take_step && !router_named(r, name)) {
		notify_fail(c, request_id, PLENUM_E_NO_SUCH_SESSION, "no session has the conversation %.100s", name);
		return NULL;
	}
	if (name != wanted && span_is_string(session) && session.n > 2) {
		notify_fail(c, request_id, PLENUM_E_BAD_REQUEST, "%s names the session, and no name holds a NUL",
					c->dialect->session_id);
		return NULL;
	}
	struct session *s = implicit_session(r, c, name, request_id, line);
	if (!s) return NULL;
	struct attachment *a = attachment_new(r, c, s, false, trust_may_approve(r, c));
	if (!a) {
		notify_fail(c, request_id, PLENUM_E_INTERNAL, "out of memory");
		return NULL;
	}
	client_read_tape(c, &s->tape, s->tape.next);
	attachment_ready(r, a);
	return a;
}
