/* SPDX-License-Identifier: MIT
 *
 * Facts of a turn, read from lines of the child: the result, and the tool calls in messages. Source: docs/
 * protocol-facts.md 2.3, 2.4.
 */
#pragma once

#include "dialect/dialect_turn.h"

/* Read a `result` line. */
struct turn_result turn_read_result(struct span line);

/* Iterate over the tool calls and the results of tools in *message: start with *at = 0, and keep both as they are left.
 * *id: the call's, a raw string; *name: of a call, a raw string; absent: this is a result. */
bool turn_next_tool(struct span *message, size_t *at, struct span *id, struct span *name);
