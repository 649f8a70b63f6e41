/* SPDX-License-Identifier: MIT */
#include "core/reconcile.h"

#include "core/router.h"
#include "core/warm.h"

#include <string.h>

/* Return false if there is more to do in a later turn: a crowd leaves in slices. One that waits on is no progress. */
static bool close_ended(struct session *s) {
	struct attachment *a;
	LIST_FOR_EACH (a, &s->attachments, struct attachment, node) {
		size_t before = s->n_attachments;
		if (a->client->ended) router_close_ended(a->client);
		if (s->n_attachments < before && loop_must_yield(s->loop)) return false;
	}
	return true;
}

static uint64_t mix(uint64_t h, uint64_t value) {
	return (h ^ value) * 1099511628211ULL;
}

static uint64_t mix_text(uint64_t h, const char *text) {
	return mix(h, text ? prompt_hash(text, strlen(text)) : 1);
}

/* What others than its clients look at: the table on disk, and the count of children. */
static uint64_t hash_of(const struct session *s) {
	uint64_t h = mix_text(1, s->conversation_id);
	h = mix_text(h, s->resumed_id);
	h = mix_text(h, snapshot_strict(&s->snapshot));
	h = mix_text(h, s->timers.armed);
	h = mix(h, s->registry.version);
	h = mix(h, s->registry.taken);
	h = mix(h, (uint64_t)session_pid(s));
	h = mix(h, (uint64_t)s->stuck_pid);
	return mix(h, s->child_no << 2 | (uint64_t)(s->agent != NULL) << 1 | (s->starting != NULL));
}

/* Return true if its child is one more than there were. */
static bool is_one_more(struct session *s) {
	bool before = s->counted;
	s->counted = s->agent || s->starting;
	return s->counted && !before;
}

static void mark(struct session *s) {
	struct router *r = s->world;
	uint64_t hash = hash_of(s);
	if (hash == s->marked) return;
	s->marked = hash;
	r->events->changed(r);
}

/* The order:
 * 1. A child that has not the newest hooks is sent them, before a prompt that they are to see.
 * 2. Held prompts go. With the next one on its way the session stays busy: it does not become idle between two turns.
 * 3. A half-closed client leaves that waits for nothing. It waits for its prompts, so this is after 2; and the state
 *    that follows is not a part of what it has asked for.
 * 4. The state, which 1 to 3 have a part in, is published.
 * 5. An idle child is restarted for hooks that it cannot take otherwise, and others that idle go to sleep if there are
 *    too many: when a child was started, and when one that had to be let work is idle.
 * 6. The child is read again, or not, as its readers allow: some of them may have left in 3.
 * 7. The table on disk is marked last, for all of this; it is written before anything is sent. */
void reconcile(struct session *s) {
	struct router *r = s->world;
	router_init_resend(s);
	router_send_held(s);
	bool all_closed = close_ended(s);
	bool due = session_state_due(s);
	if (due) router_publish_state(s);
	router_init_restart(s);
	bool one_more = is_one_more(s);
	if (one_more) warm_make_room(r->warm);
	if (one_more || (due && s->told_state == SESSION_IDLE)) router_keep_to_limit(r, s);
	session_pace(s);
	if (due && !s->agent && !s->want_child) session_slim(s);
	mark(s);
	if (!all_closed) session_go_on(s);
}
