/* SPDX-License-Identifier: MIT
 *
 * The running turn, as needed by the files before dialogue.c: whether one is running, its prompts, its abort, its
 * refused tools.
 */
#pragma once

#include "fakeagent/js.h"

enum phase_abort {
	PHASE_NONE,
	PHASE_INTERRUPT, /* a control request, or a refusal with interrupt */
	PHASE_URGENT,    /* a prompt with priority "now" */
	PHASE_SIGNAL,    /* SIGINT: the process ends after the turn */
};

void phase_begin(void);
void phase_end(void);
bool phase_running(void);
json_t *phase_uuids(void);              /* array: the prompts; filled by dialogue.c */
json_t *phase_denials(void);            /* array: permission_denials; filled by permission.c */
void phase_abort(enum phase_abort why); /* the first reason counts, except that a signal replaces it */
enum phase_abort phase_aborted(void);
