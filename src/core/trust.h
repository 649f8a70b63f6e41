/* SPDX-License-Identifier: MIT
 *
 * Who a peer is and what it may do: the daemon's own, a driver, a process of an agent, or unknown. Everything that is
 * not certain counts as untrusted. Borrows router and client; no errors. Source: docs/ARCHITECTURE.md, proc(5),
 * unix(7), pidfd_open(2).
 */
#pragma once

#include "core/router.h"

/* What a line of a peer may do. The lower the value, the more. */
enum trust {
	TRUST_OWN,      /* the daemon's uid or root, may approve, certainly no agent's process */
	TRUST_DRIVER,   /* of another allowed uid, or excluded by approve_uids or approve_groups, or of an origin that the
					 * daemon has no means to see */
	TRUST_AGENT,    /* a process of any session's agent, or one that ended before that could be seen */
	TRUST_OBSERVER, /* an observer's attachment */
};

/* Return true if the peer has the daemon's uid or is root. */
bool trust_is_ours(const struct client *c);
/* A connection was accepted: look where its process comes from, before that ends and leaves the connection to another
 * one. Log once why peers like it are not trusted. */
void trust_meet(struct router *r, struct client *c);
/* What is known of its origin; looked at anew where that could not be seen. */
enum origin trust_look(struct router *r, struct client *c);
/* Return true if the peer certainly does not descend from an agent. Looked at anew at each call; a peer that once
 * descended from an agent stays one. */
bool trust_is_free(struct router *r, struct client *c);
/* Return true if the peer is free and is among the configured approvers; where none are configured: has the daemon's
 * uid or is root. */
bool trust_may_approve(struct router *r, struct client *c);
/* The class of a connection, whatever its role: TRUST_OWN, TRUST_DRIVER or TRUST_AGENT. */
enum trust trust_of(struct router *r, struct client *c);
/* The class of an attachment: TRUST_OBSERVER for an observer, else trust_of(). */
enum trust trust_in(struct router *r, const struct attachment *a);
/* "own", "driver", "agent", "observer". */
const char *trust_name(enum trust t);
/* Why trust_of() is less than TRUST_OWN, and what to do about it; NULL if it is not. Static text: "object: cause
 * (hint)", to stand behind a colon. */
const char *trust_why(struct router *r, struct client *c);
/* The session whose agent started this peer; NULL if the peer is no agent's process, or of none that is known. */
struct session *trust_session(struct router *r, struct client *c);
