/* SPDX-License-Identifier: MIT
 *
 * The state that the files of this program share: the command line with the CLI's flags and our own, the faults on
 * demand (plenum-fakeagent(1) describes each), the conversation, the running turn.
 */
#pragma once

#include "base/fd.h"
#include "base/str.h"
#include "fakeagent/js.h"

enum abort {
	ABORT_NONE,
	ABORT_INTERRUPT, /* a control request, or a refusal with interrupt */
	ABORT_URGENT,    /* a prompt with priority "now" */
	ABORT_SIGNAL,    /* SIGINT: the process ends after the turn */
};

struct agent {
	char **argv;
	bool partial, replay, ask_stdio; /* from flags */
	bool old;                        /* --compat=2.1.197 */
	bool rpc;                        /* speaks another protocol than stream-json */
	const char *compat;              /* the version */
	json_t *script;                  /* the scenario, or NULL */
	bool initialized;                /* an initialize was answered: control.c, appserver.c */

	/* conversation.c */
	char *id;    /* the session_id */
	bool opened; /* in another protocol: a session is open */
	char *model;
	json_t *messages;  /* in the form of the Messages API */
	char *mode;        /* permission.c */
	const char *state; /* out.c: idle, running or requires_action */

	/* the running turn: dialogue.c */
	bool failed; /* the last result was an error */
	bool running;
	json_t *uuids; /* its prompts */
	enum abort aborted;
	json_t *denials; /* permission.c: permission_denials */
};

extern struct agent agent;

bool agent_read_flags(char **argv, char **error);        /* false: *error has the reason */
const char *agent_flag(const char *name);                /* its value, "" without one; NULL: not given */
json_t *agent_list(const char *name);                    /* of fault, allowedTools or disallowedTools, borrowed */
bool agent_set_faults(const json_t *list, char **error); /* of NAME or NAME=N */
long agent_fault(const char *name);                      /* its number, -1: off */
bool agent_has(const char *fault);                       /* its number is over 0 */
void agent_abort(enum abort why);                        /* the first reason counts, except that a signal replaces it */
