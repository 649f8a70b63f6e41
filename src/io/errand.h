/* SPDX-License-Identifier: MIT
 *
 * An errand does the work that the loop must not wait for (file systems, other processes, the user database): a process
 * of the daemon's own program with one request, one answer and a time limit. It can be killed, or left behind if it
 * cannot die. It holds neither a thread nor a descriptor of the daemon, so exit and exec never wait for a mount that
 * does not answer.
 *
 * If many are running, or some at the same place, an errand waits in a queue before it gets a process (io/places.h).
 * The limit counts for the wait, and anew for the process. The start of a program waits as long as the queue moves.
 *
 * An errand is embedded in its owner. done() is called once, from the loop, unless errand_drop() is called first. Times
 * in ms. Source: docs/contract.md 15, fuse(4).
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "io/child.h"
#include "io/places.h"

#define ERRAND_PLACES 3 /* visited by one errand, in order */

enum errand_end {
	ERRAND_DONE,    /* answer is complete */
	ERRAND_TIMEOUT, /* killed, or not started in time, or its place does not answer */
	ERRAND_LOST,    /* ended by a signal, or its answer was too long, or no process could be made */
};

struct errand {
	struct children *owner;
	struct child own, *child; /* own: used if it stays an errand */
	struct places_turn turn;  /* in the queue for a process; the next members are for its start */
	const char *kind;
	char *request, *place, *then[ERRAND_PLACES - 1];
	size_t n, step, at; /* at: the index of the next place in `then` */
	uid_t uid;
	int64_t limit;
	uint64_t served; /* places_served() when its limit was set */
	struct child_spec streams;
	struct loop_fd fd; /* its answer; fd -1: not running */
	struct loop_timer timer;
	struct buf answer;
	bool becomes; /* it becomes a program, which outlives the answer */
	void (*done)(void *arg, enum errand_end end);
	void *arg;
	void (*exited)(void *arg, int status); /* of a child that becomes a program: the owner's function. done() sets the
											  child's to NULL if it did not become one */
	void *exited_arg;
};

#define ERRAND_ZERO ((struct errand){.fd.fd = -1})

struct errand_spec {
	const char *kind; /* must outlive the errand */
	const void *request;
	size_t n;
	const char *place;                   /* the path it looks at, to recognise errands stuck at the same place */
	const char *then[ERRAND_PLACES - 1]; /* its place after each further `step` bytes of answer; NULL: no more */
	size_t step;
	uid_t uid; /* of the requester */
	int64_t limit;
	size_t answer_max;
	const struct child_spec *streams; /* NULL: none */
	struct child *becomes;            /* NULL: the errand's own process */
};

/* On failure error has the reason and done() is not called. CHILD_TIMEOUT: others are stuck at the place, or the queue
 * is full. */
enum child_result errand_begin(struct errand *e, struct children *owner, const struct errand_spec *spec,
							   void (*done)(void *arg, enum errand_end end), void *arg, struct error *error);
/* Run without an answer, a limit and a wait for the end, even at the daemon's own exit. May be left undone. */
void errand_send(struct children *owner, const char *kind, const void *request, size_t n, const char *place);
/* Return true if it is running or queued. */
static inline bool errand_runs(const struct errand *e) {
	return e->fd.fd >= 0 || e->turn.places;
}
/* End it without done(), and kill its process. Harmless if it is not running. Frees the answer in any case. */
void errand_drop(struct errand *e);

/* In the errand's process: return the whole request; NULL: it cannot be read. */
char *errand_request(size_t *n);
void errand_say(const void *data, size_t n); /* send a part of the answer */
/* A request or answer is a list of texts, each with its NUL. */
void errand_put(struct buf *b, const char *text);
const char *errand_next(const char **at, const char *end); /* NULL: no more */
