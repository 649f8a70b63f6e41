/* SPDX-License-Identifier: MIT
 *
 * May a tool run: rules, the mode, hooks, and in the end the client (can_use_tool). PROTOCOL 4.2.
 */
#pragma once

#include "fakeagent/hooks.h"

#define PERMISSION_REJECTED                                                                                            \
	"The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the "  \
	"new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to "       \
	"proceed."

struct permission {
	bool allowed;
	json_t *input;  /* what the tool gets */
	char *refusal;  /* text of the tool_result */
	bool interrupt; /* the refusal ends the turn */
	bool aborted;   /* by an interrupt */
};

/* before: what the PreToolUse hooks said. */
void permission_decide(struct agent *a, struct turn *t, const json_t *use, struct hook_outcome *before,
					   struct permission *p);
void permission_free(struct permission *p);
/* A can_use_tool request; reason may be NULL. */
json_t *permission_request(const char *name, json_t *input, const char *tool_use_id, const char *reason);
bool permission_mode(struct agent *a, const char *mode, const char **code); /* false: *code is the error_code */
