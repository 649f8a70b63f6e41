/* SPDX-License-Identifier: MIT
 *
 * The encoding of all that a turn prints: the frames of PROTOCOL 2. Every frame but the control family gets a uuid and
 * the session_id. The old CLI (--compat) prints less; that is known here alone.
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
	long index; /* turns before this one */
};

void frames_put(json_t *frame);            /* takes frame; adds uuid and session_id */
void frames_emit(const char *format, ...); /* the same with a template of js_make() */
void frames_stamp(json_t *frame);          /* adds the time */

/* system/init, the first frame of a turn. Takes tools (more names) and servers. */
void frames_init(json_t *tools, json_t *servers);
void frames_mode(void);
/* idle, running, requires_action, if the environment asks; printed once a change, idle each time. */
void frames_state(const char *state);
const char *frames_last_state(void);
void frames_lifecycle(const char *uuid, const char *state);
/* Acknowledges a user line, if asked for; content: NULL for the line's own. */
void frames_replay(const json_t *line, json_t *content, bool stamp);
void frames_user(json_t *content, json_t *detail);  /* takes both; detail: tool_use_result or NULL */
void frames_warning(const char *tag, json_t *text); /* takes text */
void frames_result(const struct outcome *o);
void frames_failed_start(const char *text);

/* A reply of the model. Stream events are printed if they were asked for; `early`: before the prompt's acknowledgement.
 */
void frames_request(bool early);
void frames_open(void);
const char *frames_message_id(void);
void frames_block_start(int index, const json_t *block, const char *key); /* key: the member that deltas bring */
void frames_delta(const char *type, const char *key, const char *p, size_t n);
void frames_block(const json_t *block, bool aborted); /* the assistant line */
void frames_block_stop(void);
void frames_close(const char *stop_reason);
void frames_cut(void); /* closes a message that was aborted, if there is one */
void frames_error(const char *text);
