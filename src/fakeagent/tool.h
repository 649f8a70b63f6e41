/* SPDX-License-Identifier: MIT
 *
 * The tool calls of one reply: hooks, permission, execution, and the tool_results for the model. A real shell and real
 * files, servers of the client through mcp_message, the others canned.
 */
#pragma once

#include "fakeagent/scenario.h"

enum tool_end { TOOL_DONE, TOOL_STOPPED, TOOL_DEFERRED }; /* the last two end the turn, by hooks */

/* Run the tool_use blocks; m gets the last tool. *deferred: of TOOL_DEFERRED, new. */
enum tool_end tool_run(const json_t *blocks, struct scenario_moment *m, json_t **deferred);
