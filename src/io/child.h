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
/* True if pid is one of ours that was spawned and not yet reaped. */
bool children_known(const struct children *c, pid_t pid);
/* Looks for dead children at once, without waiting for the signal. */
void children_reap(struct children *c);

/* vfork(2) with all signals blocked, also in the new process: the pause does not grow with the daemon's memory. run()
 * must not return, makes system calls only, and writes to no memory of the parent. -1 with errno. */
pid_t child_vfork(void (*run)(const void *arg, pid_t parent), const void *arg);

struct child_spec {
	char *const *argv;
	char *const *envp;
	const char *cwd;
	uint64_t nofile; /* soft limit to restore, 0: leave */
	uint64_t mark;   /* for it and all that it starts (io/mark.h); 0: none */
	bool no_pipes;   /* stdin from /dev/null, output to our stderr (command hooks) */
	bool out_pipe; /* stdout is a pipe, for a program that opens /dev/stdout: slower, two processes wait for its lock */
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
};

/* Fills *c, which must live until exited() ran or child_forget(). Program names without a slash are looked for in the
 * PATH of envp. */
enum child_result child_spawn(struct child *c, struct children *owner, const struct child_spec *spec, char *error);
/* To the child's whole group; nothing if it has been reaped. */
void child_kill(const struct child *c, int signo);
void child_close_in(struct child *c);
void child_close_out(struct child *c);
void child_close_err(struct child *c);
void child_resume(struct child *c, struct children *owner); /* it was started by the binary before this one */
void child_forget(struct child *c);                         /* no exited() any more; the process goes on */
bool child_alive(const struct child *c);                    /* has not ended, whether or not that was noticed */

/* Where a program is: the path, or NULL with an error text (PATH searched; what is wrong with the file). The caller
 * frees. */
char *child_find_program(const char *name, const char *path, const char *cwd, int *error_number, char *error);
