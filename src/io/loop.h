/* SPDX-License-Identifier: MIT
 *
 * The event loop: readiness, timers and signals through libevent's `event` (no bufferevent), and tasks that run once at
 * the end of a turn. One turn is one poll of the kernel and its callbacks, then all urgent tasks and one of the others.
 * No other file includes libevent but through this header's structs.
 *
 * A turn has a budget of time. Descriptors that became ready after it was used up, and timers that were due, are served
 * in the next turns, before others: by turns the one that waits longest and the newest, so that neither a crowd before
 * it nor one behind it keeps a descriptor waiting. A callback with much to
 * do asks loop_must_yield() between two pieces of work, and goes on in a task.
 *
 * All objects are embedded in their owners. Any of them may be stopped from within any callback; memory that holds one
 * must outlive the turn: free it with loop_defer_free(). Times are milliseconds. Source: event(3), ENGINEERING 8.6.
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
/* Return true if the callback that runs has used up its share of the turn. One that has more to do defers a task. */
bool loop_must_yield(const struct loop *l);
/* How long each turn took, in microseconds of the monotonic clock without the wait for the kernel: from its first
 * callback to the end of its tasks. The turn that runs is not counted yet. */
const struct histogram *loop_turns(const struct loop *l);
void loop_finish(struct loop *l); /* runs the tasks that are left (memory that waits to be freed) */

/* A descriptor. Level-triggered; fn runs when it is readable or writable, as asked for. */
struct loop_fd {
	struct event ev;
	struct loop *loop;
	void (*fn)(void *arg, bool readable, bool writable);
	void *arg;
	int fd;
	short wanted;
	bool ready;       /* ev was assigned */
	short late;       /* became ready so when the turn was over */
	struct list node; /* then in the loop's list */
};

void loop_fd_init(struct loop_fd *f, struct loop *l, int fd, void (*fn)(void *, bool, bool), void *arg);
bool loop_fd_want(struct loop_fd *f, bool read, bool write); /* false: the kernel refused */
/* For a stream whose other side writes no more: readable is told once more when it has gone altogether, which fn finds
 * out with poll(2). Edge-triggered: such a descriptor is readable all the time. */
bool loop_fd_want_end(struct loop_fd *f, bool write);
void loop_fd_stop(struct loop_fd *f); /* before close(2) */

struct loop_timer {
	struct event ev;
	struct loop *loop;
	struct list node; /* in the loop's list: it was due when the turn was over */
	int64_t due;      /* now_ms() clock. Of libevent's own account the wall clock is a part. */
	void (*fn)(void *arg);
	void *arg;
};

void loop_timer_init(struct loop_timer *t, struct loop *l, void (*fn)(void *), void *arg);
void loop_timer_set(struct loop_timer *t, int64_t ms); /* once; replaces an earlier setting; INT64_MAX: never */
void loop_timer_stop(struct loop_timer *t);            /* NULL is one that is not set, here and below */
bool loop_timer_pending(const struct loop_timer *t);
int64_t loop_timer_left(const struct loop_timer *t); /* ms until it runs; -1: it is not set */
/* One that is seldom needed: makes it where there is none yet. False without memory. */
bool loop_timer_make(struct loop_timer **t, struct loop *l, void (*fn)(void *), void *arg);
void loop_timer_drop(struct loop_timer **t); /* gives it back, unless it is set; from a task */

struct loop_signal {
	struct event ev;
	struct loop *loop;
	void (*fn)(void *arg);
	void *arg;
};

void loop_signal_init(struct loop_signal *s, struct loop *l, int signo, void (*fn)(void *), void *arg);
void loop_signal_stop(struct loop_signal *s);

/* A task runs once at the end of a turn (this one, or one of the next where many wait), however often it was deferred
 * in it. One that is not urgent and is deferred while tasks run, runs in a later turn. */
struct loop_task {
	struct list node;
	void (*fn)(void *arg);
	void *arg;
};

void loop_task_init(struct loop_task *t, void (*fn)(void *), void *arg);
void loop_defer(struct loop *l, struct loop_task *t);
/* Before all that wait, who get every second turn. */
void loop_defer_first(struct loop *l, struct loop_task *t);
/* Before anything is sent at the end of this turn: what must be on disk when somebody hears of it, or is to be told
 * before it is over. */
void loop_defer_urgent(struct loop *l, struct loop_task *t);
/* When this turn has done all else: memory that nobody refers to any more. It stands in nobody's way, however many come
 * and go in one turn. */
void loop_defer_free(struct loop *l, struct loop_task *t);
void loop_task_stop(struct loop_task *t);
