/* SPDX-License-Identifier: MIT
 *
 * Child processes: their standard streams (sockets), a process group and session of their own, default signals, no
 * descriptors other than 0 to 2, a parent-death signal. A program that cannot be run is an error of child_spawn(), not
 * an exit status. The end of a child is two events, its exit and the end of its output, in either order. Knows argv and
 * descriptors, not sessions. Sources: fork(2), prctl(2), waitid(2).
 */
#pragma once

#include "base/error.h"
#include "io/loop.h"

#include <sys/types.h>

/* All children of the process; one object, made by the server. Reaps on SIGCHLD, unknown processes too (the daemon is a
 * subreaper). */
struct children;

struct children *children_new(struct loop *loop);
void children_free(struct children *c);
/* Return true if pid is an unreaped child of ours, or is registered with places_out() (io/places.h). */
bool children_known(const struct children *c, pid_t pid);
/* Return true for one of these that is not waited for: an errand was given up, and may not have ended yet. */
bool children_given_up(const struct children *c, pid_t pid);
/* Look for dead children at once, without waiting for the signal. */
void children_reap(struct children *c);
struct loop *children_loop(const struct children *c);
struct places *children_places(const struct children *c); /* where errands run (io/places.h) */

/* vfork(2) with all signals blocked, in the new process too: the pause does not grow with the daemon's memory. run()
 * must not return, may only make system calls, and must not write to the parent's memory. -1 with errno. */
pid_t child_vfork(void (*run)(const void *arg, pid_t parent), const void *arg);

struct child_spec {
	char *const *argv;
	char *const *envp;
	const char *cwd;
	uint64_t nofile; /* soft limit to restore, 0: leave */
	uint64_t mark;   /* inherited by its descendants (io/mark.h); 0: none */
	bool outlives;   /* the daemon: no parent-death signal */
	bool no_pipes;   /* stdin from /dev/null, output to our stderr (command hooks) */
	bool out_pipe;   /* stdout is a pipe, for a program that opens /dev/stdout: slower, both sides share its lock */
	/* For child_become() only: */
	const char *more_path; /* PATH=... of the requester, searched first (child_search()); NULL: none */
	const char *hint;      /* the end of the message if the program is not found */
	bool add_user;         /* add HOME, USER, LOGNAME and SHELL of this process's user unless envp has them */
};

struct child {
	struct list node;
	struct children *owner;
	pid_t pid;
	pid_t was;                             /* the same, kept after its end: the number of its process session */
	uint64_t start;                        /* start time in /proc: pid and start together identify a process uniquely */
	int in, out, err;                      /* our ends, non-blocking; -1: none. The owner of the child closes them. */
	void (*exited)(void *arg, int status); /* wait(2) status; pid is no longer valid */
	void *arg;
};

enum child_result {
	CHILD_OK,
	CHILD_FAILED,    /* it cannot be run: error has the reason */
	CHILD_TRANSIENT, /* the same, but a later try may succeed (being installed, limits) */
	CHILD_TIMEOUT,   /* its directory or program did not answer in time (outside_timeout) */
};

/* Spawn, waiting for the exec and the file systems it needs: not for use in the loop, except for our own program or in
 * tests. Fills *c, which must live until exited() ran or child_forget(). A program name without a slash is searched in
 * the PATH of envp. */
enum child_result child_spawn(struct child *c, struct children *owner, const struct child_spec *spec,
							  struct error *error);
#define CHILD_ERRAND_REQUEST 3
#define CHILD_ERRAND_ANSWER 4
/* Start this program as `--errand KIND` in /, with the daemon's environment and two more descriptors: 3 is request
 * (read from its beginning), 4 is answer. Of spec only the streams, nofile and mark are used. The caller keeps both
 * descriptors. Waits only for the exec of a program that is already running. */
enum child_result child_spawn_errand(struct child *c, struct children *owner, const char *kind, int request, int answer,
									 const struct child_spec *spec, struct error *error);
/* The identity of child_become()'s program, for comparison; 0: unknown. */
struct child_place {
	uint64_t program; /* the file; changes if it is replaced; odd: found in the requester's PATH only */
	uint64_t cwd;     /* the directory, regardless of its name */
};
void child_place_of(const char *file, const char *cwd, bool more, struct child_place *out);
/* Turn this process into the program: found() is called with zeroes and NULL in its directory, and with its file before
 * the exec. Returns only on failure. For errands: waits for file systems and the user database. */
enum child_result child_become(const struct child_spec *spec,
							   void (*found)(void *arg, const struct child_place *p, const char *file), void *arg,
							   struct error *error);
/* Send to the child's whole group; no effect if the child was reaped. */
void child_kill(const struct child *c, int signo);
void child_close_in(struct child *c);
void child_close_out(struct child *c);
void child_close_err(struct child *c);
void child_clear(struct child *c);                          /* not started, no streams; keeps exited and arg */
void child_resume(struct child *c, struct children *owner); /* for a child started by the previous binary */
void child_forget(struct child *c);                         /* no more calls of exited(); the process continues */
bool child_alive(const struct child *c);                    /* has not ended, whether or not the end was noticed */

/* The search path for a name without a slash. */
struct child_search {
	const char *asker; /* PATH of the requester; NULL: none */
	const char *path;  /* PATH of the child; NULL: the default */
	const char *own;   /* PATH of the daemon; NULL: none */
	const char *home;  /* for .local/bin and .claude/local, used by the native installer of Claude Code; NULL: none */
};

/* Find a program: return its path, or NULL with *error_number and an error text. Directories are searched in the order
 * of the struct. *asked becomes true if only the requester's PATH has this file. The caller frees. Source:
 * docs/contract.md 11. */
char *child_find(const char *name, const char *cwd, const struct child_search *in, bool *asked, int *error_number,
				 struct error *error);
/* The same with a single PATH (NULL: the default). */
char *child_find_program(const char *name, const char *path, const char *cwd, int *error_number, struct error *error);
