/* SPDX-License-Identifier: MIT
 *
 * The scripted model: its next reply to the messages so far, by the scenario or by directives in the prompt.
 */
#pragma once

#include "fakeagent/scenario.h"
#include "fakeagent/speech.h"

void model_speak(struct speech *s, const struct scenario_moment *m);
