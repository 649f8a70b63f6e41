/* SPDX-License-Identifier: MIT
 *
 * The running turn, as far as the files below dialogue.c must know it: whether there is one, which prompts it answers,
 * whether it was aborted, which tools it was refused.
 */
#pragma once

#include "fakeagent/js.h"

enum phase_abort {
	PHASE_NONE,
	PHASE_INTERRUPT, /* a control request, or a refusal that says so */
	PHASE_URGENT,    /* a prompt with priority "now" */
	PHASE_SIGNAL,    /* SIGINT: the process ends after the turn */
};

void phase_begin(void);
void phase_end(void);
bool phase_running(void);
json_t *phase_uuids(void);              /* array: of the prompts; filled by dialogue.c */
json_t *phase_denials(void);            /* array: permission_denials; filled by permission.c */
void phase_abort(enum phase_abort why); /* the first counts, but for a signal */
enum phase_abort phase_aborted(void);
