/* SPDX-License-Identifier: MIT
 *
 * The table of sessions on disk: the data needed to resume a sleeping conversation after a restart or kill -9, and to
 * find a child that outlived its daemon. It has no prompts, no answers and no text from an agent.
 *
 * One file, sessions.json, of mode 0600, in a directory of mode 0700, because the requester's environment may hold
 * secrets: store only explicitly given variables. The file is replaced as a whole (temporary file, fsync, rename, fsync
 * of the directory): it is always the old or the new table, even if the disk is full or the power fails. Until the
 * fsync is done the new table is sessions.json.next, which is read first, so that the end of the daemon alone loses
 * nothing.
 *
 * A lock file in the directory keeps other daemons out; the end of the process releases the lock. Its first line is the
 * pid of the holder, its second the socket. Strings with invalid UTF-8 (paths) are stored as {"hex":"..."}.
 *
 * Version 1 of the format is JSON Lines: a head, a record for each session, the head again.
 *   {"version":1,"seq":N,"lost":B,"boot":ID,"left":[[PID,START,NUMBER],...],"sessions":[["NAME","CONVERSATION"],...],
 *    "sum":"..."}
 *   {"cwd":...,"args":[...],"env":[...],"guards":...,"memo":...,"timers":...,"name":...,"profile":...,
 *    "conversation_id":...,"previous_id":...,"mode":...,"uid":N,"env_only":B,"child_pid":N,"child_start":N,
 *    "created_ms":N,"used_ms":N,"seq":N,"sum":"..."}
 * Each line ends with the FNV-1a sum of the bytes before `,"sum"`: a record is read exactly as written, or not at all.
 * The long members are first: their text and their sum are kept for the next table (record.h).
 *
 * Damage fails closed. A session with an unreadable record is known from the head: it gets its record of the older
 * table, if any, else only its name and conversation (profile STATE_UNREADABLE: it cannot start); in both cases guards
 * and mode are STATE_UNREADABLE. If both copies of the head are unreadable, unknown sessions may be lost: state_lost().
 * The same holds for a file of a newer version, and for an empty one. A damaged file is kept as
 * sessions.json.damaged-TIME; it is never deleted and never prevents a start.
 *
 * A table written by state_save() has at most LIMITS_TABLE bytes; a longer one is an error of state_save().
 */
#pragma once

#include "base/error.h"
#include "io/loop.h"
#include "store/record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define STATE_VERSION 1
#define STATE_UNREADABLE "(unreadable)"

struct state_session {
	char *name;            /* never NULL */
	char *profile;         /* never NULL; STATE_UNREADABLE: its record could not be read */
	char *cwd;             /* NULL: none */
	char *conversation_id; /* NULL: none yet */
	char *previous_id;     /* the one before /clear or a fork; NULL: none */
	char **args;           /* added to the profile's command line */
	size_t n_args;
	char **env; /* NAME=VALUE from the requester */
	size_t n_env;
	char *mode;           /* "plan", "dontAsk" or STATE_UNREADABLE: the next child may do no more; else NULL */
	char *guards;         /* guards_text() of its registry, or STATE_UNREADABLE: every tool is refused; NULL: none */
	char *timers;         /* timers_text() of the session; NULL: none */
	char *memo;           /* memo_text() of the session; NULL: none */
	uid_t uid;            /* of the requester */
	bool env_only;        /* env is the whole environment, without the daemon's own */
	pid_t child_pid;      /* 0: no child */
	uint64_t child_start; /* /proc/PID/stat field 22, in clock ticks since boot; 0: none */
	int64_t created_ms, used_ms; /* CLOCK_REALTIME */
	uint64_t seq;                /* of its tape at the time of writing: the next number */
	/* For state_save() alone. */
	uint64_t id;                   /* a number of the session; 0: its parts are not kept */
	uint64_t marks[RECORD_PARTS];  /* equal marks under an id are equal parts; 0: the part is not kept */
	uint64_t hashes[RECORD_PARTS]; /* of the parts; state_has() returns them */
};

/* A leftover process of an agent, or a possible one. */
struct state_left {
	pid_t pid;
	uint64_t start, number; /* as in struct kin */
};

struct state;

/* dir NULL: $XDG_STATE_HOME/plenum, else ~/.local/state/plenum. A missing directory is made. socket: the address of
 * this daemon for another one that finds the directory locked; NULL: none. NULL on failure: error
 * has the cause and a remedy; errno is EWOULDBLOCK if another daemon has locked the directory. */
struct state *state_open(const char *dir, const char *socket, struct error *error);
void state_close(struct state *s); /* NULL is allowed */
/* Return the lock's descriptor for an upgrade: the lock is passed on with it. */
int state_lock(const struct state *s);
struct state *state_resume(const char *dir, const char *socket, int lock, struct error *error);

/* Call each() for each session of the table; the strings are valid during the call. It returns false to stop. Return
 * the number of accepted sessions. error is empty, or names the damaged file and its copy (a warning for the log). */
int state_load(struct state *s, bool (*each)(void *, const struct state_session *), void *arg, struct error *error);

/* Make state_save() return before the disk is done: a thread waits for it. synced(): the newest table is on the disk,
 * or error has the cause of a failure; save it again later then. False: no thread; state_save() still waits. */
bool state_save_behind(struct state *s, struct loop *loop, void (*synced)(void *arg, const char *error), void *arg);
/* Wait until the saved table is on the disk. state_close() does so, too. */
void state_settle(struct state *s);

/* Replace the table. True: the next daemon reads it, unless the computer fails before the fsync. False: the old one is
 * still there, error has the cause, and errno (EFBIG: it would be too long). */
bool state_save(struct state *s, const struct state_session *all, size_t n, struct error *error);
/* Return true if the text of this part with one's id and mark is kept: state_save() does not read the part of `one`.
 * Sets one's hash of the part. */
bool state_has(const struct state *s, struct state_session *one, enum record_part part);

/* The highest number of a line on the tape of a closed session: written with the table, known after loading; 0 without
 * a table, -1 if the table has none. */
void state_set_seq(struct state *s, uint64_t seq);
int64_t state_seq(const struct state *s);
/* Sessions were lost, and even their names. Written with the table, known after loading. */
void state_set_lost(struct state *s, bool lost);
bool state_lost(const struct state *s);

/* Leftover processes of agents: copied, written with the table; known after loading, without those of another boot.
 * False: no memory. */
bool state_set_left(struct state *s, const struct state_left *all, size_t n);
const struct state_left *state_left(const struct state *s, size_t *n);

const char *state_dir(const struct state *s);
