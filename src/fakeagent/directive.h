/* SPDX-License-Identifier: MIT
 *
 * Directives in a text, `@name arguments@`, control the scripted model. plenum-fakeagent(1) lists them. Unknown names
 * stay ordinary text.
 */
#pragma once

#include "fakeagent/speech.h"

void directive_run_all(struct speech *s, const char *text, size_t n);
void directive_after_turn(void);       /* send the requests of @after@ */
void directive_dialogs(json_t *kinds); /* the kinds that the client can show; only the first call counts */
