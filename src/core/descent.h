/* SPDX-License-Identifier: MIT
 *
 * Finds the processes that descend from an agent, and their sessions. Signs, in this order: an ancestor that is a
 * session's child; the record, by number and start time, of processes seen as descendants; the process session of
 * either; the mark in the resource limits (io/mark.h); the control group of a session that has its own; PLENUM_INSTANCE
 * in the environment, which only selects the session with which a process is ended: it gives no right to act in it,
 * because a process can choose it. The daemon is the subreaper and adopts orphans of agents: its descendants, except
 * for those of its helpers, belong to agents, even if their session is unknown.
 *
 * A session is identified by a number made of the daemon's state directory and the session's name (launch_number()), so
 * that a later daemon finds it again. The record is written to the table on disk. It belongs to the router.
 *
 * A process outside of the child's process session is detached: the CLI gives each of its commands a process session of
 * its own. After the end of the child a detached process is kept, or ended with SIGTERM and, after the profile's
 * stop_grace, SIGKILL (see descent_child_gone()). The rest of the child's process session is killed at once. Source:
 * contract 8, 14, 15, proc(5), prctl(2).
 */
#pragma once

#include "base/buf.h"
#include "base/hash.h"
#include "core/carry.h"
#include "core/origin.h"
#include "io/errand.h"
#include "io/loop.h"
#include "wire/scan.h"

#include <stdbool.h>
#include <sys/types.h>

#define DESCENT_MAX 4096      /* processes on the record */
#define DESCENT_NAMES_MAX 100 /* processes named by one answer or notice */

struct crowd;
struct router;
struct session;

/* A process of an agent, running or ended. */
struct kin {
	UT_hash_handle hh; /* by pid */
	pid_t pid;
	uint64_t start;   /* as from proc_stat() */
	uint64_t number;  /* of its session; 0: unknown */
	bool seen;        /* it, or a process of its process session, was there at the last full scan */
	bool detached;    /* outside of the process session of its child; else it ends with the child */
	bool root;        /* detached and started by no running process of an agent: listed */
	bool gone;        /* it has ended */
	int64_t due;      /* SIGTERM was sent: the time of SIGKILL (now_ms()); 0: neither */
	bool late;        /* then: its sweep has waited in vain for environments */
	unsigned checked; /* the newest check of those that are due */
};

/* The number of listed detached processes of a session. */
struct kin_count {
	UT_hash_handle hh; /* by number */
	uint64_t number;
	size_t n;
};

/* A process, and the number of the session that its environment names. */
struct descent_name {
	pid_t pid;
	uint64_t start, number; /* number 0: none, or it could not be read */
	bool asked;             /* else it is to be read */
};

/* A detached process, for a list. */
struct descent_entry {
	pid_t pid;
	uint64_t number;  /* of its session */
	int64_t since_ms; /* its age; -1: unknown */
	char program[32];
};

struct descent {
	struct kin *by_pid;
	uint64_t changes; /* counts changes, for the table on disk */
	bool full;        /* already logged */
	bool finishing, ending_all, finished, hurried;
	bool mute; /* environments are not waited for any more */
	struct kin_count *counts;
	int64_t look_at;         /* now_ms() from which a request renews the lists */
	struct loop_timer timer; /* set while SIGKILL is due for any process */
	/* A scan of all processes, in slices; agents and sweeps wait for the next one, or are served by the current one. */
	struct list waiting, served;
	struct list sweeps, swept;
	struct list held, held_sweeps; /* until environments are read */
	struct crowd *crowd;
	bool scanning;              /* crowd is in use */
	struct errand errand;       /* reads environments */
	struct descent_name *names; /* those asked for, until the next scan; by pid */
	size_t n_names;
	struct loop_task task;
	uint64_t scans;  /* begun so far */
	unsigned checks; /* of processes that are due, with the current one */
};

struct descent *descent_new(struct router *r); /* NULL without memory */
void descent_free(struct descent *d);
void descent_add(struct descent *d, pid_t pid, uint64_t start, uint64_t number, bool detached);
void descent_carry(struct carry *c, struct descent *d);
void descent_resume(struct descent *d); /* after descent_carry() */

/* Classify a process, which must have this number before and after. *session: the id of an agent's session, or 0.
 * Environments are not read, because that may wait for another process: if one could still show that it is an agent's,
 * *ask gets the request of DESCENT_ERRAND. */
enum origin descent_of(struct router *r, pid_t pid, uint64_t *session, struct buf *ask);
#define DESCENT_ERRAND "environments"
int descent_errand(void);
/* The same for a scan of all processes. */
#define DESCENT_NAMES_ERRAND "names"
int descent_names_errand(void);
/* Classify the process by the answer. without: the result of descent_of(). */
enum origin descent_said(struct router *r, struct span answer, enum origin without, uint64_t *session);
/* Record the descendants of a child before it is ended: the daemon adopts its orphans, and they still belong to its
 * session. session_recorded() follows in a later turn. */
void descent_record(struct session *s);
/* The session's child has ended. Kill the rest of its process session. Keep and record detached processes, or end them,
 * as s->leftovers or the profile says; a notice names them. Processes that cannot be ended are recorded. session_left()
 * follows in a later turn. */
void descent_child_gone(struct session *s);
/* End the detached processes of a session without a child, with a notice, in a later turn: SIGTERM first, unless
 * kill_now. over: session_leave() now, and router_events.session_over() afterwards. False without memory: nothing
 * follows. */
bool descent_end(struct session *s, bool kill_now, bool over);
/* Before a save, or an exec: record at once, and finish the sweeps that wait for a scan. */
void descent_settle(struct router *r);
/* Return true while processes have time to end after SIGTERM. router_events.changed follows the last one. */
bool descent_ends(const struct descent *d);
/* At the end of the daemon, without children: end all leftover processes of agents, because the next daemon could not
 * distinguish their new children from programs of the user. Return true when done; else call again after
 * router_events.changed. */
bool descent_finish(struct router *r);
/* At the end of the daemon: send SIGKILL now to the processes that have time to end, and wait for no environment. */
void descent_hurry(struct router *r);
/* Kill all leftover processes of a killed earlier daemon with this state directory. */
void descent_sweep_all(struct router *r);
/* Return the number of detached processes of the session: recorded ones and adopted orphans. */
size_t descent_count(struct router *r, const struct session *s);
/* List them by name, at most DESCENT_NAMES_MAX; s NULL: of all sessions. The caller frees; NULL without memory. */
struct descent_entry *descent_list(struct router *r, const struct session *s, size_t *n);
/* Return the session of an entry, or NULL: closed, or unknown. */
const struct session *descent_session(const struct router *r, const struct descent_entry *e);
