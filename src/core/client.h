/* SPDX-License-Identifier: MIT
 *
 * One connection: lines in, lines out. What goes out comes from two places that stand in one order: the tape that the
 * client reads (a cursor) and its mail (lines for it alone, each placed before the tape line that followed it). Written
 * once a turn, with gathered writes. Knows no session: what happens is told through struct client_events.
 *
 * In one turn of the loop a client is read once and served at most LIMITS_TURN_LINES lines, fewer if they take long.
 * What it has sent beyond waits in `in` for later turns, between which others are served; until then no more is read.
 *
 * A client is freed by the loop's task after client_kill(); until then its memory stays valid. All counters in bytes
 * and lines, times in ms (monotonic).
 */
#pragma once

#include "base/fd.h"
#include "base/names.h"
#include "core/carry.h"
#include "core/origin.h"
#include "core/queue.h"
#include "core/share.h"
#include "core/tape.h"
#include "io/loop.h"
#include "io/watch.h"
#include "wire/lines.h"

struct client;

struct client_events {
	/* One line, its LF and CR still there; the chunk is borrowed. */
	void (*line)(struct client *c, struct chunk line);
	/* One that was not kept, being too long; or starved. */
	void (*long_line)(struct client *c, struct chunk head, size_t size);
	/* The peer sends no more; it may still read. */
	void (*no_more)(struct client *c);
	/* The connection is over (also after client_kill()); the last call for this client. */
	void (*gone)(struct client *c);
	/* Lines from..to of the tape were dropped before this client read them. The cursor stands behind them already. */
	void (*overtaken)(struct client *c, uint64_t from, uint64_t to);
	/* Its uid holds more than its share of bytes, and this client most of them. Its input and what it has not read were
	 * dropped; it is to be closed. */
	void (*evicted)(struct client *c, size_t held);
	/* The kernel's buffer is full (blocked), or something was taken. */
	void (*pace)(struct client *c, bool blocked);
};

struct client_filter {
	bool tag, no_partial, no_echo, quiet; /* quiet: no plenum_event lines from the tape */
	bool by_type;
	uint32_t kinds;      /* by_type: bit 1 << enum line_kind */
	struct names others; /* by_type: names of types that have no kind of their own */
};

/* A line is skipped for its length, because its uid has too many bytes, or for want of memory. */
enum starved { STARVED_NOT, STARVED_SHARE, STARVED_MEMORY };

struct client {
	struct list node; /* in the server's list of clients */
	struct loop *loop;
	const struct client_events *events;
	void *world; /* the router */
	struct loop_fd io;
	struct loop_task flush_task, free_task, serve_task;
	struct lines in;
	bool more;         /* in has lines that were not served yet */
	struct queue held; /* lines that cannot be taken yet, since client_hold(), before those of in */
	void *inquiry;     /* the router's: what the first of them waits for outside, or waited for; NULL: nothing */
	void *check;       /* the router's: how far the first of them is checked; NULL: it is to be checked */
	uint64_t starting; /* the id of the session whose start it waits for; 0: none */
	bool makes;        /* it has made that session */
	bool releasing;    /* the first of them comes again just now, and may be held once more */

	uint64_t id; /* of this connection, for logs */
	struct peer peer;
	struct watch *watch; /* its process; NULL: there is none, origin says why */
	char program[16];
	enum origin origin;
	uint64_t family;      /* of an agent's process: the id of its session; 0: of none that is known */
	bool subscribed;      /* hears of every session */
	bool chooses;         /* has asked to attach, or detached, by a verb: is put into no session unasked */
	size_t inits_open;    /* of them those that wait for their answer */
	uint64_t inits;       /* initialize requests that it has sent */
	uint64_t init_due;    /* the newest of them that its prompts need, until one from there on succeeds; 0: none */
	char *refused_change; /* a change that its prompts need, and that was refused; NULL: none */
	char *name;           /* the label that it gave itself; may be NULL */

	struct tape *tape; /* NULL: attached to nothing */
	uint64_t cursor;
	struct client_filter filter;
	void *attachment; /* the router's */

	struct list mail;
	size_t mail_bytes;
	struct chunk rest[3]; /* what is left of a line that was sent in part */
	size_t n_rest;
	size_t rest_whole; /* bytes of that line */
	struct share_member member;
	bool blocked, ended, closing, dead, paused;
	bool doomed;          /* is cut off at the end of the turn */
	bool deaf;            /* its peer takes nothing any more: what it has sent is served all the same */
	size_t evicted;       /* not 0: is closed at the end of the turn, for so many bytes */
	bool taking;          /* its lines are being taken: what it holds is not known */
	enum starved starved; /* why the line in hand is skipped */
	int64_t blocked_since;

	uint64_t lines_in, bytes_in, bytes_out;
	int64_t since;
};

/* Takes over fd and the watch of the peer (NULL: origin says why there is none). NULL without memory (both are given
 * up). */
struct client *client_new(struct loop *loop, struct lines_pool *pool, struct shares *shares, int fd,
						  const struct peer *peer, struct watch *watch, enum origin origin, size_t max_line,
						  const struct client_events *events, void *world);
/* A line for this client alone, behind all that is on the tape now. Takes over the reference. */
void client_post(struct client *c, struct chunk line);
/* The same, but before everything that was not sent yet. */
void client_post_first(struct client *c, struct chunk line);
/* From the event `line`: neither this line nor those behind it can be taken now. They come again, in their order, after
 * client_release(); until then no more is read. */
void client_hold(struct client *c, struct chunk line);
void client_release(struct client *c); /* from a task; may be held again. No harm where nothing is */
static inline bool client_holds(const struct client *c) {
	return c->held.count > 0;
}
/* There may be something to send: looked at once, at the end of the turn. */
void client_wake(struct client *c);
/* Reads this tape from seq on. */
void client_read_tape(struct client *c, struct tape *tape, uint64_t seq);
/* Reads no tape any more; what it had not read of it goes on as mail. */
void client_leave_tape(struct client *c);
/* Closes when everything that is there for it now was sent. */
void client_close(struct client *c);
void client_kill(struct client *c); /* at once */
/* Bytes that it is behind, tape and mail. */
uint64_t client_behind(const struct client *c);
void client_filter_free(struct client_filter *f);
/* All of it but its place in a session and in a share. Loading: *client becomes a new one, which does nothing before
 * client_resume(); NULL on an error. */
void client_carry(struct carry *c, struct client **client, struct loop *loop, struct lines_pool *pool,
				  struct watches *watches, size_t max_line, const struct client_events *events, void *world);
void client_resume(struct client *c);
