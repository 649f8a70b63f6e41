/* SPDX-License-Identifier: MIT
 *
 * The limits for processes that look at something outside of the daemon, each at a place (a path), and the queue for
 * them. A mount that does not answer blocks the processes that look at it, perhaps indefinitely. So a place has a few
 * processes at a time; if two were left there unfinished, it gets no more until they are gone. A slow process does not
 * delay the next one, up to a number. The queue serves the uid with the fewest processes first, then the oldest; half
 * of the room is reserved for root and the uid of the daemon. Source: docs/contract.md 15.
 */
#pragma once

#include "io/loop.h"

#include <stdbool.h>
#include <sys/types.h>

struct places;

enum places_state {
	PLACES_OPEN,
	PLACES_FULL,   /* wait in the queue */
	PLACES_CLOSED, /* it does not answer: processes were left there */
};

/* A process not started yet. Embedded in its owner. */
struct places_turn {
	struct list node;
	struct places *places; /* NULL: not queued */
	char *place, *mount;
	uid_t uid;
	bool looked; /* the mount was looked up */
	bool start;
	/* Called once from the loop, with PLACES_OPEN or PLACES_CLOSED; it is not queued any more. */
	void (*go)(void *arg, enum places_state state);
	void *arg;
};

struct places *places_new(struct loop *loop);
void places_free(struct places *p);

/* uid: of the requester. PLACES_OPEN: start at once. */
enum places_state places_look(struct places *p, const char *place, uid_t uid);
/* Put t into the queue; place is copied. start: of a program, which its owner waits for; they have more room. False:
 * the queue is full, or no memory. */
bool places_wait(struct places *p, struct places_turn *t, const char *place, uid_t uid, bool start,
				 void (*go)(void *arg, enum places_state state), void *arg);
uint64_t places_served(const struct places *p);  /* how many have left the queue at their turn: it moves */
void places_wait_no_more(struct places_turn *t); /* harmless if not queued */

/* Register the process at the place, until it is reaped or places_back(). False without memory. */
bool places_out(struct places *p, pid_t pid, const char *place, uid_t uid);
/* The process has moved to another place. */
void places_move(struct places *p, pid_t pid, const char *place);
/* The daemon does not wait for the process any more. */
void places_left(struct places *p, pid_t pid);
void places_back(struct places *p, pid_t pid);
bool places_has(const struct places *p, pid_t pid);
