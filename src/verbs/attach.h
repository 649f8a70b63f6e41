/* SPDX-License-Identifier: MIT
 *
 * plenum_attach: finds or makes the session, gives the client its place in it, says from where on it reads. And the
 * part of it that plenum_register changes later. Belongs to verbs. Source: DESIGN 3.2, 9.2.
 */
#pragma once

#include "verbs/reply.h"

void attach_verb(struct request *q);
/* role, approve, tag, types, partial, echo, on_lag, name of the request, where given. False: the client was told. */
bool attach_apply(struct request *q, struct attachment *a);
/* Takes the label that the request gives the client, if it does. False: it is too long, the client was told. */
bool attach_name(struct request *q);
