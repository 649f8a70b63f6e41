/* SPDX-License-Identifier: MIT
 *
 * The tools: a real shell and real files, servers of the client through mcp_message, the others canned.
 */
#pragma once

#include "fakeagent/toolserver.h"

void toolbox_run(const char *name, json_t *input, const char *id, struct tool_output *o);
void toolbox_free(struct tool_output *o);
