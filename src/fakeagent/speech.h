/* SPDX-License-Identifier: MIT
 *
 * A reply of the model: its blocks, printed as deltas and one assistant line per block. Stream events are printed if
 * requested.
 */
#pragma once

#include "fakeagent/agent.h"

struct speech {
	json_t *blocks; /* content of the assistant message */
	char *error;    /* the call failed with this text */
	int64_t slow;   /* ms after each delta */
	int64_t delay;  /* ms before the first */
};

void speech_text(struct speech *s, json_t *text);                    /* takes text */
void speech_thought(struct speech *s, json_t *text);                 /* takes text */
void speech_tool(struct speech *s, const char *name, json_t *input); /* takes input */

void speech_begin(void);         /* a turn, after its init */
void speech_request(bool early); /* the model is called; early: before the prompt's acknowledgement */
/* False: the turn was aborted after a part was printed. *stop_reason is set after the whole message. */
bool speech_print(const struct speech *s, const char **stop_reason);
void speech_cut(void); /* end an aborted message, if there is one */
void speech_error(const char *text);
