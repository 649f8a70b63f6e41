/* SPDX-License-Identifier: MIT
 *
 * The child's initialize belongs to the daemon: the union of all registrations, under the daemon's callback ids.
 * Decides when it is sent again, which clients wait for its answer, and which part of the answer is kept (contract 6,
 * protocol-facts 4.4). Owns session.handshake, and the counts of initialize requests of a client.
 */
#pragma once

#include "core/router.h"

#define HANDSHAKE_REFUSED_TEXT                                                                                         \
	"your initialize was refused, and with it your hooks, MCP servers or permission callback: nothing of yours runs "  \
	"without them (send an initialize that succeeds first)"
/* A client's initialize, in two steps. Register its hooks, servers and dialogs: all of them, or nothing. False: the
 * client was notified. */
bool handshake_register(struct client *c, struct session *s, const struct envelope *e);
/* Return true if a child takes some of it only with its first initialize. */
bool handshake_is_for_first(const struct session *s, const struct envelope *e);
/* Answer it, now or when the child has. */
void handshake_initialize(struct client *c, struct session *s, struct chunk line, const struct envelope *e);
void handshake_answered(struct session *s, struct call *call, struct chunk line, const struct envelope *e);
void handshake_unread(struct session *s, struct call *call, const char *code, const char *text);
/* ends: the session ends with the child. */
void handshake_child_gone(struct session *s, const char *text, bool ends);
void handshake_started(struct session *s); /* a child was started: send its first initialize, if any */
void handshake_before_prompt(struct session *s);
void handshake_resend(struct session *s);  /* if the child lacks the newest registry, and can take it now */
void handshake_restart(struct session *s); /* if the child can take it only by a restart, and is idle */
bool handshake_begin(struct session *s);   /* before all else of a session; false without memory */
void handshake_free(struct session *s);
void handshake_move(struct session *to, struct session *from); /* with the child; neither has a registration yet */
/* Return true if the client waits for the answer to an initialize: to this one, if an id is given. */
bool handshake_waits(const struct session *s, const struct client *c, struct span id);
/* Note a client's initialize before any check: its prompts wait for the success if it has hooks, servers or a
 * permission callback. Return true if it has. */
bool handshake_arrives(struct client *c, struct span request);
/* The same for a line without valid JSON as a whole: text is the available part. */
bool handshake_arrives_broken(struct client *c, const char *text, size_t n);
/* After such a line was served: if it was refused, a shim is notified at once, and ends. */
void handshake_served(struct client *c);
/* Return true if the newest initialize that the client's prompts need was refused, and no other has succeeded. */
bool handshake_refused(const struct client *c);
/* Return true if it is unknown whether the client's hooks apply: its prompts wait. */
bool handshake_holds(const struct session *s, const struct client *c);
/* Return the version of the registry that has hooks of this client not yet taken by a child; 0: there are none. */
uint64_t handshake_needs(const struct session *s, const struct client *c);
/* Return true if this queued prompt waits for its client's hooks. They may outlast the client's role as their holder: a
 * client that has ended its input, or observes now, left them behind. */
bool handshake_holds_prompt(const struct session *s, const struct prompt *p);
/* Return true if a line of the client must not run, by either; the client was notified. id: the request's, or absent.
 */
bool handshake_blocks(struct client *c, struct span id);
bool handshake_asks(const struct session *s);       /* the first client's initialize has members that are not empty */
bool handshake_is_current(const struct session *s); /* the child has taken the newest registry */
void handshake_made_current(struct session *s);     /* the child gets the change by another request */
void handshake_left(struct session *s, struct client *c);
void handshake_carry(struct carry *c, struct session *s);
bool handshake_is_answered(const struct session *s); /* by this child, not by one before it */
struct span handshake_kept(const struct session *s); /* the child's answer to initialize, or absent */
