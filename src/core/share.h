/* SPDX-License-Identifier: MIT
 *
 * The share of each uid: the sessions, connections, bytes and open requests that the daemon keeps for it. A share
 * exists while anything is charged to it. The shares of the daemon's uid and of root are counted and never limited.
 *
 * A member is one connection in the share of its uid; a charge of a request may outlive its connection, and then
 * counts for the uid alone. The owner embeds both structs. Bytes are those of unfinished lines, of lines that the
 * client has not read, and of prompts and requests that a child has not read. Source: DESIGN 15.
 */
#pragma once

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
	uint64_t refused; /* times that a share was exceeded */
};

struct share {
	UT_hash_handle hh;
	struct shares *all;
	uid_t uid;
	size_t held[SHARE_KINDS];
	struct list members;
};

/* Zero-initialized: of no share, and every call below does nothing. */
struct share_member {
	struct list node;
	struct share *share;
	size_t bytes, requests;
	bool urgent; /* has a request open that was let in beyond the limits */
};

/* Zero-initialized: nothing is charged. */
struct share_request {
	struct share *share;
	struct share_member *member; /* NULL: it is gone */
	bool urgent;
};

#define SHARE_TEXT_MAX 160
#define SHARE_RESERVE_MAX ((size_t)32)

void shares_init(struct shares *all, uid_t own);
/* The limits from now on; what is charged beyond a lower one stays. */
void shares_limit(struct shares *all, const struct limits *l);
/* The sum over all uids. */
size_t shares_held(const struct shares *all, enum share_kind kind);
/* Of a number of places for all uids, those kept for the daemon's uid and root: an eighth, 1 to SHARE_RESERVE_MAX. */
size_t share_reserve(size_t places);
bool share_is_limited(const struct shares *all, uid_t uid);
/* Return true if the uid may have so many more. Else count the refusal; why names the limit, its key and a remedy. */
bool share_allows(struct shares *all, uid_t uid, enum share_kind kind, size_t more, char why[SHARE_TEXT_MAX]);
/* Charge n, 1 or more, whatever the limit. NULL without memory. */
struct share *share_take(struct shares *all, uid_t uid, enum share_kind kind, size_t n);
void share_add(struct share *s, enum share_kind kind, size_t n); /* NULL: nothing is charged, here and below */
void share_give(struct share *s, enum share_kind kind, size_t n);

/* A new connection of the uid. False without memory. */
bool share_join(struct share_member *m, struct shares *all, uid_t uid);
void share_leave(struct share_member *m);
/* The bytes held for the connection now. False: its uid has more than its share. */
bool share_hold(struct share_member *m, size_t bytes);
/* Of the members with bytes of a share that has too many of them, the one with most; NULL: there is none, or the share
 * is not exceeded. */
struct share_member *share_heaviest(const struct share *s);

void share_begin(struct share_request *r, struct share_member *m, bool urgent);
void share_orphan(struct share_request *r); /* its member waits no more */
void share_end(struct share_request *r);
