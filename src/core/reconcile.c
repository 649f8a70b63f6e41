/* SPDX-License-Identifier: MIT */
#include "core/reconcile.h"
#include "core/asks.h"
#include "core/attachment.h"
#include "core/handshake.h"
#include "core/intake.h"
#include "core/pool.h"
#include "core/status.h"
#include "core/warm.h"

#include "base/hash.h"

#include <string.h>

/* Return false if there is more to do in a later turn: many clients leave in slices. A client that still waits is no
 * progress. */
static bool close_ended(struct session *s) {
	struct attachment *a;
	LIST_FOR_EACH (a, &s->attachments, struct attachment, node) {
		size_t before = s->n_attachments;
		if (a->client->ended || a->client->carrier) attachment_close_ended(a->client);
		if (s->n_attachments < before && loop_must_yield(s->loop)) return false;
	}
	return true;
}

/* Hash the state used beyond the session's clients: by the table on disk, and by the count of children. */
static uint64_t hash_of(const struct session *s) {
	uint64_t h = hash_mix_text(1, s->conversation_id);
	h = hash_mix_text(h, s->resumed_id);
	h = hash_mix_text(h, snapshot_strict(&s->snapshot, session_dialect(s)));
	h = hash_mix_text(h, s->timers.armed);
	h = hash_mix(h, s->memo.version);
	h = hash_mix(h, s->registry.version);
	h = hash_mix(h, s->registry.taken);
	h = hash_mix(h, (uint64_t)session_pid(s));
	h = hash_mix(h, (uint64_t)s->stuck_pid);
	return hash_mix(h, s->child_no << 2 | (uint64_t)(s->agent != NULL) << 1 | (s->starting != NULL));
}

/* Before all: notify of requests that were resolved with many others (asks.h). The order:
 * 1. Send the newest hooks to a child without them, before a prompt that they must see.
 * 2. Send queued prompts. With the next one sent the session stays busy: it does not become idle between two turns.
 * 3. Close half-closed clients that wait for nothing. A client waits for its prompts, so this is after 2; and before 4,
 *    because the state is no part of its request.
 * 4. Publish the state, to which 1 to 3 contribute.
 * 5. Restart an idle child for hooks that it cannot take otherwise, and put idle children to sleep if there are too
 *    many: after the start of a child, and when a child is idle that could not sleep before.
 * 6. Read the child or pause it, by the state of its readers: some of them may have left in 3.
 * 7. Mark the table on disk last, for all of this; it is written before anything is sent. */
void reconcile(struct session *s) {
	struct router *r = s->world;
	bool all_told = asks_tell_some(s);
	handshake_resend(s);
	intake_send_held(s);
	bool all_closed = close_ended(s);
	bool due = session_state_due(s);
	if (due) status_publish(s);
	handshake_restart(s);
	bool before = s->counted;
	s->counted = s->agent || s->starting;
	bool one_more = s->counted && !before;
	if (one_more) warm_make_room(r->warm);
	if (one_more || (due && s->told_state == SESSION_IDLE)) pool_keep_to_limit(r, s);
	session_pace(s);
	if (due && !s->agent && !s->want_child) session_slim(s);
	uint64_t hash = hash_of(s);
	if (hash != s->marked) {
		s->marked = hash;
		r->events->changed(r);
	}
	if (!all_closed || !all_told) session_go_on(s);
}
