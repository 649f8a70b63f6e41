/* SPDX-License-Identifier: MIT
 *
 * The only place that waits: descriptors and timers, by poll(2). A turn runs on the stack and calls it until its event
 * has come. Times are now_ms().
 */
#pragma once

#include "base/list.h"
#include "fakeagent/agent.h"

#include <stdint.h>

#define POLLER_NOW (-1)

struct watch {
	struct list node;
	int fd;
	/* Called before the wait: return the events to wait for, 0 for none, POLLER_NOW for a round without a wait. NULL:
	 * POLLIN. */
	int (*prepare)(void);
	void (*act)(struct watch *w, int events); /* once per round, without events too; may free its own watch; or NULL */
};

struct timer;
typedef void (*poller_fn)(json_t *arg);

void poller_add(struct watch *w);                                  /* list_del(&w->node) ends it */
struct timer *poller_after(int64_t ms, poller_fn fn, json_t *arg); /* takes arg */
void poller_cancel(struct timer *t);                               /* NULL is allowed; not from its own fn */
void poller_round(int64_t until);                                  /* one round; until < 0: no timeout */
void poller_sleep(int64_t ms);                                     /* ends early if the turn is aborted */
