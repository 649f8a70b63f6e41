/* SPDX-License-Identifier: MIT
 *
 * Print the frames of a turn (protocol-facts 2). Every frame except the control family gets a uuid and the session_id.
 * Only this file knows which frames the old CLI (--compat) omits.
 */
#pragma once

#include "fakeagent/js.h"

#include <stdint.h>

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
/* idle, running, requires_action, if enabled by the environment; printed once per change, idle each time. */
void frames_state(const char *state);
const char *frames_last_state(void);
void frames_lifecycle(const char *uuid, const char *state);
/* Acknowledge a user line if requested; content: NULL for the line's own. */
void frames_replay(const json_t *line, json_t *content, bool stamp);
void frames_user(json_t *content, json_t *detail);  /* takes both; detail: tool_use_result or NULL */
void frames_warning(const char *tag, json_t *text); /* takes text */
void frames_result(const struct outcome *o);
void frames_failed_start(const char *text);

/* A reply of the model. Stream events are printed if requested; `early`: before the prompt's acknowledgement. */
void frames_request(bool early);
void frames_open(void);
const char *frames_message_id(void);
void frames_block_start(int index, const json_t *block, const char *key); /* key: the member in the deltas */
void frames_delta(const char *type, const char *key, const char *p, size_t n);
void frames_block(const json_t *block, bool aborted); /* the assistant line */
void frames_block_stop(void);
void frames_close(const char *stop_reason);
void frames_cut(void); /* end an aborted message, if there is one */
void frames_error(const char *text);
