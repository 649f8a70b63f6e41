/* SPDX-License-Identifier: MIT
 *
 * The class of a peer and its rights: the daemon's own, a driver, a process of an agent, or unknown. Everything
 * uncertain counts as untrusted. Borrows router and client; no errors. Source: docs/ARCHITECTURE.md, proc(5), unix(7),
 * pidfd_open(2).
 */
#pragma once

#include "core/router.h"

/* The rights of a peer's line; a lower value means more. */
enum trust {
	TRUST_OWN,      /* the daemon's uid or root, may approve, certainly no process of an agent */
	TRUST_DRIVER,   /* another allowed uid, or excluded by approve_uids or approve_groups, or of an origin invisible to
					   the daemon */
	TRUST_AGENT,    /* a process of any session's agent, or one that ended before its check */
	TRUST_OBSERVER, /* an observer's attachment */
};

/* A connection was accepted: check the origin of its process, before that ends and passes the connection on. Log once
 * why such peers are not trusted. */
void trust_meet(struct router *r, struct client *c);
/* Return true while the first check of the origin waits for the environment of the process: the client's lines wait,
 * too, and are released at its end. */
bool trust_is_asked(struct router *r, struct client *c);
void trust_ask_no_more(struct router *r); /* at the end of the daemon */
/* Return the origin; check it again if it was not visible before. */
enum origin trust_look(struct router *r, struct client *c);
/* Return true if the peer certainly does not descend from an agent. Checked at each call; a peer that once descended
 * from an agent stays one. */
bool trust_is_free(struct router *r, struct client *c);
/* Return true if the peer is free and a configured approver; without configured ones, if it has the daemon's uid or is
 * root. */
bool trust_may_approve(struct router *r, struct client *c);
/* Return the class of a connection, independent of its role: TRUST_OWN, TRUST_DRIVER or TRUST_AGENT. */
enum trust trust_of(struct router *r, struct client *c);
/* Return the class of an attachment: TRUST_OBSERVER for an observer, else trust_of(). */
enum trust trust_in(struct router *r, const struct attachment *a);
/* "own", "driver", "agent", "observer". */
const char *trust_name(enum trust t);
/* Return why trust_of() is less than TRUST_OWN, with a remedy; else NULL. Static text: "object: cause (hint)", to
 * follow a colon. */
const char *trust_why(struct router *r, struct client *c);
/* Return the session whose agent started this peer; NULL if the peer is not a process of an agent, or the session is
 * unknown. */
struct session *trust_session(struct router *r, struct client *c);

#define TRUST_PRIVATE_TEXT "session %.255s is private to the user who runs the daemon"
#define TRUST_AGENT_TEXT                                                                                               \
	"an agent started this program: it may act in that agent's own session only (run it from a shell of your own)"
/* Return true if the client may know nothing of the session: it is private and the client has another uid, or the
 * client is an agent's process and the session is neither that agent's nor made by it. */
bool trust_is_closed_to(const struct session *s, struct client *c);
/* The sessions visible to a client, for a walk over all of them: its process is checked once. */
struct trust_view {
	bool ours, agent;
	const struct session *home;
};
struct trust_view trust_view(struct router *r, struct client *c);
bool trust_view_has(const struct trust_view *v, const struct session *s);
/* Return the session in which an agent's process may act: its agent's. NULL: none, removed, or agent_peers = none. */
struct session *trust_home(struct router *r, struct client *c);
/* Return true if the client may end the child of the session, or the session: certainly no process of an agent, of the
 * daemon's uid or root, or of the uid that made the session. */
bool trust_may_stop(const struct session *s, struct client *c);
