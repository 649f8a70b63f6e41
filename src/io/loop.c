/* SPDX-License-Identifier: MIT */
#include "io/loop.h"

#include "base/fd.h"
#include "base/log.h"

#include <stdlib.h>
#include <sys/time.h>

#define SHARE_US 2000 /* of one callback that can be interrupted */
#define TURN_US 5000  /* after this, ready descriptors wait for the next turn */

struct loop {
	struct event_base *base;
	struct list urgent, first, tasks, free;
	struct list late, late_timers; /* they were ready when a turn was over */
	unsigned turn, served;         /* turns; callbacks of them that were late */
	bool stop;
	int64_t began; /* when this turn began, us; 0: it waits for the kernel */
	int64_t share; /* when the callback that runs began */
	struct histogram turns;
};

/* Else libevent writes to stderr by itself, past the log and its format. */
static void on_library_log(int severity, const char *message) {
	log_write(severity == EVENT_LOG_ERR    ? LOG_ERROR
			  : severity == EVENT_LOG_WARN ? LOG_WARN
										   : LOG_DEBUG,
			  "libevent", "libevent: %s", message);
}

struct loop *loop_new(void) {
	event_set_log_callback(on_library_log);
	struct loop *l = calloc(1, sizeof *l);
	struct event_config *config = event_config_new();
	if (l && config) {
		/* the environment must not change the back end, and the change list is unsafe with dup()ed descriptors */
		event_config_set_flag(config, EVENT_BASE_FLAG_IGNORE_ENV | EVENT_BASE_FLAG_NOLOCK);
		l->base = event_base_new_with_config(config);
		list_init(&l->urgent);
		list_init(&l->first);
		list_init(&l->tasks);
		list_init(&l->free);
		list_init(&l->late);
		list_init(&l->late_timers);
	}
	if (config) event_config_free(config);
	if (l && !l->base) {
		free(l);
		l = NULL;
	}
	return l;
}

void loop_free(struct loop *l) {
	if (!l) return;
	event_base_free(l->base);
	free(l);
}

/* Before each callback: libevent does not say when its wait was over. */
static void begin(struct loop *l) {
	l->share = now_us();
	if (!l->began) l->began = l->share;
}

static bool turn_is_over(const struct loop *l) {
	return l->share - l->began >= TURN_US;
}

bool loop_must_yield(const struct loop *l) {
	return now_us() - l->share >= SHARE_US;
}

static void run_task(struct loop *l, struct list *node) {
	struct loop_task *t = LIST_OF(node, struct loop_task, node);
	list_del(&t->node);
	begin(l);
	t->fn(t->arg);
}

static void run_all(struct loop *l, struct list *tasks) {
	while (!list_empty(tasks)) run_task(l, tasks->next);
}

static bool has_tasks(const struct loop *l) {
	return !list_empty(&l->urgent) || !list_empty(&l->first) || !list_empty(&l->tasks) || !list_empty(&l->free);
}

/* The newest of those that go before others, but in every second turn one that has waited: a stream of answers to one
 * client must not starve the rest. */
static struct list *next_task(struct loop *l) {
	bool first = !list_empty(&l->first), others = !list_empty(&l->tasks);
	unsigned turn = l->turn++ % 4;
	if (others && (!first || turn == 1)) return l->tasks.next;
	return !first ? NULL : turn == 3 ? l->first.prev : l->first.next;
}

/* One at a time: an answer that has come meanwhile must not wait until a thousand readers were served. Whatever is
 * deferred by it runs later, behind those that wait. */
static void run_tasks(struct loop *l) {
	run_all(l, &l->urgent);
	struct list *node = next_task(l);
	if (node) run_task(l, node);
	run_all(l, &l->urgent);
	run_all(l, &l->free);
}

const struct histogram *loop_turns(const struct loop *l) {
	return &l->turns;
}

uint64_t loop_turn(const struct loop *l) {
	return l->turns.n + 1;
}

static void serve(struct loop_fd *f, short what) {
	what &= f->wanted;
	if (what) f->fn(f->arg, what & EV_READ, what & EV_WRITE);
}

static void serve_late(struct list *node) {
	struct loop_fd *f = LIST_OF(node, struct loop_fd, node);
	short what = f->late;
	f->late = 0;
	serve(f, what);
}

static void run_late_timer(struct list *node) {
	struct loop_timer *t = LIST_OF(node, struct loop_timer, node);
	t->fn(t->arg);
}

/* At least one, so that no task waits indefinitely. */
static void run_late(struct loop *l, struct list *late, void (*run)(struct list *node)) {
	while (!l->stop && !list_empty(late)) {
		struct list *node = ++l->served % 2 ? late->next : late->prev;
		list_del(node);
		begin(l);
		run(node);
		if (now_us() - l->began >= TURN_US) return;
	}
}

void loop_run(struct loop *l) {
	while (!l->stop) {
		bool work = has_tasks(l) || !list_empty(&l->late) || !list_empty(&l->late_timers);
		if (work) begin(l);
		run_late(l, &l->late_timers, run_late_timer);
		run_late(l, &l->late, serve_late);
		if (event_base_loop(l->base, EVLOOP_ONCE | (work ? EVLOOP_NONBLOCK : 0)) != 0 && !work) break;
		begin(l);
		run_tasks(l);
		histogram_add(&l->turns, (uint64_t)(now_us() - l->began));
		l->began = 0;
	}
}

void loop_finish(struct loop *l) {
	for (int i = 0; i < 100000 && has_tasks(l); i++) run_tasks(l);
}

void loop_stop(struct loop *l) {
	l->stop = true;
	event_base_loopbreak(l->base);
}

static void on_fd(evutil_socket_t fd, short what, void *arg) {
	struct loop_fd *f = arg;
	struct loop *l = f->loop;
	(void)fd;
	begin(l);
	if (!f->late && !turn_is_over(l)) {
		serve(f, what);
		return;
	}
	if (!f->late) list_add_tail(&l->late, &f->node);
	f->late |= what;
}

void loop_fd_init(struct loop_fd *f, struct loop *l, int fd, void (*fn)(void *, bool, bool), void *arg) {
	*f = (struct loop_fd){.loop = l, .fn = fn, .arg = arg, .fd = fd};
	list_init(&f->node);
}

static bool change(struct loop_fd *f, short wanted) {
	if (wanted == f->wanted) return true;
	if (f->wanted) event_del(&f->ev);
	f->wanted = 0;
	if (!wanted) return true;
	if (event_assign(&f->ev, f->loop->base, f->fd, (short)(wanted | EV_PERSIST), on_fd, f) < 0) return false;
	f->ready = true;
	if (event_add(&f->ev, NULL) < 0) return false;
	f->wanted = wanted;
	return true;
}

bool loop_fd_want(struct loop_fd *f, bool read, bool write) {
	return change(f, (short)((read ? EV_READ : 0) | (write ? EV_WRITE : 0)));
}

bool loop_fd_want_end(struct loop_fd *f, bool write) {
	return change(f, (short)(EV_ET | EV_READ | (write ? EV_WRITE : 0)));
}

void loop_fd_stop(struct loop_fd *f) {
	if (f->ready) {
		event_del(&f->ev);
		list_del(&f->node);
	}
	f->wanted = f->late = 0;
}

static void on_timer(evutil_socket_t fd, short what, void *arg) {
	struct loop_timer *t = arg;
	(void)fd, (void)what;
	struct loop *l = t->loop;
	begin(l);
	if (turn_is_over(l))
		list_add_tail(&l->late_timers, &t->node);
	else
		t->fn(t->arg);
}

void loop_timer_init(struct loop_timer *t, struct loop *l, void (*fn)(void *), void *arg) {
	t->loop = l;
	list_init(&t->node);
	t->fn = fn;
	t->arg = arg;
	event_assign(&t->ev, l->base, -1, 0, on_timer, t);
}

void loop_timer_set(struct loop_timer *t, int64_t ms) {
	if (ms == INT64_MAX) {
		loop_timer_stop(t);
		return;
	}
	if (ms < 0) ms = 0;
	int64_t now = now_ms();
	struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = (ms % 1000) * 1000};
	list_del(&t->node);
	t->due = ms < INT64_MAX - now ? now + ms : INT64_MAX;
	if (event_add(&t->ev, &tv) < 0) log_no_memory(); /* without its timers nothing here would end */
}

void loop_timer_stop(struct loop_timer *t) {
	if (!t) return;
	event_del(&t->ev);
	if (t->loop) list_del(&t->node);
}

bool loop_timer_pending(const struct loop_timer *t) {
	return t && (event_pending(&t->ev, EV_TIMEOUT, NULL) != 0 || (t->loop && !list_empty(&t->node)));
}

int64_t loop_timer_left(const struct loop_timer *t) {
	return loop_timer_pending(t) ? MAX(t->due - now_ms(), (int64_t)0) : -1;
}

bool loop_timer_make(struct loop_timer **t, struct loop *l, void (*fn)(void *), void *arg) {
	if (*t) return true;
	*t = malloc(sizeof **t);
	if (*t) loop_timer_init(*t, l, fn, arg);
	return *t != NULL;
}

void loop_timer_drop(struct loop_timer **t) {
	if (loop_timer_pending(*t)) return;
	free(*t);
	*t = NULL;
}

static void on_signal(evutil_socket_t fd, short what, void *arg) {
	struct loop_signal *s = arg;
	(void)fd, (void)what;
	begin(s->loop);
	s->fn(s->arg);
}

void loop_signal_init(struct loop_signal *s, struct loop *l, int signo, void (*fn)(void *), void *arg) {
	s->loop = l;
	s->fn = fn;
	s->arg = arg;
	event_assign(&s->ev, l->base, signo, EV_SIGNAL | EV_PERSIST, on_signal, s);
	if (event_add(&s->ev, NULL) < 0) log_no_memory(); /* the ends of children and SIGTERM would not be noticed */
}

void loop_signal_stop(struct loop_signal *s) {
	event_del(&s->ev);
}

void loop_task_init(struct loop_task *t, void (*fn)(void *), void *arg) {
	list_init(&t->node);
	t->fn = fn;
	t->arg = arg;
}

void loop_defer(struct loop *l, struct loop_task *t) {
	if (list_empty(&t->node)) list_add_tail(&l->tasks, &t->node);
}

void loop_defer_urgent(struct loop *l, struct loop_task *t) {
	list_del(&t->node);
	list_add_tail(&l->urgent, &t->node);
}

void loop_defer_first(struct loop *l, struct loop_task *t) {
	list_del(&t->node);
	list_add_head(&l->first, &t->node);
}

void loop_defer_free(struct loop *l, struct loop_task *t) {
	if (list_empty(&t->node)) list_add_tail(&l->free, &t->node);
}

void loop_task_stop(struct loop_task *t) {
	list_del(&t->node);
}
