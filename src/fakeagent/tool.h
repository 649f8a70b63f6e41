/* SPDX-License-Identifier: MIT
 *
 * The tool calls of one reply: hooks, permission, execution, and the tool_results for the model. A real shell and real
 * files, servers of the client through mcp_message, the others canned.
 */
#pragma once

#include "fakeagent/agent.h"

/* The state of a turn that conditions of a scenario are compared with. */
struct tool_moment {
	const char *prompt;
	char *tool, *output; /* of the last tool of this turn, or NULL; owned */
	bool failed;         /* that tool */
	long turn, call;     /* from 1 */
};

enum tool_end { TOOL_DONE, TOOL_STOPPED, TOOL_DEFERRED }; /* the last two end the turn, by hooks */

/* Run the tool_use blocks; m gets the last tool. *deferred: of TOOL_DEFERRED, new. */
enum tool_end tool_run(const json_t *blocks, struct tool_moment *m, json_t **deferred);
