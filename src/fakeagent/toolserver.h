/* SPDX-License-Identifier: MIT
 *
 * MCP servers in the client: handshake and calls are sent as mcp_message requests. protocol-facts 4.2.
 */
#pragma once

#include "fakeagent/agent.h"

bool toolserver_add(const char *name);         /* begins the handshake; false: the name is known, or NULL */
bool toolserver_connect(const char *name);     /* repeats the handshake; false: unknown name */
json_t *toolserver_replace(json_t *wanted);    /* the servers; the answer to mcp_set_servers, new */
json_t *toolserver_configure(json_t *configs); /* add those of type "sdk"; their names, new */
json_t *toolserver_list(bool whole);           /* name and status; whole: in the form of mcp_status */
json_t *toolserver_tools(void);                /* mcp__SERVER__TOOL; new array */
/* use: a tool_use block of mcp__SERVER__TOOL. Return its output, new: content, failed, aborted. */
json_t *toolserver_call(const json_t *use);
