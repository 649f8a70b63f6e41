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
 * later daemon knows it again. The record goes to the table on disk. It belongs to the router. Source: DESIGN 14, 15,
 * proc(5), prctl(2).
 */
#pragma once

#include "base/hash.h"
#include "core/carry.h"
#include "core/origin.h"

#include <stdbool.h>
#include <sys/types.h>

#define DESCENT_MAX 4096 /* processes on the record */

struct router;
struct session;

/* A process, alive or not, that is known to be an agent's. */
struct kin {
	UT_hash_handle hh; /* by pid */
	pid_t pid;
	uint64_t start;  /* as proc_stat() has it */
	uint64_t number; /* of its session; 0: of none that is known */
	bool seen;       /* it, or a process of its process session, was there at the last look at all */
};

struct descent {
	struct kin *by_pid;
	uint64_t changes; /* counts what came and went, for the table on disk */
	bool full;        /* the log has it */
	bool stopping;    /* all was recorded since the daemon began to stop */
};

void descent_free(struct descent *d);
void descent_add(struct descent *d, pid_t pid, uint64_t start, uint64_t number);
void descent_carry(struct carry *c, struct descent *d);

/* Looks at a process, which must have this number before and after. *session: the id of an agent's session, or 0. */
enum origin descent_of(struct router *r, pid_t pid, uint64_t *session);
/* Records what descends from a child that is about to be ended: its orphans come to us, and are its session's still. */
void descent_record(struct session *s);
/* Ends what the session's child has left behind, when that is gone. What cannot be ended is recorded. */
void descent_sweep(struct session *s);
/* Ends whatever an earlier daemon with our state folder has left behind. */
void descent_sweep_all(struct router *r);
