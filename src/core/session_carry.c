/* SPDX-License-Identifier: MIT
 *
 * Serialize and restore a session for an upgrade (core/carry.h): its child, the child's buffered input and output, its
 * state, its timers, its tables.
 */
#include "core/session_parts.h"

static void carry_child(struct carry *c, struct session *s, struct agent *a) {
	CARRY(c, a->child.pid);
	CARRY(c, a->child.start);
	CARRY(c, a->child.was);
	carry_fd(c, &a->child.in, S_IFSOCK);
	carry_fd(c, &a->child.out, 0); /* a socket, or a pipe (profile.stdout) */
	carry_fd(c, &a->child.err, 0);
	CARRY(c, s->child_no);
	carry_text(c, &a->name);
	CARRY(c, a->place.program);
	CARRY(c, a->place.cwd);
	carry_text(c, &a->program);
	carry_text(c, &s->left_socket);
	CARRY(c, s->untouched);
	bool there = s->agent != NULL;
	CARRY(c, there);
	CARRY(c, a->exited);
	CARRY(c, a->eof);
	CARRY(c, a->exit_status);
	CARRY(c, a->started_at);
	CARRY(c, a->exited_at);
	CARRY(c, a->heard_at);
	CARRY(c, a->read_paused);
	CARRY(c, a->bom_seen);
	carry_lines(c, &a->out);
	if (there) s->agent = a;
	queue_carry(c, &s->in);
	queue_carry(c, &s->later);
	CARRY(c, s->unnamed);
	CARRY(c, s->waits);
	CARRY(c, s->replays);
	CARRY(c, s->by_client);
}

static void carry_stop(struct carry *c, struct session *s, struct agent *a) {
	CARRY_UPTO(c, s->stopping, STOP_KILL);
	CARRY_UPTO(c, s->then, THEN_REMOVE);
	CARRY(c, s->stuck_pid);
	CARRY(c, s->stuck_start);
	CARRY(c, s->stopper);
	CARRY(c, s->unclaimed);
	CARRY(c, s->stop_since);
	CARRY_UPTO(c, s->broken, BROKEN_REFUSED);
	CARRY_UPTO(c, s->leftovers, LEFTOVERS_KILL);
	carry_timer(c, &a->stop_timer);
	carry_timer(c, &a->end_timer);
}

static void carry_state(struct carry *c, struct session *s, struct agent *a) {
	enum session_state now = session_state(s); /* restored and not used: it is computed */
	CARRY_UPTO(c, now, SESSION_FAILED);
	CARRY_UPTO(c, s->told_state, SESSION_FAILED);
	CARRY_UPTO(c, s->previous, SESSION_FAILED);
	s->named_state = s->told_state; /* at the end of a turn all is published */
	carry_text(c, &s->reason);
	CARRY(c, s->failed);
	CARRY(c, s->spent);
	CARRY(c, s->made_by);
	CARRY(c, s->altered);
	progress_carry(c, &s->progress);
	carry_timer(c, &a->warm_timer);
}

static void carry_start(struct carry *c, struct session *s) {
	CARRY(c, s->failures);
	CARRY(c, s->not_before);
	int64_t left = carry_left(c, s->retry_timer);
	if (!c->saving && left >= 0 && !session_put_off(s, left)) carry_fail(c, "out of memory");
	CARRY(c, s->spawn_tries);
	CARRY(c, s->want_child);
	carry_text(c, &s->start_error); /* clients that wait for the start may not have it yet */
	CARRY_UPTO(c, s->start_result, CHILD_TIMEOUT);
}

static void carry_counters(struct carry *c, struct session *s, struct agent *a) {
	carry_timer(c, &a->idle_timer);
	CARRY(c, s->used_at);
	CARRY(c, s->created_at);
	CARRY(c, s->counted);
	CARRY(c, s->ephemeral);
	CARRY(c, s->ending);
	CARRY(c, s->lines_out);
	CARRY(c, s->bytes_out);
	CARRY(c, s->strays);
	CARRY(c, s->dropped_answers);
	CARRY(c, s->turns.count);
	CARRY(c, s->turns.cost.nano_usd);
	CARRY(c, s->turns.cost.unknown);
}

void session_carry_timers(struct carry *c, struct timers *t) {
	carry_mark(c, "timers");
	carry_text(c, &t->armed);
	carry_text(c, &t->calls);
	if (!timers_are_sound(t)) carry_fail(c, "a list of timers is no list");
}

void session_carry(struct carry *c, struct session *s) {
	/* a session without a child serializes an empty one */
	if (c->saving) session_pause_start(s);
	struct agent *a = s->agent ? s->agent : session_new_agent(s);
	carry_mark(c, "session");
	carry_text(c, &s->conversation_id);
	carry_text(c, &s->resumed_id);
	carry_text(c, &s->version);
	if (!a) {
		carry_fail(c, "out of memory");
		return;
	}
	carry_child(c, s, a);
	tail_carry(c, &s->tail);
	carry_stop(c, s, a);
	carry_state(c, s, a);
	carry_start(c, s);
	carry_counters(c, s, a);
	if (!s->agent) agent_free(a);
	tape_carry(c, &s->tape);
	snapshot_carry(c, &s->snapshot);
	char *memo = c->saving ? memo_text(&s->memo, true) : NULL;
	carry_text(c, &memo);
	if (!c->saving) memo_restore(&s->memo, memo);
	free(memo);
	session_carry_timers(c, &s->timers);
	prompts_carry(c, &s->prompts);
}
