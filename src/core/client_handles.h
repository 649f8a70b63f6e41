/* SPDX-License-Identifier: MIT
 *
 * Requests and lines about handles of one client (core/handles.h), or about one of its requests: they are for it alone.
 * To the child all clients are one connection.
 */
#pragma once

#include "core/router.h"
#include "dialect/dialect_gate.h"

/* Pass on a request that opens a handle. */
void client_handles_open(struct client *c, struct session *s, struct chunk line, const struct envelope *e,
						 const struct gate_row *row);
void client_handles_leave(struct session *s, const struct client *c); /* end what it has left open */
/* Send a line of the child that is for one client to that one. False: it is for all. */
bool client_handles_line(struct session *s, struct chunk line, const struct envelope *e);
/* Ask the client whose request this ask is about. False: it is about none. */
bool client_handles_ask(struct session *s, struct chunk line, const struct envelope *e);
