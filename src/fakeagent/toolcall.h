/* SPDX-License-Identifier: MIT
 *
 * The tool calls of one reply: hooks, permission, execution, and the tool_results for the model.
 */
#pragma once

#include "fakeagent/scenario.h"

enum toolcall_end { TOOLCALL_DONE, TOOLCALL_STOPPED, TOOLCALL_DEFERRED }; /* the later two end the turn, by hooks */

/* Runs the tool_use blocks; the last tool goes into m. *deferred: of TOOLCALL_DEFERRED, new. */
enum toolcall_end toolcall_run(const json_t *blocks, struct scenario_moment *m, json_t **deferred);
