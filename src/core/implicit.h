/* SPDX-License-Identifier: MIT
 *
 * The attachment for a line of a client without plenum_attach: to the session that it names, which is made if it is not
 * there.
 */
#pragma once

#include "core/router.h"

/* Make the attachment for a line without plenum_attach. NULL: it failed and the client was notified; or the line comes
 * again when the session of that name is removed. */
struct attachment *implicit_attach(struct router *r, struct client *c, struct span session, struct span request_id,
								   struct chunk line);
