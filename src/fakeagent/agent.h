/* SPDX-License-Identifier: MIT
 *
 * The state of one agent process. One thread; a turn runs on the stack and waits by turning the pump (pump.h), which
 * reads stdin meanwhile, as the CLI does. Everything that another file may change stands here; the functions stand in
 * the file of their noun. Source of the behaviour: PROTOCOL (the CLI 2.1.332, measured).
 */
#pragma once

#include "base/list.h"
#include "fakeagent/conversation.h"
#include "fakeagent/input.h"
#include "fakeagent/options.h"
#include "fakeagent/out.h"

#include <sys/types.h>

struct scenario;
struct turn;

enum abort_why {
	ABORT_NONE,
	ABORT_INTERRUPT, /* a control request, or a refusal that says so */
	ABORT_URGENT,    /* a prompt with priority "now" */
	ABORT_SIGNAL,    /* SIGINT: the process ends after the turn */
};

struct agent {
	struct options *opt;
	struct faults faults;
	struct out out;
	struct input in;
	struct scenario *scenario; /* NULL: directives in the prompt */
	int sigfd;
	struct list asks, timers, procs;

	struct conversation conv;
	char *model, *mode;
	json_t *queue;      /* user lines that wait, oldest first */
	json_t *seen;       /* uuids of user lines */
	json_t *rules;      /* {"allow":[...],"deny":[...],"ask":[...]}, as "Bash(ls:*)" */
	json_t *hooks;      /* the table of initialize */
	json_t *servers;    /* name -> {status, next, tools, serverInfo} */
	json_t *dialogs;    /* dialog kinds that the client can show */
	json_t *background; /* task_id -> task, running ones */

	const char *state; /* last told: idle, running, requires_action */
	bool initialized;
	struct turn *turn; /* NULL: idle */
	enum abort_why abort;
	bool quit;        /* SIGINT: end when the turn has */
	bool last_error;  /* the last result was an error */
	bool closed_told; /* the asks were told of the end of stdin */
	long results, calls, ids;
	double cost;
};

int agent_run(struct agent *a); /* until stdin ends; returns the exit code */
/* Ends the process: children killed, output written, exit(code). */
void agent_exit(struct agent *a, int code) __attribute__((noreturn));
/* One line on stderr, then agent_exit(1): what the CLI does at a line that it cannot take. */
void agent_die(struct agent *a, const char *fmt, ...) PRINTF_LIKE(2, 3) __attribute__((noreturn));
