/* SPDX-License-Identifier: MIT
 *
 * The scripted model: its next reply to the messages so far, by the rules of a scenario or by directives in the prompt.
 * Directives, `@name arguments@`, and scenarios are described by plenum-fakeagent(1); unknown names stay ordinary text.
 */
#pragma once

#include "fakeagent/agent.h"

/* Load a scenario and set its model, rules and faults. False: *error has the reason. */
bool model_load(const char *path, char **error);
/* moment: the values for the conditions of rules: prompt, turn, call, and tool, output, is_error of the last tool
 * of this turn. Return the reply, as a new object: blocks, the content of the message; slow_ms, after each delta;
 * delay_ms, before the first; or error, the text of a failed call. */
json_t *model_speak(const json_t *moment);
void model_direct(const char *text); /* run directives beside a reply */
void model_after_turn(void);         /* send the requests of @after@ */
void model_dialogs(json_t *kinds);   /* the kinds that the client can show; only the first call counts */
