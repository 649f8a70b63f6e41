/* SPDX-License-Identifier: MIT
 *
 * The tool calls of one reply: hooks, permission, execution, and the tool_results for the model. A real shell and real
 * files, servers of the client through mcp_message, the others canned.
 */
#pragma once

#include "fakeagent/js.h"

/* Run the tool_use blocks. The moment of the turn (model.h) gets tool, output and is_error of the last one. Return, as
 * a new object, the end of the turn, if it is one: stopped, by a hook; deferred, the deferred_tool_use. */
json_t *tool_run(const json_t *blocks, json_t *moment);
