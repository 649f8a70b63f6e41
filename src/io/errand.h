/* SPDX-License-Identifier: MIT
 *
 * What the loop must not wait for (file systems, other processes, the user database) is done by an errand: a process of
 * the daemon's own program that gets one request, gives one answer, and has a time limit. It can be killed, or left
 * behind where it cannot, and it holds neither a thread nor a descriptor of the daemon's: exit and exec wait for no
 * mount that does not answer.
 *
 * If many are under way, or some at its place, an errand waits for its turn before it gets a process (io/places.h). The
 * limit counts for the wait, and anew for the process.
 *
 * An errand is embedded in its owner. done() is called once, from the loop, unless errand_drop() comes first. Times in
 * ms. Source: DESIGN 15, fuse(4).
 */
#pragma once

#include "base/buf.h"
#include "io/child.h"
#include "io/places.h"

#define ERRAND_PLACES 3 /* that one looks at, one after the other */

enum errand_end {
	ERRAND_DONE,    /* answer holds all that it said */
	ERRAND_TIMEOUT, /* it was killed, or did not get a process in time, or its place does not answer */
	ERRAND_LOST,    /* it ended by a signal, or said more than it may, or there was no process for it */
};

struct errand {
	struct children *owner;
	struct child own, *child; /* own: of one that stays an errand */
	struct places_turn turn;  /* it waits for its process; what that needs follows */
	const char *kind;
	char *request, *place, *then[ERRAND_PLACES - 1];
	size_t n, step, at; /* at: the place of `then` that comes next */
	uid_t uid;
	int64_t limit;
	struct child_spec streams;
	struct loop_fd fd; /* its answer; fd -1: it is not under way */
	struct loop_timer timer;
	struct buf answer;
	bool becomes; /* a program: it lives on when the answer has ended */
	void (*done)(void *arg, enum errand_end end);
	void *arg;
	void (*exited)(void *arg, int status); /* of a child that becomes a program: its owner's. done() sets the child's to
											* NULL if it became none */
	void *exited_arg;
};

#define ERRAND_ZERO ((struct errand){.fd.fd = -1})

struct errand_spec {
	const char *kind; /* lives as long as the errand */
	const void *request;
	size_t n;
	const char *place;                   /* the path that it looks at, to tell those that hang at one place */
	const char *then[ERRAND_PLACES - 1]; /* where it looks when it has said so many times `step` bytes; NULL: no more */
	size_t step;
	uid_t uid; /* for whom */
	int64_t limit;
	size_t answer_max;
	const struct child_spec *streams; /* NULL: none */
	struct child *becomes;            /* NULL: the errand's own process */
};

/* On failure error says why and done() is not called; CHILD_TIMEOUT: others hang there already, or too many wait. */
enum child_result errand_begin(struct errand *e, struct children *owner, const struct errand_spec *spec,
							   void (*done)(void *arg, enum errand_end end), void *arg, char *error);
/* One whose end nobody waits for, not even the daemon's; without an answer and a limit. May be left undone. */
void errand_send(struct children *owner, const char *kind, const void *request, size_t n, const char *place);
/* Is it under way? */
static inline bool errand_runs(const struct errand *e) {
	return e->fd.fd >= 0 || e->turn.places;
}
/* Ends it without done(); its process is killed. Harmless if none is under way. Frees the answer in any case. */
void errand_drop(struct errand *e);

/* For the errand's process: the whole request; NULL: it cannot be read. */
char *errand_request(size_t *n);
void errand_say(const void *data, size_t n); /* a part of the answer */
/* A request or answer made of texts, one after the other, each with its NUL. */
void errand_put(struct buf *b, const char *text);
const char *errand_next(const char **at, const char *end); /* NULL: no further one */
