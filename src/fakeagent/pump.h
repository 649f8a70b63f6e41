/* SPDX-License-Identifier: MIT
 *
 * The one place that waits: stdin, stdout, signals, running commands and timers, by poll(2). A turn calls it again and
 * again until what it waits for is there. Times are now_ms().
 */
#pragma once

#include "fakeagent/agent.h"

typedef void (*timer_fn)(struct agent *a, json_t *arg);

struct proc {
	struct list node;
	pid_t pid;
	int pidfd, fd; /* -1 when done */
	struct buf out;
	bool exited;
	int status;    /* as waitpid() gives it */
	timer_fn then; /* background: called with arg when it has exited, then the proc is freed */
	json_t *arg;
};

void pump(struct agent *a, int64_t until);                              /* one round; until < 0: without end */
void pump_sleep(struct agent *a, int64_t ms);                           /* ends early when the turn is aborted */
void pump_after(struct agent *a, int64_t ms, timer_fn fn, json_t *arg); /* takes arg */

/* Runs a shell command in a session of its own, stdout and stderr into out. NULL with errno. */
struct proc *proc_start(struct agent *a, const char *command);
void proc_kill(struct proc *p);
void proc_free(struct proc *p);
