/* SPDX-License-Identifier: MIT
 *
 * Requests of the client: one function each, one table. PROTOCOL 4.3, 4.4.
 */
#pragma once

#include "fakeagent/agent.h"

void control_take(struct agent *a, json_t *line);
void control_cancel(struct agent *a,
					json_t *line); /* a request of the client that is withdrawn: nothing is ever late */
