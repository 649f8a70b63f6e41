/* SPDX-License-Identifier: MIT
 *
 * The end of a session's child: the stop sequence, and the cleanup when the child is gone (contract 8).
 */
#include "core/session_parts.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "io/proc.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define INTERRUPT_MS 2000 /* the longest that a stop waits for the interrupted turn's result */
#define BACKOFF_FIRST_MS 500
#define BACKOFF_MAX_MS 30000
#define KILL_MIN_MS 1000 /* the least time for a killed process to end, however short stop_grace is */
#define HEALTHY_MS 10000 /* a child that ran this long resets the count of failures */

/* --- cleanup ------------------------------------------------------------------------------------------------------ */

/* The CLI leaves its message socket behind when it is killed (protocol-facts 6.3). Its path is reported by the child
 * and may be anywhere. */
static void remove_left_socket(struct session *s) {
	char *path = s->left_socket;
	s->left_socket = NULL;
	if (path && *path == '/') {
		_cleanup_free_ char *place = strndup(path, (size_t)(strrchr(path, '/') - path));
		if (place) errand_send(s->children, SESSION_LEFT_ERRAND, path, strlen(path) + 1, place);
	}
	free(path);
}

int session_left_errand(void) {
	struct stat st;
	size_t n;
	_cleanup_free_ char *path = errand_request(&n);
	if (path && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_uid == geteuid()) unlink(path);
	return 0;
}

static bool can_resume(const struct session *s) {
	return s->conversation_id && session_can_resume(s) && !s->profile->restart_never;
}

static void explain_failure(struct session *s, const struct session_exit *e) {
	if ((e->broken == BROKEN_SECOND || e->broken == BROKEN_REFUSED) && s->reason) return; /* it says more */
	_cleanup_free_ char *words = tail_words(&s->tail);
	const char *last = words ? words : "it wrote nothing to stderr";
	_cleanup_free_ char *text = e->broken   ? str_printf("%s: %s", session_broken_text(e->broken), last)
								: e->signal ? str_printf("the child was killed by signal %d: %s", e->signal, last)
											: str_printf("the child exited with status %d: %s", e->status, last);
	session_set_reason(s, text);
}

static void count_failure(struct session *s, const struct session_exit *e) {
	if (e->wanted || (e->ran_ms > HEALTHY_MS && s->progress.said_init)) {
		s->failures = 0;
		s->not_before = 0;
		return;
	}
	int64_t wait = 0;
	if (++s->failures > 1) wait = MIN((int64_t)BACKOFF_FIRST_MS << MIN(s->failures - 2, 10U), (int64_t)BACKOFF_MAX_MS);
	s->not_before = now_ms() + wait;
}

static struct session_exit exit_of(const struct session *s) {
	int status = s->agent->exit_status;
	struct session_exit e = {.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
							 .wanted = s->stopping != STOP_NOT && (!s->broken || s->then == THEN_REMOVE),
							 .broken = s->broken,
							 .in_turn = s->progress.turn,
							 .ran_ms = s->agent->exited_at - s->agent->started_at};
	e.status = e.signal ? 128 + e.signal : WEXITSTATUS(status);
	return e;
}

void session_drop_agent(struct session *s) {
	agent_free(s->agent);
	s->agent = NULL;
}

static void log_end(const struct session *s, const struct session_exit *e) {
	if (e->stuck)
		log_error("session %s: %s", s->label, s->reason ? s->reason : "its child cannot be ended");
	else
		log_info("session %s: child ended, status %d%s%s, ran %lld ms", s->label, e->status,
				 e->signal ? ", by signal" : "", e->wanted ? ", as asked" : "", (long long)e->ran_ms);
}

/* The session has no child any more. */
static void end_child(struct session *s, const struct session_exit *e) {
	session_drop_agent(s);
	progress_end(&s->progress);
	snapshot_child_gone(&s->snapshot, session_dialect(s));
	timers_child_gone(&s->timers);
	count_failure(s, e);
	remove_left_socket(s);
	if (!e->stuck && (!e->wanted || e->broken)) explain_failure(s, e);
	s->failed = e->stuck || (!e->wanted && (!can_resume(s) || e->broken == BROKEN_REFUSED));
	s->spent = !e->wanted && s->profile->restart_never;
	s->stopping = STOP_NOT;
	if (s->then == THEN_RESTART && !e->stuck) s->want_child = true;
	log_end(s, e);
	s->events->exited(s, e);
	if (s->removed) return;
	session_start_due(s);
	session_changed(s);
}

static void explain_stuck(const struct session *s, struct error *error) {
	struct error why;
	proc_explain(s->stuck_pid, &why);
	error_set(error, "child %d of session %s cannot be ended: %s", s->stuck_pid, s->name, why.text);
}

/* All of its output was read. */
void session_on_ended(void *arg) {
	struct session *s = arg;
	agent_close_in(s->agent);
	s->events->left(s);
}

void session_on_left(void *arg) {
	session_left(arg);
}

/* Without an exit the child cannot be ended. */
void session_left(struct session *s) {
	struct error error;
	struct session_exit e = exit_of(s);
	e.stuck = !s->agent->exited;
	if (e.stuck) {
		session_set_stuck(s, s->agent->child.pid, s->agent->child.start);
		explain_stuck(s, &error);
		session_set_reason(s, error.text);
	}
	tail_end(&s->tail);
	if (s->events->closing && !s->events->closing(s, &e)) {
		loop_defer(s->loop, &s->agent->left_task);
		return;
	}
	end_child(s, &e);
}

void session_on_exited(void *arg) {
	struct session *s = arg;
	s->untouched = false; /* it cannot be taken back now */
	queue_free(&s->later);
	if (s->stopping < STOP_EOF) queue_free(&s->in); /* queued for the dead child */
	session_changed(s);
}

/* --- stop sequence ------------------------------------------------------------------------------------------------ */

static int64_t step_ms(const struct session *s) {
	return s->brief ? s->profile->stop_grace / 2 : s->profile->stop_grace;
}

static void log_step(const struct session *s, const char *what) {
	log_info("session %s: stop, %s after %lld ms", s->label, what, (long long)(now_ms() - s->stop_since));
}

/* Its processes are being recorded: until then the child gets nothing that ends one of them. */
static bool is_recording(const struct session *s) {
	return !list_empty(&s->agent->look.node) && !s->agent->look.left;
}

static void send_interrupt(struct session *s) {
	struct buf b = BUF_INIT(512);
	struct call *c = call_new(&s->calls, s, s->loop, CALL_SILENT, NULL, 0, SPAN_NONE, NULL);
	if (!c) return;
	session_dialect(s)->put_interrupt(&b, c->id, s->conversation_id, &s->memo);
	if (b.data) session_write(s, chunk_copy(b.data, b.len), true);
	buf_free(&b);
}

/* The time of the current step, from now. */
static void set_stop_timer(struct session *s) {
	int64_t wait = step_ms(s);
	if (s->stopping == STOP_INTERRUPT) wait = MIN(wait, (int64_t)INTERRUPT_MS);
	if (s->stopping == STOP_KILL) wait = MAX(wait, (int64_t)KILL_MIN_MS);
	loop_timer_set(&s->agent->stop_timer, wait);
}

static void step(struct session *s, enum stop_stage stage) {
	s->stopping = stage;
	set_stop_timer(s);
}

static void step_interrupt(struct session *s) {
	log_step(s, "interrupting the turn");
	step(s, STOP_INTERRUPT);
	if (!is_recording(s)) send_interrupt(s);
}

static void step_eof(struct session *s) {
	log_step(s, "closing stdin");
	session_write_in(s);
	session_drop_input(s);
	if (is_recording(s))
		agent_pause_in(s->agent);
	else
		agent_close_in(s->agent);
	step(s, STOP_EOF);
}

/* Close stdin after the signal: at the end of its input the child would end by itself. */
static void kill_child(struct session *s) {
	child_kill(&s->agent->child, SIGKILL);
	agent_close_in(s->agent);
}

/* The step that waited for it begins only now. */
void session_recorded(struct session *s) {
	if (s->agent->exited) return;
	if (loop_timer_pending(&s->agent->stop_timer)) set_stop_timer(s);
	if (s->stopping == STOP_INTERRUPT)
		send_interrupt(s);
	else if (s->stopping == STOP_KILL)
		kill_child(s);
	else if (s->stopping != STOP_NOT)
		agent_close_in(s->agent);
}

static void step_term(struct session *s) {
	log_step(s, "SIGTERM");
	child_kill(&s->agent->child, SIGTERM);
	step(s, STOP_TERM);
}

/* Its unread input is lost with it; lines queued after its end of input are for the next child. Until its processes are
 * recorded the child is held instead: it does nothing more, and the tree of its processes stays complete. */
static void step_kill(struct session *s) {
	if (session_has_child(s)) session_drop_input(s);
	log_step(s, "SIGKILL");
	step(s, STOP_KILL);
	if (is_recording(s)) {
		child_kill(&s->agent->child, SIGSTOP);
		agent_pause_in(s->agent);
	} else {
		kill_child(s);
	}
}

bool session_is_stuck(struct session *s, struct error *error) {
	if (s->stuck_pid && !proc_lives(s->stuck_pid, s->stuck_start)) s->stuck_pid = 0;
	if (s->stuck_pid) explain_stuck(s, error);
	return s->stuck_pid != 0;
}

/* The last step: SIGKILL did not end it. The session goes on as if the child had ended. */
static void give_up(struct session *s) {
	children_reap(s->children); /* it may have ended, and not been reaped yet */
	if (!s->agent || s->agent->exited) return;
	loop_timer_set(&s->agent->stop_timer, KILL_MIN_MS); /* for a binary that takes over before the end */
	agent_end(s->agent);
}

static void advance_stop(struct session *s) {
	if (!s->agent || s->agent->exited) return;
	if (s->stopping == STOP_NOT && !s->broken && (s->progress.turn || s->prompts.n_open > s->prompts.n_held))
		step_interrupt(s);
	else if (s->stopping < STOP_EOF)
		step_eof(s);
	else if (s->stopping == STOP_EOF)
		step_term(s);
	else if (s->stopping == STOP_TERM)
		step_kill(s);
	else
		give_up(s);
}

/* Called before the first step, while the tree of its processes is complete. */
static void begin_end(struct session *s) {
	loop_timer_stop(&s->agent->idle_timer);
	if (s->stopping != STOP_NOT) return;
	s->stop_since = now_ms();
	if (!s->agent->exited) s->events->ending(s);
}

static void stop_broken(struct session *s) {
	s->broken = s->agent->eof ? BROKEN_MUTE : BROKEN_DEAF;
	log_warn("session %s: child %d has closed its %s and lives on: it is stopped", s->label, s->agent->child.pid,
			 s->agent->eof ? "stdout" : "stdin");
	begin_end(s);
}

/* Go to the last step at once: the child must do nothing more. */
static void kill_now_for(struct session *s, enum broken broken) {
	s->broken = broken;
	if (s->agent->exited || s->stopping == STOP_KILL) return; /* it cannot do more */
	begin_end(s);
	step_kill(s);
}

void session_kill_second(struct session *s, const struct session *other, const char *why) {
	_cleanup_free_ char *reason = str_printf("%s: %s", session_broken_text(BROKEN_SECOND), why);
	log_warn("session %s: child %d took up the conversation of session %s", s->label, s->agent->child.pid,
			 other->label);
	session_set_reason(s, reason);
	kill_now_for(s, BROKEN_SECOND);
}

void session_kill_refused(struct session *s, const char *why) {
	log_warn("session %s: child %d: %s", s->label, s->agent->child.pid, why);
	session_set_reason(s, why);
	kill_now_for(s, BROKEN_REFUSED);
}

/* A child being stopped ends as intended, only sooner. */
void session_no_memory(struct session *s, const char *what) {
	log_error("session %s: out of memory, %s; its child is ended", s->label, what);
	if (s->agent && !s->agent->exited) kill_now_for(s, s->stopping == STOP_NOT ? BROKEN_MEMORY : s->broken);
}

void session_on_stop_timer(void *arg) {
	struct session *s = arg;
	if (s->stopping == STOP_NOT && !s->agent->exited) {
		stop_broken(s);
	} else if (!s->agent->exited && is_recording(s)) {
		set_stop_timer(s);
		return;
	}
	advance_stop(s);
}

void session_turn_ended(struct session *s) {
	s->failures = 0;
	if (s->stopping == STOP_INTERRUPT) advance_stop(s);
}

/* Cancel a delayed start and fail the prompts that wait for it. */
static void cancel_start(struct session *s, enum stop_then then) {
	struct session_exit e = {.wanted = true, .never_ran = true};
	session_drop_start(s);
	s->want_child = false;
	s->then = then;
	queue_free(&s->in);
	s->child_no++;
	s->events->exited(s, &e);
	if (!s->removed) session_end_start(s, "the session was stopped meanwhile");
	session_changed(s);
}

/* A stop by a client outweighs a restart, removal outweighs sleep. */
static bool outweighs(enum stop_then then, enum stop_then before) {
	return then == THEN_REMOVE || (then == THEN_SLEEP && before == THEN_RESTART);
}

/* The common part of all stops. False: there is no child. */
static bool begin_stop(struct session *s, enum stop_then then) {
	s->untouched = false;
	if (!s->agent) {
		loop_timer_stop(s->retry_timer);
		if (s->want_child && then != THEN_RESTART) cancel_start(s, then);
		return false;
	}
	if (s->stopping == STOP_NOT || outweighs(then, s->then)) s->then = then;
	if (s->broken != BROKEN_SECOND) s->broken = BROKEN_NOT; /* now a client wants the stop */
	if (s->want_child && then != THEN_RESTART) {            /* nor the next child; the end notifies its clients */
		s->want_child = false;
		s->child_no++; /* of the child that never will be: not of another wanted before this one's end */
		if (!session_has_child(s)) queue_free(&s->in);
	}
	begin_end(s);
	return true;
}

/* Take the steps that session_end_input() left out: no client waits any more, or one waits for the conversation. */
static void hurry(struct session *s) {
	struct loop_timer *timer = &s->agent->stop_timer;
	if (s->stopping != STOP_EOF || s->agent->exited || loop_timer_pending(timer)) return;
	loop_timer_set(timer, MAX(s->stop_since + step_ms(s) - now_ms(), (int64_t)0));
}

void session_set_stuck(struct session *s, pid_t pid, uint64_t start) {
	s->stuck_pid = pid;
	s->stuck_start = start;
}

void session_stop_for(struct session *s, uint64_t client, enum leftovers leftovers) {
	s->stopper = client;
	s->leftovers = MAX(s->leftovers, leftovers);
}

void session_stop(struct session *s, bool kill_now, enum stop_then then) {
	bool first = s->stopping == STOP_NOT;
	if (!begin_stop(s, then)) return;
	if (kill_now && s->stopping < STOP_KILL) {
		step_kill(s);
	} else if (first && s->agent->exited) {
		if (then != THEN_RESTART) s->stopping = STOP_EOF; /* wait only for the end of its output */
	} else if (first) {
		advance_stop(s);
	} else {
		hurry(s);
	}
}

void session_quit(struct session *s, bool kill_now) {
	s->brief = true;
	session_stop(s, kill_now, THEN_SLEEP);
	struct loop_timer *timer = s->agent ? &s->agent->stop_timer : NULL;
	int64_t most = s->stopping == STOP_KILL ? MAX(step_ms(s), (int64_t)KILL_MIN_MS) : step_ms(s);
	if (loop_timer_left(timer) > most) loop_timer_set(timer, most);
}

void session_end_input(struct session *s) {
	bool first = s->stopping == STOP_NOT;
	if (session_is_going(s) || !begin_stop(s, THEN_REMOVE) || !first) return;
	if (s->agent->exited) {
		s->stopping = STOP_EOF;
		return;
	}
	step_eof(s);
	loop_timer_stop(&s->agent->stop_timer);
}

void session_leave(struct session *s) {
	s->leaving = true;
}
