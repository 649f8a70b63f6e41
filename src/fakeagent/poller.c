/* SPDX-License-Identifier: MIT */
#include "fakeagent/poller.h"

#include <poll.h>

#define MAX_WATCHES 64

struct timer {
	struct list node;
	int64_t at;
	poller_fn fn;
	json_t *arg;
};

static struct list watches = LIST_SELF(watches), timers = LIST_SELF(timers); /* timers: soonest first */

void poller_add(struct watch *w) {
	list_add_tail(&watches, &w->node);
}

struct timer *poller_after(int64_t ms, poller_fn fn, json_t *arg) {
	struct timer *t = malloc(sizeof *t);
	struct list *later = timers.next;
	if (!t) js_no_memory();
	*t = (struct timer){.at = now_ms() + ms, .fn = fn, .arg = arg};
	while (later != &timers && LIST_OF(later, struct timer, node)->at <= t->at) later = later->next;
	list_add_tail(later, &t->node);
	return t;
}

void poller_cancel(struct timer *t) {
	if (!t) return;
	list_del(&t->node);
	json_decref(t->arg);
	free(t);
}

static void run_timers(void) {
	struct timer *t;
	while ((t = LIST_TOP(&timers, struct timer, node)) && t->at <= now_ms()) {
		list_del(&t->node);
		t->fn(t->arg);
		poller_cancel(t);
	}
}

static int timeout_of(int64_t until) {
	const struct timer *t = LIST_TOP(&timers, struct timer, node);
	if (t && (until < 0 || t->at < until)) until = t->at;
	if (until < 0) return -1;
	int64_t left = until - now_ms();
	return left < 0 ? 0 : (int)MIN(left, (int64_t)1000000);
}

void poller_round(int64_t until) {
	struct pollfd p[MAX_WATCHES];
	struct watch *w;
	bool now = false;
	nfds_t n = 0, i = 0;
	LIST_FOR_EACH (w, &watches, struct watch, node) {
		int events = w->prepare ? w->prepare() : POLLIN;
		if (events == POLLER_NOW) now = true;
		if (n < MAX_WATCHES) p[n++] = (struct pollfd){events > 0 ? w->fd : -1, (short)events, 0};
	}
	if (poll(p, n, now ? 0 : timeout_of(until)) < 0)
		for (i = 0; i < n; i++) p[i].revents = 0;
	i = 0;
	LIST_FOR_EACH (w, &watches, struct watch, node) {
		if (w->act) w->act(w, i < n ? p[i].revents : 0);
		i++;
	}
	run_timers();
}

void poller_sleep(int64_t ms) {
	int64_t until = now_ms() + ms;
	do {
		poller_round(until);
	} while (!agent.aborted && now_ms() < until);
}
