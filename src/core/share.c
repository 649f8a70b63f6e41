/* SPDX-License-Identifier: MIT */
#include "core/share.h"

#include "base/macros.h"

#include <stdlib.h>
#include <string.h>

void shares_init(struct shares *all, uid_t own) {
	static const struct limits defaults = LIMITS_DEFAULT;
	*all = (struct shares){.own = own};
	shares_limit(all, &defaults);
}

void shares_limit(struct shares *all, const struct limits *l) {
	all->max[SHARE_SESSIONS] = l->uid_sessions;
	all->max[SHARE_CLIENTS] = l->uid_clients;
	all->max[SHARE_BYTES] = l->uid_bytes;
	all->max[SHARE_REQUESTS] = l->uid_requests;
}

size_t shares_held(const struct shares *all, enum share_kind kind) {
	size_t n = 0;
	for (const struct share *s = all->by_uid; s; s = s->hh.next) n += s->held[kind];
	return n;
}

size_t share_reserve(size_t places) {
	return MAX(MIN(places / 8, SHARE_RESERVE_MAX), (size_t)1);
}

bool share_is_limited(const struct shares *all, uid_t uid) {
	return uid != all->own && uid != 0;
}

static struct share *find(const struct shares *all, uid_t uid) {
	struct share *s = NULL;
	HASH_FIND(hh, all->by_uid, &uid, sizeof uid, s);
	return s;
}

static bool is_over(const struct share *s, enum share_kind kind, size_t more) {
	size_t max = s->all->max[kind];
	return share_is_limited(s->all, s->uid) && (more > max || s->held[kind] > max - more);
}

bool share_allows(struct shares *all, uid_t uid, enum share_kind kind, size_t more, struct error *why) {
	static const struct {
		const char *what, *key, *remedy;
	} texts[] = {
		[SHARE_SESSIONS] = {"sessions", "uid_sessions", "forget one first"},
		[SHARE_CLIENTS] = {"connections", "uid_clients", "close one first"},
		[SHARE_BYTES] = {"bytes", "uid_bytes", "read your answers, or send less at a time"},
		[SHARE_REQUESTS] = {"open requests", "uid_requests", "wait for their answers"},
	};
	struct share none = {.all = all, .uid = uid};
	const struct share *s = find(all, uid);
	if (!s) s = &none;
	if (!is_over(s, kind, more)) return true;
	all->refused++;
	return error_set(why, "uid %u has %zu of %zu %s (%s): %s", uid, s->held[kind], all->max[kind], texts[kind].what,
					 texts[kind].key, texts[kind].remedy);
}

struct share *share_take(struct shares *all, uid_t uid, enum share_kind kind, size_t n) {
	struct share *s = find(all, uid);
	if (!s && (s = calloc(1, sizeof *s)) != NULL) {
		s->all = all;
		s->uid = uid;
		list_init(&s->members);
		if (!HASH_TRY_ADD(hh, all->by_uid, &s->uid, sizeof s->uid, s)) {
			free(s);
			return NULL;
		}
	}
	share_add(s, kind, n);
	return s;
}

void share_add(struct share *s, enum share_kind kind, size_t n) {
	if (s) s->held[kind] += n;
}

void share_give(struct share *s, enum share_kind kind, size_t n) {
	if (!s) return;
	s->held[kind] -= n;
	for (size_t i = 0; i < SHARE_KINDS; i++)
		if (s->held[i]) return;
	HASH_DELETE(hh, s->all->by_uid, s);
	free(s);
}

/* --- connections -------------------------------------------------------------------------------------------------- */

bool share_join(struct share_member *m, struct shares *all, uid_t uid) {
	m->share = share_take(all, uid, SHARE_CLIENTS, 1);
	if (m->share) list_add_tail(&m->share->members, &m->node);
	return m->share;
}

void share_leave(struct share_member *m) {
	struct share *s = m->share;
	if (!s) return;
	(void)share_hold(m, 0);
	list_del(&m->node);
	m->share = NULL;
	share_give(s, SHARE_CLIENTS, 1);
}

bool share_hold(struct share_member *m, size_t bytes) {
	struct share *s = m->share;
	if (!s) return true;
	s->held[SHARE_BYTES] += bytes - m->bytes;
	m->bytes = bytes;
	return !is_over(s, SHARE_BYTES, 0);
}

struct share_member *share_heaviest(const struct share *s) {
	struct share_member *m, *most = NULL;
	if (!s || !is_over(s, SHARE_BYTES, 0)) return NULL;
	LIST_FOR_EACH (m, &s->members, struct share_member, node)
		if (m->bytes && (!most || m->bytes > most->bytes)) most = m;
	return most;
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

void share_begin(struct share_request *r, struct share_member *m, bool urgent) {
	*r = (struct share_request){.share = m->share, .member = m, .urgent = urgent};
	share_add(r->share, SHARE_REQUESTS, 1);
	m->requests++;
	m->urgent |= urgent;
}

void share_orphan(struct share_request *r) {
	struct share_member *m = r->member;
	if (!m) return;
	m->requests--;
	if (r->urgent) m->urgent = false;
	r->member = NULL;
}

void share_end(struct share_request *r) {
	share_orphan(r);
	share_give(r->share, SHARE_REQUESTS, 1);
	r->share = NULL;
}
