/* SPDX-License-Identifier: MIT */
#include "core/access.h"
#include "harness.h"

#include <check.h>
#include <sys/socket.h>
#include <unistd.h>

START_TEST(members) {
	uid_t uids[] = {5, 1000};
	gid_t gids[] = {27};
	struct access a = {.uids = uids, .n_uids = 2, .gids = gids, .n_gids = 1};
	const gid_t mine[] = {100, 27}, others[] = {100};
	ck_assert(access_allows(&a, 1000, NULL, 0));
	ck_assert(!access_allows(&a, 1001, others, 1));
	ck_assert(access_allows(&a, 1001, mine, 2));
	ck_assert(!access_allows(&(struct access){0}, 0, mine, 2));
}
END_TEST

/* All groups of a peer count: the one that its socket reports, and the supplementary ones. */
START_TEST(groups_of_a_peer) {
	int pair[2];
	struct peer peer;
	size_t n;
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	ck_assert_int_eq(fd_peer(pair[0], &peer), 0);
	ck_assert(access_allows_peer(&(struct access){.gids = &peer.gid, .n_gids = 1}, &peer, pair[0]));
	gid_t *groups = fd_peer_groups(pair[0], &n), other = 1;
	for (size_t i = 0; i < n; i++) {
		ck_assert(access_allows_peer(&(struct access){.gids = &groups[i], .n_gids = 1}, &peer, pair[0]));
		other = groups[i] >= other ? groups[i] + 1 : other;
	}
	if (peer.gid >= other) other = peer.gid + 1;
	ck_assert(!access_allows_peer(&(struct access){.gids = &other, .n_gids = 1}, &peer, pair[0]));
	free(groups);
	close(pair[0]);
	close(pair[1]);
}
END_TEST

RUN_TESTS("access", members, groups_of_a_peer)
