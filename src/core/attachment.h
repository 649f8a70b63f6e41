/* SPDX-License-Identifier: MIT
 *
 * A client comes to a session and leaves it. Owns the attachments of all sessions.
 */
#pragma once

#include "core/router.h"

struct attachment *attachment_new(struct client *c, struct session *s, bool observer, bool approve);
/* Let a new one have what another has; ephemeral: its session ends with it. False without memory. */
bool attachment_copy(struct attachment *a, const struct attachment *from, bool ephemeral);
/* Give the owner its place again and offer pending requests: after all members of the attachment are set. */
void attachment_ready(struct attachment *a);
void attachment_leave(struct client *c, const char *why);
void attachment_end_input(struct attachment *a); /* it can answer nothing any more */
void attachment_close_ended(struct client *c);   /* close a half-closed client if it waits for nothing any more */
/* Serialize or restore all of a session; its clients are there already. */
void attachment_carry(struct carry *c, struct session *s);
