/* SPDX-License-Identifier: MIT */
#include "core/warm.h"
#include "core/asks.h"
#include "core/descent.h"
#include "core/handshake.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"

#include <string.h>
#include <unistd.h>

#define REFILL_MS 1000              /* the new session has its first turn meanwhile */
#define START_MS 60000              /* the longest time of a spare to answer its initialize */
#define HEALTHY_MS 60000            /* a spare of this age resets the count of failures */
#define BACKOFF_FIRST_MS 1000       /* doubles with each failure in a row */
#define FAILURES_MAX 5              /* then the profile has no spares until the next reload */
#define FULL_MS 10000               /* until the next check for room for another child */
#define PRESSURE_MS (5 * 60 * 1000) /* no new spares after memory was short */

/* The configured number of spares of one profile. */
struct stock {
	struct list node;
	struct warm *warm;
	const struct profile *profile; /* of warm->settings */
	struct list spares;
	struct login *login; /* of the expected next requester: the last one's */
	int umask;           /* the same, as in struct launch */
	unsigned failures;
	struct loop_timer refill;
};

struct spare {
	struct list node;    /* in its stock, or in warm->ending */
	struct stock *stock; /* NULL: it is ending */
	struct warm *warm;
	struct session *session;
	bool ready;
	int64_t since;
	struct loop_timer timer; /* START_MS */
};

struct warm {
	struct router *router;
	struct settings *settings;
	struct list stocks, ending;
	int64_t not_before; /* memory is short */
};

static const struct session_events spare_events;

struct warm *warm_new(struct router *r) {
	struct warm *w = calloc(1, sizeof *w);
	if (!w) return NULL;
	w->router = r;
	list_init(&w->stocks);
	list_init(&w->ending);
	return w;
}

void warm_carry(struct carry *c, struct warm *w) {
	CARRY(c, w->not_before);
}

size_t warm_running(const struct warm *w) {
	const struct stock *k;
	size_t n = list_length(&w->ending);
	LIST_FOR_EACH (k, &w->stocks, struct stock, node) n += list_length(&k->spares);
	return n;
}

size_t warm_ready(const struct warm *w, const struct profile *p) {
	const struct stock *k;
	const struct spare *one;
	size_t n = 0;
	LIST_FOR_EACH (k, &w->stocks, struct stock, node)
		if (k->profile == p)
			LIST_FOR_EACH (one, &k->spares, struct spare, node) n += one->ready;
	return n;
}

/* --- one spare ---------------------------------------------------------------------------------------------------- */

static void leave_stock(struct spare *one) {
	list_del(&one->node);
	one->stock = NULL;
	one->ready = false;
	loop_timer_stop(&one->timer);
}

static void forget(struct spare *one) {
	leave_stock(one);
	handshake_free(one->session);
	session_remove(one->session);
	free(one);
}

static void end_spare(struct spare *one, bool kill_now) {
	leave_stock(one);
	list_add_tail(&one->warm->ending, &one->node);
	session_stop(one->session, kill_now, THEN_SLEEP);
}

/* It stays in its stock: counts as a failure when it is gone. */
static void fail(struct spare *one, const char *why) {
	log_warn("%s: %s", one->session->label, why);
	session_stop(one->session, true, THEN_SLEEP);
	session_set_reason(one->session, why);
}

static void on_start_timer(void *arg) {
	fail(arg, "no answer to initialize in time");
}

/* Make a hidden session without a child. Takes over launch. */
static struct spare *new_spare(struct warm *w, struct settings *settings, const struct profile *p, const char *name,
							   struct launch *launch) {
	struct router *r = w->router;
	struct spare *one = calloc(1, sizeof *one);
	struct session *s = one ? session_new(r->loop, &r->pool, r->children, settings, p, name, launch, &spare_events, r)
							: NULL;
	if (!s) {
		free(one);
		return NULL;
	}
	list_init(&one->node);
	one->warm = w;
	one->session = s;
	one->since = now_ms();
	loop_timer_init(&one->timer, r->loop, on_start_timer, one);
	s->spare = one;
	return one;
}

/* --- the stock ---------------------------------------------------------------------------------------------------- */

static struct stock *stock_of(struct warm *w, const struct profile *p) {
	struct stock *k;
	LIST_FOR_EACH (k, &w->stocks, struct stock, node)
		if (k->profile == p) return k;
	return NULL;
}

static void failed(struct stock *k, const char *why) {
	if (++k->failures >= FAILURES_MAX)
		log_warn("profile %s: %d prestarted children in a row failed (%s): no more of them until the next reload",
				 k->profile->name, FAILURES_MAX, why);
	else
		loop_timer_set(&k->refill, BACKOFF_FIRST_MS << (k->failures - 1));
}

static bool make_launch(const struct warm *w, const struct profile *p, struct login *login, int mask,
						struct launch *l) {
	*l = (struct launch){.cwd = str_dup(p->cwd),
						 .uid = getuid(),
						 .umask = mask,
						 .instance = w->router->instance,
						 .nofile = w->router->nofile};
	l->login = login_ref(login);
	return l->cwd != NULL;
}

static void start_one(struct stock *k) {
	struct error error;
	char random[9];
	struct launch launch;
	str_random_hex(random, 8);
	_cleanup_free_ char *name = str_printf("warm-%s-%s", k->profile->name, random);
	bool made = make_launch(k->warm, k->profile, k->login, k->umask, &launch);
	struct spare *one = name && made ? new_spare(k->warm, k->warm->settings, k->profile, name, &launch) : NULL;
	if (!one) {
		launch_free(&launch);
		failed(k, "out of memory");
		return;
	}
	one->stock = k;
	list_add_tail(&k->spares, &one->node);
	if (session_start_once(one->session, &error) != CHILD_OK) {
		forget(one);
		failed(k, error.text);
	}
}

/* Start one at a time: each takes a processor for a second or two. */
static void on_refill(void *arg) {
	struct stock *k = arg;
	struct warm *w = k->warm;
	const struct spare *one;
	if (list_length(&k->spares) >= k->profile->warm || k->failures >= FAILURES_MAX || w->router->shutting_down) return;
	LIST_FOR_EACH (one, &k->spares, struct spare, node)
		if (!one->ready) return;
	int64_t wait = w->not_before - now_ms();
	if (wait > 0)
		loop_timer_set(&k->refill, wait);
	else if (router_children(w->router) + warm_running(w) >= w->router->settings->max_children)
		loop_timer_set(&k->refill, FULL_MS);
	else
		start_one(k);
}

static void refill(struct stock *k, int64_t ms) {
	if (!loop_timer_pending(&k->refill)) loop_timer_set(&k->refill, ms);
}

static void add_stock(struct warm *w, const struct profile *p) {
	struct stock *k = calloc(1, sizeof *k);
	if (!k) return;
	k->warm = w;
	k->profile = p;
	list_init(&k->spares);
	loop_timer_init(&k->refill, w->router->loop, on_refill, k);
	list_add_tail(&w->stocks, &k->node);
	refill(k, 0);
}

static void free_stock(struct stock *k) {
	list_del(&k->node);
	login_unref(k->login);
	free(k);
}

static void drop_stocks(struct warm *w, bool kill_now) {
	struct stock *k;
	struct spare *one;
	LIST_FOR_EACH (k, &w->stocks, struct stock, node) {
		loop_timer_stop(&k->refill);
		LIST_FOR_EACH (one, &k->spares, struct spare, node) end_spare(one, kill_now);
		free_stock(k);
	}
}

void warm_configure(struct warm *w) {
	drop_stocks(w, false);
	settings_unref(w->settings);
	w->settings = settings_ref(w->router->settings);
	for (size_t i = 0; i < w->settings->n_profiles; i++)
		if (w->settings->profiles[i].warm) add_stock(w, &w->settings->profiles[i]);
}

void warm_stop(struct warm *w, bool kill_now) {
	struct spare *one;
	drop_stocks(w, kill_now);
	LIST_FOR_EACH (one, &w->ending, struct spare, node) session_quit(one->session, kill_now);
}

void warm_forget(struct warm *w) {
	struct stock *k;
	struct spare *one;
	LIST_FOR_EACH (k, &w->stocks, struct stock, node) {
		loop_timer_stop(&k->refill);
		LIST_FOR_EACH (one, &k->spares, struct spare, node) forget(one);
		free_stock(k);
	}
	LIST_FOR_EACH (one, &w->ending, struct spare, node) forget(one);
}

void warm_free(struct warm *w) {
	if (!w) return;
	settings_unref(w->settings);
	free(w);
}

/* --- events of a spare's child ------------------------------------------------------------------------------------ */

static void check_ready(struct spare *one) {
	struct session *s = one->session;
	if (one->ready || !one->stock || !s->agent || session_state(s) == SESSION_STARTING) return;
	loop_timer_stop(&one->timer);
	if (session_dialect(s)->hooks && !handshake_kept(s).p) {
		fail(one, "the child refused its initialize");
		return;
	}
	one->ready = true;
	refill(one->stock, 0);
}

static void on_line(struct session *s, struct chunk line, const struct envelope *e) {
	if (session_dialect(s)->kind(e) == LINE_REQUEST)
		asks_refuse(s, line, e, "no client is here yet");
	else
		s->world->child_events->line(s, line, e);
}

static void on_stray(struct session *s, struct chunk line) {
	s->world->child_events->stray(s, line);
}

static void on_long_line(struct session *s, struct chunk head, size_t size, bool wide) {
	(void)head;
	log_warn("%s: the child printed a line of %zu bytes%s", s->label, size, wide ? " with too many members" : "");
}

static void on_stderr(struct session *s, const char *data, size_t n) {
	(void)s, (void)data, (void)n; /* the session keeps its last lines */
}

static void on_started(struct session *s) {
	loop_timer_set(&s->spare->timer, START_MS);
	handshake_before_prompt(s);
}

static void on_start_over(struct session *s) {
	struct spare *one = s->spare;
	struct stock *k = one->stock;
	if (!s->start_error) return;
	_cleanup_free_ char *why = str_dup(s->start_error);
	forget(one);
	if (k) failed(k, why ? why : "its start failed");
}

static void on_exited(struct session *s, const struct session_exit *e) {
	struct spare *one = s->spare;
	struct stock *k = one->stock;
	struct router *r = s->world;
	if (k && one->ready && now_ms() - one->since > HEALTHY_MS) k->failures = 0;
	forget(one);
	if (k) failed(k, s->reason ? s->reason : "it ended");
	(void)e;
	r->events->changed(r);
}

/* Its state is published to no client. */
static void on_changed(struct session *s) {
	check_ready(s->spare);
	session_pace(s);
}

static bool may_read(struct session *s) {
	(void)s;
	return true;
}

static void read_done(struct session *s) {
	(void)s;
}

static const struct session_events spare_events = {
	.line = on_line,
	.stray = on_stray,
	.long_line = on_long_line,
	.stderr_data = on_stderr,
	.started = on_started,
	.start_over = on_start_over,
	.ending = descent_record,
	.left = descent_child_gone,
	.exited = on_exited,
	.changed = on_changed,
	.may_read = may_read,
	.read_done = read_done,
};

/* --- giving and taking back --------------------------------------------------------------------------------------- */

static bool fits(const struct spare *one, const struct session *s) {
	const struct session *spare = one->session;
	if (!one->ready || !session_can_give(spare)) return false;
	const struct child_place *place = &spare->agent->place;
	if (!place->cwd || place->cwd != s->launch.place.cwd) return false;
	return launch_same(&spare->launch, &s->launch, s->profile, place->program & 1);
}

static uint64_t program_of(const struct spare *one) {
	return one->session->agent->place.program;
}

static struct spare *choose(struct stock *k, const struct session *s) {
	struct spare *one;
	/* End spares with a program that was updated since: they make room for others. Those are kept if only the
	 * requester's own PATH has another program. */
	LIST_FOR_EACH (one, &k->spares, struct spare, node) {
		if (!fits(one, s) || program_of(one) == s->launch.place.program) continue;
		if ((program_of(one) ^ s->launch.place.program) & 1) continue;
		log_info("%s: ends, its program was replaced", one->session->label);
		end_spare(one, false);
		refill(k, REFILL_MS);
	}
	LIST_FOR_EACH (one, &k->spares, struct spare, node)
		if (fits(one, s) && program_of(one) == s->launch.place.program) return one;
	return NULL;
}

/* A requester on a terminal or over SSH has variables or an umask that the daemon has not. It gets no spare this time;
 * the next spares get its environment and umask. */
static void follow_requester(struct stock *k, const struct session *s) {
	struct spare *one;
	struct launch like = {
		.cwd = k->profile->cwd, .login = s->launch.login, .umask = s->launch.umask, .instance = s->launch.instance};
	bool follows = login_same(k->login, s->launch.login) && k->umask == s->launch.umask;
	bool in_cwd = k->profile->cwd && strcmp(k->profile->cwd, s->launch.cwd) == 0;
	uint64_t cwd = s->launch.place.cwd; /* a directory may have two names */
	LIST_FOR_EACH (one, &k->spares, struct spare, node)
		in_cwd |= cwd && one->session->agent && one->session->agent->place.cwd == cwd;
	if (follows || !in_cwd || !launch_same(&like, &s->launch, k->profile, true)) return;
	login_unref(k->login);
	k->login = login_ref(s->launch.login);
	k->umask = s->launch.umask;
	LIST_FOR_EACH (one, &k->spares, struct spare, node) end_spare(one, false);
	refill(k, REFILL_MS);
}

bool warm_give(struct warm *w, struct session *s) {
	bool own = s->conversation_id || s->launch.resume || s->launch.fork || s->registry.n_hooks;
	struct stock *k = own ? NULL : stock_of(w, s->profile);
	struct spare *one = k ? choose(k, s) : NULL;
	if (k && !one) {
		log_info(
			"session %s: no prestarted child fits (directory %s, its arguments or environment), it gets one of its own",
			s->label, s->launch.cwd);
		follow_requester(k, s);
	}
	if (!one || !session_take_child(s, one->session)) return false;
	handshake_move(s, one->session);
	log_info("session %s: takes prestarted child %d, %s", s->label, s->agent->child.pid, one->session->label);
	forget(one);
	k->failures = 0;
	refill(k, REFILL_MS);
	w->router->events->changed(w->router);
	return true;
}

static struct spare *spare_of(struct warm *w, struct session *s) {
	struct launch launch = {0};
	bool made = make_launch(w, s->profile, s->launch.login, s->launch.umask, &launch);
	struct spare *one = made ? new_spare(w, s->settings, s->profile, s->agent->name, &launch) : NULL;
	if (one && session_take_child(one->session, s)) return one;
	launch_free(&launch);
	if (one) forget(one);
	return NULL;
}

void warm_take_back(struct warm *w, struct session *s) {
	struct stock *k = stock_of(w, s->profile);
	struct spare *one = session_can_return(s) ? spare_of(w, s) : NULL;
	session_touch(s); /* if it asks something, or works, it is an ordinary child of this session */
	if (!one) return;
	handshake_move(one->session, s);
	log_info("session %s: returns prestarted child %d: its client asks for something else", s->label,
			 one->session->agent->child.pid);
	list_add_tail(&w->ending, &one->node);
	bool wanted = k && list_length(&k->spares) < k->profile->warm && now_ms() >= w->not_before;
	if (!wanted || !agent_is_whole(one->session->agent)) {
		end_spare(one, false);
		return;
	}
	list_del(&one->node);
	one->stock = k;
	list_add_tail(&k->spares, &one->node);
	one->ready = true;
}

/* --- room --------------------------------------------------------------------------------------------------------- */

void warm_make_room(struct warm *w) {
	struct stock *k;
	struct spare *one;
	if (router_children(w->router) + warm_running(w) - list_length(&w->ending) <= w->router->settings->max_children)
		return;
	LIST_FOR_EACH (k, &w->stocks, struct stock, node)
		LIST_FOR_EACH (one, &k->spares, struct spare, node) {
			log_info("%s: ends, there are %zu children already", one->session->label,
					 w->router->settings->max_children);
			end_spare(one, false);
			refill(k, FULL_MS);
			return;
		}
}

bool warm_relieve(struct warm *w) {
	struct stock *k;
	struct spare *one;
	bool any = false;
	w->not_before = now_ms() + PRESSURE_MS;
	LIST_FOR_EACH (k, &w->stocks, struct stock, node)
		LIST_FOR_EACH (one, &k->spares, struct spare, node) {
			log_info("%s: ends, memory is short", one->session->label);
			end_spare(one, false);
			loop_timer_set(&k->refill, PRESSURE_MS);
			any = true;
		}
	return any;
}
