/* SPDX-License-Identifier: MIT */
#include "core/access.h"

#include <stdlib.h>

bool access_allows(const struct access *a, uid_t uid, const gid_t *gids, size_t n) {
	for (size_t i = 0; i < a->n_uids; i++)
		if (a->uids[i] == uid) return true;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < a->n_gids; k++)
			if (a->gids[k] == gids[i]) return true;
	return false;
}

bool access_allows_peer(const struct access *a, const struct peer *peer, int fd) {
	if (access_allows(a, peer->uid, &peer->gid, 1)) return true;
	if (!a->n_gids) return false;
	size_t n;
	gid_t *groups = fd_peer_groups(fd, &n);
	bool allows = access_allows(a, peer->uid, groups, n);
	free(groups);
	return allows;
}

void access_free(struct access *a) {
	free(a->uids);
	free(a->gids);
}
