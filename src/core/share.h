/* SPDX-License-Identifier: MIT
 *
 * The share of each uid: its sessions, connections, bytes and open requests. A share exists while anything is charged
 * to it. The shares of the daemon's uid and of root are counted and never limited.
 *
 * A member is one connection in the share of its uid; the charge of a request may outlive its connection, and then
 * counts for the uid alone. The owner embeds both structs. Bytes are those of unfinished lines, lines unread by the
 * client, and prompts and requests unread by a child. Source: docs/contract.md 15.
 */
#pragma once

#include "base/error.h"
#include "base/hash.h"
#include "base/list.h"
#include "wire/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum share_kind { SHARE_SESSIONS, SHARE_CLIENTS, SHARE_BYTES, SHARE_REQUESTS, SHARE_KINDS };

struct shares {
	struct share *by_uid;
	uid_t own;
	size_t max[SHARE_KINDS];
	uint64_t refused; /* refusals for an exceeded share */
};

struct share {
	UT_hash_handle hh;
	struct shares *all;
	uid_t uid;
	size_t held[SHARE_KINDS];
	struct list members;
};

/* Zero-initialized: in no share, and every call below does nothing. */
struct share_member {
	struct list node;
	struct share *share;
	size_t bytes, requests;
	bool urgent; /* has an open request admitted beyond the limits */
};

/* Zero-initialized: nothing is charged. */
struct share_request {
	struct share *share;
	struct share_member *member; /* NULL: closed */
	bool urgent;
};

#define SHARE_RESERVE_MAX ((size_t)32)

void shares_init(struct shares *all, uid_t own);
/* Set the limits; charges above a lower limit stay. */
void shares_limit(struct shares *all, const struct limits *l);
/* The sum over all uids. */
size_t shares_held(const struct shares *all, enum share_kind kind);
/* Return the number of places reserved for the daemon's uid and root: an eighth, 1 to SHARE_RESERVE_MAX. */
size_t share_reserve(size_t places);
bool share_is_limited(const struct shares *all, uid_t uid);
/* Return true if the uid may have n more. Else count the refusal; why names the limit, its key and a remedy. */
bool share_allows(struct shares *all, uid_t uid, enum share_kind kind, size_t more, struct error *why);
/* Charge n, 1 or more, regardless of the limit. NULL without memory. */
struct share *share_take(struct shares *all, uid_t uid, enum share_kind kind, size_t n);
void share_add(struct share *s, enum share_kind kind, size_t n); /* NULL: nothing is charged, here and below */
void share_give(struct share *s, enum share_kind kind, size_t n);

/* Add a connection of the uid. False without memory. */
bool share_join(struct share_member *m, struct shares *all, uid_t uid);
void share_leave(struct share_member *m);
/* Set the bytes held for the connection. False: its uid exceeds its share. */
bool share_hold(struct share_member *m, size_t bytes);
/* Return the member with the most bytes of a share that exceeds them; NULL: none with bytes, or not exceeded. */
struct share_member *share_heaviest(const struct share *s);

void share_begin(struct share_request *r, struct share_member *m, bool urgent);
void share_orphan(struct share_request *r); /* its member no longer waits */
void share_end(struct share_request *r);
