/* SPDX-License-Identifier: MIT
 *
 * Decide whether a tool may run: policy, hooks, and finally the client (can_use_tool). protocol-facts 4.2.
 */
#pragma once

#include "fakeagent/callback.h"

#define PERMISSION_REJECTED                                                                                            \
	"The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the "  \
	"new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to "       \
	"proceed."

struct permission {
	bool allowed;
	json_t *input;  /* for the tool */
	char *refusal;  /* text of the tool_result */
	bool interrupt; /* the refusal ends the turn */
	bool aborted;   /* by an interrupt */
};

/* before: the answers of the PreToolUse hooks. */
void permission_decide(const json_t *use, const struct callback_outcome *before, struct permission *p);
void permission_free(struct permission *p);
/* Make a can_use_tool request; reason may be NULL. */
json_t *permission_request(const char *name, json_t *input, const char *tool_use_id, const char *reason);
