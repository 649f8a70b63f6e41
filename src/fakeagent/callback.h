/* SPDX-License-Identifier: MIT
 *
 * Hook callbacks: ask all matching ones of the table at once and combine their answers. protocol-facts 4.2, 5.
 */
#pragma once

#include "fakeagent/agent.h"

/* use: the tool_use block that the event is about, or NULL; its name is matched. extra: members of the event (taken).
 * Return, as a new object: context, the array of additionalContext; decision (of several the last of allow, ask, defer,
 * deny) and its reason; input (updatedInput); permission, the decision of a PermissionRequest hook; stop and
 * stop_reason (continue: false). */
json_t *callback_run(const char *event, const json_t *use, json_t *extra);
bool callback_replace(json_t *table); /* false: malformed */
