/* SPDX-License-Identifier: MIT
 *
 * The state that the files of this program share: the command line with the CLI's flags that matter to a client and our
 * own, the faults on demand (plenum-fakeagent(1) describes each), the conversation, the running turn. An unknown flag
 * is ignored, for clients of a newer CLI; a following word without a dash is its value.
 */
#pragma once

#include "fakeagent/js.h"

/* The name of a fault, and its default number. The command line uses - for _. */
#define AGENT_FAULTS(X)                                                                                                \
	X(partial, 7)                                                                                                      \
	X(huge, 5L * 1024 * 1024)                                                                                          \
	X(garbage, 1)                                                                                                      \
	X(stderr, 300)                                                                                                     \
	X(flood, 100000)                                                                                                   \
	X(close_stdout, 0)                                                                                                 \
	X(deaf, 0)                                                                                                         \
	X(die, 3)                                                                                                          \
	X(start_exit, 1)                                                                                                   \
	X(start_delay, 500)                                                                                                \
	X(refuse_initialize, 1)                                                                                            \
	X(refuse_load, 1)                                                                                                  \
	X(late, 500)                                                                                                       \
	X(split, 146L * 1024)                                                                                              \
	X(ignore_sigterm, 1)                                                                                               \
	X(ignore_eof, 1)                                                                                                   \
	X(grandchild, 1)                                                                                                   \
	X(mute, 1)                                                                                                         \
	X(no_newline, 1)                                                                                                   \
	X(no_result, 1)

#define AGENT_FAULT_ID(name, number) FAULT_##name,
enum fault { AGENT_FAULTS(AGENT_FAULT_ID) FAULTS };

enum abort {
	ABORT_NONE,
	ABORT_INTERRUPT, /* a control request, or a refusal with interrupt */
	ABORT_URGENT,    /* a prompt with priority "now" */
	ABORT_SIGNAL,    /* SIGINT: the process ends after the turn */
};

struct agent {
	/* the command line; strings point into argv or the environment */
	char **argv;
	bool stream_in, stream_out, verbose, ask_stdio, partial, replay, fork, resume_last, await_initialize;
	bool no_persistence, version, help, bypass_allowed;
	bool acp, app_server; /* speak this in place of stream-json */
	bool old;             /* --compat=2.1.197 */
	const char *compat;   /* the version */
	const char *resume;   /* conversation id */
	const char *session_id, *wanted_model, *wanted_mode, *mcp_config, *max_turns, *scenario, *conversations;
	json_t *faults;               /* array of "NAME[=N]" */
	json_t *allowed, *disallowed; /* arrays of rules */
	long fault[FAULTS];           /* -1: off */

	/* conversation.c */
	char *id; /* the session_id */
	char *model;
	json_t *messages;  /* in the form of the Messages API */
	char *mode;        /* policy.c */
	const char *state; /* frames.c: idle, running or requires_action */

	/* the running turn: dialogue.c */
	bool running;
	json_t *uuids; /* its prompts */
	enum abort aborted;
	json_t *denials; /* permission.c: permission_denials */
};

extern struct agent agent;

bool agent_read_flags(char **argv, char **error); /* false: *error has the reason */
bool agent_set_fault(const char *text);           /* NAME or NAME=N; false: unknown fault */
bool agent_has(enum fault fault);                 /* its number is over 0 */
void agent_abort(enum abort why);                 /* the first reason counts, except that a signal replaces it */
