/* SPDX-License-Identifier: MIT */
#include "attention.h"

#include "base/fd.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "core/launch.h"
#include "io/proc.h"
#include "plenum/protocol.h"
#include "verbs/verbs.h"

#include <signal.h>
#include <string.h>

#define AT_ONCE 8
#define GRACE_MS 5000 /* from SIGTERM to SIGKILL */

extern char **environ;

/* The key for each kind, and the event. */
static const char *const keys[] = {"on_pending", "on_turn_end", "on_failed", "on_stalled"};
static const char *const events[] = {PLENUM_EV_ATTENTION, PLENUM_EV_TURN_ENDED, PLENUM_EV_FAILED, PLENUM_EV_STALLED};

struct helper {
	struct child child;
	struct list node;
	struct attention *owner;
	enum alert_kind kind;
	struct loop_timer timer;
	int sent; /* SIGTERM, then SIGKILL; 0: none yet */
	struct errand start;
	struct loop_task free_task;
};

/* A session with a command that ran within notify_interval, or is due. */
struct due {
	UT_hash_handle hh; /* by session, for each kind */
	struct list node;
	enum alert_kind kind;
	char *session;
	bool waits;                     /* the newest alert has had no run yet */
	char *request, *tool, *summary; /* of that; may be NULL */
	int64_t at;                     /* of the last run */
};

struct attention {
	struct loop *loop;
	struct children *children;
	struct router *router;
	struct list helpers, dues;
	struct due *by_session[ALERT_KINDS];
	size_t n_helpers[ALERT_KINDS], n_dues;
	struct loop_timer timer; /* for the next due command */
};

static void run_due(void *arg);

struct attention *attention_new(struct loop *loop, struct children *children, struct router *router) {
	struct attention *a = calloc(1, sizeof *a);
	if (!a) return NULL;
	a->loop = loop;
	a->children = children;
	a->router = router;
	list_init(&a->helpers);
	list_init(&a->dues);
	loop_timer_init(&a->timer, loop, run_due, a);
	return a;
}

static void forget(struct due *d) {
	free(d->request);
	free(d->tool);
	free(d->summary);
	d->request = d->tool = d->summary = NULL;
	d->waits = false;
}

static void free_due(struct attention *a, struct due *d) {
	HASH_DELETE(hh, a->by_session[d->kind], d);
	list_del(&d->node);
	a->n_dues--;
	forget(d);
	free(d->session);
	free(d);
}

static void free_helper(struct helper *h) {
	loop_timer_stop(&h->timer);
	errand_drop(&h->start);
	list_del(&h->node);
	h->owner->n_helpers[h->kind]--;
	loop_task_init(&h->free_task, free, h);
	loop_defer_free(h->owner->loop, &h->free_task); /* its errand may be the caller */
}

void attention_free(struct attention *a) {
	struct helper *h;
	struct due *d;
	if (!a) return;
	LIST_FOR_EACH (h, &a->helpers, struct helper, node) {
		loop_timer_stop(&h->timer);
		errand_drop(&h->start);
		child_forget(&h->child);
		free(h);
	}
	LIST_FOR_EACH (d, &a->dues, struct due, node) free_due(a, d);
	loop_timer_stop(&a->timer);
	free(a);
}

bool attention_is_helper(const struct attention *a, pid_t pid) {
	struct helper *h;
	LIST_FOR_EACH (h, &a->helpers, struct helper, node)
		if (h->child.pid == pid) return true;
	return false;
}

static void on_exited(void *arg, int status) {
	struct helper *h = arg;
	struct attention *a = h->owner;
	(void)status;
	free_helper(h);
	run_due(a);
}

/* A command that survives SIGKILL keeps its place, which limits the number of such processes. */
static void on_limit(void *arg) {
	struct helper *h = arg;
	struct error why;
	if (h->sent == SIGKILL) {
		proc_explain(h->child.pid, &why);
		log_warn("%s: command %d cannot be ended: %s", keys[h->kind], h->child.pid, why.text);
		return;
	}
	h->sent = h->sent ? SIGKILL : SIGTERM;
	log_warn("%s: command %d: time limit exceeded (notify_limit), sending %s", keys[h->kind], h->child.pid,
			 h->sent == SIGKILL ? "SIGKILL" : "SIGTERM");
	child_kill(&h->child, h->sent);
	loop_timer_set(&h->timer, GRACE_MS);
}

static void on_started(void *arg, enum errand_end end) {
	struct helper *h = arg;
	struct attention *a = h->owner;
	struct child_place place;
	struct error error;
	if (launch_result(NULL, &h->start, end, &place, NULL, &error) == CHILD_OK) {
		loop_timer_set(&h->timer, a->router->settings->notify_limit);
		return;
	}
	log_warn("%s: %s", keys[h->kind], error.text);
	h->child.exited = NULL;
	child_forget(&h->child);
	free_helper(h);
	run_due(a);
}

/* Make a helper without a process. NULL without memory. */
static struct helper *new_helper(struct attention *a, enum alert_kind kind) {
	struct helper *h = calloc(1, sizeof *h);
	if (!h) return NULL;
	h->owner = a;
	h->kind = kind;
	h->start = ERRAND_ZERO;
	h->child = (struct child){.exited = on_exited, .arg = h, .in = -1, .out = -1, .err = -1};
	loop_timer_init(&h->timer, a->loop, on_limit, h);
	return h;
}

static void add_helper(struct attention *a, struct helper *h) {
	list_add_tail(&a->helpers, &h->node);
	a->n_helpers[h->kind]++;
}

static bool put(struct words *env, const char *name, const char *value) {
	if (!value) return true;
	_cleanup_free_ char *word = str_printf("%s=%s", name, value);
	return word && words_add(env, word);
}

static bool make_env(struct words *env, const struct attention *a, const struct due *d) {
	const struct verbs_host *host = a->router->server;
	for (char **v = environ; *v; v++)
		if (strncmp(*v, "PLENUM_", 7) != 0 && !words_add(env, *v)) return false;
	return put(env, "PLENUM_SOCKET", host->socket_path) && put(env, "PLENUM_SESSION", d->session) &&
		   put(env, "PLENUM_EVENT", events[d->kind]) && put(env, "PLENUM_TOOL", d->tool) &&
		   put(env, "PLENUM_SUMMARY", d->summary) && put(env, "PLENUM_REQUEST", d->request);
}

static void run(struct attention *a, const struct due *d) {
	const struct words *command = &a->router->settings->on[d->kind];
	struct words env = {0};
	struct error error = {"out of memory"};
	struct helper *h = new_helper(a, d->kind);
	bool ready = h && make_env(&env, a, d);
	if (ready && launch_begin_command(command, &env, a->router->settings->outside_timeout, &h->start, &h->child,
									  a->children, on_started, h, &error) == CHILD_OK) {
		add_helper(a, h);
	} else {
		log_warn("%s: %s", keys[d->kind], error.text);
		free(h);
	}
	words_free(&env);
}

/* Return true if the command still has a reason: the question is open, and no approver has it; the turn still stalls.
 */
static bool is_needed(struct attention *a, const struct due *d) {
	if (!d->waits || !a->router->settings->on[d->kind].n) return false;
	struct session *s = router_find(a->router, d->session);
	if (d->kind == ALERT_PENDING) {
		_cleanup_free_ char *id = str_printf("\"%s\"", d->request);
		const struct pending *p = s && id ? pending_find(&s->pendings, span_of(id)) : NULL;
		return p && !p->n_asked;
	}
	return d->kind != ALERT_STALLED || (s && s->stall.told);
}

/* Run its command if that is due and has a place; free it if it is over. Return when it must be looked at again, in ms;
 * INT64_MAX: after the end of another command. */
static int64_t look_at(struct attention *a, struct due *d, int64_t now) {
	int64_t every = a->router->settings->notify_interval, left = d->at + every - now;
	bool needed = is_needed(a, d);
	if (needed && left <= 0 && a->n_helpers[d->kind] < AT_ONCE) {
		run(a, d);
		d->at = now;
		left = every;
		needed = false;
	}
	if (!needed) forget(d);
	if (!needed && left <= 0) free_due(a, d);
	return left > 0 ? left : INT64_MAX;
}

/* Run the due commands, drop the old ones. The end of any command, and the timer, call this again. */
static void run_due(void *arg) {
	struct attention *a = arg;
	struct due *d;
	int64_t now = now_ms(), next = INT64_MAX;
	LIST_FOR_EACH (d, &a->dues, struct due, node) {
		int64_t left = look_at(a, d, now);
		next = MIN(next, left);
	}
	loop_timer_set(&a->timer, next);
}

static struct due *add_due(struct attention *a, const char *session, enum alert_kind kind) {
	struct due *d = calloc(1, sizeof *d);
	if (!d || !(d->session = strdup(session))) {
		free(d);
		return NULL;
	}
	if (!HASH_TRY_ADD(hh, a->by_session[kind], d->session, strlen(d->session), d)) {
		free(d->session);
		free(d);
		return NULL;
	}
	d->kind = kind;
	d->at = INT64_MIN / 2;
	list_add_tail(&a->dues, &d->node);
	a->n_dues++;
	return d;
}

static struct due *due_of(struct attention *a, const char *session, enum alert_kind kind) {
	struct due *d;
	HASH_FIND(hh, a->by_session[kind], session, strlen(session), d);
	return d ? d : add_due(a, session, kind);
}

void attention_call(struct attention *a, const struct session *s, const struct alert *alert) {
	struct due *d = due_of(a, s->name, alert->kind);
	bool waited = d && d->waits;
	if (d) {
		forget(d);
		d->request = str_dup(alert->request);
		d->tool = str_dup(alert->tool);
		d->summary = str_dup(alert->summary);
		d->waits = !d->request == !alert->request && !d->tool == !alert->tool && d->summary;
	}
	if (!d || !d->waits) {
		log_warn("%s: out of memory", keys[alert->kind]);
		return;
	}
	if (a->n_helpers[d->kind] >= AT_ONCE && !waited)
		log_warn("%s: session %s: waiting for a place, %d commands are running", keys[d->kind], s->label, AT_ONCE);
	int64_t left = look_at(a, d, now_ms()), before = loop_timer_left(&a->timer);
	if (left < INT64_MAX && (before < 0 || left < before)) loop_timer_set(&a->timer, left);
}

/* --- upgrade ------------------------------------------------------------------------------------------------------ */

static void carry_helper(struct carry *c, struct attention *a, struct helper *h) {
	enum alert_kind kind = h ? h->kind : ALERT_PENDING;
	CARRY_UPTO(c, kind, ALERT_STALLED);
	if (!h && !(h = new_helper(a, kind))) {
		carry_fail(c, "out of memory");
		return;
	}
	CARRY(c, h->child.pid);
	CARRY(c, h->child.start);
	if (c->saving) return;
	child_resume(&h->child, a->children);
	add_helper(a, h);
}

static void carry_due(struct carry *c, struct attention *a, struct due *d) {
	enum alert_kind kind = d ? d->kind : ALERT_PENDING;
	_cleanup_free_ char *session = d ? str_dup(d->session) : NULL;
	carry_name(c, &session);
	CARRY_UPTO(c, kind, ALERT_STALLED);
	if (!d && !(session && (d = add_due(a, session, kind)))) {
		carry_fail(c, "out of memory");
		return;
	}
	CARRY(c, d->at);
	CARRY(c, d->waits);
	carry_text(c, &d->request);
	carry_text(c, &d->tool);
	carry_text(c, &d->summary);
}

void attention_carry(struct carry *c, struct attention *a) {
	struct helper *h;
	struct due *d;
	size_t n_helpers = 0, n_dues = a->n_dues;
	for (size_t i = 0; i < ALERT_KINDS; i++) n_helpers += a->n_helpers[i];
	carry_mark(c, "helpers");
	n_helpers = carry_count(c, n_helpers);
	if (c->saving)
		LIST_FOR_EACH (h, &a->helpers, struct helper, node) carry_helper(c, a, h);
	for (size_t i = 0; !c->saving && i < n_helpers && carry_ok(c); i++) carry_helper(c, a, NULL);
	n_dues = carry_count(c, n_dues);
	if (c->saving)
		LIST_FOR_EACH (d, &a->dues, struct due, node) carry_due(c, a, d);
	for (size_t i = 0; !c->saving && i < n_dues && carry_ok(c); i++) carry_due(c, a, NULL);
	if (!c->saving) loop_timer_set(&a->timer, 0);
}
