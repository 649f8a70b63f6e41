/* SPDX-License-Identifier: MIT
 *
 * Lines of clients that run a tool without the model (`bash_command`, `mcp_call`), judged like a tool call before a
 * byte reaches the child. In this order: deny rules, guard hooks, the sender's own yes if it is an approver of this
 * tool, allow rules, the approvers. The approvers are asked by a can_use_tool made by the daemon: an ordinary pending
 * entry that has the client's line, with the daemon in the child's place. The line is written anew from the judged
 * input, so that nothing else runs.
 *
 * A guard cannot be asked about a bash_command, nor about an mcp_call of a child without check_permissions: those are
 * refused while a guard covers the tool. A child with check_permissions asks guards and approvers by itself, so its
 * mcp_call is passed on with that member, unless an approver sent it and no guard covers the tool. Source:
 * docs/contract.md 14.
 */
#pragma once

#include "dialect/dialect.h"

struct client;
struct pending;
struct session;

/* Judge a line or request of ACT_EXECUTE as the tool call that it is. The client drives the session. */
void execute_line(struct client *c, struct session *s, struct chunk line, const struct envelope *e);
extern const struct pending_events execute_events;
/* Return the client's open question under its own id. SPAN_NONE: any of its. NULL: none. */
struct pending *execute_open(struct session *s, const struct client *c, struct span id);
void execute_left(struct session *s, struct client *c); /* the client has left the session */
