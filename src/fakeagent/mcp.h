/* SPDX-License-Identifier: MIT
 *
 * MCP servers that live in the client: the handshake and the calls travel as mcp_message requests. PROTOCOL 4.2.
 */
#pragma once

#include "fakeagent/tools.h"

void mcp_add(struct agent *a, const char *name);     /* begins the handshake; a known name is left alone */
void mcp_connect(struct agent *a, const char *name); /* the handshake again */
void mcp_add_all(struct agent *a, const json_t *names);
/* Of --mcp-config: a file or JSON; the servers of type "sdk" are taken. */
void mcp_configure(struct agent *a, const char *config);
void mcp_call(struct agent *a, const char *tool, json_t *input, const char *id, struct tool_output *o);
json_t *mcp_source(const char *tool); /* {"name":...,"source":"sdk"} of mcp__NAME__TOOL, or NULL */
