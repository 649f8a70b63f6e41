/* SPDX-License-Identifier: MIT
 *
 * A reply of the model (model.h), printed as deltas and one assistant line per block. Stream events are printed if
 * requested.
 */
#pragma once

#include "fakeagent/js.h"

/* The model is called. early: a turn begins, before the acknowledgement of the prompt. */
void speech_request(bool early);
/* Return the stop_reason, set after the whole message. NULL: the turn was aborted after a part was printed. */
const char *speech_print(const json_t *reply);
void speech_cut(void); /* end an aborted message, if there is one */
void speech_error(const char *text);
