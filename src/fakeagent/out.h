/* SPDX-License-Identifier: MIT
 *
 * Lines on stdout and the frames of a turn (protocol-facts 2). Output never blocks: bytes that the pipe does not accept
 * are buffered without a limit, as in the CLI (protocol-facts 6.3). A closed reader does not end the program. Only this
 * file knows which frames the old CLI (--compat) omits.
 */
#pragma once

#include "fakeagent/poller.h"

#define OUT_USAGE "{input_tokens:%i,cache_creation_input_tokens:0,cache_read_input_tokens:0,output_tokens:%i}"

void out_init(void);                                             /* also flushes at exit() */
void out_json(json_t *frame);                                    /* takes the frame */
void out_message(json_t *message);                               /* the same, also if frames are diverted */
void out_answer(json_t *message, bool may_miss, bool may_delay); /* the same, with the faults of answers */
void out_divert(void (*to)(json_t *));                           /* give frames to this function, which takes them */
void out_line(const char *line, size_t n);                       /* adds the newline */
void out_die(const char *text);                                  /* flush, write the text without a newline, SIGKILL */

/* Every frame except the control family gets a uuid and the session_id. */
void out_frame(json_t *frame);          /* takes frame */
void out_emit(const char *format, ...); /* the same for a template of js_make() */
/* system/init, the first frame of a turn. Takes more, names of tools, and servers. */
void out_begin(json_t *more, json_t *servers);
/* Name the prompts of the turn: the first 63 and the last, as the CLI does; both: also the last alone. Return frame. */
json_t *out_name(json_t *frame, bool both);
void out_mode(void);
/* idle, running, requires_action, if enabled by the environment; printed once per change, idle each time. */
void out_state(const char *state);
void out_lifecycle(const char *uuid, const char *state);
/* Acknowledge a user line if requested; with the time and this content, or (NULL) without and with the line's own. */
void out_replay(const json_t *line, json_t *content);
void out_user(json_t *content, json_t *detail);  /* takes both; detail: tool_use_result or NULL */
void out_warning(const char *tag, json_t *text); /* takes text */
/* members: of the result; calls of the model; turn: number of earlier turns */
void out_result(json_t *members, int64_t started, int calls, long turn);
