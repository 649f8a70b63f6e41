/* SPDX-License-Identifier: MIT
 *
 * The inputs of the start of a session's child: the profile's command, the requester's additions, the environment.
 * Built anew at each start, so that an updated or moved program is found again. Source: docs/contract.md 8,
 * protocol-facts 1.
 */
#pragma once

#include "base/error.h"
#include "core/carry.h"
#include "core/login.h"
#include "core/settings.h"
#include "io/errand.h"

#include <sys/types.h>

struct launch {
	char *cwd;
	struct words args;   /* added to the profile's command line */
	struct words env;    /* NAME=VALUE from the requester */
	struct login *login; /* the requester's; owned */
	/* The process that renews the client environment at the next start, by number and start time (io/proc.h); 0:
	 * none. */
	pid_t asker;
	uint64_t asker_start;
	struct words argv; /* instead of the profile's own flags (the shim's) */
	bool has_argv;
	bool no_asks;             /* no approver: the child denies by itself, as alone */
	bool env_only;            /* env is the whole environment */
	bool fork;                /* continue in a copy, at the first start */
	char *resume;             /* conversation to resume at the first start; NULL: none */
	struct child_place place; /* the place of the start, if known (login_ask()); until the first start */
	uid_t uid;                /* the owner of the session */
	int umask;                /* of the newest requester, plus 1; 0: unknown, the daemon's counts */
	uint64_t changes;         /* counts launch_bring() and launch_move() */
	size_t length;            /* launch_length(), since the session has it */
	uint64_t nofile;          /* the soft limit at the start of the daemon */
	const char *instance;     /* the daemon's mark, so that a later daemon finds leftover processes; borrowed */
};

void launch_free(struct launch *l);
/* Copy all but the conversation and the place of the start. False without memory; free *to in any case. */
bool launch_copy(struct launch *to, const struct launch *from);
/* Let the next child go on with this conversation; takes over id. NULL: with a new one. */
void launch_resume(struct launch *l, char *id);
/* Let it start in this directory; takes over cwd. No absolute path: no change. */
void launch_move(struct launch *l, char *cwd);
/* Options of a client for the child of a session that has none. */
struct launch_more {
	struct words args, argv, env; /* env_only: env is the whole environment; else it is added */
	bool has_args, has_argv, has_env, env_only;
};

/* Replace these parts of the launch, for its later starts. Takes over the words. False, with the launch unchanged:
 * more->env, completed by the old one, has more than LIMITS_WORDS entries; or no memory. */
bool launch_bring(struct launch *l, struct launch_more *more);
/* Return true if a start of l has this environment of the client. */
bool launch_has_env(const struct launch *l, const struct words *env);
/* Return the most bytes that its words have as JSON, such as in the table on disk. */
size_t launch_length(const struct launch *l);
void launch_carry(struct carry *c, struct launch *l); /* except for instance and nofile, which are the daemon's */
/* The errand that becomes a session's child (errands.h). */
#define LAUNCH_ERRAND "launch"
int launch_errand(void); /* in its process; returns the exit status if the program cannot be run */

/* Begin a start with the whole command line and environment; e->done() reports its end, and launch_result() the result.
 * resume NULL: a new conversation. */
enum child_result launch_begin(const struct launch *l, const struct profile *p, const char *session, const char *resume,
							   bool fork, int64_t limit, struct errand *e, struct child *c, struct children *owner,
							   void (*done)(void *arg, enum errand_end end), void *arg, struct error *error);
/* The same for a command of the daemon in /, without streams. */
enum child_result launch_begin_command(const struct words *argv, const struct words *env, int64_t limit,
									   struct errand *e, struct child *c, struct children *owner,
									   void (*done)(void *arg, enum errand_end end), void *arg, struct error *error);
/* Return the result of either. l: its launch, NULL: a command. error: with CHILD_OK the path of the program, "" if it
 * is too long. *login: the new client environment, owned by the caller; NULL: unchanged, or none. */
enum child_result launch_result(const struct launch *l, const struct errand *e, enum errand_end end,
								struct child_place *place, struct login **login, struct error *error);

/* Append the program and its arguments, those of the profile and of its dialect included, without a conversation to
 * resume. False without memory. */
bool launch_put_command(struct words *out, const struct launch *l, const struct profile *p);
/* Return true if both start the same program with the same argv, environment and umask. path_counts: the requester's
 * PATH is searched, too. The directory is not compared. */
bool launch_same(const struct launch *a, const struct launch *b, const struct profile *p, bool path_counts);

/* Return true if the first child resumes or begins this conversation. */
bool launch_asks_for(const struct launch *l, const struct dialect *d, const char *id);
/* Return true if only the first child can name its conversation. */
bool launch_in_doubt(const struct launch *l, const struct profile *p);

/* Return PLENUM_INSTANCE of this session's processes as a number, never 0; launch_is_number_of() returns true if a
 * number is of this instance. */
uint64_t launch_number(const char *instance, const char *session);
bool launch_is_number_of(const char *instance, uint64_t number);
