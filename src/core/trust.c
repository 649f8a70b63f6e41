/* SPDX-License-Identifier: MIT */
#include "core/trust.h"

#include "io/proc.h"
#include "plenum/protocol.h"

#include <string.h>
#include <unistd.h>

#define WALKS 8 /* up the process tree, where it changes meanwhile */

bool trust_is_ours(const struct client *c) {
	return c->peer.uid == getuid() || c->peer.uid == 0;
}

/* Whoever descends from this process was started by an agent: orphans come to us, the subreaper. A helper that we
 * started for a person is none. */
enum descent { DESCENDS, STRANGER, VANISHED };

static enum descent walk_up(struct router *r, pid_t pid) {
	pid_t at = pid, up = 0, below = pid;
	for (int i = 0; i < 256 && at > 1; i++) {
		if (!proc_stat(at, &up, NULL, NULL)) return VANISHED;
		if (at == getpid())
			return below != at && !(r->events->is_helper && r->events->is_helper(r, below)) ? DESCENDS : STRANGER;
		below = at;
		at = up;
	}
	_cleanup_free_ char *mark = proc_env(pid, PLENUM_CHILD_ENV);
	return mark ? DESCENDS : STRANGER;
}

/* An ancestor that ends during the walk hides those above it: its child has another parent by the next walk. */
static enum descent descent_of(struct router *r, pid_t pid) {
	for (int i = 0; i < WALKS; i++) {
		enum descent d = walk_up(r, pid);
		if (d != VANISHED) return d;
	}
	return VANISHED;
}

/* Whoever does not descend from us never will: orphans go to a reaper among their own ancestors. So the verdict holds
 * as long as the process lives, and that is what each answer looks at (a pid that was used again is another process).
 */
bool trust_is_free(struct router *r, struct client *c) {
	if (c->peer.pid <= 0 || !watch_alive(c->watch)) return false;
	enum descent d = c->trust ? VANISHED : descent_of(r, c->peer.pid);
	if (d != VANISHED) c->trust = d == DESCENDS ? -1 : 1; /* else it cannot be told now: without descriptors, say */
	return c->trust > 0;
}

bool trust_may_approve(struct router *r, struct client *c) {
	const struct access *a = &r->settings->approve;
	bool named = a->n_uids || a->n_gids;
	bool among = named ? access_allows_peer(a, &c->peer, c->io.fd) : trust_is_ours(c);
	return among && trust_is_free(r, c);
}

enum trust trust_of(struct router *r, struct client *c) {
	bool free = trust_is_free(r, c);
	if (c->trust < 0) return TRUST_AGENT;
	return free && trust_is_ours(c) && trust_may_approve(r, c) ? TRUST_OWN : TRUST_DRIVER;
}

enum trust trust_in(struct router *r, const struct attachment *a) {
	return a->observer ? TRUST_OBSERVER : trust_of(r, a->client);
}

const char *trust_name(enum trust t) {
	static const char *const names[] = {"own", "driver", "agent", "observer"};
	return names[t];
}

const char *trust_why(struct router *r, struct client *c) {
	switch (trust_of(r, c)) {
	case TRUST_OWN:
		return NULL;
	case TRUST_AGENT:
		return "an agent started this program (run it from a shell of your own)";
	default:
		break;
	}
	if (!trust_is_free(r, c)) return "the origin of this program cannot be determined";
	if (!trust_is_ours(c)) return "this user is not the user of the daemon (approve_uids, approve_groups)";
	return "this user is not among the approvers (approve_uids, approve_groups)";
}

/* The session whose child is an ancestor, else the one named by the mark in the environment. */
struct session *trust_session(struct router *r, struct client *c) {
	pid_t at = c->peer.pid, up = 0;
	if (trust_of(r, c) != TRUST_AGENT) return NULL;
	for (int i = 0; i < 256 && at > 1 && proc_stat(at, &up, NULL, NULL); i++, at = up)
		for (struct session *s = r->sessions; s; s = s->hh.next)
			if (session_pid(s) == at) return s;
	_cleanup_free_ char *mark = proc_env(c->peer.pid, PLENUM_CHILD_ENV);
	return mark ? router_find(r, mark) : NULL;
}
