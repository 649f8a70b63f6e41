/* SPDX-License-Identifier: MIT */
#include "core/session_parts.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "plenum/protocol.h"
#include "wire/lengths.h"
#include "wire/splice.h"

#include <string.h>

#define WARM_MS 100    /* an unused child of this age is idle */
#define BROKEN_MS 1000 /* the longest that a child may live after it closed its stdin or its stdout */
#define SPAWN_TRIES 5
#define SPAWN_RETRY_MS 300
#define SLEEP_PROMPTS 2 /* remembered finished prompts of a session without a child */
#define SLEEP_SETTLED 8 /* and remembered resolved requests */

const char *session_state_name(enum session_state state) {
	static const char *const names[] = {PLENUM_ST_STARTING, PLENUM_ST_IDLE,   PLENUM_ST_BUSY,
										PLENUM_ST_ASKING,   PLENUM_ST_ASLEEP, PLENUM_ST_FAILED};
	return names[state];
}

const char *session_broken_text(enum broken broken) {
	static const char *const texts[] = {
		[BROKEN_NOT] = "the child ended",
		[BROKEN_DEAF] = "the child had closed its stdin and lived on, so it was stopped",
		[BROKEN_MUTE] = "the child had closed its stdout and lived on, so it was stopped",
		[BROKEN_MEMORY] = "stopped: no memory for the output or the input of the child",
		[BROKEN_SECOND] = "the child took up a conversation that is in use, so it was stopped",
		[BROKEN_REFUSED] = "the child refused its start, so it was stopped",
	};
	return texts[broken];
}

char *session_profile(const struct session *s) {
	return s->lost_profile ? s->lost_profile : s->profile->name;
}

/* --- state -------------------------------------------------------------------------------------------------------- */

enum session_state session_state(const struct session *s) {
	if (!s->agent) return s->want_child ? SESSION_STARTING : s->failed ? SESSION_FAILED : SESSION_ASLEEP;
	if (s->pendings.n_person) return SESSION_ASKING;
	bool prompts = s->prompts.n_open > s->prompts.n_held;
	if (s->progress.init_open && !s->progress.turn && (s->progress.warming || !prompts)) return SESSION_STARTING;
	if (s->progress.turn || prompts) return SESSION_BUSY;
	if (s->progress.warming && !s->progress.got_line) return SESSION_STARTING;
	return SESSION_IDLE;
}

static void arm_idle(struct session *s) {
	bool idle = session_state(s) == SESSION_IDLE && s->stopping == STOP_NOT && !s->ephemeral && !s->spare;
	if (s->agent && idle)
		loop_timer_set(&s->agent->idle_timer, s->profile->idle_sleep);
	else if (s->agent)
		loop_timer_stop(&s->agent->idle_timer);
}

/* Keep little: the tape, and the data needed for a late answer or a retried prompt. */
void session_slim(struct session *s) {
	tape_pack(&s->tape);
	prompts_trim(&s->prompts, SLEEP_PROMPTS);
	pendings_trim(&s->pendings, SLEEP_SETTLED);
	queue_free(&s->in);
	loop_timer_drop(&s->retry_timer);
	loop_timer_drop(&s->pace.timer);
	loop_timer_drop(&s->stall.timer);
}

static void on_task(void *arg) {
	struct session *s = arg;
	s->events->changed(s);
}

void session_changed(struct session *s) {
	if (s->removed) return; /* a task now would run after the free */
	loop_defer_urgent(s->loop, &s->task);
}

void session_go_on(struct session *s) {
	loop_task_stop(&s->task);
	loop_defer(s->loop, &s->task);
}

bool session_state_due(struct session *s) {
	enum session_state now = session_state(s);
	if (now == s->told_state && now == s->named_state) return false;
	s->previous = now == s->told_state ? s->named_state : s->told_state;
	s->told_state = s->named_state = now;
	arm_idle(s);
	return true;
}

void session_bring_forward(struct session *s) {
	enum session_state now = session_state(s);
	s->previous = s->told_state;
	if (now != SESSION_IDLE) s->told_state = s->named_state = now;
	arm_idle(s);
	session_changed(s);
}

enum session_state session_name_state(struct session *s) {
	enum session_state now = session_state(s);
	if (now == s->told_state) return now;
	s->named_state = now;
	session_changed(s);
	return now;
}

static void on_idle(void *arg) {
	struct session *s = arg;
	if (session_state(s) != SESSION_IDLE) return;
	if (s->pendings.n || s->calls.n || session_works_on(s)) { /* not now, and no other check would follow */
		arm_idle(s);
		return;
	}
	log_info("session %s: idle for %lld s, goes to sleep", s->label, (long long)(s->profile->idle_sleep / 1000));
	session_stop(s, false, THEN_SLEEP);
}

bool session_works_on(struct session *s) {
	return s->progress.background || (s->agent && timers_count(&s->timers, now_real_ms()));
}

void session_used(struct session *s) {
	s->used_at = now_ms();
	if (s->agent && loop_timer_pending(&s->agent->idle_timer)) arm_idle(s);
}

static void on_warm(void *arg) {
	struct session *s = arg;
	progress_used(&s->progress);
	session_changed(s);
}

/* Return the line under the conversation of the session; no data: it names none, the same one, or has no memory. */
static struct chunk renamed(struct session *s, struct chunk line) {
	struct span body = splice_body(line);
	struct envelope e;
	if (!line.data) session_no_memory(s, "a line for it was lost");
	if (!line.data || !session_dialect(s)->scan(body.p, body.n, &e)) return CHUNK_NONE;
	if (!span_is_object(e.request) || !e.session_id.p || span_equals(e.session_id, s->conversation_id))
		return CHUNK_NONE;
	struct buf id = BUF_INIT(SIZE_MAX / 4);
	str_put_json(&id, s->conversation_id, strlen(s->conversation_id));
	struct chunk own = id.failed ? CHUNK_NONE : splice_replace(line.data, line.len, e.session_id, id.data, id.len);
	if (!own.data) session_no_memory(s, "a line for it was lost");
	buf_free(&id);
	return own;
}

/* Lines that wait for the end of the start may name the conversation before it, or an empty one. */
static void rename_waiting(struct session *s) {
	for (size_t i = 0, pieces; i < s->later.count; i += pieces) {
		struct chunk line;
		pieces = queue_line(&s->later, i, &line);
		struct chunk own = renamed(s, line);
		chunk_drop(&line);
		if (!own.data) continue;
		queue_replace(&s->later, i, own);
		pieces = 1;
	}
}

void session_set_conversation(struct session *s, const char *id) {
	char *copy = strdup(id);
	if (!copy) return;
	free(s->conversation_id);
	s->conversation_id = copy;
	if (session_dialect(s)->conversation_id) rename_waiting(s);
}

void session_set_resumed(struct session *s, const char *id) {
	char *copy = str_dup(id);
	free(s->resumed_id);
	s->resumed_id = copy;
}

void session_set_child(struct session *s, char *left_socket, char *version) {
	free(s->left_socket);
	free(s->version);
	s->left_socket = left_socket;
	s->version = version;
}

void session_set_reason(struct session *s, const char *reason) {
	free(s->reason);
	s->reason = str_dup(reason);
}

/* --- output of the child ------------------------------------------------------------------------------------------ */

/* Handle a whole last line without its newline: the end of the output ends it. */
static void end_line(struct session *s, struct chunk line) {
	struct chunk whole = splice_line(line, (struct span){line.data, line.len});
	struct envelope e;
	if (whole.data && session_dialect(s)->scan(whole.data, line.len, &e))
		s->events->line(s, whole, &e);
	else
		session_no_memory(s, "its last line was lost");
	chunk_drop(&whole);
}

static void on_line(void *arg, struct chunk line) {
	struct session *s = arg;
	struct envelope e;
	size_t n = line.len && line.data[line.len - 1] == '\n' ? line.len - 1 : line.len;
	s->lines_out++;
	s->bytes_out += line.len;
	if (lengths_line_is_wide()) {
		s->events->long_line(s, line, n, true);
	} else if (!session_dialect(s)->scan(line.data, n, &e)) {
		if (!span_is_blank((struct span){line.data, n}))
			s->events->stray(s, line); /* also half a line at the end of the output */
	} else if (n < line.len) {
		s->events->line(s, line, &e);
	} else {
		end_line(s, line);
	}
}

static void on_long_line(void *arg, struct chunk head, size_t size) {
	struct session *s = arg;
	s->events->long_line(s, head, size, false);
}

static void on_line_lost(void *arg) {
	session_no_memory(arg, "a line of the child was lost");
}

static void on_unwatched(void *arg) {
	session_no_memory(arg, "its child cannot be watched");
}

static void on_read_done(void *arg) {
	struct session *s = arg;
	tape_reserve(&s->tape, lines_held(&s->agent->out));
	s->events->read_done(s);
	session_changed(s);
}

static void on_stderr(void *arg, const char *data, size_t n) {
	struct session *s = arg;
	s->events->stderr_data(s, data, n);
	tail_take(&s->tail, data, n);
}

/* Read a new child once, even if readers are behind with the output of the previous one. */
void session_pace(struct session *s) {
	struct agent *a = s->agent;
	if (a && !a->unread) agent_read(a, a->exited || s->events->may_read(s));
}

static void on_pace(void *arg) {
	session_changed(arg);
}

/* --- stdin -------------------------------------------------------------------------------------------------------- */

/* The exit with the details may be on its way. If not, the stop timer ends the child. */
static void expect_end(struct session *s) {
	if (!s->agent->exited && s->stopping == STOP_NOT) loop_timer_set(&s->agent->stop_timer, BROKEN_MS);
}

void session_write_in(struct session *s) {
	struct agent *a = s->agent;
	if (!session_has_child(s) || !agent_hears(a) || agent_write(a, &s->in)) return;
	session_drop_input(s); /* the child is gone, or has closed its stdin and can read nothing any more */
	expect_end(s);
}

/* The child is gone, or has closed its stdout: it answers no request any more. */
static void on_muted(void *arg) {
	expect_end(arg);
	session_changed(arg); /* its last line may have come without a newline */
}

static void on_may_write(void *arg) {
	session_write_in(arg);
}

bool session_has_child(const struct session *s) {
	return s->agent && !s->agent->exited && s->stopping < STOP_EOF;
}

uint64_t session_writes_to(const struct session *s) {
	return session_has_child(s) ? s->child_no : s->child_no + 1;
}

void session_drop_input(struct session *s) {
	queue_free(&s->in);
	queue_free(&s->later);
}

static bool write_to(struct session *s, struct queue *q, struct rope *line, bool own, struct share *payer) {
	bool here = session_has_child(s);
	s->untouched = false;
	if (!here) s->only_asked = false; /* the sender waits for the start, too */
	if (!line->n) return false;       /* no memory for the line */
	if ((!here && !s->want_child) || (here && !agent_hears(s->agent)) || (!own && !queue_has_room(q, line->len))) {
		rope_drop(line);
		return false;
	}
	bool empty = q->count == 0;
	if (!queue_put_charged(q, line, payer)) return false;
	if (here && empty && q == &s->in) session_write_in(s);
	return true;
}

static struct queue *queue_for_clients(struct session *s) {
	return session_queue(s) == &s->later ? &s->later : &s->in;
}

bool session_write_charged(struct session *s, struct rope *line, struct share *payer) {
	return write_to(s, queue_for_clients(s), line, true, payer);
}

bool session_write(struct session *s, struct chunk line, bool own) {
	struct rope one = rope_of(line);
	return write_to(s, queue_for_clients(s), &one, own, NULL);
}

static void release_later(struct session *s) {
	if (!queue_move(&s->in, &s->later)) session_no_memory(s, "a line for it was lost");
	session_write_in(s);
}

void session_named(struct session *s) {
	if (!s->unnamed) return;
	s->unnamed = 0;
	s->waits = false;
	if (session_has_steps(s)) {
		progress_owes_init(&s->progress, false);
		progress_init(&s->progress);
	}
	release_later(s);
}

void session_step_sent(struct session *s, bool replays) {
	s->unnamed++;
	s->replays = replays;
	s->waits = false;
	progress_owes_init(&s->progress, session_has_steps(s));
}

void session_step_answered(struct session *s, bool good) {
	s->replays = false;
	if (!good) s->unnamed--;
}

void session_step_waits(struct session *s) {
	s->waits = true;
	progress_owes_init(&s->progress, false);
	release_later(s);
}

bool session_answer(struct session *s, struct rope *line) {
	if (session_has_child(s)) return write_to(s, &s->in, line, true, NULL);
	rope_drop(line);
	return false;
}

void session_must_write(struct session *s, struct chunk line) {
	bool waits = session_has_child(s) && agent_hears(s->agent); /* else it ends soon anyway */
	struct rope one = rope_of(line);
	if (one.n && session_answer(s, &one)) return;
	if (waits) session_no_memory(s, "it cannot be answered");
}

bool session_write_first(struct session *s, struct chunk line) {
	struct rope one = rope_of(line);
	if (s->in.sent || !session_has_child(s)) return write_to(s, &s->in, &one, true, NULL);
	s->untouched = false;
	if (!queue_put_first(&s->in, line)) return false;
	session_write_in(s);
	return true;
}

/* --- start -------------------------------------------------------------------------------------------------------- */

static const struct agent_events agent_events = {
	.line = on_line,
	.long_line = on_long_line,
	.line_lost = on_line_lost,
	.read_done = on_read_done,
	.stderr_data = on_stderr,
	.may_write = on_may_write,
	.muted = on_muted,
	.exited = session_on_exited,
	.ended = session_on_ended,
	.unwatched = on_unwatched,
};

static void reset_for_child(struct session *s) {
	progress_begin(&s->progress);
	s->failed = s->want_child = s->untouched = false;
	s->unnamed = 0;
	s->waits = s->replays = false;
	s->stopping = STOP_NOT;
	s->broken = BROKEN_NOT;
	s->then = THEN_SLEEP;
	s->leftovers = LEFTOVERS_AS_SET;
	s->spawn_tries = 0;
	snapshot_clear(&s->snapshot, session_dialect(s));
	tail_clear(&s->tail);
	session_set_reason(s, NULL);
}

static void init_timers(struct session *s, struct agent *a) {
	loop_timer_init(&a->stop_timer, s->loop, session_on_stop_timer, s);
	loop_timer_init(&a->idle_timer, s->loop, on_idle, s);
	loop_timer_init(&a->warm_timer, s->loop, on_warm, s);
	loop_timer_init(&a->pace_timer, s->loop, on_pace, s);
	loop_task_init(&a->left_task, session_on_left, s);
}

struct agent *session_new_agent(struct session *s) {
	size_t read_max = tape_piece(&s->tape); /* the data of one read must not push unread lines off the tape */
	struct agent *a = agent_new(s->loop, s->pool, s->settings->limits.child_line, read_max, &agent_events, s);
	if (!a) return NULL;
	lines_keep(&a->out, s->tape.max_bytes);
	init_timers(s, a);
	return a;
}

/* Make it this session's child. */
static void adopt(struct session *s, struct agent *a) {
	s->agent = a;
	s->child_no++;
	loop_timer_set(&a->warm_timer, WARM_MS);
}

static void set_start_error(struct session *s, enum child_result r, const char *error) {
	free(s->start_error);
	s->start_error = str_dup(error);
	s->start_result = r;
}

static void complete_start(struct session *s, struct agent *a) {
	reset_for_child(s);
	s->unnamed = session_has_steps(s) || (!s->conversation_id && launch_in_doubt(&s->launch, s->profile));
	if (s->unnamed) { /* lines for this child were queued there before */
		s->later = s->in;
		queue_init(&s->in, s->later.max);
	}
	adopt(s, a);
	agent_run(a);
	log_info("session %s: child %d started", s->label, a->child.was); /* it may have ended by now */
	s->events->started(s);
	session_write_in(s);
}

static void give_up_start(struct session *s, const char *error) {
	struct session_exit e = {.status = 127, .never_ran = true};
	s->want_child = false;
	s->failed = true;
	s->spawn_tries = 0; /* the next prompt gets as many tries */
	session_set_reason(s, error);
	queue_free(&s->in);
	s->child_no++; /* of the child that never was: its prompts are failed */
	s->events->exited(s, &e);
	session_changed(s);
}

/* Retry a transient failure a few times, but not for clients that wait for the result. */
static void start_failed(struct session *s, enum child_result r, const char *error) {
	log_warn("session %s: %s", s->label, error);
	set_start_error(s, r, error);
	bool again = r == CHILD_TRANSIENT && !s->only_asked && ++s->spawn_tries < SPAWN_TRIES;
	if (again && session_put_off(s, SPAWN_RETRY_MS * (int64_t)s->spawn_tries)) return;
	if (s->only_asked)
		s->want_child = false;
	else
		give_up_start(s, error);
	if (!s->removed) s->events->start_over(s);
}

static void on_start_over(void *arg, enum errand_end end) {
	struct session *s = arg;
	struct agent *a = s->starting;
	struct login *login;
	struct error error;
	enum child_result r = launch_result(&s->launch, &a->start, end, &a->place, &login, &error);
	s->starting = NULL;
	errand_drop(&a->start); /* its answer has been read */
	if (login) {
		login_unref(s->launch.login);
		s->launch.login = login;
	}
	if (r == CHILD_OK) {
		a->program = *error.text ? strdup(error.text) : NULL;
		s->launch.asker = 0;
		set_start_error(s, r, NULL);
		complete_start(s, a);
		s->events->start_over(s);
	} else {
		a->child.exited = NULL;
		child_close_in(&a->child);
		child_close_out(&a->child);
		child_close_err(&a->child);
		agent_free(a);
		start_failed(s, r, error.text);
	}
	s->only_asked = false;
	session_changed(s);
}

static enum child_result start(struct session *s, struct error *error) {
	const char *resume = session_resumes(s);
	bool fork = s->launch.fork && !s->conversation_id;
	if (resume && !session_can_resume(s)) {
		log_warn("session %s: profile %s has no resume_args, a new conversation begins", s->label, s->profile->name);
		resume = NULL;
	}
	if (s->starting) return CHILD_OK;
	if (session_is_stuck(s, error)) return CHILD_TRANSIENT;
	struct agent *a = session_new_agent(s);
	if (!a) {
		error_set(error, "out of memory");
		return CHILD_TRANSIENT;
	}
	enum child_result r = launch_begin(&s->launch, s->profile, s->name, resume, fork, s->settings->outside_timeout,
									   &a->start, &a->child, s->children, on_start_over, s, error);
	if (r != CHILD_OK) {
		agent_free(a);
		return r;
	}
	if (!s->turns.count && (resume || launch_in_doubt(&s->launch, s->profile))) cost_forget(&s->turns.cost);
	if (!resume) timers_free(&s->timers); /* they belonged to the old conversation */
	log_info("session %s: a child starts%s%s", s->label, resume ? ", resumes " : "", resume ? resume : "");
	s->starting = a;
	s->want_child = true;
	session_changed(s);
	return CHILD_OK;
}

enum child_result session_start_once(struct session *s, struct error *error) {
	s->only_asked = true;
	return start(s, error);
}

void session_drop_start(struct session *s) {
	if (!s->starting) return;
	agent_free(s->starting);
	s->starting = NULL;
	s->only_asked = false;
}

void session_end_start(struct session *s, const char *error) {
	set_start_error(s, CHILD_FAILED, error);
	s->events->start_over(s);
}

void session_pause_start(struct session *s) {
	if (!s->starting) return;
	session_drop_start(s);
	if (!session_put_off(s, 0)) session_no_memory(s, "its start is lost");
}

void session_resume(struct session *s) {
	if (s->agent) agent_resume(s->agent, s->children, s->in.count > 0);
	session_changed(s);
}

/* Try a delayed start. */
static void on_retry(void *arg) {
	struct session *s = arg;
	struct error error;
	if (s->agent || !s->want_child) return;
	enum child_result r = start(s, &error);
	if (r != CHILD_OK) start_failed(s, r, error.text);
}

bool session_put_off(struct session *s, int64_t ms) {
	if (!loop_timer_make(&s->retry_timer, s->loop, on_retry, s)) return false;
	loop_timer_set(s->retry_timer, ms);
	return true;
}

static bool begin_start(struct session *s, struct error *error) {
	int64_t wait = s->not_before - now_ms();
	if (s->lost_profile && strcmp(s->lost_profile, SESSION_UNREADABLE) == 0)
		return error_set(
			error,
			"session %s cannot start, because its record on disk was damaged: forget it, and resume its conversation "
			"in a new one",
			s->name);
	if (s->lost_profile)
		return error_set(
			error, "profile %s of session %s is not configured any more: bring it back and reload the configuration",
			s->lost_profile, s->name);
	if (s->failed && session_is_stuck(s, error)) return false;
	if (s->profile->restart_never && s->spent)
		return error_set(
			error,
			"the child of session %s has ended and profile %s says restart = never (resume its conversation in a new "
			"session)",
			s->name, s->profile->name);
	/* an old one that is still ending starts the next when it ends */
	if (!s->agent && !session_put_off(s, MAX(wait, (int64_t)0))) return error_set(error, "out of memory");
	s->want_child = true;
	session_changed(s);
	return true;
}

void session_start_due(struct session *s) {
	struct error error;
	if (s->want_child && !begin_start(s, &error)) give_up_start(s, error.text);
}

enum child_result session_wake_now(struct session *s, struct error *error) {
	bool wanted = s->want_child, only_asked = s->only_asked || !wanted;
	if (!session_wake(s, error)) return CHILD_FAILED;
	s->only_asked = only_asked;
	/* it exists, or comes later */
	if (s->agent || s->starting || s->not_before > now_ms() || session_is_stuck(s, error)) return CHILD_OK;
	enum child_result r = start(s, error);
	loop_timer_stop(s->retry_timer);
	if (r != CHILD_OK && wanted)
		give_up_start(s, error->text); /* others wait for it; a released line may begin another */
	else if (r != CHILD_OK)
		s->want_child = false;
	return r;
}

bool session_wake(struct session *s, struct error *error) {
	if (s->removed || session_is_going(s))
		return error_set(error, "session %s is being stopped and forgotten: attach anew, and there will be another",
						 s->name);
	s->only_asked = false;
	if (session_has_child(s) || s->want_child) return true;
	return begin_start(s, error);
}

/* --- handing a child over ----------------------------------------------------------------------------------------- */

bool session_can_give(const struct session *s) {
	return session_has_child(s) && !s->stopping && session_state(s) == SESSION_IDLE && agent_is_whole(s->agent) &&
		   !s->in.count && !lines_held(&s->agent->out) && !s->calls.n && !s->pendings.n && !s->progress.init_open &&
		   child_alive(&s->agent->child);
}

/* Copy a notice for the tape of another session: one about invalid JSON, the only record of that line, gets the other
 * session's name. data NULL: it stays with the first session. */
static struct chunk retold(const struct session *to, struct chunk notice) {
	struct span line = session_dialect(to)->frame->notice((struct span){notice.data, notice.len});
	struct span name = span_member(line, "session");
	if (!span_same(span_member(line, "event"), span_of("\"" PLENUM_EV_STRAY_OUTPUT "\""))) return CHUNK_NONE;
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	str_put_json(&b, to->name, strlen(to->name));
	struct chunk told = b.failed ? CHUNK_NONE : splice_replace(notice.data, notice.len, name, b.data, b.len);
	buf_free(&b);
	return told;
}

/* Copy the child's output to the tape of its next session; it stays on this one. */
static void pass_output(struct session *to, struct session *from) {
	to->tail = from->tail;
	tail_init(&from->tail);
	for (uint64_t seq = from->tape.oldest; seq < from->tape.next; seq++) {
		const struct tape_entry *e = tape_at(&from->tape, seq);
		struct chunk line = e->kind == LINE_NOTICE ? retold(to, e->line) : chunk_ref(e->line);
		if (line.data) tape_append(&to->tape, line, (enum line_kind)e->kind, e->flags);
	}
}

void session_touch(struct session *s) {
	s->untouched = false;
}

bool session_can_return(const struct session *s) {
	return session_has_child(s) && s->untouched && session_state(s) == SESSION_IDLE && !s->calls.n && !s->pendings.n &&
		   !s->conversation_id; /* the session's next child would take that up as well */
}

bool session_take_child(struct session *to, struct session *from) {
	if (!from->agent->name && !(from->agent->name = strdup(from->name))) return false;
	struct agent *a = from->agent;
	agent_stop_timers(a);
	from->agent = NULL;
	progress_used(&from->progress);
	from->child_no--;
	a->arg = to;
	init_timers(to, a);
	reset_for_child(to);
	pass_output(to, from);
	adopt(to, a);
	to->untouched = !to->spare;
	progress_take(&to->progress, &from->progress);
	to->snapshot = from->snapshot;
	to->snapshot.init_seq = 0; /* the lines have other numbers here */
	from->snapshot = (struct snapshot){0};
	session_changed(from);
	session_changed(to); /* the child may have waited for the readers of the other */
	return true;
}

/* --- making and removing ------------------------------------------------------------------------------------------ */

static void free_session(void *arg) {
	struct session *s = arg;
	tape_free(&s->tape);
	snapshot_free(&s->snapshot);
	memo_free(&s->memo);
	timers_free(&s->timers);
	session_drop_input(s);
	tail_clear(&s->tail);
	launch_free(&s->launch);
	settings_unref(s->settings);
	free(s->conversation_id);
	free(s->resumed_id);
	free(s->left_socket);
	free(s->version);
	free(s->lost_profile);
	free(s->reason);
	free(s->start_error);
	free(s->retry_timer);
	free(s->pace.timer);
	free(s->stall.timer);
	free(s->name);
	free(s->label);
	free(s);
}

bool session_rename(struct session *s, const char *name) {
	char *copy = strdup(name), *label = str_word(name);
	if (!copy || !label) {
		free(copy);
		free(label);
		return false;
	}
	free(s->name);
	free(s->label);
	s->name = copy;
	s->label = label;
	return true;
}

struct session *session_new(struct loop *loop, struct lines_pool *pool, struct children *children,
							struct settings *settings, const struct profile *profile, const char *name,
							struct launch *launch, const struct session_events *events, struct router *world) {
	struct session *s = calloc(1, sizeof *s);
	if (!s || !(s->name = strdup(name)) || !(s->label = str_word(name))) {
		if (s) free(s->name);
		free(s);
		return NULL;
	}
	s->loop = loop;
	s->children = children;
	s->events = events;
	s->world = world;
	s->settings = settings_ref(settings);
	s->profile = profile;
	s->launch = *launch;
	*launch = (struct launch){0};
	s->pool = pool;
	tail_init(&s->tail);
	s->told_state = s->named_state = SESSION_ASLEEP;
	s->created_at = now_real_ms();
	s->used_at = now_ms();
	queue_init(&s->in, settings->limits.stdin_queue);
	queue_init(&s->later, settings->limits.stdin_queue);
	tape_init(&s->tape, settings->limits.tape_bytes, settings->limits.tape_lines);
	list_init(&s->attachments);
	calls_init(&s->calls, profile->dialect->numbers);
	handles_init(&s->handles);
	pendings_init(&s->pendings);
	registry_init(&s->registry, profile->dialect->hooks);
	prompts_init(&s->prompts);
	loop_task_init(&s->task, on_task, s);
	loop_task_init(&s->free_task, free_session, s);
	list_init(&s->over_task.node);
	return s;
}

void session_remove(struct session *s) {
	if (s->removed) return;
	s->removed = true;
	calls_free(&s->calls);
	handles_free(&s->handles);
	pendings_free(&s->pendings);
	registry_free(&s->registry);
	prompts_free(&s->prompts);
	if (s->agent) session_drop_agent(s);
	session_drop_start(s);
	loop_timer_stop(s->retry_timer);
	loop_task_stop(&s->task);
	loop_defer_free(s->loop, &s->free_task);
}

void session_set_ephemeral(struct session *s) {
	s->ephemeral = true;
}

void session_set_made_by(struct session *s, uint64_t id) {
	s->made_by = id;
}

void session_set_created(struct session *s, int64_t ms) {
	s->created_at = ms;
}

void session_use_profile(struct session *s, struct settings *settings, const struct profile *p) {
	struct settings *old = s->settings;
	s->settings = settings_ref(settings);
	s->profile = p;
	free(s->lost_profile);
	s->lost_profile = NULL;
	settings_unref(old);
}

bool session_lose_profile(struct session *s, const char *name) {
	free(s->lost_profile);
	s->lost_profile = strdup(name);
	return s->lost_profile;
}

bool session_is_private(const struct session *s) {
	return s->lost_profile || s->profile->is_private; /* with a lost profile: unknown */
}
