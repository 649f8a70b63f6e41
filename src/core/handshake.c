/* SPDX-License-Identifier: MIT */
#include "core/handshake.h"
#include "core/asks.h"
#include "core/guards.h"
#include "core/inquiry.h"
#include "core/notify.h"
#include "core/owners.h"
#include "core/requests.h"
#include "core/steps.h"

#include "base/log.h"
#include "base/str.h"
#include "plenum/protocol.h"
#include "wire/limits.h"

#include <string.h>

enum init_state { INIT_NONE, INIT_SENT, INIT_DONE };

/* A client that waits for the answer to its initialize. */
struct waiter {
	UT_hash_handle hh; /* by key */
	struct list node;
	struct client *client;
	char *id;         /* raw JSON */
	char *key;        /* the client's number and the id */
	char *ignored;    /* JSON array of names, or NULL */
	bool hooks;       /* it contained hooks */
	uint64_t version; /* of the registry, with this registration */
	uint64_t number;  /* number of the client's request (client.h, inits) */
	struct share_request charge;
};

struct handshake {
	enum init_state state;
	struct chunk first;     /* the first client's whole line: its other members are repeated each time */
	struct span request;    /* in it */
	bool first_taken;       /* a child has taken them */
	struct chunk answer;    /* the child's newest good answer */
	uint64_t sent, applied; /* versions of the registry */
	bool first_of_child;    /* the pending one is this child's first */
	bool ignores;           /* this child takes no repeated initialize */
	bool restart_due;       /* a client's hooks wait for a child that takes them */
	bool cleared;           /* nothing was ever registered with this child */
	struct list waiters;
	struct waiter *by_key;
};

bool handshake_begin(struct session *s) {
	if (s->handshake) return true;
	struct handshake *in = calloc(1, sizeof *in);
	if (!in) return false;
	list_init(&in->waiters);
	s->handshake = in;
	return true;
}

static struct handshake *state_of(struct session *s) {
	if (!handshake_begin(s)) log_no_memory(); /* a session without this would report its hooks wrongly */
	return s->handshake;
}

static char *waiter_key(const struct client *c, struct span id) {
	return str_printf("%llu:%.*s", (unsigned long long)c->id, (int)id.n, id.p ? id.p : "");
}

/* Add a waiter with its client and its id set. Return false without memory. */
static bool list_waiter(struct handshake *in, struct waiter *w) {
	w->key = waiter_key(w->client, span_of(w->id));
	if (!w->key) return false;
	if (!HASH_TRY_ADD(hh, in->by_key, w->key, strlen(w->key), w)) {
		free(w->key);
		w->key = NULL;
		return false;
	}
	w->client->inits_open++;
	return true;
}

static void free_waiter(struct handshake *in, struct waiter *w) {
	list_del(&w->node);
	share_end(&w->charge);
	if (w->key) {
		HASH_DELETE(hh, in->by_key, w);
		w->client->inits_open--;
	}
	free(w->key);
	free(w->id);
	free(w->ignored);
	free(w);
}

void handshake_free(struct session *s) {
	struct handshake *in = s->handshake;
	struct waiter *w;
	if (!in) return;
	LIST_FOR_EACH (w, &in->waiters, struct waiter, node) free_waiter(in, w);
	chunk_drop(&in->first);
	chunk_drop(&in->answer);
	free(in);
	s->handshake = NULL;
}

void handshake_move(struct session *to, struct session *from) {
	struct handshake *in = state_of(from);
	in->sent = in->applied = to->registry.version;
	handshake_free(to);
	to->handshake = in;
	from->handshake = NULL;
}

/* --- sending ------------------------------------------------------------------------------------------------------ */

static const struct dialect_hooks *hooks_of(const struct session *s) {
	return session_dialect(s)->hooks;
}

/* Return true for a member of the client's request that the child gets from the daemon, or not at all. */
static bool is_ours(const struct dialect_hooks *d, struct span key) {
	return span_equals(key, d->hooks) || span_equals(key, d->servers) || d->is_frame(key);
}

/* Write the request: the first client's other members, and what all clients have registered. */
static void put_union(struct buf *b, struct session *s, struct span first, bool always_hooks) {
	const struct dialect_hooks *d = hooks_of(s);
	struct span key, value;
	buf_puts(b, d->request);
	for (size_t at = 0; span_next_member(first, &at, &key, &value);)
		if (!is_ours(d, key)) span_put_member(b, key, value);
	if (s->registry.n_hooks || always_hooks) {
		buf_printf(b, ",\"%s\":", d->hooks);
		registry_put_hooks(&s->registry, b);
	}
	if (registry_has_servers(&s->registry)) {
		buf_printf(b, ",\"%s\":", d->servers);
		registry_put_server_names(&s->registry, b);
	}
	buf_putc(b, '}');
}

/* Restore the plan mode after the daemon has replaced a child: an old CLI forgets it over --resume (2.1.197), a newer
 * one restores it by itself. A person must choose modes that allow more again. */
static void put_strict_mode(struct buf *b, struct session *s) {
	struct call *call = call_new(&s->calls, s, s->loop, CALL_SILENT, NULL, 0, SPAN_NONE, requests_timer);
	const struct dialect *d = session_dialect(s);
	if (!call) {
		session_no_memory(s, "its permission mode was lost");
		return;
	}
	call->act = ACT_CHANGE;
	call->what = dialect_gate_what(d->gate, d->n_gate, PLENUM_WHAT_MODE);
	call->value = strdup(s->snapshot.strict);
	d->put_mode(b, call->id, span_of(s->snapshot.strict));
	loop_timer_set(&call->timer, s->profile->control_timeout);
}

static void send_init(struct session *s) {
	struct handshake *in = state_of(s);
	struct call *call = call_new(&s->calls, s, s->loop, CALL_INIT, NULL, 0, SPAN_NONE, NULL);
	struct buf body = NOTICE_INIT, b = NOTICE_INIT;
	if (!call) {
		session_no_memory(s, "it cannot be sent its initialize");
		return;
	}
	in->first_of_child = in->state == INIT_NONE;
	if (in->first_of_child) in->cleared = s->registry.n_hooks == 0;
	put_union(&body, s, in->request, !in->first_of_child && !in->cleared);
	if (s->registry.n_hooks) in->cleared = false;
	session_dialect(s)->put_request(&b, call->id, body.data ? body.data : "");
	b.failed |= body.failed;
	buf_free(&body);
	in->sent = s->registry.version;
	registry_was_sent(&s->registry);
	bool first = in->first_of_child;
	if (first) progress_owes_init(&s->progress, true);
	if (first && s->snapshot.strict) put_strict_mode(&b, s);
	in->state = INIT_SENT;
	struct chunk line = notice_chunk(&b);
	if (!first)
		session_must_write(s, line);
	else if (!line.data || !session_write_first(s, line))
		session_no_memory(s, "it cannot be sent its initialize");
}

static bool can_resend(struct session *s) {
	const struct handshake *in = state_of(s);
	const struct pending *p;
	if (!session_has_child(s) || in->state != INIT_DONE || in->ignores) return false;
	LIST_FOR_EACH (p, &s->pendings.order, const struct pending, node)
		if (p->kind == ASK_HOOK) return false;
	return true;
}

/* Nothing is registered with this child, and it owes no answer. */
static void skip_init(struct session *s) {
	struct handshake *in = state_of(s);
	in->state = INIT_DONE;
	in->applied = s->registry.version;
}

void handshake_before_prompt(struct session *s) {
	if (!session_has_child(s) || state_of(s)->state != INIT_NONE) return;
	if (hooks_of(s))
		send_init(s);
	else
		skip_init(s);
}

void handshake_started(struct session *s) {
	struct handshake *in = state_of(s);
	in->state = INIT_NONE;
	in->ignores = in->restart_due = false;
	if (!hooks_of(s)) {
		skip_init(s);
		steps_next(s);
		return;
	}
	if (in->first.data || s->registry.n_hooks || registry_has_servers(&s->registry) || !list_empty(&in->waiters) ||
		s->snapshot.strict || session_queue(s)->count)
		send_init(s);
}

static bool may_restart(const struct session *s) {
	bool loses = s->conversation_id && !session_can_resume(s);
	return !loses && !s->profile->restart_never;
}

static bool is_behind(const struct session *s) {
	const struct handshake *in = s->handshake;
	if (in->state != INIT_DONE || in->applied == s->registry.version) return false;
	return !s->ending || !list_empty(&in->waiters) || prompts_needy(&s->prompts, NULL, in->applied);
}

void handshake_resend(struct session *s) {
	if (is_behind(s) && can_resend(s)) send_init(s);
}

/* If the child ignores a repeated initialize, resume it at the next idle moment, with the union as its first. */
void handshake_restart(struct session *s) {
	const struct handshake *in = s->handshake;
	if (!in->ignores || !in->restart_due || !is_behind(s)) return;
	bool prompts = s->prompts.n_open > s->prompts.n_held; /* queued ones may wait for this restart */
	if (!may_restart(s)) return;                          /* a child without these hooks is better than none */
	if (session_state(s) != SESSION_IDLE || s->pendings.n || s->calls.n || s->progress.background || prompts ||
		s->stopping)
		return;
	log_info("session %s: resumes its child, so that new hooks apply", s->label);
	/* Due until the next child is there: no other gets the lines that wait for it. */
	session_stop(s, false, THEN_RESTART);
}

/* --- programs that count on their initialize ---------------------------------------------------------------------- */

static bool is_empty(struct span value) {
	size_t at = 0;
	struct span key, member;
	if (!value.p || *value.p == 'n') return true;
	return *value.p == '{' ? !span_next_member(value, &at, &key, &member)
						   : *value.p == '[' && !span_element(value, 0).p;
}

bool handshake_arrives(struct client *c, struct span request) {
	const struct attachment *a = c->attachment;
	/* The client's prompts must not run without this initialize. */
	bool needed = a && (a->asked_approve || (a->owner && !list_empty(&a->owner->servers)));
	for (const char *const *m = c->dialect->hooks->needed; *m && !needed; m++)
		needed = !is_empty(span_member(request, *m));
	c->inits++;
	if (needed) c->init_due = c->inits;
	return needed;
}

bool handshake_arrives_broken(struct client *c, const char *text, size_t n) {
	const struct dialect_hooks *d = c->dialect->hooks;
	if (!d || !d->looks_like((struct span){text, n})) return false;
	c->init_due = ++c->inits;
	return true;
}

bool handshake_refused(const struct client *c) {
	const struct attachment *a = c->attachment;
	return c->init_due && !(a && handshake_waits(a->session, c, SPAN_NONE));
}

uint64_t handshake_needs(const struct session *s, const struct client *c) {
	const struct attachment *a = c->attachment;
	const struct hook_entry *e;
	uint64_t newest = 0;
	if (!a || a->session != s || !a->owner || !owner_unproven(a->owner)) return 0;
	LIST_FOR_EACH (e, &a->owner->entries, struct hook_entry, node) newest = MAX(newest, e->born);
	return newest;
}

/* Return true if no child has taken this version yet, and one will. */
static bool comes(const struct session *s, uint64_t version) {
	const struct handshake *in = s->handshake;
	if (!in) return version != 0;
	return version > in->applied && (!in->ignores || (in->restart_due && may_restart(s)));
}

bool handshake_holds(const struct session *s, const struct client *c) {
	const struct attachment *a = c->attachment;
	if (!a || a->session != s) return false;
	return (c->init_due && handshake_waits(s, c, SPAN_NONE)) || comes(s, handshake_needs(s, c));
}

bool handshake_holds_prompt(const struct session *s, const struct prompt *p) {
	return p->asker && (handshake_holds(s, p->asker) || comes(s, p->needs));
}

bool handshake_blocks(struct client *c, struct span id) {
	const struct attachment *a = c->attachment;
	if (handshake_refused(c)) {
		notify_fail(c, id, PLENUM_E_INITIALIZE_REFUSED, HANDSHAKE_REFUSED_TEXT);
		return true;
	}
	if (!a || !handshake_holds(a->session, c)) return false;
	notify_fail(c, id, PLENUM_E_BUSY, "your hooks do not apply yet: wait for the answer to your initialize");
	return true;
}

/* A program that stands in for the CLI cannot wait for an unknown event: it gets an error, and ends. */
void handshake_served(struct client *c) {
	if (c->dead || client_holds(c) || !c->filter.quiet || !handshake_refused(c)) return;
	notify_complain(c, SPAN_NONE, PLENUM_E_INITIALIZE_REFUSED, HANDSHAKE_REFUSED_TEXT);
}

/* --- answering ---------------------------------------------------------------------------------------------------- */

struct edit {
	struct span old;
	const char *text;
};

#define EDITS_MAX 8

/* Sorts the edits. */
static struct chunk apply_edits(struct chunk line, struct edit *edits, size_t n) {
	struct buf b = NOTICE_INIT;
	const char *from = line.data;
	for (size_t i = 1; i < n; i++)
		for (size_t k = i; k > 0 && edits[k].old.p < edits[k - 1].old.p; k--) {
			struct edit tmp = edits[k];
			edits[k] = edits[k - 1];
			edits[k - 1] = tmp;
		}
	for (size_t i = 0; i < n; i++) {
		buf_put(&b, from, (size_t)(edits[i].old.p - from));
		buf_puts(&b, edits[i].text);
		from = edits[i].old.p + edits[i].old.n;
	}
	buf_put(&b, from, (size_t)(line.data + line.len - from));
	return notice_chunk(&b);
}

/* Return ,"plenum":{...} for the end of the payload, or "". */
static char *plenum_note(const char *ignored, const char *reason) {
	struct buf b = NOTICE_INIT;
	if (!ignored && !reason) return strdup("");
	buf_puts(&b, "\"plenum\":{");
	if (reason) {
		buf_puts(&b, "\"" PLENUM_M_APPLIED "\":false,\"reason\":");
		str_put_json(&b, reason, strlen(reason));
	}
	if (ignored) buf_printf(&b, "%s\"ignored\":%s", reason ? "," : "", ignored);
	buf_puts(&b, "},");
	return buf_steal(&b, NULL);
}

/* Update the child's report on itself to the present state. */
static size_t edit_news(struct edit *edits, const struct envelope *answer, const struct session *s) {
	const struct dialect_hooks *d = hooks_of(s);
	struct span mode = d->mode(answer), state = d->state(answer);
	enum session_state now = session_state(s);
	const char *name = now == SESSION_ASKING ? d->state_asks : now == SESSION_BUSY ? d->state_runs : d->state_rests;
	size_t n = 0;
	if (mode.p && s->snapshot.mode) edits[n++] = (struct edit){mode, s->snapshot.mode};
	if (state.p) edits[n++] = (struct edit){state, name};
	return n;
}

/* Make the child's answer for one client: its id, no list of open requests (they come as lines), the true state of its
 * hooks; if it was kept, it may be of an old child. */
static struct chunk answer_for(const struct session *s, struct chunk line, const char *id, const char *ignored,
							   const char *reason, bool hooks, bool kept) {
	struct envelope e;
	struct edit edits[EDITS_MAX];
	size_t n = 0;
	if (!session_dialect(s)->scan(line.data, line.len, &e)) return CHUNK_NONE;
	edits[n++] = (struct edit){e.inner_request_id, id};
	for (const char *const *m = hooks_of(s)->open_asks; *m; m++) {
		struct span list = span_member(e.response, *m);
		if (list.p) edits[n++] = (struct edit){list, "[]"};
	}
	struct span applied = hooks_of(s)->applied(&e);
	if (applied.p && (reason || hooks)) edits[n++] = (struct edit){applied, reason ? "false" : "true"};
	_cleanup_free_ char *note = plenum_note(ignored, reason);
	struct span body = e.inner_response;
	if (note && *note && span_is_object(body)) {
		size_t at = 0;
		struct span key, value;
		bool empty = !span_next_member(body, &at, &key, &value);
		if (empty) note[strlen(note) - 1] = 0; /* no comma before the brace */
		edits[n++] = (struct edit){{body.p + 1, 0}, note};
	}
	if (kept) n += edit_news(edits + n, &e, s);
	return apply_edits(line, edits, n);
}

static void answer_kept(struct client *c, struct session *s, const char *id, const char *ignored, const char *reason,
						bool hooks) {
	client_post(c, answer_for(s, state_of(s)->answer, id, ignored, reason, hooks, true));
	c->init_due = 0; /* it is the newest one */
}

#define REASON_IGNORES                                                                                                 \
	"this version of the CLI takes hooks only when it starts: yours apply as soon as the session is idle and the CLI " \
	"was resumed"
#define REASON_OPEN                                                                                                    \
	"another hook callback is open, and sending the table now would refuse its tool: yours apply when it is settled"
#define REASON_ASLEEP "the session is asleep: your hooks apply when it wakes"

static void answer_waiters(struct session *s) {
	struct handshake *in = state_of(s);
	struct waiter *w;
	bool again = false;
	LIST_FOR_EACH (w, &in->waiters, struct waiter, node) {
		bool waits = w->hooks && in->applied < w->version;
		if (waits && !in->ignores && can_resend(s)) { /* its own turn comes with the next initialize */
			again = true;
			continue;
		}
		const char *reason = !waits ? NULL : in->ignores ? REASON_IGNORES : REASON_OPEN;
		if (waits && in->ignores) in->restart_due = true;
		client_post(w->client, answer_for(s, in->answer, w->id, w->ignored, reason, w->hooks, false));
		if (w->number >= w->client->init_due) w->client->init_due = 0;
		free_waiter(in, w);
	}
	if (again) send_init(s);
}

/* silent: skip clients that see an end of the session as they would that of the CLI. */
static void fail_waiters(struct session *s, const char *code, const char *text, bool silent) {
	struct handshake *in = state_of(s);
	struct waiter *w;
	LIST_FOR_EACH (w, &in->waiters, struct waiter, node) {
		struct client *c = w->client;
		bool told = !silent || !router_is_shim(c);
		if (told) notify_fail(c, span_of(w->id), code, "%s", text);
		free_waiter(in, w);
		if (told) handshake_served(c);
	}
}

bool handshake_waits(const struct session *s, const struct client *c, struct span id) {
	const struct handshake *in = s->handshake;
	const struct waiter *w;
	if (!in || !c->inits_open) return false;
	if (!id.p) return true;
	_cleanup_free_ char *key = waiter_key(c, id);
	if (!key) return true; /* a refusal is better than two answers */
	HASH_FIND_STR(in->by_key, key, w);
	return w;
}

/* An owner loses hooks that no child has ever taken, because one of them may be why the child refuses the table. */
static void tell_lost(void *arg, struct owner *o) {
	struct session *s = arg;
	struct attachment *a = o->holder;
	_cleanup_free_ char *name = o->name ? str_word(o->name) : NULL;
	log_warn("session %s: the child refused hooks of %s", s->label, name ? name : "a client without a name");
	if (!a) return;
	a->client->init_due = ++a->client->inits;
	if (!handshake_waits(s, a->client, SPAN_NONE))
		notify_complain(a->client, SPAN_NONE, PLENUM_E_BAD_REQUEST,
						"the child has refused the hooks that you registered: they are dropped");
}

/* Hooks left behind by a client have no holder that could know them: these may be the dropped ones. */
static void forsake_left(struct session *s) {
	struct attachment *a;
	LIST_FOR_EACH (a, &s->attachments, struct attachment, node) {
		struct client *c = a->client;
		bool left = !a->owner && prompts_needy(&s->prompts, c, s->handshake->applied);
		if (c->ended || left) c->init_due = ++c->inits;
	}
}

static void on_refused(struct session *s, struct chunk line) {
	struct handshake *in = state_of(s);
	struct waiter *w;
	bool first = in->first_of_child;
	bool members = first && !in->first_taken && in->first.data;
	bool changed = registry_was_refused(&s->registry, !members, tell_lost, s);
	if (changed) forsake_left(s);
	if (members) { /* not taken by any child: do not repeat them */
		chunk_drop(&in->first);
		in->request = SPAN_NONE;
	}
	in->state = first ? INIT_NONE : INIT_DONE;
	if (first) steps_next(s);
	LIST_FOR_EACH (w, &in->waiters, struct waiter, node) {
		if (w->version > in->sent) continue; /* its registration was not in the refused request */
		client_post(w->client, answer_for(s, line, w->id, NULL, NULL, false, false));
		free_waiter(in, w);
	}
	if (first && registry_guards(&s->registry)) { /* the child knows no guard: no prompt may run in it */
		log_warn("session %s: the child refused its hooks, it is ended before it can run a tool without them",
				 s->label);
		session_stop(s, true, changed ? THEN_RESTART : THEN_SLEEP);
	} else if (first && !list_empty(&in->waiters)) {
		send_init(s);
	} else if (!changed) {
		in->applied = in->sent; /* the old table is in force, and the same one would be refused again */
	}
}

void handshake_answered(struct session *s, struct call *call, struct chunk line, const struct envelope *e) {
	struct handshake *in = state_of(s);
	bool first = in->first_of_child, ok = session_dialect(s)->succeeded(e);
	call_end(&s->calls, call);
	progress_owes_init(&s->progress, false);
	if (!ok) {
		on_refused(s, line);
		return;
	}
	snapshot_mode(&s->snapshot, hooks_of(s)->mode(e));
	in->state = INIT_DONE;
	in->first_taken = in->first.data != NULL;
	if (first) steps_next(s);
	bool resumed = first && in->answer.data; /* also if nothing was registered with the previous child */
	chunk_drop(&in->answer);
	in->answer = chunk_copy(line.data, line.len);
	if (!in->answer.data) {
		session_no_memory(s, "its answer to initialize was lost");
		return;
	}
	bool later = in->applied != in->sent && (in->applied != 0 || resumed);
	if (first || span_is_true(hooks_of(s)->applied(e)) || s->registry.n_hooks == 0) {
		in->applied = in->sent;
		registry_was_taken(&s->registry, in->sent);
		if (later) notify_changed(s, PLENUM_M_APPLIED, span_of("true"), NULL);
	} else {
		in->ignores = true;
	}
	answer_waiters(s);
}

/* The child's report on itself is lost. Without an older answer the next client's initialize is sent to it again. No
 * child refuses in so many bytes. */
void handshake_unread(struct session *s, struct call *call, const char *code, const char *text) {
	struct handshake *in = state_of(s);
	call_end(&s->calls, call);
	progress_owes_init(&s->progress, false);
	in->state = in->first_of_child ? INIT_NONE : INIT_DONE;
	if (in->first_of_child) steps_next(s);
	in->applied = in->sent;
	registry_was_taken(&s->registry, in->sent);
	fail_waiters(s, code, text, false);
}

/* Share the child's last answer, ten to twenty KiB of commands and models for later clients, while a session sleeps.
 * Without the members of one child it is the same for all sessions of a kind. */
static void share_answer(struct session *s) {
	struct handshake *in = state_of(s);
	struct envelope e;
	if (!in->answer.data || !session_dialect(s)->scan(in->answer.data, in->answer.len, &e)) return;
	struct span pid = hooks_of(s)->pid(&e);
	struct edit edits[] = {{e.inner_request_id, "\"\""}, {pid, "null"}};
	struct chunk own = apply_edits(in->answer, edits, pid.p ? 2 : 1);
	for (struct session *o = s->world->sessions; own.data && o; o = o->hh.next) {
		const struct handshake *other = o == s || o->agent ? NULL : o->handshake;
		if (!other || other->answer.len != own.len || memcmp(other->answer.data, own.data, own.len) != 0) continue;
		chunk_drop(&own);
		own = chunk_ref(other->answer);
		break;
	}
	if (!own.data) return;
	chunk_drop(&in->answer);
	in->answer = own;
}

void handshake_child_gone(struct session *s, const char *text, bool ends) {
	struct handshake *in = state_of(s);
	if (!s->want_child) share_answer(s);
	in->state = INIT_NONE;
	registry_child_gone(&s->registry);
	if (!s->want_child) fail_waiters(s, PLENUM_E_CHILD_EXITED, text, ends);
}

void handshake_left(struct session *s, struct client *c) {
	c->init_due = 0;
	struct handshake *in = state_of(s);
	struct waiter *w;
	LIST_FOR_EACH (w, &in->waiters, struct waiter, node) {
		if (w->client != c) continue;
		struct span id = span_of(w->id);
		if (!c->dead) notify_fail(c, id, PLENUM_E_NOT_ATTACHED, ROUTER_LEFT_TEXT, s->name);
		free_waiter(in, w);
	}
}

bool handshake_is_current(const struct session *s) {
	const struct handshake *in = s->handshake;
	return in && in->applied == s->registry.version;
}

bool handshake_is_answered(const struct session *s) {
	const struct handshake *in = s->handshake;
	return in && in->state == INIT_DONE;
}

void handshake_made_current(struct session *s) {
	state_of(s)->applied = s->registry.version;
}

struct span handshake_kept(const struct session *s) {
	const struct handshake *in = s->handshake;
	struct envelope e;
	if (!in || !in->answer.data || !session_dialect(s)->scan(in->answer.data, in->answer.len, &e)) return SPAN_NONE;
	return e.inner_response;
}

/* --- a client's initialize ---------------------------------------------------------------------------------------- */

/* Return true if each name of this array is free for the client; else it was notified. */
static bool servers_are_free(struct client *c, struct session *s, struct span id, struct span names) {
	struct span name;
	const char *as = owners_takes_up_as(c->attachment);
	size_t n = 0; /* too many names: refused for that */
	for (size_t at = 0; n++ <= LIMITS_NAMES && span_next(names, &at, &name);) {
		const struct owner *o = owners_of_server(s, c->attachment, as, name);
		if (!o) continue;
		owners_refuse_server(c, id, name, o);
		return false;
	}
	return true;
}

struct refusal {
	const char *code; /* NULL: success */
	struct error error;
};

static void refuse(struct refusal *no, const char *code, const char *text) {
	no->code = code;
	error_set(&no->error, "initialize: %s", text);
}

/* Stage the request; nothing of it is in force yet. */
static const char *stage(struct session *s, struct owner *o, struct span request) {
	const struct dialect_hooks *d = hooks_of(s);
	struct span hooks = span_member(request, d->hooks);
	if (hooks.p && *hooks.p != 'n' && *hooks.p != '{') return "`hooks` must be an object of events, or null";
	const char *error = registry_check_names(&s->registry, o, span_member(request, d->servers),
											 span_member(request, d->dialogs));
	return !error && span_is_object(hooks) ? registry_stage_hooks(&s->registry, o, hooks) : error;
}

/* Guards are registered after the table on disk has them: write the staged ones there first. */
static void keep(struct session *s, struct refusal *no, const char *before) {
	struct router *r = s->world;
	_cleanup_free_ char *after = NULL;
	struct error error;
	if (!guards_text(&s->registry, &after)) {
		refuse(no, PLENUM_E_INTERNAL, "out of memory");
		return;
	}
	if (strcmp(before ? before : "", after ? after : "") == 0) return;
	const char *code = r->events->keep(r, s, &error);
	if (code) refuse(no, code, error.text);
}

static const char *commit(struct session *s, struct owner *o, struct span request) {
	const struct dialect_hooks *d = hooks_of(s);
	struct span name;
	const char *error = NULL;
	registry_commit_hooks(&s->registry, o);
	for (size_t at = 0; !error && span_next(span_member(request, d->servers), &at, &name);)
		error = registry_add_server(&s->registry, o, name, SPAN_NONE, true);
	if (!error && span_is_array(span_member(request, d->dialogs)))
		error = registry_set_dialogs(o, span_member(request, d->dialogs));
	return error;
}

bool handshake_register(struct client *c, struct session *s, const struct envelope *e) {
	struct refusal no = {0};
	_cleanup_free_ char *before = NULL;
	if (!servers_are_free(c, s, e->request_id, span_member(e->request, hooks_of(s)->servers))) return false;
	struct owner *o = owners_get(c->attachment);
	bool ok = o && guards_text(&s->registry, &before);
	const char *error = ok ? stage(s, o, e->request) : NULL;
	if (!ok)
		refuse(&no, PLENUM_E_INTERNAL, "out of memory");
	else if (error)
		refuse(&no, registry_code(error), error);
	else
		keep(s, &no, before);
	if (!no.code && (error = commit(s, o, e->request))) refuse(&no, registry_code(error), error);
	if (no.code && o) registry_cancel_hooks(&s->registry, o);
	if (no.code)
		notify_fail(c, e->request_id, no.code, "%s", no.error.text);
	else
		prompts_need(&s->prompts, c, handshake_needs(s, c));
	return !no.code;
}

/* Return true if a child must get something of it with its first initialize. */
static bool asks_something(const struct dialect_hooks *d, struct span request) {
	struct span key, value;
	for (size_t at = 0; span_next_member(request, &at, &key, &value);)
		if (!is_empty(value) && !d->is_frame(key)) return true;
	return false;
}

bool handshake_asks(const struct session *s) {
	const struct handshake *in = s->handshake;
	return in && in->first.data && asks_something(hooks_of(s), in->request);
}

/* A member of an initialize. */
struct said {
	UT_hash_handle hh; /* by the raw key */
	struct span key, value;
};

/* Of a repeated key the last value counts. */
static struct said *read_said(struct span request) {
	struct said *all = NULL, *one;
	struct span key, value;
	for (size_t at = 0; span_next_member(request, &at, &key, &value);) {
		HASH_FIND(hh, all, key.p, key.n, one);
		if (!one) {
			one = calloc(1, sizeof *one);
			if (!one || !HASH_TRY_ADD(hh, all, key.p, key.n, one)) { /* it counts as new then */
				free(one);
				break;
			}
			one->key = key;
		}
		one->value = value;
	}
	return all;
}

/* Return the names of members that come too late: another initialize was first, with other values. */
static char *ignored_members(const struct dialect_hooks *d, struct span first, struct span request) {
	struct said *all = read_said(first), *said, *next;
	struct buf b = NOTICE_INIT;
	struct span key, value;
	for (size_t at = 0; span_next_member(request, &at, &key, &value);) {
		if (is_ours(d, key) || span_equals(key, d->dialogs) || *value.p == 'n') continue;
		HASH_FIND(hh, all, key.p, key.n, said);
		if (said && span_same(said->value, value)) continue;
		buf_putc(&b, b.len ? ',' : '[');
		buf_put(&b, key.p, key.n);
	}
	HASH_ITER (hh, all, said, next) {
		HASH_DELETE(hh, all, said);
		free(said);
	}
	if (!b.len) {
		buf_free(&b);
		return NULL;
	}
	buf_putc(&b, ']');
	return buf_steal(&b, NULL);
}

static void add_waiter(struct client *c, struct session *s, struct span id, const char *ignored, bool hooks) {
	if (c->inits_open >= LIMITS_INITS) {
		notify_fail(c, id, PLENUM_E_TOO_MANY, "a client may have %zu initialize requests open: wait for an answer",
					LIMITS_INITS);
		return;
	}
	struct waiter *w = calloc(1, sizeof *w);
	if (w) w->client = c;
	if (!w || !(w->id = strndup(id.p, id.n)) || !list_waiter(state_of(s), w)) {
		if (w) free(w->id);
		free(w);
		notify_fail(c, id, PLENUM_E_INTERNAL, "out of memory");
		return;
	}
	w->ignored = str_dup(ignored);
	w->hooks = hooks;
	w->version = s->registry.version;
	w->number = c->inits;
	share_begin(&w->charge, &c->member, false);
	list_add_tail(&state_of(s)->waiters, &w->node);
}

static void proceed(struct client *c, struct session *s, struct span id, const char *ignored, bool hooks) {
	struct handshake *in = state_of(s);
	struct error error;
	_cleanup_free_ char *raw = strndup(id.p, id.n);
	bool here = session_has_child(s);
	if (!here && in->answer.data && raw) {
		answer_kept(c, s, raw, ignored, hooks ? REASON_ASLEEP : NULL, hooks);
		return;
	}
	if (!here) inquiry_take_login(s, c);
	if (!here && !session_wake(s, &error)) {
		notify_fail(c, id, PLENUM_E_CHILD_EXITED, "%s", error.text);
		return;
	}
	bool due = in->state == INIT_DONE && in->applied != s->registry.version;
	if (in->state == INIT_DONE && (!due || !can_resend(s)) && raw) {
		const char *reason = !hooks || !due ? NULL : in->ignores ? REASON_IGNORES : REASON_OPEN;
		if (reason && in->ignores) in->restart_due = true;
		answer_kept(c, s, raw, ignored, reason, hooks);
		return;
	}
	add_waiter(c, s, id, ignored, hooks);
	if (here && in->state != INIT_SENT) send_init(s);
}

bool handshake_is_for_first(const struct session *s, const struct envelope *e) {
	return asks_something(hooks_of(s), e->request);
}

void handshake_initialize(struct client *c, struct session *s, struct chunk line, const struct envelope *e) {
	const struct dialect_hooks *d = hooks_of(s);
	struct span hooks = span_member(e->request, d->hooks);
	struct handshake *in = state_of(s);
	bool first = !in->first.data && in->state == INIT_NONE;
	if (first) { /* keep the first client's other members: every later initialize repeats them */
		struct envelope own;
		in->first = chunk_copy(line.data, line.len);
		if (!in->first.data || !session_dialect(s)->scan(in->first.data, in->first.len, &own)) {
			notify_fail(c, e->request_id, PLENUM_E_INTERNAL, "out of memory");
			return;
		}
		in->request = own.request;
	}
	c->attachment->initialized = true;
	_cleanup_free_ char *ignored = first || s->untouched ? NULL : ignored_members(d, in->request, e->request);
	proceed(c, s, e->request_id, ignored, span_is_object(hooks) && !is_empty(hooks));
	asks_offer(c->attachment); /* dialogs of the newly declared kinds */
}

/* --- upgrade ------------------------------------------------------------------------------------------------------ */

static void carry_waiters(struct carry *c, struct handshake *in) {
	struct waiter *w;
	size_t n = 0;
	LIST_FOR_EACH (w, &in->waiters, struct waiter, node) n++;
	n = carry_count(c, n);
	struct list *next = in->waiters.next;
	for (size_t i = 0; i < n && carry_ok(c); i++) {
		w = c->saving ? LIST_OF(next, struct waiter, node) : calloc(1, sizeof *w);
		if (!w) {
			carry_fail(c, "out of memory");
			return;
		}
		if (!c->saving) list_add_tail(&in->waiters, &w->node);
		carry_client(c, &w->client);
		carry_name(c, &w->id);
		carry_text(c, &w->ignored);
		CARRY(c, w->hooks);
		CARRY(c, w->version);
		CARRY(c, w->number);
		next = w->node.next;
		if (c->saving) continue;
		if (!w->client)
			carry_fail(c, "no client waits for an initialize");
		else if (!list_waiter(in, w))
			carry_fail(c, "out of memory");
		else
			share_begin(&w->charge, &w->client->member, false);
	}
}

void handshake_carry(struct carry *c, struct session *s) {
	struct handshake *in = state_of(s);
	struct envelope e;
	carry_mark(c, "init");
	CARRY_UPTO(c, in->state, INIT_DONE);
	carry_chunk(c, &in->first);
	carry_chunk(c, &in->answer);
	CARRY(c, in->sent);
	CARRY(c, in->applied);
	CARRY(c, in->first_of_child);
	CARRY(c, in->ignores);
	CARRY(c, in->restart_due);
	CARRY(c, in->cleared);
	CARRY(c, in->first_taken);
	carry_waiters(c, in);
	if (c->saving || !in->first.data) return;
	if (!session_dialect(s)->scan(in->first.data, in->first.len, &e)) carry_fail(c, "the kept initialize is damaged");
	in->request = carry_ok(c) ? e.request : SPAN_NONE;
}
