/* SPDX-License-Identifier: MIT
 *
 * Hook callbacks: which of the table match, all of them asked at once, their answers combined (deny wins).
 * PROTOCOL 4.2, 5.
 */
#pragma once

#include "fakeagent/turn.h"

enum hook_decision { HOOK_NONE, HOOK_ALLOW, HOOK_ASK, HOOK_DEFER, HOOK_DENY }; /* the greatest wins */

struct hook_outcome {
	int asked;
	enum hook_decision decision;
	char *reason;
	json_t *input;      /* updatedInput */
	json_t *permission; /* the decision of a PermissionRequest hook */
	json_t *output;     /* updatedToolOutput */
	json_t *context;    /* array of additionalContext */
	bool stop;          /* continue: false */
	char *stop_reason;
};

/* extra: members of the event (taken). match: what the matcher is held against, or NULL. */
void hooks_run(struct agent *a, const char *event, const char *match, json_t *extra, const char *tool_use_id,
			   struct hook_outcome *o);
void hook_outcome_free(struct hook_outcome *o);
bool hooks_valid(const json_t *table);
void hooks_replace(struct agent *a, json_t *table);
