/* SPDX-License-Identifier: MIT
 *
 * The facts in the beginning of a JSON-RPC line, also if the rest is broken or missing.
 */
#pragma once

#include "dialect/dialect.h"

struct jsonrpc_head {
	bool type;                            /* a member `type`: a line of the control frame */
	bool version;                         /* a member `jsonrpc` */
	bool answer;                          /* a member `result` or `error` */
	bool method_seen, agrees, introduces; /* agrees: `params` has protocolVersion; introduces: it has clientInfo */
	struct span method, id;               /* absent if they are cut off */
};

/* text: p[0..n) of a line. Linear time. */
void jsonrpc_head_scan(struct span text, struct jsonrpc_head *h);
/* Return true for a line of JSON-RPC, well-formed or not (struct dialect.recognizes). */
bool jsonrpc_head_is_frame(struct span line);
/* Return true if a connection that begins with this line has the member `jsonrpc` in its lines (versioned), or has not.
 * The handshake decides where the member may be sent or not: protocolVersion is of ACP alone. */
bool jsonrpc_head_opens(struct span line, bool versioned);
/* As struct dialect.read_head. tool: a text in the methods that ask for a tool. */
void jsonrpc_head_read(struct chunk text, const char *tool, struct head *head);
