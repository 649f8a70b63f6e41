/* SPDX-License-Identifier: MIT
 *
 * The tools: a shell and files for real, servers of the client through mcp_message, the rest canned.
 */
#pragma once

#include "fakeagent/toolserver.h"

void toolbox_run(const char *name, json_t *input, const char *id, struct tool_output *o);
void toolbox_free(struct tool_output *o);
