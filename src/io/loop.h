/* SPDX-License-Identifier: MIT
 *
 * The event loop: readiness, timers and signals through libevent's `event` (no bufferevent), and tasks that run once at
 * the end of a turn. One turn is one poll of the kernel and its callbacks, then all urgent tasks and one of the others.
 * Other files use libevent only through this header's structs.
 *
 * A turn has a time budget. Descriptors and timers that became ready after it was used up are served first in the next
 * turns, alternating between the oldest and the newest, so that no crowd before or behind a descriptor delays it. A
 * callback with much work calls loop_must_yield() between two pieces of work, and continues in a task.
 *
 * All objects are embedded in their owners. Each may be stopped in any callback; memory that contains one must outlive
 * the turn: free it with loop_defer_free(). Times are milliseconds. Source: event(3).
 */
#pragma once

#include "base/histogram.h"
#include "base/list.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdbool.h>
#include <stdint.h>

struct loop;

struct loop *loop_new(void); /* NULL: no memory or no epoll */
void loop_free(struct loop *l);
void loop_run(struct loop *l); /* until loop_stop() */
void loop_stop(struct loop *l);
/* Return true if the running callback has used up its share of the turn. It then defers the rest to a task. */
bool loop_must_yield(const struct loop *l);
/* Return the durations of all turns, in microseconds of the monotonic clock: from the first callback to the end of the
 * tasks, without the wait for the kernel. The running turn is not counted yet. */
const struct histogram *loop_turns(const struct loop *l);
uint64_t loop_turn(const struct loop *l); /* the number of the running turn, 1 or more */
void loop_finish(struct loop *l);         /* run the remaining tasks (memory to free) */

/* A descriptor. Level-triggered; fn runs when it is readable or writable, as wanted. */
struct loop_fd {
	struct event ev;
	struct loop *loop;
	void (*fn)(void *arg, bool readable, bool writable);
	void *arg;
	int fd;
	short wanted;
	bool ready;       /* ev was assigned */
	short late;       /* events that came after the budget was used up */
	struct list node; /* then in the loop's list */
};

void loop_fd_init(struct loop_fd *f, struct loop *l, int fd, void (*fn)(void *, bool, bool), void *arg);
bool loop_fd_want(struct loop_fd *f, bool read, bool write); /* false: the kernel refused */
/* For a stream with a half-closed other side: fn runs once more, as readable, when the other side has closed, which fn
 * checks with poll(2). Edge-triggered, because such a descriptor is always readable. */
bool loop_fd_want_end(struct loop_fd *f, bool write);
void loop_fd_stop(struct loop_fd *f); /* before close(2) */

struct loop_timer {
	struct event ev;
	struct loop *loop;
	struct list node; /* in the loop's list: due after the budget was used up */
	int64_t due;      /* now_ms() clock; libevent's own value depends on the wall clock */
	void (*fn)(void *arg);
	void *arg;
};

void loop_timer_init(struct loop_timer *t, struct loop *l, void (*fn)(void *), void *arg);
void loop_timer_set(struct loop_timer *t, int64_t ms); /* once; replaces an earlier setting; INT64_MAX: never */
void loop_timer_stop(struct loop_timer *t);            /* NULL: an unset timer, here and below */
bool loop_timer_pending(const struct loop_timer *t);
int64_t loop_timer_left(const struct loop_timer *t); /* ms until it runs; -1: not set */
/* For a rarely used timer: make it unless it exists. False without memory. */
bool loop_timer_make(struct loop_timer **t, struct loop *l, void (*fn)(void *), void *arg);
void loop_timer_drop(struct loop_timer **t); /* free it unless it is set; only in a task */

struct loop_signal {
	struct event ev;
	struct loop *loop;
	void (*fn)(void *arg);
	void *arg;
};

void loop_signal_init(struct loop_signal *s, struct loop *l, int signo, void (*fn)(void *), void *arg);
void loop_signal_stop(struct loop_signal *s);

/* A task runs once at the end of a turn (this one, or a later one if many wait), no matter how often it was deferred. A
 * task that is not urgent and is deferred while tasks run, runs in a later turn. */
struct loop_task {
	struct list node;
	void (*fn)(void *arg);
	void *arg;
};

void loop_task_init(struct loop_task *t, void (*fn)(void *), void *arg);
void loop_defer(struct loop *l, struct loop_task *t);
/* Defer before all waiting tasks, which get every second turn. */
void loop_defer_first(struct loop *l, struct loop_task *t);
/* Defer to the end of this turn, before any output is sent: for data that must be on disk before it is reported, and
 * for notices that must be sent in this turn. */
void loop_defer_urgent(struct loop *l, struct loop_task *t);
/* Defer to the very end of this turn: for unreferenced memory. Any number of these tasks delays no other task. */
void loop_defer_free(struct loop *l, struct loop_task *t);
void loop_task_stop(struct loop_task *t);
