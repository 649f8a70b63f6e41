/* SPDX-License-Identifier: MIT
 *
 * Which processes descend from an agent, and from which session's. What counts, in this order: an ancestor that is a
 * session's child; the record, by number and start time, of processes that were seen to descend from one; the process
 * session of either; the mark in the resource limits (io/mark.h); the control group of a session that has one of its
 * own; PLENUM_INSTANCE in the environment, which gives a process no session to act in, since the process can choose it,
 * and only says with which session it is ended. Orphans of an agent come to us, the subreaper: what descends from us
 * and not from a helper of ours is an agent's, also where nothing tells of which session.
 *
 * A session is known by a number that is made of the daemon's state folder and of its name (launch_number()), so that a
 * later daemon knows it again. The record goes to the table on disk. It belongs to the router.
 *
 * A process outside of the child's process session is detached: the CLI gives each of its commands a process session of
 * its own. When the child has ended, a detached process is kept, or ended with SIGTERM and, after the profile's
 * stop_grace, SIGKILL (descent_child_gone() says when). The rest of the child's process session is killed at once.
 * Source: DESIGN 8, 14, 15, proc(5), prctl(2).
 */
#pragma once

#include "base/hash.h"
#include "core/carry.h"
#include "core/origin.h"
#include "io/loop.h"

#include <stdbool.h>
#include <sys/types.h>

#define DESCENT_MAX 4096      /* processes on the record */
#define DESCENT_NAMES_MAX 100 /* processes that one answer or notice names */

struct router;
struct session;

/* A process, alive or not, that is known to be an agent's. */
struct kin {
	UT_hash_handle hh; /* by pid */
	pid_t pid;
	uint64_t start;  /* as proc_stat() has it */
	uint64_t number; /* of its session; 0: of none that is known */
	bool seen;       /* it, or a process of its process session, was there at the last look at all */
	bool detached;   /* outside of the process session of its child; else it ends with that child */
	bool root;       /* detached, and no process of an agent started it, or that one has ended: it is listed */
	bool gone;       /* it has ended */
	int64_t due;     /* SIGTERM was sent: when SIGKILL follows (now_ms()); 0: neither */
};

/* How many detached processes of a session are listed. */
struct kin_count {
	UT_hash_handle hh; /* by number */
	uint64_t number;
	size_t n;
};

/* A detached process, for a list. */
struct descent_entry {
	pid_t pid;
	uint64_t number;  /* of its session */
	int64_t since_ms; /* it has run for so long; -1: not known */
	char program[32];
};

struct descent {
	struct kin *by_pid;
	uint64_t changes; /* counts what came and went, for the table on disk */
	bool full;        /* the log has it */
	bool stopping;    /* all was recorded since the daemon began to stop */
	bool finishing, ending_all, finished;
	struct kin_count *counts;
	int64_t look_at;         /* now_ms() from which the lists are renewed when they are asked for */
	struct loop_timer timer; /* while SIGKILL is due for any */
};

void descent_init(struct descent *d, struct router *r);
void descent_free(struct descent *d);
void descent_add(struct descent *d, pid_t pid, uint64_t start, uint64_t number, bool detached);
void descent_carry(struct carry *c, struct descent *d);
void descent_resume(struct descent *d); /* after it */

/* Looks at a process, which must have this number before and after. *session: the id of an agent's session, or 0. */
enum origin descent_of(struct router *r, pid_t pid, uint64_t *session);
/* Records what descends from a child that is about to be ended: its orphans come to us, and are its session's still. */
void descent_record(struct session *s);
/* The session's child is gone. Kills the rest of its process session. Keeps and records detached processes, or ends
 * them, if s->leftovers or the profile says so; a notice names them. What cannot be ended is recorded. */
void descent_child_gone(struct session *s);
/* Ends the detached processes of a session without a child, with a notice: SIGTERM first, unless kill_now. */
void descent_end(struct session *s, bool kill_now);
/* Return true while processes have time to end after SIGTERM. router_events.changed follows the last one. */
bool descent_ends(const struct descent *d);
/* The daemon ends and no child is left: ends all that agents have left running, since the next daemon could not tell
 * what such a process starts from the programs of the user. Return true when that is done; router_events.changed
 * follows when it is to be asked again. */
bool descent_finish(struct router *r);
/* Send SIGKILL now to the processes that have time to end. */
void descent_hurry(struct router *r);
/* Kills whatever an earlier daemon with our state folder, which was killed, has left behind. */
void descent_sweep_all(struct router *r);
/* How many detached processes the session has: those that are on the record or came to us as orphans. */
size_t descent_count(struct router *r, const struct session *s);
/* The same by name, at most DESCENT_NAMES_MAX; s NULL: of all sessions. The caller frees; NULL without memory. */
struct descent_entry *descent_list(struct router *r, const struct session *s, size_t *n);
/* The session of an entry, or NULL: it is gone, or not known. */
const struct session *descent_session(const struct router *r, const struct descent_entry *e);
