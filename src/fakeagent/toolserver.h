/* SPDX-License-Identifier: MIT
 *
 * MCP servers in the client: the handshake and the calls travel as mcp_message requests. PROTOCOL 4.2.
 */
#pragma once

#include "fakeagent/js.h"

/* The outcome of a tool call. */
struct tool_output {
	json_t *content; /* of the tool_result: text or blocks */
	json_t *detail;  /* tool_use_result of the user frame, or NULL */
	bool failed;
	bool aborted;
};

void toolserver_add(const char *name);     /* begins the handshake; a known name is left alone */
bool toolserver_connect(const char *name); /* the handshake again; false: unknown name */
/* Makes the servers those of `wanted`; the names that came and went are appended to the two arrays. */
void toolserver_replace(const json_t *wanted, json_t *added, json_t *removed);
void toolserver_configure(const json_t *configs); /* adds those of type "sdk" */
json_t *toolserver_list(bool whole);              /* name and status; whole: as mcp_status has them */
json_t *toolserver_tools(void);                   /* mcp__SERVER__TOOL; new array */
void toolserver_call(const char *tool, json_t *input, const char *id, struct tool_output *o);
json_t *toolserver_source(const char *tool); /* {"name":...,"source":"sdk"} of mcp__NAME__TOOL, or NULL */
