/* SPDX-License-Identifier: MIT
 *
 * Handles: names that clients chose for things that the child keeps for one connection: a running process, a watched
 * path. Towards the child each begins with the number of its client, so that two clients may choose the same one. The
 * open ones are listed: the child sees one connection, and does not notice that a client has left.
 */
#pragma once

#include "base/list.h"
#include "core/call.h"
#include "core/carry.h"
#include "dialect/dialect.h"
#include "dialect/dialect_gate.h"
#include "wire/splice.h"

#define HANDLES_MAX 1024                /* open ones of a session */
#define HANDLES_NAME_MAX ((size_t)1024) /* bytes */
#define HANDLES_MARK_MAX 24

struct handle {
	struct list node;
	uint64_t client;  /* its number */
	uint64_t child;   /* of the session, that has it or will get it */
	const char *ends; /* the request that ends it (struct gate_row.what) */
	char *name;       /* as the child has it, a raw string */
};

struct handles {
	struct list order;
	size_t n;
};

void handles_init(struct handles *all);
void handles_free(struct handles *all);
void handles_child_gone(struct handles *all, uint64_t last); /* drop those of children up to this one */
/* Read the mark of a handle of the child, a raw string: set *client and return its length without the quote; 0: it has
 * none. */
size_t handles_read_mark(struct span name, uint64_t *client);
/* Add an open one of this child of the session: `own` is the client's, a raw string; ends: static. NULL without memory,
 * or if the child has it. */
struct handle *handles_add(struct handles *all, uint64_t client, uint64_t child, const char *ends, struct span own);
/* Return the open one of this name, as the child has it, of the oldest child; NULL: none. Handles that different
 * requests end have names of their own; ends NULL: any. */
struct handle *handles_find(struct handles *all, const char *ends, struct span name);
/* Return the one that this client names so, and that is ended by this request; NULL: none. */
struct handle *handles_find_own(struct handles *all, uint64_t client, const char *ends, struct span own);
struct handle *handles_of(struct handles *all, uint64_t client); /* any of this client's; NULL: none */
void handles_drop(struct handles *all, struct handle *h);
/* Return the handle that a request of this row names, a raw string; absent: none. */
struct span handles_named(const struct gate_row *row, const struct envelope *e);
struct handles_edit {
	char text[CALL_ID_MAX + 2]; /* it points into this */
	struct splice_edit edit;
};
/* Make the edit of a request that names a handle, or another request. False: it needs none. */
bool handles_edit(struct calls *calls, uint64_t client, const struct gate_row *row, const struct envelope *e,
				  struct handles_edit *out);
/* Drop the one that this request ends. */
void handles_ended(struct handles *all, uint64_t client, const struct gate_row *row, const struct envelope *e);
/* Drop the one that this request opened, if it is over or was refused. */
void handles_answered(struct handles *all, const struct call *call, bool succeeded);
void handles_carry(struct carry *c, struct handles *all, const struct dialect *d);
