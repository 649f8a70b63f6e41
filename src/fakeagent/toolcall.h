/* SPDX-License-Identifier: MIT
 *
 * The tool calls of one reply: hooks, permission, execution, and the tool_results for the model.
 */
#pragma once

#include "fakeagent/scenario.h"

enum toolcall_end { TOOLCALL_DONE, TOOLCALL_STOPPED, TOOLCALL_DEFERRED }; /* the last two end the turn, by hooks */

/* Run the tool_use blocks; m gets the last tool. *deferred: of TOOLCALL_DEFERRED, new. */
enum toolcall_end toolcall_run(const json_t *blocks, struct scenario_moment *m, json_t **deferred);
