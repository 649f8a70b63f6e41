/* SPDX-License-Identifier: MIT
 *
 * Lines of clients that wait for the start of their session's child. Owns client.starting and client.makes.
 */
#pragma once

#include "base/error.h"
#include "core/router.h"

/* The same, until the start of s has ended. makes: this client has made the session for the line. */
void starts_await(struct client *c, struct session *s, struct chunk line, bool makes);
void starts_leave(struct client *c); /* the client is gone: remove the session made by it if the start fails */
/* For a line that came again after such a wait (c->starting): return the started session. NULL: *code is NULL, and the
 * line waits on; or it is the reason, and a session made for the line is gone. */
struct session *starts_awaited(struct client *c, struct chunk line, bool *made, const char **code, struct error *error);
/* The start of a child has ended: serve the lines that wait for it. Remove a session that its maker has left, if the
 * start has failed. */
void starts_over(struct session *s);
