/* SPDX-License-Identifier: MIT
 *
 * Tell the clients that wait at a socket of the service manager why the daemon does not start. Without that they see a
 * connection that is closed, and the manager starts the daemon again for each of them until it gives the socket up.
 */
#pragma once

#include <stdbool.h>

/* Wait up to this time for a client. Return true if there is one. */
bool excuse_await(int listener, int ms);
/* Send a connection an error and no more. False: it takes nothing. */
bool excuse_send(int fd, const char *code, const char *text);
/* Accept it, send it this error and close it; other users get nothing. Takes up to a second for a client that does not
 * leave. */
void excuse_client(int listener, const char *code, const char *text);
