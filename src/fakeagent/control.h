/* SPDX-License-Identifier: MIT
 *
 * Requests of the client: one function for each, one table. protocol-facts 4.3, 4.4.
 */
#pragma once

#include "fakeagent/js.h"

void control_take(const json_t *line);
