/* SPDX-License-Identifier: MIT
 *
 * MCP servers in the client: handshake and calls are sent as mcp_message requests. protocol-facts 4.2.
 */
#pragma once

#include "fakeagent/agent.h"

/* The result of a tool call. */
struct tool_output {
	json_t *content; /* of the tool_result: text or blocks */
	json_t *detail;  /* tool_use_result of the user frame, or NULL */
	bool failed;
	bool aborted;
};

void toolserver_add(const char *name);      /* begins the handshake; no effect on a known name */
bool toolserver_connect(const char *name);  /* repeats the handshake; false: unknown name */
json_t *toolserver_replace(json_t *wanted); /* the servers; the answer to mcp_set_servers, new */
void toolserver_configure(json_t *configs); /* add those of type "sdk" */
json_t *toolserver_list(bool whole);        /* name and status; whole: in the form of mcp_status */
json_t *toolserver_tools(void);             /* mcp__SERVER__TOOL; new array */
/* tool: mcp__SERVER__TOOL */
void toolserver_call(const char *tool, json_t *input, const char *id, struct tool_output *o);
