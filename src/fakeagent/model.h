/* SPDX-License-Identifier: MIT
 *
 * The scripted model: what it says next, from the message history, by the scenario or by the directives in the prompt.
 */
#pragma once

#include "fakeagent/agent.h"
#include "fakeagent/turn.h"

struct reply {
	json_t *blocks; /* content of the assistant message */
	char *error;    /* the call failed with that text */
	int64_t slow;   /* ms after each delta */
	int64_t delay;  /* ms before the first */
};

void model_reply(struct agent *a, struct turn *t, struct reply *r);
void reply_free(struct reply *r);
void reply_text(struct reply *r, json_t *text);                                     /* takes text */
void reply_tool(struct agent *a, struct reply *r, const char *name, json_t *input); /* takes input */
/* Carries out every directive in the text. */
void model_directives(struct agent *a, struct turn *t, struct reply *r, const char *text, size_t n);
