/* SPDX-License-Identifier: MIT
 *
 * plenum_attach: finds or makes the session, attaches the client, and sets the start of its reading. Also the part that
 * plenum_register changes later. Belongs to verbs. Source: docs/contract.md 3.2, 9.2.
 */
#pragma once

#include "verbs/reply.h"

void attach_verb(struct request *q);
/* Apply role, approve, tag, types, partial, echo, quiet, on_lag and name of the request, if given. fresh: to a new
 * attachment. False: an error was sent, and nothing has changed. */
bool attach_apply(struct request *q, struct attachment *a, bool fresh);
/* Apply the client's label, if given. False: it is too long, and an error was sent. */
bool attach_name(struct request *q);
