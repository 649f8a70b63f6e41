/* SPDX-License-Identifier: MIT */
#include "fakeagent/phase.h"

static bool running;
static enum phase_abort aborted;
static json_t *uuids, *denials;

void phase_begin(void) {
	running = true;
	aborted = PHASE_NONE;
	js_set(&uuids, js_need(json_array()));
	js_set(&denials, js_need(json_array()));
}

void phase_end(void) {
	running = false;
	aborted = PHASE_NONE;
}

bool phase_running(void) {
	return running;
}

json_t *phase_uuids(void) {
	return uuids;
}

json_t *phase_denials(void) {
	return denials;
}

void phase_abort(enum phase_abort why) {
	if (!aborted || why == PHASE_SIGNAL) aborted = why;
}

enum phase_abort phase_aborted(void) {
	return aborted;
}
