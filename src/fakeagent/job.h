/* SPDX-License-Identifier: MIT
 *
 * Running shell commands, each in a session of its own; all are killed at exit().
 */
#pragma once

#include "fakeagent/poller.h"

struct job {
	struct list node;
	struct watch watch; /* its pidfd */
	pid_t pid;
	int out; /* a memory file with its stdout and stderr */
	bool exited;
	int code;                      /* exit code, or 128 and the signal */
	void (*then)(struct job *job); /* called after the exit; then the job is freed */
	json_t *arg;
};

struct job *job_start(const char *command); /* NULL with errno */
json_t *job_output(const struct job *job);  /* without trailing newlines; new */
void job_kill(struct job *job);
struct job *job_find(const char *key, const char *value); /* by a member of arg */
void job_free(struct job *job);                           /* kills it first */
