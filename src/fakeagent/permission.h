/* SPDX-License-Identifier: MIT
 *
 * The permission mode and the rules; the decision whether a tool may run: by them, by hooks, and finally by the client
 * (can_use_tool). protocol-facts 4.2.
 */
#pragma once

#include "fakeagent/callback.h"

struct permission {
	bool allowed;
	json_t *input;  /* for the tool */
	char *refusal;  /* text of the tool_result */
	bool interrupt; /* the refusal ends the turn */
	bool aborted;   /* by an interrupt */
};

void permission_init(void);                              /* from the flags */
const char *permission_set_mode(const char *mode);       /* NULL, or the error_code of the refusal */
void permission_extend(const char *list, json_t *rules); /* list: allow, deny, ask; no effect without an array */
/* use: a tool_use block; before: the answers of the PreToolUse hooks. */
void permission_decide(const json_t *use, const struct callback_outcome *before, struct permission *p);
void permission_free(struct permission *p);
/* Make a can_use_tool request for a tool_use block with this input; reason may be NULL. */
json_t *permission_request(const json_t *use, json_t *input, const char *reason);
