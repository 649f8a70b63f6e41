/* SPDX-License-Identifier: MIT
 *
 * Child processes: their standard streams (sockets), a process group and session of their own, default signals, no
 * descriptor but 0 to 2, a parent-death signal. A program that cannot be run is an error of child_spawn(), not an exit
 * status. The end of a child is two events, its exit and the end of its output, in either order. Knows argv and
 * descriptors, not sessions. Sources: ENGINEERING 7.4, fork(2), prctl(2), waitid(2).
 */
#pragma once

#include "io/loop.h"

#include <sys/types.h>

#define CHILD_ERROR_MAX 512

/* All children of the process; one, made by the server. Reaps on SIGCHLD, also processes that nobody knows (the daemon
 * is a subreaper). */
struct children;

struct children *children_new(struct loop *loop);
void children_free(struct children *c);
/* True if pid is one of ours that was spawned and not yet reaped, or is out (io/places.h). */
bool children_known(const struct children *c, pid_t pid);
/* Looks for dead children at once, without waiting for the signal. */
void children_reap(struct children *c);
struct loop *children_loop(const struct children *c);
struct places *children_places(const struct children *c); /* where errands are (io/places.h) */

/* vfork(2) with all signals blocked, also in the new process: the pause does not grow with the daemon's memory. run()
 * must not return, makes system calls only, and writes to no memory of the parent. -1 with errno. */
pid_t child_vfork(void (*run)(const void *arg, pid_t parent), const void *arg);

struct child_spec {
	char *const *argv;
	char *const *envp;
	const char *cwd;
	uint64_t nofile; /* soft limit to restore, 0: leave */
	uint64_t mark;   /* for it and all that it starts (io/mark.h); 0: none */
	bool outlives;   /* the daemon: without a parent-death signal */
	bool no_pipes;   /* stdin from /dev/null, output to our stderr (command hooks) */
	bool out_pipe; /* stdout is a pipe, for a program that opens /dev/stdout: slower, two processes wait for its lock */
	/* For child_become() alone: */
	const char *more_path; /* PATH=..., the requester's: searched first (child_search()); NULL: none */
	const char *hint;      /* the end of the message if the program is not found */
	bool add_user;         /* HOME, USER, LOGNAME and SHELL of this process's user, if envp has none */
};

struct child {
	struct list node;
	struct children *owner;
	pid_t pid;
	pid_t was;                             /* the same, also after its end: the number of its process session */
	uint64_t start;                        /* /proc start time: pid and start name one process for ever */
	int in, out, err;                      /* our ends, non-blocking; -1: none. The child's owner closes them. */
	void (*exited)(void *arg, int status); /* wait(2) status; pid is not valid any more */
	void *arg;
};

enum child_result {
	CHILD_OK,
	CHILD_FAILED,    /* it cannot be run: error says which case it is */
	CHILD_TRANSIENT, /* the same, but worth another try (being installed, limits) */
	CHILD_TIMEOUT,   /* its directory or program did not answer in time (outside_timeout) */
};

/* Waits for the exec, and for all that it needs of file systems: not for the loop, but for what runs our own program
 * or a test. Fills *c, which must live until exited() ran or child_forget(). Program names without a slash are looked
 * for in the PATH of envp. */
enum child_result child_spawn(struct child *c, struct children *owner, const struct child_spec *spec, char *error);
#define CHILD_ERRAND_REQUEST 3
#define CHILD_ERRAND_ANSWER 4
/* Starts this very program as `--errand KIND` in /, with the daemon's environment and two more descriptors: 3 is
 * request (read from its beginning), 4 is answer. Of spec the streams, nofile and mark count. Both descriptors stay the
 * caller's. Waits for nothing but the exec of a program that runs already. */
enum child_result child_spawn_errand(struct child *c, struct children *owner, const char *kind, int request, int answer,
									 const struct child_spec *spec, char *error);
/* What the program of child_become() was found to be, for comparing; 0: unknown. */
struct child_place {
	uint64_t program; /* the file, another one when it is replaced; odd: it was found in the requester's PATH only */
	uint64_t cwd;     /* the directory, whatever its name */
};
void child_place_of(const char *file, const char *cwd, bool more, struct child_place *out);
/* This process becomes the program: found() is called with zeroes and NULL in its directory, and with its file before
 * the exec. Returns if that fails. For an errand: waits for file systems and the user database. */
enum child_result child_become(const struct child_spec *spec,
							   void (*found)(void *arg, const struct child_place *p, const char *file), void *arg,
							   char *error);
/* To the child's whole group; nothing if it has been reaped. */
void child_kill(const struct child *c, int signo);
void child_close_in(struct child *c);
void child_close_out(struct child *c);
void child_close_err(struct child *c);
void child_clear(struct child *c);                          /* not started, no streams; exited and arg stay */
void child_resume(struct child *c, struct children *owner); /* it was started by the binary before this one */
void child_forget(struct child *c);                         /* no exited() any more; the process goes on */
bool child_alive(const struct child *c);                    /* has not ended, whether or not that was noticed */

/* Where a name without a slash is searched. */
struct child_search {
	const char *asker; /* PATH of the requester; NULL: none */
	const char *path;  /* PATH of the child; NULL: the default */
	const char *own;   /* PATH of the daemon; NULL: none */
	const char *home;  /* the native installer of Claude Code uses .local/bin and .claude/local; NULL: none */
};

/* Find a program: the path, or NULL with *error_number and an error text. The places count in the order of the struct.
 * *asked becomes true if the requester's PATH alone has this file. The caller frees. Source: docs/contract.md 11. */
char *child_find(const char *name, const char *cwd, const struct child_search *in, bool *asked, int *error_number,
				 char *error);
/* The same in one PATH (NULL: the default). */
char *child_find_program(const char *name, const char *path, const char *cwd, int *error_number, char *error);
