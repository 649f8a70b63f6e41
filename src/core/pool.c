/* SPDX-License-Identifier: MIT */
#include "core/pool.h"
#include "core/warm.h"

#include "base/log.h"

/* Return the least recently used idle session other than `but`, or NULL. */
static struct session *oldest_idle(const struct router *r, const struct session *but) {
	struct session *oldest = NULL;
	for (struct session *s = r->sessions; s; s = s->hh.next) {
		if (!s->agent || session_state(s) != SESSION_IDLE || s->stopping || s->pendings.n || s->calls.n ||
			s->ephemeral || s == but)
			continue;
		if ((!oldest || s->used_at < oldest->used_at) && !session_works_on(s)) oldest = s;
	}
	return oldest;
}

size_t pool_children(const struct router *r) {
	return router_children(r) + warm_running(r->warm);
}

void pool_keep_to_limit(struct router *r, const struct session *but) {
	size_t n = 0, max = r->settings->max_children;
	struct session *oldest;
	for (const struct session *s = r->sessions; s; s = s->hh.next) /* without prestarted children and ending ones */
		n += s->starting || (s->agent && !s->stopping);
	for (; n > max && (oldest = oldest_idle(r, but)) != NULL; n--) {
		log_info("session %s: goes to sleep, there are more than %zu children (max_children)", oldest->label, max);
		session_stop(oldest, false, THEN_SLEEP);
	}
}

void pool_relieve(struct router *r) {
	if (warm_relieve(r->warm)) return;
	struct session *oldest = oldest_idle(r, NULL);
	if (!oldest) {
		log_debug("memory is short, and no session is idle");
		return;
	}
	log_info("session %s: goes to sleep, memory is short", oldest->label);
	session_stop(oldest, false, THEN_SLEEP);
}
