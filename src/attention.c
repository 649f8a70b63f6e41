/* SPDX-License-Identifier: MIT */
#include "attention.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "core/launch.h"
#include "io/proc.h"

#include <signal.h>
#include <string.h>

#define AT_ONCE 8
#define GRACE_MS 5000 /* from SIGTERM to SIGKILL */

extern char **environ;

struct helper {
	struct child child;
	struct list node;
	struct attention *owner;
	struct loop_timer timer;
	int sent; /* SIGTERM, then SIGKILL; 0: none yet */
	struct errand start;
	struct loop_task free_task;
};

/* A session with a command that ran within notify_interval, or is due. */
struct alert {
	struct list node;
	char *session;
	char *request; /* the newest question, raw JSON; NULL: none */
	int64_t at;    /* of the last run */
};

struct attention {
	struct loop *loop;
	struct children *children;
	struct router *router;
	struct list helpers, alerts;
	size_t n;
	struct loop_timer timer; /* for the next due alert */
};

static void run_due(void *arg);

struct attention *attention_new(struct loop *loop, struct children *children, struct router *router) {
	struct attention *a = calloc(1, sizeof *a);
	if (!a) return NULL;
	a->loop = loop;
	a->children = children;
	a->router = router;
	list_init(&a->helpers);
	list_init(&a->alerts);
	loop_timer_init(&a->timer, loop, run_due, a);
	return a;
}

static void free_alert(struct alert *alert) {
	list_del(&alert->node);
	free(alert->session);
	free(alert->request);
	free(alert);
}

static void free_task(void *arg) {
	free(arg);
}

static void free_helper(struct helper *h) {
	loop_timer_stop(&h->timer);
	errand_drop(&h->start);
	list_del(&h->node);
	h->owner->n--;
	loop_task_init(&h->free_task, free_task, h);
	loop_defer_free(h->owner->loop, &h->free_task); /* its errand may be the caller */
}

void attention_free(struct attention *a) {
	struct helper *h;
	struct alert *alert;
	if (!a) return;
	LIST_FOR_EACH (h, &a->helpers, struct helper, node) {
		loop_timer_stop(&h->timer);
		errand_drop(&h->start);
		child_forget(&h->child);
		free(h);
	}
	LIST_FOR_EACH (alert, &a->alerts, struct alert, node) free_alert(alert);
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
	char why[128];
	if (h->sent == SIGKILL) {
		proc_explain(h->child.pid, why, sizeof why);
		log_warn("on_pending: command %d cannot be ended: %s", h->child.pid, why);
		return;
	}
	h->sent = h->sent ? SIGKILL : SIGTERM;
	log_warn("on_pending: command %d: time limit exceeded (notify_limit), sending %s", h->child.pid,
			 h->sent == SIGKILL ? "SIGKILL" : "SIGTERM");
	child_kill(&h->child, h->sent);
	loop_timer_set(&h->timer, GRACE_MS);
}

static void on_started(void *arg, enum errand_end end) {
	struct helper *h = arg;
	struct attention *a = h->owner;
	struct child_place place;
	char error[CHILD_ERROR_MAX];
	if (launch_result("/", &h->start, end, &place, NULL, error) == CHILD_OK) {
		loop_timer_set(&h->timer, a->router->settings->notify_limit);
		return;
	}
	log_warn("on_pending: %s", error);
	h->child.exited = NULL;
	child_forget(&h->child);
	free_helper(h);
	run_due(a);
}

/* Make a helper without a process. NULL without memory. */
static struct helper *new_helper(struct attention *a) {
	struct helper *h = calloc(1, sizeof *h);
	if (!h) return NULL;
	h->owner = a;
	h->start = ERRAND_ZERO;
	h->child = (struct child){.exited = on_exited, .arg = h, .in = -1, .out = -1, .err = -1};
	loop_timer_init(&h->timer, a->loop, on_limit, h);
	return h;
}

static void add_helper(struct attention *a, struct helper *h) {
	list_add_tail(&a->helpers, &h->node);
	a->n++;
}

static bool put(struct words *env, const char *name, const char *value) {
	_cleanup_free_ char *word = str_printf("%s=%s", name, value ? value : "");
	return word && words_add(env, word);
}

static bool make_env(struct words *env, const struct session *s, const struct pending *p) {
	_cleanup_free_ char *text = pending_summary(p);
	for (char **v = environ; *v; v++)
		if (strncmp(*v, "PLENUM_", 7) != 0 && !words_add(env, *v)) return false;
	return put(env, "PLENUM_SESSION", s->name) && put(env, "PLENUM_TOOL", p->tool ? p->tool : p->subtype) &&
		   put(env, "PLENUM_SUMMARY", text) && put(env, "PLENUM_REQUEST", p->id);
}

static void run(struct attention *a, const struct session *s, const struct pending *p) {
	const struct words *command = &a->router->settings->on_pending;
	struct words env = {0};
	char error[CHILD_ERROR_MAX] = "out of memory";
	struct helper *h = new_helper(a);
	bool ready = h && make_env(&env, s, p);
	if (ready && launch_begin_command(command, &env, a->router->settings->outside_timeout, &h->start, &h->child,
									  a->children, on_started, h, error) == CHILD_OK) {
		add_helper(a, h);
	} else {
		log_warn("on_pending: %s", error);
		free(h);
	}
	words_free(&env);
}

/* Return the question of the alert if it is still open. */
static struct pending *question_of(struct attention *a, const struct alert *alert, struct session **s) {
	*s = alert->request ? router_find(a->router, alert->session) : NULL;
	return *s ? pending_find(&(*s)->pendings, span_of(alert->request)) : NULL;
}

/* Run due alerts, drop old ones. The end of any command, and the timer, call this again. */
static void run_due(void *arg) {
	struct attention *a = arg;
	struct alert *alert;
	struct session *s;
	int64_t every = a->router->settings->notify_interval, now = now_ms(), next = INT64_MAX;
	LIST_FOR_EACH (alert, &a->alerts, struct alert, node) {
		struct pending *p = a->router->settings->on_pending.n ? question_of(a, alert, &s) : NULL;
		int64_t left = alert->at + every - now;
		if (p && left <= 0 && a->n < AT_ONCE) {
			run(a, s, p);
			alert->at = now;
			left = every;
			p = NULL;
		}
		if (!p) {
			free(alert->request);
			alert->request = NULL;
		}
		if (!p && left <= 0)
			free_alert(alert);
		else if (left > 0)
			next = MIN(next, left);
	}
	loop_timer_set(&a->timer, next);
}

static struct alert *alert_of(struct attention *a, const char *session) {
	struct alert *alert;
	LIST_FOR_EACH (alert, &a->alerts, struct alert, node)
		if (strcmp(alert->session, session) == 0) return alert;
	alert = calloc(1, sizeof *alert);
	if (!alert || !(alert->session = strdup(session))) {
		free(alert);
		return NULL;
	}
	alert->at = INT64_MIN / 2;
	list_add_tail(&a->alerts, &alert->node);
	return alert;
}

void attention_call(struct attention *a, const struct session *s, const struct pending *p) {
	if (!a->router->settings->on_pending.n) return;
	struct alert *alert = alert_of(a, s->name);
	char *request = str_printf("\"%s\"", p->id);
	if (!alert || !request) {
		log_warn("on_pending: out of memory");
		free(request);
		return;
	}
	if (a->n >= AT_ONCE)
		log_warn("on_pending: session %s: waiting for a place, %d commands are running", s->name, AT_ONCE);
	free(alert->request);
	alert->request = request;
	run_due(a);
}

static void load_helper(struct carry *c, struct attention *a) {
	struct helper *h = new_helper(a);
	if (!h) {
		carry_fail(c, "out of memory");
		return;
	}
	CARRY(c, h->child.pid);
	CARRY(c, h->child.start);
	child_resume(&h->child, a->children);
	add_helper(a, h);
}

void attention_carry(struct carry *c, struct attention *a) {
	struct helper *h;
	carry_mark(c, "helpers");
	size_t n = carry_count(c, a->n);
	if (c->saving) {
		LIST_FOR_EACH (h, &a->helpers, struct helper, node) {
			CARRY(c, h->child.pid);
			CARRY(c, h->child.start);
		}
	}
	for (size_t i = 0; !c->saving && i < n && carry_ok(c); i++) load_helper(c, a);
}
