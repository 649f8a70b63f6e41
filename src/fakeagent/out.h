/* SPDX-License-Identifier: MIT
 *
 * Lines on stdout. Never blocks: bytes that the pipe does not accept are buffered without a limit, as in the CLI
 * (protocol-facts 6.3). A closed reader does not end the program.
 */
#pragma once

#include "fakeagent/agent.h"

void out_init(void);                                             /* also flushes at exit() */
void out_json(json_t *frame);                                    /* takes the frame */
void out_message(json_t *message);                               /* the same, also if frames are diverted */
void out_answer(json_t *message, bool may_miss, bool may_delay); /* the same, with the faults of answers */
void out_divert(void (*to)(json_t *));                           /* give frames to this function, which takes them */
void out_line(const char *line, size_t n);                       /* adds the newline */
void out_half(const char *text);                                 /* flush, then write the text without a newline */
