/* SPDX-License-Identifier: MIT
 *
 * A client comes to a session and leaves it. Owns the attachments of all sessions.
 */
#pragma once

#include "core/router.h"

struct attachment *attachment_new(struct client *c, struct session *s, bool observer, bool approve);
/* Let a new one have what another has; ephemeral: its session ends with it. False without memory. */
bool attachment_copy(struct attachment *a, const struct attachment *from, bool ephemeral);

/* The approvals that a client may give. */
struct approval {
	bool approve;
	bool asked;         /* by the client; else the rest is unchanged */
	bool by_tool;       /* calls of these tools only */
	struct names tools; /* by_tool */
};

/* Change what its client has asked for. Takes the approval over. */
void attachment_change(struct attachment *a, bool observer, enum lag_policy on_lag, struct approval *approval);
/* For a program that stands in for the CLI; deny_asks counts only with ephemeral. */
void attachment_stand_in(struct attachment *a, bool ephemeral, bool deny_asks, bool wants_stderr);
/* Give the owner its place again and offer pending requests: after all members of the attachment are set. */
void attachment_ready(struct attachment *a);
void attachment_leave(struct client *c, const char *why);
void attachment_end_input(struct attachment *a); /* it can answer nothing any more */
void attachment_close_ended(struct client *c);   /* close a half-closed client if it waits for nothing any more */
/* Its session is being removed: detach it, and close a client that ends with the session. */
void attachment_end(struct attachment *a, const char *why);
/* Serialize or restore all of a session; its clients are there already. */
void attachment_carry(struct carry *c, struct session *s);
