/* SPDX-License-Identifier: MIT
 *
 * Hook callbacks: ask all matching ones of the table at once and combine their answers. protocol-facts 4.2, 5.
 */
#pragma once

#include "fakeagent/agent.h"

enum policy { POLICY_NONE, POLICY_ALLOW, POLICY_ASK, POLICY_DEFER, POLICY_DENY }; /* of several the greatest counts */

struct callback_outcome {
	enum policy decision;
	char *reason;
	json_t *input;      /* updatedInput */
	json_t *permission; /* the decision of a PermissionRequest hook */
	json_t *context;    /* array of additionalContext */
	bool stop;          /* continue: false */
	char *stop_reason;
};

/* extra: members of the event (taken). match: the text for the matchers, or NULL. */
void callback_run(const char *event, const char *match, json_t *extra, const char *tool_use_id,
				  struct callback_outcome *o);
void callback_free(struct callback_outcome *o);
/* Run hooks without an effect on the turn. */
void callback_notify(const char *event, const char *match, json_t *extra, const char *tool_use_id);
bool callback_replace(json_t *table); /* false: malformed */
