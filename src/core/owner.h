/* SPDX-License-Identifier: MIT
 *
 * An owner: the registration of one client in a session, with hooks, MCP servers and kinds of dialogs. It outlives the
 * connection if it has a guard, and waits there for the same uid and name to come back. Holders are attachments. The
 * registry makes, changes and frees it (core/registry.h); the functions here need no registry.
 * Source: docs/contract.md 6.
 */
#pragma once

#include "base/hash.h"
#include "base/list.h"
#include "base/names.h"
#include "io/loop.h"
#include "wire/scan.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define HOOK_ID_MAX 32

struct attachment;
struct owner;
struct session;

/* One callback that the child may call. */
struct hook {
	UT_hash_handle hh; /* by id */
	struct list node;  /* in its entry */
	char id[HOOK_ID_MAX];
	char *callback; /* the owner's own id, raw JSON */
	struct hook_entry *entry;
};

/* One matcher's entry of one event. */
struct hook_entry {
	struct list node; /* in its owner */
	struct list hooks;
	struct owner *owner;
	char *event;     /* raw JSON */
	char *members;   /* raw JSON members except hookCallbackIds: `"matcher":"Bash","timeout":5`, or "" */
	int64_t timeout; /* ms */
	bool guard, drop_when_gone;
	uint64_t born, died;     /* the first version of the registry with it, and the first without it */
	bool proven;             /* a child has taken it */
	struct hook_entry *twin; /* staged: the equal present entry */
	struct owner *from;      /* retired: its former owner; NULL: freed */
};

struct mcp_server {
	struct list node; /* in its owner */
	struct list same; /* among the servers of this name */
	struct owner *owner;
	struct server_name *known;
	char *name;   /* raw JSON, as in the table of names */
	char *config; /* raw JSON; NULL: an SDK server */
	bool is_sdk;
	bool claimed; /* taken over by its holder by uid and name, and not registered by it */
};

struct owner {
	struct list node;
	struct session *session;
	struct attachment *holder; /* NULL: gone */
	uid_t uid;
	char *name; /* may be NULL: no client can come back to it */
	struct list entries, servers;
	struct list staged;   /* entries of a pending registration */
	bool staging;         /* staged replaces the hooks if the registration succeeds */
	struct names dialogs; /* raw JSON strings */
	struct loop_timer grace;
	bool grace_over;
};

bool owner_guards(const struct owner *o);
bool owner_unproven(const struct owner *o); /* it has hooks that no child has taken yet */
bool owner_empty(const struct owner *o);    /* it has neither hooks nor servers */
bool owner_takes_dialog(const struct owner *o, struct span kind);
/* The holder has taken over an absent owner: its servers count as claimed until it registers them. */
void owner_claimed(struct owner *o);
/* Make each staged entry the twin of an equal present one, which has one twin at most. False without memory. */
bool owner_find_twins(struct owner *o);
