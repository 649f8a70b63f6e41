/* SPDX-License-Identifier: MIT
 *
 * Prompts that wait for a turn. Several that wait together become one turn; a uuid that was seen before is acknowledged
 * and not run again (PROTOCOL 3).
 */
#pragma once

#include "fakeagent/agent.h"

void queue_add(struct agent *a, json_t *line);
/* Takes the lines of the next turn out of the queue, oldest first; a new array. */
json_t *queue_batch(struct agent *a);
bool queue_cancel(struct agent *a, const char *uuid);
json_t *queue_uuids(const struct agent *a);
