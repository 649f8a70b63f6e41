/* SPDX-License-Identifier: MIT
 *
 * The processes that look at something outside of the daemon, each at a place (a path): how many there may be, and who
 * waits for a turn. A mount that does not answer holds those that look at it, and may never let them go. So a place has
 * a few processes at a time, and once two were left there unfinished, no more until they are gone. A process that is
 * slow does not keep the next one from its turn, up to a number. The waiting turns of the uid with the fewest processes
 * come first, then the oldest; half of the room is for the uid of the daemon and root alone. Source: DESIGN 15.
 */
#pragma once

#include "io/loop.h"

#include <stdbool.h>
#include <sys/types.h>

struct places;

enum places_state {
	PLACES_OPEN,
	PLACES_FULL,   /* wait for a turn */
	PLACES_CLOSED, /* processes were left there: it does not answer */
};

/* A process that is not begun yet. Embedded in its owner. */
struct places_turn {
	struct list node;
	struct places *places; /* NULL: it does not wait */
	char *place, *mount;
	uid_t uid;
	bool looked; /* for the mount */
	/* From the loop, once, with PLACES_OPEN or PLACES_CLOSED; it waits no more then. */
	void (*go)(void *arg, enum places_state state);
	void *arg;
};

struct places *places_new(struct loop *loop);
void places_free(struct places *p);

/* uid: for whom it looks. PLACES_OPEN: go at once. */
enum places_state places_look(struct places *p, const char *place, uid_t uid);
/* Put t into the queue; place is copied. False: the queue is full, or there is no memory. */
bool places_wait(struct places *p, struct places_turn *t, const char *place, uid_t uid,
				 void (*go)(void *arg, enum places_state state), void *arg);
void places_wait_no_more(struct places_turn *t); /* harmless if it does not wait */

/* The process is at the place, until it was reaped or places_back(). False without memory. */
bool places_out(struct places *p, pid_t pid, const char *place, uid_t uid);
/* It is somewhere else by now. */
void places_move(struct places *p, pid_t pid, const char *place);
/* The daemon waits for it no more. */
void places_left(struct places *p, pid_t pid);
void places_back(struct places *p, pid_t pid);
bool places_has(const struct places *p, pid_t pid);
