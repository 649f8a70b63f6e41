/* SPDX-License-Identifier: MIT
 *
 * The request that replaces the MCP servers of a running child.
 */
#pragma once

#include "dialect/dialect.h"
#include "dialect/dialect_gate.h"

struct client;
struct session;

void servers_set(struct client *c, struct session *s, struct chunk line, const struct envelope *e,
				 const struct gate_row *row);
