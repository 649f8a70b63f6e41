/* SPDX-License-Identifier: MIT
 *
 * The connection to the daemon and the only request of the shim itself: plenum_attach with the SDK's argv and
 * environment. Source: docs/contract.md 3.2 and 9.1; plenum-protocol(7), plenum_attach.
 */
#pragma once

#include "base/buf.h"
#include "plenum/client.h"
#include "shim/options.h"
#include "wire/scan.h"

/* Return a connection, or NULL after a message on stderr with the path and a remedy. *foreign: the daemon runs as
 * another user. The shim uses the descriptor only: it passes on the beginning of a long line before its end has come.
 */
struct plenum *daemon_connect(bool *foreign);

/* Append the beginning of a request in the protocol of the program, with its first member: after it come the others,
 * each with a comma before it, and `}}` with a newline. verb: plenum_NAME, or with "" as first one of the CLI's. */
void daemon_begin_request(struct buf *b, const struct options *o, const char *request_id, const char *verb,
						  const char *first);

/* Append the plenum_attach line with its newline. A daemon of another user gets neither argv nor environment: it would
 * refuse them, and they may contain secrets; and the session does not end with the shim. False: too long, or no
 * memory. */
bool daemon_attach_line(struct buf *b, const struct options *o, const char *request_id, bool foreign);

/* Return PATH of the running daemon of this user, where it looks for programs; NULL: unknown, or no daemon. The caller
 * frees. */
char *daemon_path(void);
