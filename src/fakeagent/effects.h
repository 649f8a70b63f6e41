/* SPDX-License-Identifier: MIT
 *
 * What each directive does.
 */
#pragma once

#include "fakeagent/directive.h"
#include "fakeagent/model.h"

void effects_run(struct agent *a, struct turn *t, struct reply *r, const struct directive *d);
void effects_noise(long kib);                /* on stderr, without LF at the end */
void effects_lines(struct agent *a, long n); /* n stream events */
void effects_grandchild(void);               /* sleeps in its own session, holding our stdout and stderr */
