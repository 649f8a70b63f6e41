/* SPDX-License-Identifier: MIT
 *
 * Directives in a text, `@name arguments@`, that make the scripted model do something. plenum-fakeagent(1) has the
 * list. Unknown names stay ordinary text.
 */
#pragma once

#include "fakeagent/speech.h"

void directive_run_all(struct speech *s, const char *text, size_t n);
void directive_after_turn(void);       /* starts what @after@ asked for */
void directive_dialogs(json_t *kinds); /* those that the client can show; the first call counts */
