/* SPDX-License-Identifier: MIT
 *
 * The whole of sessions and clients: makes it, frees it, and serializes it for an upgrade.
 */
#pragma once

#include "core/router.h"

struct router *core_new(struct loop *loop, struct children *children, struct settings *settings,
						const struct router_events *events, void *server);
void core_free(struct router *r);
/* Save everything, or restore it into an empty router. */
void core_carry(struct carry *c, struct router *r);
/* After a restore that cannot fail any more: begin to read clients and children. */
void core_resume(struct router *r);
