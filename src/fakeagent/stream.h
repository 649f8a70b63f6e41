/* SPDX-License-Identifier: MIT
 *
 * A reply of the model on stdout: stream events where they were asked for, and one assistant line a content block.
 */
#pragma once

#include "fakeagent/model.h"

/* False: the turn was aborted on the way; what was said so far is out. */
bool stream_reply(struct agent *a, struct turn *t, struct reply *r, const char *stop_reason);
/* The events that end a message whose stream was cut off. */
void stream_close(struct agent *a, struct turn *t);
/* The reply to a call that failed. */
void stream_error(struct agent *a, struct turn *t, const char *text);
