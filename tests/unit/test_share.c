/* SPDX-License-Identifier: MIT */
#include "core/share.h"
#include "harness.h"

#include <string.h>

#define OWN 1000
#define OTHER 1001

static struct shares all;
static struct error why;

static void setup(void) {
	struct limits l = LIMITS_DEFAULT;
	l.uid_sessions = 2;
	l.uid_clients = 3;
	l.uid_bytes = 100;
	l.uid_requests = 2;
	shares_init(&all, OWN);
	shares_limit(&all, &l);
}

START_TEST(test_one_uid_is_held_to_its_share) {
	setup();
	struct share *s = share_take(&all, OTHER, SHARE_SESSIONS, 1);
	ck_assert(share_allows(&all, OTHER, SHARE_SESSIONS, 1, &why));
	ck_assert_ptr_eq(share_take(&all, OTHER, SHARE_SESSIONS, 1), s);
	ck_assert(!share_allows(&all, OTHER, SHARE_SESSIONS, 1, &why));
	ck_assert_str_eq(why.text, "uid 1001 has 2 of 2 sessions (uid_sessions): forget one first");
	ck_assert(share_allows(&all, OTHER + 1, SHARE_SESSIONS, 1, &why));
	ck_assert(share_allows(&all, OTHER, SHARE_REQUESTS, 2, &why));
	ck_assert(!share_allows(&all, OTHER, SHARE_REQUESTS, 3, &why));
	ck_assert_ptr_nonnull(strstr(why.text, "uid_requests"));
	ck_assert(!share_allows(&all, OTHER, SHARE_BYTES, SIZE_MAX, &why)); /* no overflow of the sum */
	ck_assert_uint_eq(all.refused, 3);
	ck_assert_uint_eq(shares_held(&all, SHARE_SESSIONS), 2);
	share_give(s, SHARE_SESSIONS, 1);
	ck_assert(share_allows(&all, OTHER, SHARE_SESSIONS, 1, &why));
	share_give(s, SHARE_SESSIONS, 1);
	ck_assert_ptr_null(all.by_uid); /* nothing is charged: it is gone */
}
END_TEST

START_TEST(test_own_and_root_are_counted_and_never_limited) {
	setup();
	const uid_t uids[] = {OWN, 0};
	for (size_t i = 0; i < ARRAY_SIZE(uids); i++) {
		struct share_member m = {0};
		ck_assert(share_join(&m, &all, uids[i]));
		share_add(m.share, SHARE_SESSIONS, 100);
		ck_assert(share_hold(&m, SIZE_MAX / 2));
		ck_assert_ptr_null(share_heaviest(m.share));
		ck_assert(share_allows(&all, uids[i], SHARE_SESSIONS, 1, &why));
		ck_assert_uint_eq(m.share->held[SHARE_SESSIONS], 100);
		share_give(m.share, SHARE_SESSIONS, 100);
		share_leave(&m);
	}
	ck_assert_ptr_null(all.by_uid);
	ck_assert_uint_eq(all.refused, 0);
}
END_TEST

START_TEST(test_the_heaviest_connection_of_the_uid_is_named) {
	setup();
	struct share_member a = {0}, b = {0}, stranger = {0};
	ck_assert(share_join(&a, &all, OTHER) && share_join(&b, &all, OTHER) && share_join(&stranger, &all, OTHER + 1));
	ck_assert(share_hold(&stranger, 99));
	ck_assert(share_hold(&a, 70));
	ck_assert_ptr_null(share_heaviest(a.share));
	ck_assert(share_hold(&b, 30));
	ck_assert(!share_hold(&b, 31));
	ck_assert_ptr_eq(share_heaviest(b.share), &a);
	ck_assert(share_hold(&a, 0));
	ck_assert_ptr_null(share_heaviest(b.share));
	share_add(b.share, SHARE_BYTES, 100); /* queued prompts belong to no connection */
	ck_assert_ptr_eq(share_heaviest(b.share), &b);
	ck_assert(!share_hold(&b, 31));
	(void)share_hold(&b, 0);
	ck_assert(share_hold(&a, 0));
	share_give(b.share, SHARE_BYTES, 100);
	share_leave(&a);
	share_leave(&a); /* twice is once */
	share_leave(&b);
	share_leave(&stranger);
	ck_assert_ptr_null(all.by_uid);
}
END_TEST

START_TEST(test_an_orphan_counts_for_the_uid_alone) {
	setup();
	struct share_member m = {0}, other = {0};
	struct share_request r = {0}, urgent = {0};
	ck_assert(share_join(&m, &all, OTHER) && share_join(&other, &all, OTHER));
	share_begin(&r, &m, false);
	share_begin(&urgent, &m, true);
	ck_assert_uint_eq(m.requests, 2);
	ck_assert(m.urgent);
	share_orphan(&r);
	share_orphan(&r);
	share_orphan(&urgent);
	ck_assert_uint_eq(m.requests, 0);
	ck_assert(!m.urgent);
	share_leave(&m);
	ck_assert(!share_allows(&all, OTHER, SHARE_REQUESTS, 1, &why)); /* a new connection does not release them */
	ck_assert_uint_eq(other.requests, 0);
	share_end(&r);
	ck_assert(share_allows(&all, OTHER, SHARE_REQUESTS, 1, &why));
	share_leave(&other);
	ck_assert_uint_eq(shares_held(&all, SHARE_REQUESTS), 1);
	share_end(&urgent); /* the last of them */
	share_end(&urgent);
	ck_assert_ptr_null(all.by_uid);
}
END_TEST

START_TEST(test_some_places_are_kept) {
	ck_assert_uint_eq(share_reserve(1), 1);
	ck_assert_uint_eq(share_reserve(15), 1);
	ck_assert_uint_eq(share_reserve(64), 8);
	ck_assert_uint_eq(share_reserve(16384), SHARE_RESERVE_MAX);
}
END_TEST

RUN_TESTS("share", test_one_uid_is_held_to_its_share, test_own_and_root_are_counted_and_never_limited,
		  test_the_heaviest_connection_of_the_uid_is_named, test_an_orphan_counts_for_the_uid_alone,
		  test_some_places_are_kept)
