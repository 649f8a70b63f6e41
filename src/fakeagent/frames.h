/* SPDX-License-Identifier: MIT
 *
 * Print the frames of a turn (protocol-facts 2). Every frame except the control family gets a uuid and the session_id.
 * Only this file knows which frames the old CLI (--compat) omits.
 */
#pragma once

#include "fakeagent/agent.h"

#define FRAMES_USAGE "{input_tokens:%i,cache_creation_input_tokens:0,cache_read_input_tokens:0,output_tokens:%i}"

/* The end of a turn. */
struct outcome {
	bool is_error;
	const char *subtype, *terminal, *stop_reason, *local_command;
	json_t *text, *errors;
	json_t *deferred; /* deferred_tool_use */
	json_t *origin;   /* of a turn without a client's prompt, or NULL */
	int64_t started;
	int calls;  /* of the model */
	long index; /* earlier turns */
};

void frames_put(json_t *frame);            /* takes frame; adds uuid and session_id */
void frames_emit(const char *format, ...); /* the same for a template of js_make() */
void frames_stamp(json_t *frame);          /* add the time */

/* system/init, the first frame of a turn. Takes tools (more names) and servers. */
void frames_init(json_t *tools, json_t *servers);
void frames_mode(void);
/* Name the prompts of the turn: the first 63 and the last, as the CLI does; both: also the last alone. Return frame. */
json_t *frames_name(json_t *frame, bool both);
/* idle, running, requires_action, if enabled by the environment; printed once per change, idle each time. */
void frames_state(const char *state);
void frames_lifecycle(const char *uuid, const char *state);
/* Acknowledge a user line if requested; content: NULL for the line's own. */
void frames_replay(const json_t *line, json_t *content, bool stamp);
void frames_user(json_t *content, json_t *detail);  /* takes both; detail: tool_use_result or NULL */
void frames_warning(const char *tag, json_t *text); /* takes text */
void frames_result(const struct outcome *o);
void frames_failed_start(const char *text);
