/* SPDX-License-Identifier: MIT
 *
 * A list of users and groups: the keys `allow` and `approve` of the configuration. Owns both arrays.
 */
#pragma once

#include "base/fd.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct access {
	uid_t *uids;
	size_t n_uids;
	gid_t *gids;
	size_t n_gids;
};

/* Return true for a member; false for an empty list. The caller defines an empty list (allow: own uid and root;
 * approve: all that may connect). */
bool access_allows(const struct access *a, uid_t uid, const gid_t *gids, size_t n);
/* The same for the peer of a socket, with all its groups. */
bool access_allows_peer(const struct access *a, const struct peer *peer, int fd);
void access_free(struct access *a);
