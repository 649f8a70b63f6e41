/* SPDX-License-Identifier: MIT
 *
 * The tools: a shell and files for real, servers of the client through mcp_message, the rest canned.
 */
#pragma once

#include "fakeagent/turn.h"

struct tool_output {
	json_t *content; /* of the tool_result: text or blocks */
	json_t *detail;  /* tool_use_result of the user frame, or NULL */
	bool failed;
	bool aborted;
};

void tools_run(struct agent *a, const char *name, json_t *input, const char *id, struct tool_output *o);
void tool_output_free(struct tool_output *o);
