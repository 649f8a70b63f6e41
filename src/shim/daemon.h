/* SPDX-License-Identifier: MIT
 *
 * The connection to the daemon and the one request that the shim makes for itself: plenum_attach with the SDK's argv
 * and environment. Source: DESIGN 3.2 and 9.1; plenum-protocol(7), plenum_attach.
 */
#pragma once

#include "base/buf.h"
#include "shim/options.h"
#include "wire/scan.h"

/* A connected socket, or -1 after a sentence on stderr that says which socket it was and what to do. *foreign: the
 * daemon runs as another user. */
int daemon_connect(bool *foreign);

/* Appends the plenum_attach line with its LF. To a daemon of another user no argv and no environment is sent: it would
 * refuse them, and there may be secrets in them; nor does the session end with us. False: it is too long or there is no
 * memory. */
bool daemon_attach_line(struct buf *b, const struct options *o, const char *request_id, bool foreign);

/* This process was started by plenumd itself, which found plenum-shim where it looked for `claude`. */
bool daemon_is_parent(void);
