/* SPDX-License-Identifier: MIT
 *
 * A reply of the model: its blocks, and how it comes out, delta by delta and one assistant line a block.
 */
#pragma once

#include "fakeagent/js.h"

#include <stdint.h>

struct speech {
	json_t *blocks; /* content of the assistant message */
	char *error;    /* the call failed with that text */
	int64_t slow;   /* ms after each delta */
	int64_t delay;  /* ms before the first */
};

void speech_init(struct speech *s);
void speech_free(struct speech *s);
void speech_text(struct speech *s, json_t *text);                    /* takes text */
void speech_thought(struct speech *s, json_t *text);                 /* takes text */
void speech_tool(struct speech *s, const char *name, json_t *input); /* takes input */
/* False: the turn was aborted on the way; what was said so far is out. *stop_reason is set with the whole message. */
bool speech_print(const struct speech *s, const char **stop_reason);
