/* SPDX-License-Identifier: MIT
 *
 * The permission mode and the rules; the decision whether a tool may run: by them, by hooks, and finally by the client
 * (can_use_tool). protocol-facts 4.2.
 */
#pragma once

#include "fakeagent/callback.h"

void permission_init(void);                              /* from the flags */
const char *permission_set_mode(const char *mode);       /* NULL, or the error_code of the refusal */
void permission_extend(const char *list, json_t *rules); /* list: allow, deny, ask; no effect without an array */
/* Decide on a tool_use block; before: the outcome of the PreToolUse hooks. Return, as a new object: input, for an
 * allowed tool; else message, the text of the tool_result, and interrupt, if the refusal ends the turn; or neither
 * after an interrupt. */
json_t *permission_decide(const json_t *use, const json_t *before);
/* Make a can_use_tool request for a tool_use block with this input; reason may be NULL. */
json_t *permission_request(const json_t *use, json_t *input, const char *reason);
