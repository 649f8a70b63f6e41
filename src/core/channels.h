/* SPDX-License-Identifier: MIT
 *
 * Several sessions over one connection, told apart by their conversations. The first one is that of the client itself;
 * for each other one it has a channel (core/client.h), which is a client like any other to the rest of core. Here is
 * decided whose a line of the connection is, and when a channel begins and ends.
 */
#pragma once

#include "core/router.h"

/* Return the client of this connection, itself or one of its channels, that the line is for. Not NULL. */
struct client *channels_of(struct client *c, const struct message *m);
/* Return the client of the same connection that has an open request under this id; NULL: none. */
struct client *channels_with(struct client *c, struct span id);
/* The request of c begins or takes up another conversation than that of its session: serve it in a channel. */
void channels_open(struct client *c, struct chunk line, const struct envelope *e);
void channels_gone(struct client *carrier); /* a channel of it */
