/* SPDX-License-Identifier: MIT */
#include "core/descent.h"
#include "core/notify.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "io/errand.h"
#include "io/mark.h"
#include "io/proc.h"
#include "plenum/protocol.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#define WALKS 8                       /* up the process tree, if it changes meanwhile */
#define DEPTH_MAX (1 << 22)           /* more processes than any kernel has */
#define SWEEPS 3                      /* a sweep finds the processes that were started before the last SIGKILL */
#define NAMES_MAX ((size_t)64 * 1024) /* bytes of the names in a notice */
#define LAST_GRACE_MS 5000  /* from SIGTERM to SIGKILL at the end of the daemon, for processes without a session */
#define CHECK_MS 100        /* between two checks for processes that ended after SIGTERM */
#define DUE_SWEPT INT64_MAX /* SIGKILL follows after the next scan */
#define LOOK_MS 100         /* between two scans for orphans */
#define LOOK_SHARE 20       /* scans use at most this fraction of the time */
#define INSTANCE "PLENUM_INSTANCE"

/* --- the record --------------------------------------------------------------------------------------------------- */

static struct kin *find_kin(const struct descent *d, pid_t pid) {
	struct kin *k;
	HASH_FIND(hh, d->by_pid, &pid, sizeof pid, k);
	return k;
}

static void drop_kin(struct descent *d, struct kin *k) {
	HASH_DELETE(hh, d->by_pid, k);
	free(k);
	d->changes++;
}

static struct kin *new_kin(struct descent *d, pid_t pid) {
	struct kin *k = HASH_COUNT(d->by_pid) < DESCENT_MAX ? calloc(1, sizeof *k) : NULL;
	if (!k) {
		if (!d->full) log_warn("%d processes of agents are on the record: no further ones are kept", DESCENT_MAX);
		d->full = true;
		return NULL;
	}
	k->pid = pid;
	if (HASH_TRY_ADD(hh, d->by_pid, &k->pid, sizeof k->pid, k)) return k;
	free(k);
	return NULL;
}

void descent_add(struct descent *d, pid_t pid, uint64_t start, uint64_t number, bool detached) {
	struct kin *k = find_kin(d, pid);
	if (pid <= 0 || (k && k->start == start && (k->number == number || !number))) return;
	if (!k && !(k = new_kin(d, pid))) return;
	if (k->start != start) {
		k->detached = detached;
		k->root = k->gone = false;
		k->due = 0;
	}
	k->start = start;
	k->number = number;
	k->seen = true;
	d->changes++;
}

static void clear_counts(struct descent *d) {
	struct kin_count *c, *next;
	HASH_ITER (hh, d->counts, c, next) {
		HASH_DELETE(hh, d->counts, c);
		free(c);
	}
}

static void load_kin(struct carry *c, struct descent *d) {
	struct kin one = {0};
	CARRY(c, one.pid);
	CARRY(c, one.start);
	CARRY(c, one.number);
	CARRY(c, one.detached);
	CARRY(c, one.root);
	CARRY(c, one.due);
	if (!carry_ok(c)) return;
	descent_add(d, one.pid, one.start, one.number, one.detached);
	struct kin *k = find_kin(d, one.pid);
	if (!k) return;
	k->root = one.root;
	k->due = one.due;
}

void descent_carry(struct carry *c, struct descent *d) {
	struct kin *k, *next;
	size_t n = carry_count(c, HASH_COUNT(d->by_pid));
	if (c->saving) {
		HASH_ITER (hh, d->by_pid, k, next) {
			CARRY(c, k->pid);
			CARRY(c, k->start);
			CARRY(c, k->number);
			CARRY(c, k->detached);
			CARRY(c, k->root);
			CARRY(c, k->due);
		}
	}
	for (size_t i = 0; !c->saving && i < n && carry_ok(c); i++) load_kin(c, d);
}

/* --- signs of a session ------------------------------------------------------------------------------------------- */

struct child_of {
	pid_t pid;
	struct session *session;
};

/* Data shared by all processes of one scan. */
struct look {
	struct router *r;
	struct child_of *children; /* of all sessions, by pid */
	size_t n_children;
	bool marks, cgroups;
};

/* The classification of a process. KIND_APART: a prestarted child or a helper of the daemon, or a descendant of one.
 * KIND_ENDS: a helper that was given up. It may be a start whose program runs already: its descendants are judged by
 * their own signs. */
enum kind { KIND_NEW, KIND_WAITS, KIND_FREE, KIND_ENDS, KIND_APART, KIND_AGENT };

struct who {
	enum kind kind;
	uint64_t number;
	bool said;  /* known only by the environment; the process can name any session there */
	bool child; /* it is a session's child */
	bool reads; /* its environment would count */
	bool asks;  /* and was not asked for */
};

static uint64_t number_of(const struct session *s) {
	return launch_number(s->world->instance, s->agent && s->agent->name ? s->agent->name : s->name);
}

static int by_pid(const void *a, const void *b) {
	pid_t one = ((const struct child_of *)a)->pid, other = ((const struct child_of *)b)->pid;
	return (one > other) - (one < other);
}

/* Return true if the child has a control group of its own, as from a wrapper (systemd-run --scope). Our own group
 * proves nothing. The child is in its group when it first prints a line. */
static bool has_cgroup(const struct session *s) {
	return session_pid(s) && s->agent->cgroup && *s->agent->cgroup;
}

/* ours: our own group; NULL: not read yet. */
static void read_cgroup(const struct session *s, char **ours) {
	struct agent *a = s->agent;
	if (!session_pid(s) || a->cgroup || !s->progress.got_line) return;
	if (!*ours) *ours = proc_cgroup(getpid());
	char *its = proc_cgroup(session_pid(s));
	bool own = *ours && its && its[1] && strcmp(*ours, its) != 0;
	a->cgroup = own ? its : strdup("");
	if (!own) free(its);
}

static bool begin_look(struct look *l, struct router *r) {
	_cleanup_free_ char *ours = NULL;
	*l = (struct look){.r = r, .marks = mark_possible()};
	l->children = calloc(r->n_sessions + 1, sizeof *l->children);
	if (!l->children) return false;
	for (struct session *s = r->sessions; s; s = s->hh.next) {
		read_cgroup(s, &ours);
		l->cgroups |= has_cgroup(s);
		if (session_pid(s)) l->children[l->n_children++] = (struct child_of){session_pid(s), s};
	}
	qsort(l->children, l->n_children, sizeof *l->children, by_pid);
	return true;
}

static struct session *child_in(const struct look *l, pid_t pid) {
	struct child_of key = {.pid = pid};
	const struct child_of *found = l->n_children ? bsearch(&key, l->children, l->n_children, sizeof key, by_pid) : NULL;
	return found ? found->session : NULL;
}

static bool is_helper(const struct router *r, pid_t pid) {
	return r->events->is_helper && r->events->is_helper((struct router *)(uintptr_t)r, pid);
}

/* Return the record of the current process with this number. The kernel reuses a number only if no process and no
 * process session has it: a record with another start time is out of date. */
static struct kin *kin_since(struct descent *d, pid_t pid, uint64_t start) {
	struct kin *k = find_kin(d, pid);
	if (k && k->start != start) {
		drop_kin(d, k);
		return NULL;
	}
	return k;
}

/* Return the record of the leader of a process session that has a member. */
static struct kin *leader_kin(struct descent *d, pid_t session) {
	uint64_t start;
	struct kin *k = find_kin(d, session);
	return k && proc_stat(session, NULL, NULL, &start) ? kin_since(d, session, start) : k;
}

/* Identify by facts that the process cannot change: it, or the leader of its process session, is on the record. */
static bool by_record(const struct look *l, pid_t pid, pid_t session, uint64_t start, uint64_t *number) {
	struct descent *d = l->r->descent;
	struct kin *k = kin_since(d, pid, start), *leader = session == pid ? k : leader_kin(d, session);
	struct session *s = child_in(l, session);
	bool follows = leader && leader->start <= start;
	if (k) k->seen = true;
	if (follows) leader->seen = true;
	if (k)
		*number = k->number;
	else if (s)
		*number = number_of(s);
	else if (follows)
		*number = leader->number;
	return k || s || follows;
}

static bool by_mark(const struct look *l, pid_t pid, uint64_t *number) {
	uint64_t mark = 0;
	enum mark_state state = l->marks ? mark_read(pid, &mark) : MARK_NONE;
	if (state == MARK_NONE || (state == MARK_WHOLE && !launch_is_number_of(l->r->instance, mark))) return false;
	*number = mark;
	return true;
}

static bool is_below(const char *path, const char *group) {
	size_t n = strlen(group);
	return strncmp(path, group, n) == 0 && (path[n] == 0 || path[n] == '/');
}

static bool by_cgroup(const struct look *l, pid_t pid, uint64_t *number) {
	_cleanup_free_ char *path = l->cgroups ? proc_cgroup(pid) : NULL;
	for (size_t i = 0; path && i < l->n_children; i++) {
		const struct session *s = l->children[i].session;
		if (!has_cgroup(s) || !is_below(path, s->agent->cgroup)) continue;
		*number = number_of(s);
		return true;
	}
	return false;
}

/* Return true if the process ends with no child: its process session is not that of a child. */
static bool is_detached(const struct look *l, pid_t pid, pid_t session) {
	const struct kin *leader = find_kin(l->r->descent, session), *k = find_kin(l->r->descent, pid);
	if (child_in(l, pid) || child_in(l, session)) return false;
	return !(leader && !leader->detached) && !(k && !k->detached);
}

/* Identify by properties of the process that it did not write itself. */
static bool by_bond(const struct look *l, pid_t pid, uint64_t *number) {
	return by_mark(l, pid, number) || by_cgroup(l, pid, number);
}

/* --- one process -------------------------------------------------------------------------------------------------- */

struct step {
	pid_t pid, session;
	uint64_t start;
};

struct path {
	struct step *v; /* from the process upwards */
	size_t n, cap;
};

enum end { END_TOP, END_US, END_HIDDEN, END_CHANGED };

static bool add_step(struct path *p, const struct step *s) {
	if (p->n == p->cap) {
		size_t cap = p->cap ? p->cap * 2 : 32;
		struct step *v = realloc(p->v, cap * sizeof *v);
		if (!v) return false;
		p->v = v;
		p->cap = cap;
	}
	p->v[p->n++] = *s;
	return true;
}

/* Walk to the ancestors. A parent is not younger than its child: else its number was reused between two reads. */
static enum end climb(struct path *p, pid_t pid) {
	p->n = 0;
	for (pid_t at = pid, up = 0; at > 1 || (at == 1 && (!p->n || getpid() == 1)); at = up) {
		struct step s = {.pid = at};
		if (at == getpid()) return p->n ? END_US : END_TOP;
		if (!proc_stat(at, &up, &s.session, &s.start))
			return kill(at, 0) < 0 && errno == ESRCH ? END_CHANGED : END_HIDDEN;
		if (p->n == DEPTH_MAX || (p->n && s.start > p->v[p->n - 1].start)) return END_CHANGED;
		if (!add_step(p, &s)) return END_HIDDEN;
	}
	return END_TOP;
}

/* Walk again after a change: an ancestor that ends during the walk hides those above it, and its child then has another
 * parent. */
static enum end climb_up(struct path *p, pid_t pid) {
	enum end end = END_CHANGED;
	for (int i = 0; i < WALKS && end == END_CHANGED; i++) end = climb(p, pid);
	return end;
}

/* Return true if any process on the way up identifies a session. The record counts first, because it cannot be forged;
 * then the process nearest to the top. */
static bool told_by(const struct look *l, const struct path *p, uint64_t *number) {
	for (size_t i = p->n; i-- > 0;)
		if (by_record(l, p->v[i].pid, p->v[i].session, p->v[i].start, number)) return true;
	for (size_t i = p->n; i-- > 0;)
		if (by_bond(l, p->v[i].pid, number)) return true;
	return false;
}

/* Record an orphan adopted by the daemon. The result is kept even if the process that identified it ends. */
static void adopt(const struct look *l, const struct path *p, uint64_t number) {
	const struct step *top = &p->v[p->n - 1];
	struct descent *d = l->r->descent;
	uint64_t before = d->changes;
	kin_since(d, top->pid, top->start);
	descent_add(d, top->pid, top->start, number, is_detached(l, top->pid, top->session));
	struct kin *k = find_kin(d, top->pid);
	if (k) k->root = k->detached;
	if (d->changes != before) l->r->events->changed(l->r);
}

static struct who from_path(const struct look *l, const struct path *p, enum end end) {
	struct who agent = {.kind = KIND_AGENT};
	pid_t top = end == END_US ? p->v[p->n - 1].pid : 0;
	const struct session *s = top ? child_in(l, top) : NULL;
	if (top && is_helper(l->r, top)) return (struct who){.kind = KIND_APART};
	if (s) agent.number = number_of(s);
	if (s || (top && children_known(l->r->children, top))) return agent;
	bool told = told_by(l, p, &agent.number);
	if (top) adopt(l, p, agent.number);
	return told || top ? agent : (struct who){.kind = KIND_FREE};
}

static uint64_t session_with(const struct router *r, uint64_t number) {
	for (const struct session *s = r->sessions; number && s; s = s->hh.next)
		if (number_of(s) == number || launch_number(r->instance, s->name) == number) return s->id;
	return 0;
}

/* --- environments of a way up ------------------------------------------------------------------------------------- */

/* The environment comes last and only marks the process as an agent's, because a process can choose the session that it
 * names there. An orphan adopted by the daemon is an agent's anyway. The processes from the top down. */
static void put_request(struct buf *b, const struct router *r, const struct path *p, pid_t pid, bool whole) {
	errand_put(b, r->instance);
	errand_put(b, whole ? "whole" : "");
	for (size_t i = p->n; i-- > 1;) {
		buf_printf(b, "%d", (int)p->v[i].pid);
		buf_putc(b, 0);
	}
	buf_printf(b, "%d", (int)pid);
	buf_putc(b, 0);
}

enum origin descent_of(struct router *r, pid_t pid, uint64_t *session, struct buf *ask) {
	struct look l;
	struct path p = {0};
	*session = 0;
	if (!begin_look(&l, r)) return ORIGIN_HIDDEN;
	enum end end = climb_up(&p, pid);
	struct who who = p.n ? from_path(&l, &p, end) : (struct who){.kind = KIND_FREE};
	if (who.kind == KIND_FREE) put_request(ask, r, &p, pid, end == END_TOP);
	if (who.kind == KIND_AGENT) *session = session_with(r, who.number);
	free(p.v);
	free(l.children);
	if (who.kind == KIND_AGENT) return ORIGIN_AGENT;
	return end == END_HIDDEN || end == END_CHANGED ? ORIGIN_HIDDEN : ORIGIN_FREE;
}

/* The answer: if any of them belongs to an agent of this daemon; the name that the process itself has in
 * PLENUM_CHILD_ENV; and if that counts as its session: all ancestors were seen, and none is an agent of another daemon,
 * which names a session of that daemon. */
static void read_environments(const char *request, size_t n, struct buf *answer) {
	const char *at = request, *end = request + n, *instance = errand_next(&at, end), *whole = errand_next(&at, end);
	const char *pid;
	_cleanup_free_ char *mark = NULL;
	bool agent = false, named = false;
	while (whole && !agent && (pid = errand_next(&at, end)) != NULL) {
		size_t len, k = strlen(instance);
		_cleanup_free_ char *env = proc_environ((pid_t)atoi(pid), &len);
		const char *value = env ? proc_find(env, len, INSTANCE) : NULL;
		named = value != NULL;
		agent = value && strncmp(value, instance, k) == 0 && value[k] == '.';
		if (env && at == end) mark = str_dup(proc_find(env, len, PLENUM_CHILD_ENV));
	}
	errand_put(answer, agent ? "agent" : "");
	errand_put(answer, mark ? mark : "");
	errand_put(answer, whole && *whole && !named ? "counts" : "");
}

int descent_errand(void) {
	size_t n;
	_cleanup_free_ char *request = errand_request(&n);
	struct buf answer = BUF_INIT((size_t)1024 * 1024);
	if (!request) return EX_USAGE;
	read_environments(request, n, &answer);
	errand_say(answer.data, answer.len);
	buf_free(&answer);
	return EX_OK;
}

enum origin descent_said(struct router *r, struct span answer, enum origin without, uint64_t *session) {
	const char *at = answer.p, *end = answer.p + answer.n, *agent = errand_next(&at, end),
			   *mark = errand_next(&at, end);
	const char *counts = errand_next(&at, end);
	*session = 0;
	if (!counts) return ORIGIN_SILENT;
	const struct session *s = !*agent && *mark && *counts ? router_find(r, mark) : NULL;
	if (s) *session = s->id;
	return *agent || *mark ? ORIGIN_AGENT : without;
}

/* Return the number of the session that the environment of a process names; 0: none of this daemon. */
static uint64_t number_named(const char *instance, pid_t pid) {
	_cleanup_free_ char *value = proc_env(pid, INSTANCE);
	size_t n = strlen(instance);
	return value && strncmp(value, instance, n) == 0 && value[n] == '.' ? launch_number(instance, value + n + 1) : 0;
}

/* The answer has a pid and a number for each process that names a session, as soon as it is read: those before one that
 * does not answer count. */
int descent_names_errand(void) {
	size_t n;
	_cleanup_free_ char *request = errand_request(&n);
	if (!request) return EX_USAGE;
	const char *at = request, *end = request + n, *instance = errand_next(&at, end), *pid;
	while ((pid = errand_next(&at, end)) != NULL) {
		char number[32];
		uint64_t named = number_named(instance, (pid_t)atoi(pid));
		if (!named) continue;
		snprintf(number, sizeof number, "%llu", (unsigned long long)named);
		errand_say(pid, strlen(pid) + 1);
		errand_say(number, strlen(number) + 1);
	}
	return EX_OK;
}

/* --- all processes ------------------------------------------------------------------------------------------------ */

enum fate { FATE_KEEP, FATE_END, FATE_KILL };

/* The end of leftover processes: it waits for a scan, or is served by one. */
struct sweep {
	struct list node;
	struct router *r;
	uint64_t id;             /* of its session; 0: none */
	struct session *session; /* while it is served; NULL: it was removed, or none */
	uint64_t numbers[2];     /* of its children; the second one is that of its name */
	enum fate fate;          /* of detached processes */
	bool all;                /* processes of all sessions */
	bool due;                /* only processes that got SIGTERM, and their descendants */
	bool left;               /* the leftovers of its agent, which has ended */
	bool over;               /* the session is removed afterwards */
	bool asked, read, late;  /* environments, as in struct agent_look */
	int64_t grace;           /* from SIGTERM to SIGKILL */
	unsigned passes;         /* scans so far */
	size_t at, hit;          /* of this pass: the next process of the scan; those that got SIGKILL */
	int64_t begun;           /* this pass (now_ms()) */
	size_t killed;
	struct buf names; /* of detached processes, as members of a JSON array */
	size_t n_names;
};

/* A child of the daemon as classified when it was listed: it may be reaped before the rest is classified. */
struct own {
	pid_t pid;
	struct who who;
};

/* All processes: first they are listed, then classified, one by one. */
struct crowd {
	struct look look;
	struct proc_scan scan;
	struct own *own; /* children of the daemon except for orphans, by pid */
	size_t n_own, cap_own;
	struct proc *list; /* by pid; NULL: the scan is not complete */
	struct who *who;   /* of each */
	size_t *way;       /* room for one way up */
	size_t n, done;    /* done: so many are classified */
	bool failed, recorded;
	struct descent_name *names; /* by their environments, of those that were asked for; by pid */
	size_t n_names;
	bool asks;         /* environments would count that were not asked for */
	struct sweep left; /* the pass of an agent that is being served; without a session: none */
};

static void end_crowd(struct crowd *c) {
	size_t n;
	free(proc_scan_end(&c->scan, &n));
	free(c->look.children);
	free(c->own);
	free(c->list);
	free(c->who);
	free(c->way);
	free(c->names);
	buf_free(&c->left.names);
}

static int own_by_pid(const void *a, const void *b) {
	pid_t one = ((const struct own *)a)->pid, other = ((const struct own *)b)->pid;
	return (one > other) - (one < other);
}

static const struct who *own_in(const struct crowd *c, pid_t pid) {
	struct own key = {.pid = pid};
	const struct own *found = c->n_own ? bsearch(&key, c->own, c->n_own, sizeof key, own_by_pid) : NULL;
	return found ? &found->who : NULL;
}

static void add_own(struct crowd *c, pid_t pid, struct who who) {
	if (c->n_own == c->cap_own) {
		size_t cap = c->cap_own ? c->cap_own * 2 : 64;
		struct own *own = realloc(c->own, cap * sizeof *own);
		c->failed |= !own;
		if (!own) return;
		c->own = own;
		c->cap_own = cap;
	}
	c->own[c->n_own++] = (struct own){pid, who};
}

static int name_by_pid(const void *a, const void *b) {
	pid_t one = ((const struct descent_name *)a)->pid, other = ((const struct descent_name *)b)->pid;
	return (one > other) - (one < other);
}

static struct descent_name *name_in(struct descent_name *names, size_t n, pid_t pid) {
	struct descent_name key = {.pid = pid};
	return n ? bsearch(&key, names, n, sizeof key, name_by_pid) : NULL;
}

static const struct descent_name *name_of(const struct crowd *c, const struct proc *p) {
	const struct descent_name *name = name_in(c->names, c->n_names, p->pid);
	return name && name->start == p->start ? name : NULL;
}

static void note_own(struct crowd *c, pid_t pid) {
	const struct session *s = child_in(&c->look, pid);
	if (s)
		add_own(c, pid, (struct who){.kind = KIND_AGENT, .number = number_of(s), .child = true});
	else if (children_given_up(c->look.r->children, pid))
		add_own(c, pid, (struct who){.kind = KIND_ENDS});
	else if (children_known(c->look.r->children, pid))
		add_own(c, pid, (struct who){.kind = KIND_APART});
}

/* Classify a process; the sign nearest to the top counts. The environment is read only if nothing else names a session,
 * and only of processes that are certainly an agent's, or of all if there are no marks: reading it waits for the memory
 * of the process, which may be on a mount that does not answer. Programs of the user are thus not touched. An errand
 * reads them, for the next scan. */
static struct who judge(const struct crowd *c, const struct proc *p, struct who up) {
	const struct look *l = &c->look;
	const struct who *own = own_in(c, p->pid);
	bool ours = p->parent == getpid();
	struct who agent = {.kind = KIND_AGENT};
	if (own && own->child) return *own;
	up.child = up.reads = up.asks = false;
	bool known = by_record(l, p->pid, p->session, p->start, &agent.number);
	if (known && agent.number) return agent;
	if (!known && own) return *own;
	if (!known && up.kind >= KIND_APART && !up.said) return up;
	if (by_bond(l, p->pid, &agent.number)) return agent;
	if (up.kind == KIND_AGENT && up.number) return up;
	bool reads = !p->zombie && (known || ours || !l->marks);
	const struct descent_name *name = reads ? name_of(c, p) : NULL;
	agent.said = name && name->number;
	if (agent.said) agent.number = name->number;
	struct who who = agent.said || known || ours ? agent : (struct who){.kind = KIND_FREE};
	who.reads = reads;
	who.asks = reads && !name;
	return who;
}

/* Walk up to a classified ancestor, then down again: each process is classified once. */
static struct who resolve(struct crowd *c, size_t at) {
	struct who up = {.kind = KIND_FREE};
	size_t n = 0;
	for (;;) {
		const struct proc *p = &c->list[at], *parent = proc_in(c->list, c->n, p->parent);
		c->who[at].kind = KIND_WAITS;
		c->way[n++] = at;
		if (!parent || parent->start > p->start) break;
		at = (size_t)(parent - c->list);
		up = c->who[at];
		if (up.kind != KIND_NEW) break;
	}
	while (n-- > 0) {
		up = c->who[c->way[n]] = judge(c, &c->list[c->way[n]], up);
		c->asks |= up.asks;
	}
	return up;
}

static bool open_crowd(struct crowd *c, struct router *r) {
	struct kin *k, *next;
	*c = (struct crowd){0};
	if (!begin_look(&c->look, r)) return false;
	proc_scan_begin(&c->scan);
	HASH_ITER (hh, r->descent->by_pid, k, next) k->seen = false;
	return true;
}

/* List one process. False: there are no more. */
static bool scan_one(struct crowd *c) {
	size_t before = c->scan.n;
	if (!proc_scan_next(&c->scan)) return false;
	if (c->scan.n > before && c->scan.all[before].parent == getpid()) note_own(c, c->scan.all[before].pid);
	return true;
}

static bool end_scan(struct crowd *c) {
	c->list = proc_scan_end(&c->scan, &c->n);
	if (c->n_own) qsort(c->own, c->n_own, sizeof *c->own, own_by_pid);
	c->who = calloc(c->n + 1, sizeof *c->who);
	c->way = calloc(c->n + 1, sizeof *c->way);
	c->failed = !c->list || !c->who || !c->way;
	if (c->failed) log_warn("cannot list processes: leftovers of agents are not found");
	return !c->failed;
}

/* Read or classify about one process. False: that is all, or it failed. */
static bool step_crowd(struct crowd *c) {
	if (c->failed) return false;
	if (!c->list) return scan_one(c) || end_scan(c);
	while (c->done < c->n && c->who[c->done].kind != KIND_NEW) c->done++;
	if (c->done < c->n) resolve(c, c->done);
	return c->done < c->n;
}

/* List the processes whose environments would count, with the known facts. Return the length of the list. */
static size_t list_reads(const struct crowd *c, struct descent_name **names) {
	size_t n = 0;
	*names = calloc(c->n + 1, sizeof **names);
	for (size_t i = 0; *names && !c->failed && i < c->n; i++) {
		const struct descent_name *known = c->who[i].reads ? name_of(c, &c->list[i]) : NULL;
		if (known)
			(*names)[n++] = *known;
		else if (c->who[i].reads)
			(*names)[n++] = (struct descent_name){.pid = c->list[i].pid, .start = c->list[i].start};
	}
	return n;
}

/* Read environments in the loop, and classify anew. */
static void read_now(struct crowd *c) {
	c->n_names = list_reads(c, &c->names);
	for (size_t i = 0; i < c->n_names; i++) c->names[i].number = number_named(c->look.r->instance, c->names[i].pid);
	memset(c->who, 0, c->n * sizeof *c->who);
	c->done = 0;
	while (step_crowd(c)) continue;
}

static bool begin_crowd(struct crowd *c, struct router *r, bool reads) {
	if (!open_crowd(c, r)) return false;
	while (step_crowd(c)) continue;
	if (!c->failed && c->asks && reads) read_now(c);
	if (c->failed) end_crowd(c);
	return !c->failed;
}

/* Sessions and their children may have ended since the last turn. */
static void renew_look(struct crowd *c) {
	struct look now;
	bool ok = begin_look(&now, c->look.r);
	free(c->look.children);
	c->look = now;
	c->failed |= !ok;
}

/* Return true for a running process of an agent that is not a child started by the daemon. */
static bool is_stray(const struct crowd *c, size_t i) {
	const struct proc *p = &c->list[i];
	return c->who[i].kind == KIND_AGENT && !p->zombie && !c->who[i].child && !child_in(&c->look, p->pid);
}

/* Record a process. A session named only by the environment is not recorded: the record would make it a fact. */
static struct kin *record(const struct crowd *c, size_t i, uint64_t number) {
	const struct proc *p = &c->list[i];
	descent_add(c->look.r->descent, p->pid, p->start, c->who[i].said ? 0 : number,
				is_detached(&c->look, p->pid, p->session));
	return find_kin(c->look.r->descent, p->pid);
}

/* --- ending ----------------------------------------------------------------------------------------------------------
 */

/* Return true if the orphan may belong to another session. If no sign names its session, an orphan is ended with the
 * last session that can have started it. */
static bool could_be_of_another(const struct crowd *c, size_t i, const struct session *but) {
	for (const struct session *s = c->look.r->sessions; s; s = s->hh.next)
		if (s != but && s->agent && s->agent->child.start <= c->list[i].start) return true;
	return false;
}

static bool is_unnamed_orphan_of(const struct crowd *c, size_t i, const struct session *s) {
	const struct proc *p = &c->list[i];
	if (p->parent != getpid() || could_be_of_another(c, i, s)) return false;
	return !s || (s->agent && s->agent->child.start <= p->start);
}

static bool has_child(const struct crowd *c, uint64_t number) {
	for (size_t k = 0; k < c->look.n_children; k++)
		if (number_of(c->look.children[k].session) == number) return true;
	return false;
}

/* Return true if the process or an ancestor got SIGTERM. Without a running child all detached processes of the session
 * count. */
static bool is_due(const struct sweep *w, const struct crowd *c, size_t i) {
	uint64_t number = c->who[i].number;
	for (const struct proc *p = &c->list[i]; p; p = proc_in(c->list, c->n, p->parent)) {
		const struct kin *k = find_kin(w->r->descent, p->pid);
		if (k && k->due && k->start == p->start && k->number == w->numbers[0]) return true;
	}
	if (number != w->numbers[0]) return false;
	return number ? !has_child(c, number) : is_unnamed_orphan_of(c, i, NULL);
}

/* Return true if the process may be one of the next child, which was started while the sweep waited. */
static bool is_of_next_child(const struct sweep *w, const struct proc *p) {
	const struct agent *a = w->session ? w->session->agent : NULL;
	return !w->left && a && a->child.start <= p->start;
}

static bool is_meant(const struct sweep *w, const struct crowd *c, size_t i) {
	uint64_t number = c->who[i].number;
	if (!is_stray(c, i)) return false;
	if (w->due) return is_due(w, c, i);
	if (w->all) {
		const struct kin *k = find_kin(w->r->descent, c->list[i].pid);
		return launch_is_number_of(w->r->instance, number) || (k && k->start == c->list[i].start);
	}
	if (number == 0) return w->session && is_unnamed_orphan_of(c, i, w->session);
	return (number == w->numbers[0] || number == w->numbers[1]) && !is_of_next_child(w, &c->list[i]);
}

/* Drop records if no process and no process session has the number. */
static void forget_the_dead(struct descent *d) {
	struct kin *k, *next;
	HASH_ITER (hh, d->by_pid, k, next) {
		if (!k->seen) drop_kin(d, k);
	}
}

/* Return true if no detached process of an agent started it. */
static bool is_root(const struct crowd *c, size_t i) {
	const struct proc *parent = proc_in(c->list, c->n, c->list[i].parent);
	size_t at = parent ? (size_t)(parent - c->list) : 0;
	return !parent || !is_stray(c, at) || !is_detached(&c->look, parent->pid, parent->session);
}

static void name(struct sweep *w, pid_t pid) {
	char program[32];
	if (w->n_names++ >= DESCENT_NAMES_MAX) return;
	proc_name(pid, program, sizeof program);
	buf_printf(&w->names, "%s{\"pid\":%d,\"program\":", w->n_names > 1 ? "," : "", (int)pid);
	str_put_json(&w->names, program, strlen(program));
	buf_putc(&w->names, '}');
}

/* Send SIGKILL to one process; a later sweep finds its new children. */
static size_t kill_one(pid_t pid) {
	if (kill(pid, SIGKILL) == 0) return 1;
	if (errno == EPERM) log_warn("process %d of an agent cannot be ended: it has another user", (int)pid);
	return 0;
}

static size_t sweep_one(struct sweep *w, const struct crowd *c, size_t i) {
	bool first = w->passes == 0;
	pid_t pid = c->list[i].pid;
	bool detached = is_detached(&c->look, pid, c->list[i].session), root = detached && is_root(c, i);
	struct kin *k = record(c, i, c->who[i].number && w->session ? w->numbers[1] : c->who[i].number);
	if (root && first) name(w, pid);
	if (!detached || w->fate == FATE_KILL) return kill_one(pid);
	if (!k) return w->fate == FATE_KEEP ? 0 : kill_one(pid); /* no room on the record: SIGKILL could not follow */
	if (!first) return 0;
	k->root = root;
	if (w->fate == FATE_KEEP || k->due) return 0;
	k->due = now_ms() + (w->r->descent->hurried ? 0 : w->grace);
	k->late = w->late;
	if (kill(pid, SIGTERM) < 0 && errno == EPERM)
		log_warn("process %d of an agent cannot be ended: it has another user", (int)pid);
	return 0;
}

/* The grace is that after the last SIGTERM of a pass. */
static void renew_grace(const struct sweep *w) {
	int64_t first = w->begun + w->grace, last = now_ms() + w->grace;
	for (struct kin *k = w->r->descent->by_pid; k; k = k->hh.next)
		if (k->due >= first && k->due < last) k->due = last;
}

/* Go on with a pass, as long as the share of the turn lasts. Return true at its end. A process that has ended since it
 * was listed may have given its number to another one. */
static bool sweep_crowd(struct sweep *w, const struct crowd *c) {
	if (!w->at) {
		w->begun = now_ms();
		w->hit = 0;
	}
	while (w->at < c->n) {
		size_t i = w->at++;
		if (is_meant(w, c, i) && proc_lives(c->list[i].pid, c->list[i].start)) w->hit += sweep_one(w, c, i);
		if (w->at < c->n && loop_must_yield(w->r->loop)) return false;
	}
	w->at = 0;
	w->killed += w->hit;
	renew_grace(w);
	w->r->descent->look_at = 0; /* the lists are out of date */
	return true;
}

static void tell(struct sweep *w, const char *action) {
	struct session *s = w->session;
	if (w->n_names && s && !s->spare && !s->removed) {
		struct buf b = NOTICE_INIT;
		notice_begin(&b, PLENUM_EV_LEFTOVERS, s->name);
		notice_text(&b, "action", action);
		notice_number(&b, "count", (int64_t)w->n_names);
		buf_printf(&b, ",\"processes\":[%s]", w->names.data ? w->names.data : "");
		b.failed |= w->names.failed;
		notify_session(s, notice_end(&b));
	}
	if (w->n_names)
		log_info("session %s: detached processes, %s: [%s]", s ? s->label : "(gone)", action,
				 w->names.data ? w->names.data : "");
	buf_free(&w->names);
}

static void arm(struct descent *d) {
	if (!loop_timer_pending(&d->timer)) loop_timer_set(&d->timer, CHECK_MS);
}

/* Return what happens to leftover processes. A client's wish counts before the profile. A restart continues the
 * session, so its detached processes continue, too. */
static enum fate fate_of(const struct session *s) {
	const struct router *r = s->world;
	if (s->spare || s->leftovers == LEFTOVERS_KILL || (r->shutting_down && s->stopping == STOP_KILL)) return FATE_KILL;
	if (s->leftovers == LEFTOVERS_END || r->shutting_down) return FATE_END;
	bool restarts = s->stopping != STOP_NOT && s->then == THEN_RESTART;
	return s->profile->leftovers_end && !restarts ? FATE_END : FATE_KEEP;
}

static struct sweep sweep_of(struct session *s, enum fate fate) {
	return (struct sweep){.r = s->world,
						  .id = s->id,
						  .session = s,
						  .numbers = {number_of(s), launch_number(s->world->instance, s->name)},
						  .fate = fate,
						  .grace = s->profile->stop_grace,
						  .names = BUF_INIT(NAMES_MAX)};
}

/* Report the result of a sweep. */
static void tell_sweep(struct sweep *w) {
	static const char *const actions[] = {PLENUM_LEFT_KEPT, PLENUM_LEFT_ENDING, PLENUM_LEFT_KILLED};
	if (w->killed && w->all)
		log_warn("killed %zu processes of agents that were left", w->killed);
	else if (w->killed)
		log_info("session %s: killed %zu processes that the child left behind",
				 w->session ? w->session->label : "(gone)", w->killed);
	tell(w, actions[w->fate]);
	if (descent_ends(w->r->descent)) arm(w->r->descent);
}

/* --- scans in slices ---------------------------------------------------------------------------------------------- */

static void move_all(struct list *to, struct list *from) {
	for (struct list *node; !list_empty(from); list_add_tail(to, node)) list_del(node = from->next);
}

static bool sweeps_wait(const struct descent *d) {
	return !list_empty(&d->sweeps) || !list_empty(&d->swept) || !list_empty(&d->held_sweeps);
}

/* Let a copy of it wait for the next scan. False without memory. */
static bool add_sweep(const struct sweep *w) {
	struct descent *d = w->r->descent;
	struct sweep *own = malloc(sizeof *own);
	if (!own) {
		log_error("out of memory: leftovers of agents are not looked for");
		return false;
	}
	*own = *w;
	list_add_tail(&d->sweeps, &own->node);
	loop_defer(w->r->loop, &d->task);
	return true;
}

static void free_sweep(struct sweep *w) {
	list_del(&w->node);
	buf_free(&w->names);
	free(w);
}

static void end_sweep(struct sweep *w) {
	struct router *r = w->r;
	struct session *over = w->over ? w->session : NULL;
	tell_sweep(w);
	for (struct kin *k = r->descent->by_pid; w->due && k; k = k->hh.next)
		if (k->number == w->numbers[0] && k->due == DUE_SWEPT) k->due = 0;
	free_sweep(w);
	if (over) r->events->session_over(r, over);
	r->events->changed(r);
}

/* Go on with a pass, the first one with names. After it the sweep is not the first one of its list any more. */
static void serve_sweep(struct sweep *w, const struct crowd *c) {
	w->session = router_find_number(w->r, w->id);
	if (!c->failed && !sweep_crowd(w, c)) return;
	bool again = !c->failed && w->hit;
	list_del(&w->node);
	w->asked = w->read = false;
	if (again && ++w->passes < SWEEPS)
		list_add_tail(&w->r->descent->sweeps, &w->node);
	else
		end_sweep(w);
}

/* For a save, or while no client is served: then environments are read. */
static void sweep_now(struct router *r, bool reads) {
	struct descent *d = r->descent;
	struct crowd c;
	struct sweep *w = LIST_TOP(&d->swept, struct sweep, node);
	if (w && w->at) renew_look(d->crowd); /* the pass that has begun goes on in the list of its scan */
	while (w && w->at) {
		serve_sweep(w, d->crowd);
		w = LIST_TOP(&d->swept, struct sweep, node);
	}
	while (sweeps_wait(d)) {
		c.failed = !begin_crowd(&c, r, reads);
		move_all(&d->swept, &d->sweeps);
		while ((w = LIST_TOP(&d->swept, struct sweep, node))) serve_sweep(w, &c);
		if (c.failed) continue;
		forget_the_dead(d);
		end_crowd(&c);
	}
}

bool descent_end(struct session *s, bool kill_now, bool over) {
	struct sweep w = sweep_of(s, kill_now ? FATE_KILL : FATE_END);
	w.over = over;
	if (!add_sweep(&w)) return false;
	if (over) session_leave(s);
	return true;
}

static void wait_for_scan(struct session *s, bool left) {
	struct descent *d = s->world->descent;
	struct agent_look *l = &s->agent->look;
	list_del(&l->node);
	l->left = left;
	l->asked = l->read = false;
	list_add_tail(&d->waiting, &l->node);
	loop_defer(s->world->loop, &d->task);
}

void descent_child_gone(struct session *s) {
	descent_add(s->world->descent, s->agent->child.was, s->agent->child.start, number_of(s), false);
	wait_for_scan(s, true);
}

static void record_strays(struct crowd *c) {
	for (size_t i = 0; i < c->n && !c->recorded; i++)
		if (is_stray(c, i)) record(c, i, c->who[i].number);
	c->recorded = true;
}

/* Take the next agent out of the list whose child is to be ended; NULL: there is none. */
static struct agent *take_unrecorded(struct list *l) {
	struct agent *a;
	LIST_FOR_EACH (a, l, struct agent, look.node) {
		if (a->look.left) continue;
		list_del(&a->look.node);
		return a;
	}
	return NULL;
}

/* Record at once for all children that are to be ended: this daemon may get no further turn. */
static void record_now(struct router *r) {
	struct descent *d = r->descent;
	struct agent *a;
	bool done = false;
	while ((a = take_unrecorded(&d->served)) || (a = take_unrecorded(&d->waiting))) {
		struct crowd c;
		if (!done && begin_crowd(&c, r, false)) {
			record_strays(&c);
			end_crowd(&c);
		}
		done = true;
		session_recorded(a->arg);
	}
}

void descent_record(struct session *s) {
	wait_for_scan(s, false);
}

/* Begin one more pass over the processes of a child that has ended, the first one of its fate with names. */
static struct sweep begin_left(struct session *s) {
	const struct agent_look *l = &s->agent->look;
	struct sweep w = sweep_of(s, fate_of(s));
	w.left = true;
	w.late = l->late;
	w.passes = l->fate == w.fate ? l->sweeps : 0;
	return w;
}

/* A client may have wished another fate during the pass. */
static void end_left(struct session *s, struct sweep *w) {
	struct agent_look *l = &s->agent->look;
	l->fate = w->fate;
	l->sweeps = w->passes + 1;
	if (!w->passes || w->hit) {
		tell_sweep(w);
		s->world->events->changed(s->world);
	}
	buf_free(&w->names);
	if ((w->hit && l->sweeps < SWEEPS) || fate_of(s) != w->fate)
		wait_for_scan(s, true);
	else
		session_left(s);
}

/* Go on with the pass. After it the session does not wait for this scan any more. */
static void sweep_left(struct session *s, struct crowd *c) {
	struct sweep *w = &c->left;
	if (w->session != s) {
		buf_free(&w->names);
		*w = begin_left(s);
	}
	if (!sweep_crowd(w, c)) return;
	struct sweep whole = *w;
	*w = (struct sweep){0};
	list_del(&s->agent->look.node);
	end_left(s, &whole);
}

/* A served session changes the look only by its own child, which has ended. */
static void serve(struct session *s, struct crowd *c) {
	bool left = s->agent->look.left;
	if (left && !c->failed) {
		sweep_left(s, c);
		return;
	}
	list_del(&s->agent->look.node);
	if (left) {
		if (c->left.session == s) tell_sweep(&c->left); /* SIGKILL follows where the pass has sent SIGTERM */
		session_left(s);
		return;
	}
	if (!c->failed) record_strays(c);
	session_recorded(s);
}

/* The scan serves those that waited when it began: it sees all that their children had started. */
static void begin_scan(struct router *r) {
	struct descent *d = r->descent;
	d->scanning = true;
	d->crowd->failed = !open_crowd(d->crowd, r);
	if (!errand_runs(&d->errand)) {
		d->crowd->names = d->names;
		d->crowd->n_names = d->n_names;
		d->names = NULL;
		d->n_names = 0;
	}
	move_all(&d->served, &d->waiting);
	move_all(&d->swept, &d->sweeps);
	d->scans++;
}

static bool any_held(const struct descent *d) {
	return !list_empty(&d->held) || !list_empty(&d->held_sweeps);
}

static bool scan_is_due(const struct descent *d) {
	bool asks = any_held(d) && !errand_runs(&d->errand);
	return asks || !list_empty(&d->waiting) || !list_empty(&d->sweeps);
}

/* --- environments in a scan --------------------------------------------------------------------------------------- */

/* Those that were asked for count in the next scan, as far as they were read. */
static void release_held(struct router *r) {
	struct descent *d = r->descent;
	struct agent *a;
	struct sweep *w;
	LIST_FOR_EACH (a, &d->held, struct agent, look.node) a->look.read = a->look.asked;
	LIST_FOR_EACH (w, &d->held_sweeps, struct sweep, node) w->read = w->asked;
	move_all(&d->waiting, &d->held);
	move_all(&d->sweeps, &d->held_sweeps);
	loop_defer(r->loop, &d->task);
}

/* Once is enough for each that has waited, and at the end of the daemon for all. */
static void give_up_names(struct router *r) {
	struct descent *d = r->descent;
	struct agent *a;
	struct sweep *w;
	LIST_FOR_EACH (a, &d->held, struct agent, look.node) a->look.late |= a->look.asked;
	LIST_FOR_EACH (w, &d->held_sweeps, struct sweep, node) w->late |= w->asked;
	d->mute |= r->shutting_down;
}

static void on_names(void *arg, enum errand_end end) {
	struct router *r = arg;
	struct descent *d = r->descent;
	const char *at = d->errand.answer.data, *last = at + d->errand.answer.len, *pid, *number;
	if (end != ERRAND_DONE)
		log_warn("environments of processes of agents: %s",
				 end == ERRAND_TIMEOUT ? "not read in time (outside_timeout)" : "not read");
	while (at && (pid = errand_next(&at, last)) && (number = errand_next(&at, last))) {
		struct descent_name *name = name_in(d->names, d->n_names, (pid_t)atoi(pid));
		uint64_t named = strtoull(number, NULL, 10);
		if (name && launch_is_number_of(r->instance, named)) name->number = named;
	}
	if (end == ERRAND_TIMEOUT) give_up_names(r);
	errand_drop(&d->errand);
	release_held(r);
}

static bool begin_errand(struct router *r) {
	struct descent *d = r->descent;
	struct buf request = BUF_INIT((size_t)64 * 1024 * 1024);
	struct error error;
	errand_put(&request, r->instance);
	for (size_t i = 0; i < d->n_names; i++) {
		if (d->names[i].asked) continue;
		buf_printf(&request, "%d", (int)d->names[i].pid);
		buf_putc(&request, 0);
		d->names[i].asked = true;
	}
	struct errand_spec spec = {.kind = DESCENT_NAMES_ERRAND,
							   .request = request.data,
							   .n = request.len,
							   .place = DESCENT_NAMES_ERRAND,
							   .uid = getuid(),
							   .limit = r->settings->outside_timeout,
							   .answer_max = (size_t)1024 * 1024};
	bool begun = false;
	if (request.failed)
		log_error("out of memory: environments of processes of agents are not read");
	else if (!(begun = errand_begin(&d->errand, r->children, &spec, on_names, r, &error) == CHILD_OK))
		log_warn("environments of processes of agents: %s", error.text);
	buf_free(&request);
	return begun;
}

/* Begin to read the environments that count, for those that are held; after the scan that needs the last ones. If that
 * is not possible, they do without. */
static void ask_names(struct router *r) {
	struct descent *d = r->descent;
	struct agent *a;
	struct sweep *w;
	if (errand_runs(&d->errand) || d->names || !any_held(d)) return;
	LIST_FOR_EACH (a, &d->held, struct agent, look.node) a->look.asked = true;
	LIST_FOR_EACH (w, &d->held_sweeps, struct sweep, node) w->asked = true;
	free(d->names);
	d->n_names = list_reads(d->crowd, &d->names);
	if (!begin_errand(r)) release_held(r);
}

/* Return true if it must wait for environments. Children that are to be ended do not: they are recorded without. */
static bool must_hold(const struct descent *d, bool read) {
	return d->crowd->asks && !read && !d->crowd->failed && !d->mute;
}

static void serve_agent(struct router *r, struct agent *a) {
	struct descent *d = r->descent;
	if (a->look.left && must_hold(d, a->look.read || a->look.late)) {
		list_del(&a->look.node);
		list_add_tail(&d->held, &a->look.node);
	} else {
		serve(a->arg, d->crowd);
	}
}

static void hold_or_sweep(struct router *r, struct sweep *w) {
	struct descent *d = r->descent;
	if (must_hold(d, w->read || w->late)) {
		list_del(&w->node);
		list_add_tail(&d->held_sweeps, &w->node);
	} else {
		serve_sweep(w, d->crowd);
	}
}

static void finish_scan(struct descent *d) {
	if (!d->crowd->failed) forget_the_dead(d);
	end_crowd(d->crowd);
	d->scanning = false;
}

/* Continue the scan, then serve the sessions, as long as the share of the turn lasts. */
static void on_scan(void *arg) {
	struct router *r = arg;
	struct descent *d = r->descent;
	struct agent *a;
	struct sweep *w;
	bool yields = false;
	if (!d->scanning && !scan_is_due(d)) return;
	if (d->scanning)
		renew_look(d->crowd);
	else
		begin_scan(r);
	while (!yields && step_crowd(d->crowd)) yields = loop_must_yield(r->loop);
	while (!yields && (a = LIST_TOP(&d->served, struct agent, look.node))) {
		serve_agent(r, a);
		yields = loop_must_yield(r->loop);
	}
	while (!yields && (w = LIST_TOP(&d->swept, struct sweep, node))) {
		hold_or_sweep(r, w);
		yields = loop_must_yield(r->loop);
	}
	if (!yields) ask_names(r);
	if (!yields) finish_scan(d);
	if (yields || scan_is_due(d)) loop_defer(r->loop, &d->task);
}

/* --- the end of leftovers ----------------------------------------------------------------------------------------- */

/* A zombie has ended: its parent may never wait for it. */
static bool ended(const struct kin *k) {
	return !proc_lives(k->pid, k->start);
}

bool descent_ends(const struct descent *d) {
	const struct kin *k;
	for (k = d->by_pid; k; k = k->hh.next)
		if (k->due) return true;
	return false;
}

/* Return the next process with an expired grace time, or NULL. */
static struct kin *overdue(const struct descent *d, int64_t now) {
	for (struct kin *k = d->by_pid; k; k = k->hh.next)
		if (k->due && k->due <= now) return k;
	return NULL;
}

static void kill_due(struct router *r, uint64_t number) {
	struct sweep w = {
		.r = r, .numbers = {number, number}, .fate = FATE_KILL, .due = true, .names = BUF_INIT(NAMES_MAX)};
	for (struct session *s = r->sessions; number && s && !w.id; s = s->hh.next)
		if (launch_number(r->instance, s->name) == number) w.id = s->id;
	for (struct kin *k = r->descent->by_pid; k; k = k->hh.next) w.late |= k->number == number && k->due && k->late;
	bool waits = add_sweep(&w);
	for (struct kin *k = r->descent->by_pid; k; k = k->hh.next)
		if (k->number == number && k->due) k->due = waits ? DUE_SWEPT : 0;
}

/* Look for those that have ended, as many as the share of the turn allows. False: there are more. */
static bool check_due(struct router *r) {
	struct descent *d = r->descent;
	for (struct kin *k = d->by_pid; k; k = k->hh.next) {
		if (!k->due || k->due == DUE_SWEPT || k->checked == d->checks) continue;
		k->checked = d->checks;
		if (ended(k)) k->due = 0;
		if (loop_must_yield(r->loop)) return false;
	}
	d->checks++;
	return true;
}

static void kill_overdue(struct router *r) {
	struct descent *d = r->descent;
	struct kin *k;
	while ((k = overdue(d, now_ms()))) kill_due(r, k->number);
	if (descent_ends(d))
		arm(d);
	else
		r->events->changed(r);
}

static void on_due(void *arg) {
	struct router *r = arg;
	if (check_due(r))
		kill_overdue(r);
	else
		loop_timer_set(&r->descent->timer, 0);
}

void descent_hurry(struct router *r) {
	struct descent *d = r->descent;
	d->hurried = d->mute = true;
	release_held(r);
	errand_drop(&d->errand);
	for (struct kin *k = d->by_pid; k; k = k->hh.next)
		if (k->due && k->due != DUE_SWEPT) k->due = 1;
	kill_overdue(r);
}

struct descent *descent_new(struct router *r) {
	struct descent *d = calloc(1, sizeof *d);
	if (!d || !(d->crowd = calloc(1, sizeof *d->crowd))) {
		free(d);
		return NULL;
	}
	d->checks = 1;
	loop_timer_init(&d->timer, r->loop, on_due, r);
	loop_task_init(&d->task, on_scan, r);
	list_init(&d->waiting);
	list_init(&d->served);
	list_init(&d->sweeps);
	list_init(&d->swept);
	list_init(&d->held);
	list_init(&d->held_sweeps);
	d->errand = ERRAND_ZERO;
	return d;
}

void descent_free(struct descent *d) {
	if (!d) return;
	struct kin *k, *next;
	struct sweep *w;
	HASH_ITER (hh, d->by_pid, k, next) drop_kin(d, k);
	clear_counts(d);
	loop_timer_stop(&d->timer);
	errand_drop(&d->errand);
	loop_task_stop(&d->task);
	move_all(&d->waiting, &d->served);
	move_all(&d->waiting, &d->held);
	while (!list_empty(&d->waiting)) list_del(d->waiting.next);
	move_all(&d->sweeps, &d->swept);
	move_all(&d->sweeps, &d->held_sweeps);
	while ((w = LIST_TOP(&d->sweeps, struct sweep, node))) free_sweep(w);
	if (d->scanning) end_crowd(d->crowd);
	free(d->names);
	free(d->crowd);
	free(d);
}

void descent_resume(struct descent *d) {
	if (descent_ends(d)) arm(d);
}

static bool add_sweep_of_all(struct router *r, enum fate fate) {
	struct sweep w = {.r = r, .fate = fate, .all = true, .grace = LAST_GRACE_MS, .names = BUF_INIT(NAMES_MAX)};
	return add_sweep(&w);
}

void descent_sweep_all(struct router *r) {
	if (add_sweep_of_all(r, FATE_KILL)) sweep_now(r, true);
}

/* Without the errand, if this binary goes on. */
void descent_settle(struct router *r) {
	struct descent *d = r->descent;
	record_now(r);
	release_held(r);
	errand_drop(&d->errand);
	sweep_now(r, false);
}

/* End the processes of sessions first, by name; then all other processes of agents: one scan serves them. */
static void end_all(struct router *r) {
	for (struct session *s = r->sessions; s; s = s->hh.next)
		if (descent_count(r, s)) descent_end(s, false, false);
	add_sweep_of_all(r, FATE_END);
}

/* The last sweep finds processes started meanwhile. */
bool descent_finish(struct router *r) {
	struct descent *d = r->descent;
	if (!d->finishing) {
		d->finishing = d->ending_all = true;
		end_all(r);
		d->ending_all = false;
	}
	/* an orphan found meanwhile calls this again */
	if (d->ending_all || sweeps_wait(d) || descent_ends(d)) return false;
	if (!d->finished) add_sweep_of_all(r, FATE_KILL);
	d->finished = true;
	return !sweeps_wait(d);
}

/* --- lists ---------------------------------------------------------------------------------------------------------
 */

static bool is_listed(const struct kin *k) {
	return k && k->root && !k->gone;
}

/* Classify orphans adopted since the last scan, each once. */
static void find_orphans(struct router *r) {
	struct look l;
	struct path p = {0};
	size_t n;
	pid_t *own = proc_children(&n);
	if (!own || !begin_look(&l, r)) {
		free(own);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		if (child_in(&l, own[i]) || is_listed(find_kin(r->descent, own[i]))) continue;
		enum end end = climb_up(&p, own[i]);
		if (end == END_US && p.n == 1) (void)from_path(&l, &p, end);
	}
	free(p.v);
	free(l.children);
	free(own);
}

static struct kin_count *count_of(const struct descent *d, uint64_t number) {
	struct kin_count *c;
	HASH_FIND(hh, d->counts, &number, sizeof number, c);
	return c;
}

static void count_one(struct descent *d, uint64_t number) {
	struct kin_count *c = count_of(d, number);
	if (!c && (c = calloc(1, sizeof *c))) {
		c->number = number;
		if (!HASH_TRY_ADD(hh, d->counts, &c->number, sizeof c->number, c)) {
			free(c);
			return;
		}
	}
	if (c) c->n++;
}

static void look_again(struct router *r) {
	struct descent *d = r->descent;
	int64_t begun = now_ms();
	if (begun < d->look_at) return;
	find_orphans(r);
	clear_counts(d);
	for (struct kin *k = d->by_pid; k; k = k->hh.next) {
		if (!is_listed(k)) continue;
		k->gone = kill(k->pid, 0) < 0 && errno == ESRCH;
		if (!k->gone) count_one(d, k->number);
	}
	d->look_at = now_ms() + MAX((int64_t)LOOK_MS, LOOK_SHARE * (now_ms() - begun));
}

static bool is_of(const struct session *s, uint64_t number) {
	return number == number_of(s) || number == launch_number(s->world->instance, s->name);
}

size_t descent_count(struct router *r, const struct session *s) {
	look_again(r);
	if (!r->descent->counts) return 0;
	uint64_t one = number_of(s), other = launch_number(r->instance, s->name);
	const struct kin_count *c = count_of(r->descent, one), *more = one == other ? NULL : count_of(r->descent, other);
	return (c ? c->n : 0) + (more ? more->n : 0);
}

/* Return the age; the kernel counts the start of a process in clock ticks since boot. */
static int64_t age_of(const struct kin *k) {
	struct timespec now;
	long ticks = sysconf(_SC_CLK_TCK);
	if (ticks <= 0 || clock_gettime(CLOCK_BOOTTIME, &now) < 0) return -1;
	return MAX((int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 - (int64_t)(k->start * 1000 / (uint64_t)ticks),
			   (int64_t)0);
}

struct descent_entry *descent_list(struct router *r, const struct session *s, size_t *n) {
	*n = 0;
	look_again(r);
	struct descent_entry *all = calloc(DESCENT_NAMES_MAX, sizeof *all);
	for (struct kin *k = r->descent->by_pid; all && k && *n < DESCENT_NAMES_MAX; k = k->hh.next) {
		if (!is_listed(k) || (s && !is_of(s, k->number))) continue;
		if ((k->gone = ended(k))) continue;
		struct descent_entry *e = &all[(*n)++];
		*e = (struct descent_entry){.pid = k->pid, .number = k->number, .since_ms = age_of(k)};
		proc_name(k->pid, e->program, sizeof e->program);
	}
	return all;
}

const struct session *descent_session(const struct router *r, const struct descent_entry *e) {
	for (const struct session *s = r->sessions; e->number && s; s = s->hh.next)
		if (is_of(s, e->number)) return s;
	return NULL;
}
