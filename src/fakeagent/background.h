/* SPDX-License-Identifier: MIT
 *
 * Shell commands, each in a session of its own, and background work: a subagent that asks after the result, a task with
 * a turn of its own at its end, a command in the background (protocol-facts 2.2, 2.4, 4.2).
 */
#pragma once

#include "fakeagent/poller.h"

/* A running command; killed at exit(). */
struct job {
	struct list node;
	struct watch watch; /* its pidfd */
	pid_t pid;
	int out; /* a memory file with its stdout and stderr */
	bool exited;
	int code;     /* exit code, or 128 and the signal */
	json_t *task; /* of one in the background: {id, turn} */
};

struct job *background_run(const char *command);  /* NULL with errno; the caller waits for the exit and frees */
json_t *background_output(const struct job *job); /* without trailing newlines; new */
void background_free(struct job *job);            /* kills it first */
/* Run a shell command in the background; return its task id (new), or NULL. */
json_t *background_shell(const char *command, const char *tool_use_id, bool turn);
/* Send a can_use_tool with an agent_id after `ms`; if allowed, run a shell command. Takes ask: {ms, name, input}. */
void background_ask(json_t *ask);
/* End a task after `ms` and start a turn with this prompt. */
void background_task(long ms, const char *text);
void background_stop(const char *task_id);
void background_changed(void); /* print the snapshot frame */
