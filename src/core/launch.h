/* SPDX-License-Identifier: MIT
 *
 * What a session's child is started with: the profile's command, what the requester added, the environment. Built anew
 * at each start, so that a program that was updated or moved is found again. Source: DESIGN 8, PROTOCOL 1.
 */
#pragma once

#include "core/carry.h"
#include "core/login.h"
#include "core/settings.h"
#include "io/errand.h"

#include <sys/types.h>

struct launch {
	char *cwd;
	struct words args;   /* added to the profile's command line */
	struct words env;    /* NAME=VALUE that the requester named */
	struct login *login; /* the requester's; owned */
	/* Whose environment renews the login at the next start, by number and start time (io/proc.h); 0: nobody's. */
	pid_t asker;
	uint64_t asker_start;
	struct words argv; /* instead of the profile's own flags (the shim's) */
	bool has_argv;
	bool no_asks;             /* nobody can answer: the child denies by itself, as without --permission-prompt-tool */
	bool env_only;            /* env is the whole environment */
	bool fork;                /* --fork-session at the first start */
	char *resume;             /* conversation to resume at the first start; NULL: none */
	struct child_place place; /* where it would start, if that was looked at (login_ask()); until the first start */
	uid_t uid;                /* whose session it is */
	uint64_t nofile;          /* the soft limit that the daemon was started with */
	const char *instance;     /* the daemon's mark, so that a later one can find what is left; borrowed */
};

void launch_free(struct launch *l);
void launch_carry(struct carry *c, struct launch *l); /* but instance and nofile, which are the daemon's */
/* The errand that becomes a session's child (errands.h). */
#define LAUNCH_ERRAND "launch"
int launch_errand(void); /* in its process; returns the exit status if the program cannot be run */

/* Begins a start with the whole command line and environment; e->done() tells when it has come to its end, and
 * launch_result() what it came to. resume NULL: a new conversation. error: CHILD_ERROR_MAX bytes. */
enum child_result launch_begin(const struct launch *l, const struct profile *p, const char *session, const char *resume,
							   bool fork, int64_t limit, struct errand *e, struct child *c, struct children *owner,
							   void (*done)(void *arg, enum errand_end end), void *arg, char *error);
/* The same for a command of the daemon's own in /, without streams. */
enum child_result launch_begin_command(const struct words *argv, const struct words *env, int64_t limit,
									   struct errand *e, struct child *c, struct children *owner,
									   void (*done)(void *arg, enum errand_end end), void *arg, char *error);
/* What either came to. cwd: where it starts. error: of CHILD_OK the path of the program, "" if it is too long. *login:
 * what it is now, the caller's; NULL: as before, or there is none.
 */
enum child_result launch_result(const char *cwd, const struct errand *e, enum errand_end end, struct child_place *place,
								struct login **login, char *error);

/* Would both start the same program with the same words and the same environment? path_counts: the requester's PATH is
 * searched, too. The directory is not compared. */
bool launch_same(const struct launch *a, const struct launch *b, const struct profile *p, bool path_counts);

/* Which conversation the words of a command line take up. */
struct launch_claim {
	const char *resume; /* an old one: its id, its title, its file; borrowed; NULL: none is named */
	const char *fresh;  /* the id of a new one; borrowed; NULL: none is named */
	bool open;          /* which one, only the child can tell: the newest, or what is no id */
	bool forks;         /* it goes on in a copy */
};

/* Adds what these words say to *claim, in every spelling that the CLI takes; later words count more. */
void launch_read_claim(const struct words *w, struct launch_claim *claim);
/* Is this the conversation that its first child is to take up, or to begin? */
bool launch_asks_for(const struct launch *l, const char *id);
/* Is the conversation of its first child one that only the child can name? */
bool launch_in_doubt(const struct launch *l, const struct profile *p);

/* The value of PLENUM_INSTANCE in this session's processes; the caller frees. */
char *launch_mark(const struct launch *l, const char *session);
/* The same as a number: of this instance and this session; the next one: is it one of this instance? Never 0. */
uint64_t launch_number(const char *instance, const char *session);
bool launch_is_number_of(const char *instance, uint64_t number);
