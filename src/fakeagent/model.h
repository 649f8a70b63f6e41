/* SPDX-License-Identifier: MIT
 *
 * The scripted model: its next reply to the messages so far, by the scenario or by directives in the prompt.
 * Directives, `@name arguments@`, are listed in plenum-fakeagent(1); unknown names stay ordinary text.
 */
#pragma once

#include "fakeagent/scenario.h"
#include "fakeagent/speech.h"

void model_speak(struct speech *s, const struct scenario_moment *m); /* model_forget() it */
void model_forget(struct speech *s);
void model_direct(const char *text); /* run directives beside a reply */
void model_after_turn(void);         /* send the requests of @after@ */
void model_dialogs(json_t *kinds);   /* the kinds that the client can show; only the first call counts */
