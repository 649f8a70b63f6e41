/* SPDX-License-Identifier: MIT
 *
 * The registrations of a client in a session, its hooks and MCP servers: who may register, which name is free, and what
 * stays when the client leaves and comes back (contract 6). Owns attachment.owner and the timers of absent owners.
 */
#pragma once

#include "core/router.h"

/* Return true if the attachment may register hooks and servers, and take over those of an absent owner with its uid and
 * name. */
bool owners_may_register(const struct attachment *a);
#define OWNERS_SERVERS_TEXT "MCP servers are registered by drivers of the daemon's own user: "
const char *owners_why_not(const struct attachment *a); /* static text */
/* Return the owner, present or absent, that keeps the attachment from registering this server; NULL: none. name: raw
 * JSON. `a` need not be in the session yet. */
struct owner *owners_of_server(struct session *s, const struct attachment *a, const char *as, struct span name);
/* Return the name by which the client may take over an absent owner's registration; NULL: none. Checks the client's
 * process. */
const char *owners_takes_up_as(const struct attachment *a);
void owners_refuse_server(struct client *c, struct span id, struct span name, const struct owner *o);
/* Register a server named in the attach (the shim's argv). It must not be taken. Return NULL, or an error text. */
const char *owners_add_server(struct attachment *a, const char *name);
/* Return its registration; make it if needed, with that of an absent owner of its uid and name. NULL without memory. */
struct owner *owners_get(struct attachment *a);
void owners_leave(struct attachment *a);
void owners_return(struct attachment *a); /* take over the registrations of its absent owners, if permitted */
void owners_grace_timer(void *owner);     /* timeout: it did not come back */
/* Restore saved guards; their owners count as gone from now on. False: the text is damaged, and every tool is refused.
 */
bool owners_restore_guards(struct session *s, const char *guards);
/* Go on without the unreadable guards. False: none were lost. */
bool owners_clear_lost(struct session *s, const struct client *by);
void owners_forget(struct session *s); /* the session is being removed: notify no client of owners */
void owners_carry(struct carry *c, struct session *s);
