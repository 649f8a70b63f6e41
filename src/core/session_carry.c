/* SPDX-License-Identifier: MIT
 *
 * A session on its way to the next binary (core/carry.h): its child, what was read of it and is to be written to it,
 * its state, its timers, its tables.
 */
#include "core/session.h"

static void carry_child(struct carry *c, struct session *s) {
	CARRY(c, s->child.pid);
	CARRY(c, s->child.start);
	carry_fd(c, &s->child.in, S_IFIFO);
	carry_fd(c, &s->child.out, 0); /* a socket or a pipe */
	carry_fd(c, &s->child.err, S_IFIFO);
	CARRY(c, s->child_no);
	carry_text(c, &s->child_name);
	CARRY(c, s->program);
	carry_text(c, &s->left_socket);
	CARRY(c, s->untouched);
	CARRY(c, s->running);
	CARRY(c, s->exited);
	CARRY(c, s->eof);
	CARRY(c, s->exit_status);
	CARRY(c, s->started_at);
	CARRY(c, s->exited_at);
	CARRY(c, s->last_output);
	CARRY(c, s->read_paused);
	CARRY(c, s->bom_seen);
	carry_lines(c, &s->out);
	queue_carry(c, &s->in);
}

static void carry_stderr(struct carry *c, struct session *s) {
	size_t n = carry_count(c, s->stderr_count);
	if (n > STDERR_LINES) carry_fail(c, "there are too many lines of stderr");
	if (n && !c->saving && !(s->stderr_lines = calloc(STDERR_LINES, sizeof *s->stderr_lines)))
		carry_fail(c, "out of memory");
	for (size_t i = 0; i < n && carry_ok(c); i++) {
		carry_name(c, &s->stderr_lines[(s->stderr_first + i) % STDERR_LINES]);
		if (!c->saving && carry_ok(c)) s->stderr_count = i + 1;
	}
	carry_buf(c, &s->stderr_part);
}

static void carry_stop(struct carry *c, struct session *s) {
	CARRY_UPTO(c, s->stopping, STOP_KILL);
	CARRY_UPTO(c, s->then, THEN_REMOVE);
	CARRY(c, s->stop_since);
	carry_timer(c, &s->stop_timer);
	carry_timer(c, &s->end_timer);
}

static void carry_state(struct carry *c, struct session *s) {
	CARRY_UPTO(c, s->state, SESSION_FAILED);
	CARRY_UPTO(c, s->told_state, SESSION_FAILED);
	CARRY_UPTO(c, s->previous, SESSION_FAILED);
	carry_text(c, &s->reason);
	CARRY(c, s->failed);
	CARRY(c, s->init_open);
	CARRY(c, s->turn);
	CARRY(c, s->got_line);
	CARRY(c, s->said_init);
	CARRY(c, s->background);
	CARRY(c, s->warming);
	carry_timer(c, &s->warm_timer);
}

static void carry_start(struct carry *c, struct session *s) {
	CARRY(c, s->failures);
	CARRY(c, s->not_before);
	carry_timer(c, &s->retry_timer);
	CARRY(c, s->spawn_tries);
	CARRY(c, s->want_child);
}

static void carry_names(struct carry *c, struct session *s) {
	carry_text(c, &s->conversation_id);
	carry_text(c, &s->resumed_id);
	carry_text(c, &s->version);
}

static void carry_counters(struct carry *c, struct session *s) {
	carry_timer(c, &s->idle_timer);
	CARRY(c, s->used_at);
	CARRY(c, s->created_at);
	CARRY(c, s->ephemeral);
	CARRY(c, s->ending);
	CARRY(c, s->lines_out);
	CARRY(c, s->bytes_out);
	CARRY(c, s->strays);
	CARRY(c, s->dropped_answers);
	CARRY(c, s->turns);
}

void session_carry(struct carry *c, struct session *s) {
	carry_mark(c, "session");
	carry_names(c, s);
	carry_child(c, s);
	carry_stderr(c, s);
	carry_stop(c, s);
	carry_state(c, s);
	carry_start(c, s);
	carry_counters(c, s);
	tape_carry(c, &s->tape);
	snapshot_carry(c, &s->snapshot);
	if (c->version < 2) s->snapshot.tasks_lost = s->background;
	prompts_carry(c, &s->prompts);
}
