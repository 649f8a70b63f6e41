/* SPDX-License-Identifier: MIT */
#include "core/trust.h"

#include "base/log.h"
#include "plenum/protocol.h"

#include <unistd.h>

bool trust_is_ours(const struct client *c) {
	return c->peer.uid == getuid() || c->peer.uid == 0;
}

/* --- origin
 * --------------------------------------------------------------------------------------------------------- */

/* Return true if the origin cannot change at the next check. */
static bool is_final(enum origin o) {
	return o != ORIGIN_NEW && o != ORIGIN_HIDDEN;
}

/* Check all connections of a process at once. A result found by its number is valid if the process still lives
 * afterwards. */
static void look_at(struct router *r, struct client *c) {
	struct watch *w = c->watch;
	if (w && !is_final((enum origin)w->origin) && watch_alive(w)) {
		uint64_t family;
		enum origin o = descent_of(r, w->pid, &family);
		if (watch_alive(w)) w->origin = o, w->family = family;
	}
	c->origin = w && w->origin != ORIGIN_NEW ? (enum origin)w->origin : ORIGIN_GONE;
	c->family = w ? w->family : 0;
}

/* Without a pidfd only negative results count. */
static void look_by_number(struct router *r, struct client *c) {
	uint64_t family;
	if (descent_of(r, c->peer.pid, &family) != ORIGIN_AGENT) return;
	c->origin = ORIGIN_AGENT;
	c->family = family;
}

static const char *origin_text(enum origin o) {
	static const char *const texts[] = {
		[ORIGIN_AGENT] = "an agent started this program (run it from a shell of your own)",
		[ORIGIN_HIDDEN] =
			"the daemon cannot see in /proc where this program comes from (mount /proc without hidepid, or "
			"make the daemon's user a member of the group of its gid= option)",
		[ORIGIN_GONE] = "the process that made this connection has ended, so that its origin cannot be seen (connect "
						"from the process that stays)",
		[ORIGIN_UNSURE] =
			"the kernel does not report which process made this connection (use Linux 6.5 or later, or load "
			"the module unix_diag and start this program before it connects)",
		[ORIGIN_ABROAD] =
			"this program runs in another pid namespace, where the daemon cannot see it (run the daemon and "
			"its clients in one container)",
		[ORIGIN_UNWATCHED] = "the daemon cannot watch this process (pidfd_open needs Linux 5.3, and leave of the "
							 "container's seccomp filter)",
	};
	return (size_t)o < ARRAY_SIZE(texts) ? texts[o] : NULL;
}

/* Log each cause once, not for each client. A process of an agent needs no fix and is not logged. */
static void tell(struct router *r, const struct client *c) {
	unsigned bit = 1U << c->origin;
	const char *text = c->origin == ORIGIN_AGENT || c->origin == ORIGIN_GONE ? NULL : origin_text(c->origin);
	if (!text || r->origins_told & bit) return;
	r->origins_told |= bit;
	log_warn("client %llu (uid %u, pid %d) is not trusted: %s", (unsigned long long)c->id, c->peer.uid, c->peer.pid,
			 text);
}

enum origin trust_look(struct router *r, struct client *c) {
	if (!is_final(c->origin)) look_at(r, c);
	return c->origin;
}

void trust_meet(struct router *r, struct client *c) {
	if (c->origin == ORIGIN_UNWATCHED) look_by_number(r, c);
	trust_look(r, c);
	tell(r, c);
}

/* A process may pass its connection on before it ends: its result is not valid for the other process. */
bool trust_is_free(struct router *r, struct client *c) {
	return trust_look(r, c) == ORIGIN_FREE && watch_alive(c->watch);
}

/* --- rights
 * --------------------------------------------------------------------------------------------------------- */

bool trust_may_approve(struct router *r, struct client *c) {
	const struct access *a = &r->settings->approve;
	bool named = a->n_uids || a->n_gids;
	bool among = named ? access_allows_peer(a, &c->peer, c->io.fd) : trust_is_ours(c);
	return among && trust_is_free(r, c);
}

/* An uncertain origin counts as an agent's. */
static bool counts_as_agent(enum origin o) {
	return o == ORIGIN_AGENT || o == ORIGIN_GONE || o == ORIGIN_UNSURE;
}

enum trust trust_of(struct router *r, struct client *c) {
	if (counts_as_agent(trust_look(r, c))) return TRUST_AGENT;
	return trust_is_ours(c) && trust_may_approve(r, c) ? TRUST_OWN : TRUST_DRIVER;
}

enum trust trust_in(struct router *r, const struct attachment *a) {
	return a->observer ? TRUST_OBSERVER : trust_of(r, a->client);
}

const char *trust_name(enum trust t) {
	static const char *const names[] = {PLENUM_PEER_OWN, PLENUM_PEER_DRIVER, PLENUM_PEER_AGENT, PLENUM_PEER_OBSERVER};
	return names[t];
}

const char *trust_why(struct router *r, struct client *c) {
	if (trust_of(r, c) == TRUST_OWN) return NULL;
	if (c->origin != ORIGIN_FREE) return origin_text(c->origin);
	if (!watch_alive(c->watch)) return origin_text(ORIGIN_GONE);
	if (!trust_is_ours(c)) return "this user is not the user of the daemon (connect as that user)";
	return "this user is not among the approvers (approve_uids and approve_groups in plenum.conf)";
}

struct session *trust_session(struct router *r, struct client *c) {
	if (trust_look(r, c) != ORIGIN_AGENT) return NULL;
	for (struct session *s = r->sessions; s; s = s->hh.next)
		if (s->id == c->family) return s;
	return NULL;
}
