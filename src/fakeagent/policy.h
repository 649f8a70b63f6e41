/* SPDX-License-Identifier: MIT
 *
 * The permission mode and the rules, and their decision on a tool without asking. protocol-facts 4.2.
 */
#pragma once

#include "fakeagent/agent.h"

enum policy { POLICY_NONE, POLICY_ALLOW, POLICY_ASK, POLICY_DEFER, POLICY_DENY }; /* of several the greatest counts */

void policy_init(void);                              /* from the flags */
const char *policy_set_mode(const char *mode);       /* NULL, or the error_code of the refusal */
void policy_extend(const char *list, json_t *rules); /* list: allow, deny, ask; no effect without an array */
bool policy_update(const json_t *update); /* PermissionUpdate addRules or setMode; true: the mode has changed */
enum policy policy_judge(const char *tool, const json_t *input, const char **why);
bool policy_always_asks(const char *tool);
json_t *policy_suggest(const char *tool, const json_t *input); /* permission_suggestions; new */
