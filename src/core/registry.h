/* SPDX-License-Identifier: MIT
 *
 * The hooks, MCP servers and dialog kinds registered in a session, by owner (core/owner.h): their union for the child,
 * with callback ids of the daemon, and the limits of a session. Source: docs/contract.md 6.
 *
 * The child may call an id for as long as it has the table with it. So an entry that was sent and is not wanted any
 * more is retired, not freed: it has no owner, but still knows whether it guards. It is freed when the child has taken
 * a table without it. An entry that no child has ever taken is not proven; if the child refuses the table, it may be
 * why.
 */
#pragma once

#include "base/buf.h"
#include "core/carry.h"
#include "core/owner.h"

struct registry {
	const struct dialect_hooks *dialect; /* NULL: nothing can be registered */
	struct list owners, retired;
	struct hook *hooks; /* by id, with those of retired entries */
	size_t n_hooks;     /* without those */
	struct server_name *server_names;
	size_t n_servers;
	uint64_t counter;
	uint64_t version; /* counts changes relevant to the child */
	uint64_t sent;    /* the newest version sent to this child */
	uint64_t taken;   /* the newest version taken by a child */
};

void registry_init(struct registry *r, const struct dialect_hooks *dialect);
void registry_free(struct registry *r);
/* Make an owner without registrations. NULL without memory. */
struct owner *registry_add_owner(struct registry *r, struct session *s, struct loop *loop, struct attachment *holder,
								 uid_t uid, const char *name, void (*on_grace)(void *));
/* Return an owner of the same uid and name without a holder. */
struct owner *registry_absent_owner(struct registry *r, uid_t uid, const char *name);
void registry_drop_owner(struct registry *r, struct owner *o);
/* Move the hooks and servers of `from` to `to`, and free `from`. No request of the child may be open at `from`. */
void registry_merge(struct registry *r, struct owner *to, struct owner *from);
/* Read `hooks` of an initialize and keep them beside the present ones, until they are committed or cancelled. Return
 * NULL, or an error text (static): then nothing is kept. */
const char *registry_stage_hooks(struct registry *r, struct owner *o, struct span hooks);
/* Replace the owner's hooks by the staged ones, except for entries that both have. Cannot fail; no-op without any. */
void registry_commit_hooks(struct registry *r, struct owner *o);
void registry_cancel_hooks(struct registry *r, struct owner *o);
/* Both at once. On an error the owner is unchanged. */
const char *registry_set_hooks(struct registry *r, struct owner *o, struct span hooks);
/* Return the error code (plenum/protocol.h) of an error text of this header. */
const char *registry_code(const char *error);
/* Drop the entries that do not outlive their owner; true: some were dropped. */
bool registry_drop_loose(struct registry *r, struct owner *o);
/* Check `servers` and `dialogs`, arrays or absent, for the two functions below. Return NULL, or a static error text. */
const char *registry_check_names(const struct registry *r, const struct owner *o, struct span servers,
								 struct span dialogs);
/* The same for an object of servers that replaces all of the owner's (NULL: it has none). */
const char *registry_check_servers(const struct registry *r, const struct owner *o, struct span servers);
/* Take the name from absent owners; the caller has checked owners_of_server(). */
const char *registry_add_server(struct registry *r, struct owner *o, struct span name, struct span config, bool is_sdk);
void registry_drop_servers(struct registry *r, struct owner *o, bool sdk_too);
const char *registry_set_dialogs(struct owner *o, struct span kinds);

/* Return the hook of an id of the child; h->entry->owner is NULL if the entry is retired. */
struct hook *registry_hook(struct registry *r, struct span id);
/* The child was sent the present registry. */
void registry_was_sent(struct registry *r);
/* The child has taken this version. */
void registry_was_taken(struct registry *r, uint64_t version);
/* The child has refused the sent registry; alone: nothing else in the request may be why. Present owners get back the
 * entries that a child has taken, or, if that changes nothing, absent ones do. Calls lost() for each owner that loses
 * something. True: something changed. */
bool registry_was_refused(struct registry *r, bool alone, void (*lost)(void *arg, struct owner *o), void *arg);
/* The child is gone, and its table with it. */
void registry_child_gone(struct registry *r);
/* Return true if there is a guard that a child has taken, or left behind by its owner. */
bool registry_guards(const struct registry *r);
/* Return the owner of this server; an absent one only if no other has it. NULL: none. */
struct owner *registry_server(struct registry *r, struct span name);
/* Return the owner that keeps a client from registering this server: one with a holder other than `holder`, or an
 * absent one that can come back and has another uid or name. NULL: the name is free. client_name NULL: the client may
 * take over nothing of an absent owner. */
struct owner *registry_server_taken(struct registry *r, struct span name, const struct attachment *holder, uid_t uid,
									const char *client_name);
/* Return true if the owner has this server by a claim alone. */
bool registry_is_claimed(const struct registry *r, const struct owner *o, struct span name);
/* Append the union: {"Event":[...],...}; an array of SDK server names; an object of all servers' configurations. */
void registry_put_hooks(const struct registry *r, struct buf *b);
void registry_put_server_names(const struct registry *r, struct buf *b);
void registry_put_servers(const struct registry *r, struct buf *b);
bool registry_has_servers(const struct registry *r);
void registry_carry(struct carry *c, struct registry *r, struct session *s, struct loop *loop,
					void (*on_grace)(void *));
