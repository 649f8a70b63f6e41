/* SPDX-License-Identifier: MIT
 *
 * The scripted model: its next reply to the messages so far, by the rules of a scenario or by directives in the prompt.
 * Directives, `@name arguments@`, and scenarios are described by plenum-fakeagent(1); unknown names stay ordinary text.
 */
#pragma once

#include "fakeagent/speech.h"
#include "fakeagent/tool.h"

/* Load a scenario and set its model, rules and faults. False: *error has the reason. */
bool model_load(const char *path, char **error);
void model_speak(struct speech *s, const struct tool_moment *m); /* model_forget() it */
void model_forget(struct speech *s);
void model_direct(const char *text); /* run directives beside a reply */
void model_after_turn(void);         /* send the requests of @after@ */
void model_dialogs(json_t *kinds);   /* the kinds that the client can show; only the first call counts */
