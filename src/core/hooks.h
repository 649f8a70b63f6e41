/* SPDX-License-Identifier: MIT
 *
 * Sends the child's hook callbacks and MCP messages to their owners. An absent or silent owner never lets a guard fail
 * open (contract 6, protocol-facts 4.4, 5).
 */
#pragma once

#include "dialect/dialect.h"

struct owner;
struct pending;
struct session;

void hooks_call(struct session *s, struct chunk line, const struct envelope *e);
void hooks_mcp(struct session *s, struct chunk line, const struct envelope *e);
/* Answer a callback without a reachable client: refuse if it guards, or is unknown. */
void hooks_refuse(struct session *s, struct span id, struct span callback, const char *why);
extern const struct pending_events hooks_events;
/* The client of this owner has left: answer what it was asked. */
void hooks_owner_gone(struct session *s, const struct owner *o);
