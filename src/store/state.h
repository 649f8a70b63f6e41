/* SPDX-License-Identifier: MIT
 *
 * The table of sessions on disk: what is needed to bring a sleeping conversation back after a restart or kill -9, and
 * to find a child that outlived its daemon. No prompts, no answers, nothing that an agent said.
 *
 * One file, sessions.json, in a folder of mode 0700; mode 0600, because the environment that a requester gave may hold
 * secrets: store only what was given explicitly. It is replaced as a whole: written beside, fsync, rename, fsync of the
 * folder; so it is the old table or the new one at every moment, also when the disk is full or the power fails. Until
 * the fsync is done the new table is sessions.json.next: it is read first, so that nothing is lost with the daemon
 * alone.
 *
 * A lock file in the folder keeps two daemons from sharing it; the lock goes with the process. It says who holds it:
 * the pid on its first line, the socket on its second. Strings that are no UTF-8 (paths) are kept as {"hex":"..."}.
 *
 * Version 1 of the format is JSON Lines: a head, a record for each session, the head again.
 *   {"version":1,"seq":N,"lost":B,"boot":ID,"left":[[PID,START,NUMBER],...],"sessions":[["NAME","CONVERSATION"],...],
 *    "sum":"..."}
 *   {"name":...,"profile":...,"cwd":...,"conversation_id":...,"previous_id":...,"args":[...],"env":[...],"guards":...,
 *    "mode":...,"timers":...,"uid":N,"env_only":B,"child_pid":N,"child_start":N,"created_ms":N,"used_ms":N,"seq":N,"sum":"..."}
 * Each line ends with the FNV-1a sum of the bytes before `,"sum"`, so a record is read as it was written or not at all.
 *
 * Damage fails closed. A session whose record cannot be read is known by the head: it has its record of the older
 * table, if there is one, else its name and conversation alone (profile STATE_UNREADABLE: it cannot start), and in both
 * cases guards and mode STATE_UNREADABLE. If neither copy of the head can be read, sessions may be lost of which
 * nothing is known: state_lost(). The same counts for a file of a newer version, and for an empty one. A damaged file
 * is kept as sessions.json.damaged-TIME, never thrown away and never a reason not to start.
 *
 * What state_save() writes is at most half as long as what state_load() reads; a longer table is an error when it is
 * written.
 */
#pragma once

#include "io/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define STATE_ERROR_MAX 512
#define STATE_VERSION 1
#define STATE_UNREADABLE "(unreadable)"

struct state_session {
	char *name;            /* never NULL */
	char *profile;         /* never NULL; STATE_UNREADABLE: it could not be read */
	char *cwd;             /* NULL: none */
	char *conversation_id; /* NULL: none yet */
	char *previous_id;     /* the one before /clear or a fork; NULL: none */
	char **args;           /* added to the profile's command line */
	size_t n_args;
	char **env; /* NAME=VALUE that the requester gave */
	size_t n_env;
	char *mode;           /* "plan" or "dontAsk", or STATE_UNREADABLE: the next child may do no more; else NULL */
	char *guards;         /* guards_text() of its registry, or STATE_UNREADABLE: every tool is refused; NULL: none */
	char *timers;         /* timers_text() of the session; NULL: none */
	uid_t uid;            /* of the requester */
	bool env_only;        /* env is the whole environment, nothing of the daemon's own */
	pid_t child_pid;      /* 0: no child */
	uint64_t child_start; /* /proc/PID/stat field 22, in clock ticks since boot; 0: none */
	int64_t created_ms, used_ms; /* CLOCK_REALTIME */
	uint64_t seq;                /* of its tape when this was written: the next number */
};

/* A process that an agent has left behind, or may have. */
struct state_left {
	pid_t pid;
	uint64_t start, number; /* as struct kin has them */
};

struct state;

/* dir NULL: $XDG_STATE_HOME/plenum, else ~/.local/state/plenum. The folder is made where it is not there. socket: where
 * whoever finds the folder held can reach its holder; NULL: nowhere. NULL on failure: error[0..STATE_ERROR_MAX) says
 * why and what to do; errno is EWOULDBLOCK where another daemon holds the folder. */
struct state *state_open(const char *dir, const char *socket, char *error);
void state_close(struct state *s); /* NULL is allowed */
/* For a daemon that goes on in the next binary: the lock goes with the descriptor. */
int state_lock(const struct state *s);
struct state *state_resume(const char *dir, const char *socket, int lock, char *error);

/* Show each session of the table; the strings are the table's, valid during the call. each() returns false to stop.
 * Return how many it took. error is empty, or names the damaged file and its copy (a warning for the log). */
int state_load(struct state *s, bool (*each)(void *, const struct state_session *), void *arg, char *error);

/* From now on state_save() does not wait for the disk: a thread does. synced(): the disk has the newest table, or error
 * says why it has not; save it again later then. False: no thread; state_save() goes on to wait. */
bool state_save_behind(struct state *s, struct loop *loop, void (*synced)(void *arg, const char *error), void *arg);
/* Waits until the disk has what was saved. state_close() does so, too. */
void state_settle(struct state *s);

/* Replace the table. True: the next daemon reads it, if the computer does not fail before the fsync. False: the old one
 * is still there, error says why, and errno is the cause (EFBIG: it would be too long). */
bool state_save(struct state *s, const struct state_session *all, size_t n, char *error);

/* The highest number of a line on the tape of a session that is gone: written with the table, known once it is loaded;
 * 0 without a table, -1 where the table does not tell it. */
void state_set_seq(struct state *s, uint64_t seq);
int64_t state_seq(const struct state *s);
/* Sessions were lost of which not even the names are known. Written with the table, known once it is loaded. */
void state_set_lost(struct state *s, bool lost);
bool state_lost(const struct state *s);

/* Processes that agents have left behind: copied, written with the table; known once it is loaded, those of another
 * boot of the computer left out. False: no memory. */
bool state_set_left(struct state *s, const struct state_left *all, size_t n);
const struct state_left *state_left(const struct state *s, size_t *n);

const char *state_dir(const struct state *s);
