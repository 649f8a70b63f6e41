/* SPDX-License-Identifier: MIT
 *
 * One turn: from the prompt (or several that waited) over the model's replies and its tools to the result.
 */
#pragma once

#include "fakeagent/agent.h"

struct turn {
	json_t *batch; /* the user lines */
	json_t *uuids;
	json_t *content; /* of the merged prompt */
	char *prompt;    /* its text */
	json_t *origin;  /* of a turn that nobody asked for, or NULL */
	int64_t started;
	int calls;             /* of the model */
	int said;              /* user frames printed */
	char open_message[40]; /* a message whose stream was cut off, or "" */
	int open_block;
	bool requested; /* system/status requesting is out */
	const char *local_command;
	json_t *denials;              /* for permission_denials */
	json_t *after;                /* background asks to start after the result: [ms, name, input] */
	bool named_line, named_event; /* the first reply frame of each kind is out */
	json_t *deferred;             /* deferred_tool_use of the result, or NULL */
	bool stop;                    /* no more model calls */
	bool stop_hook_active;
	/* the result */
	bool is_error;
	const char *subtype, *terminal, *stop_reason;
	json_t *text;
	json_t *errors;
	/* what the last tool was, for scenarios */
	char *last_tool, *last_output;
	bool last_failed;
};

void turn_run(struct agent *a); /* with what waits in the queue */
void turn_end_with(struct turn *t, const char *subtype, const char *terminal, bool is_error);
