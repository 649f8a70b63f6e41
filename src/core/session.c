/* SPDX-License-Identifier: MIT */
#include "core/session.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "io/proc.h"
#include "plenum/protocol.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define WARM_MS 100       /* a child that lives this long and was asked for nothing is idle */
#define END_GRACE_MS 1000 /* for whoever still holds the output of a child that has exited */
#define INTERRUPT_MS 2000 /* the longest that a stop waits for the interrupted turn's result */
#define LAST_READS 64     /* at its end a pipe is read as far as it can be full, not as fast as a grandchild fills it */
#define BACKOFF_FIRST_MS 500
#define BACKOFF_MAX_MS 30000
#define SPAWN_TRIES 5
#define SPAWN_RETRY_MS 300
#define SLEEP_PROMPTS 16 /* finished prompts that a session without a child remembers */
#define SLEEP_SETTLED 64 /* and requests that were settled */
#define HEALTHY_MS 10000 /* a child that ran this long ends a row of failures */

static void advance_stop(struct session *s);
static void check_end(struct session *s);
static bool begin_start(struct session *s, char *error);

const char *session_state_name(enum session_state state) {
	static const char *const names[] = {PLENUM_ST_STARTING, PLENUM_ST_IDLE,   PLENUM_ST_BUSY,
										PLENUM_ST_ASKING,   PLENUM_ST_ASLEEP, PLENUM_ST_FAILED};
	return names[state];
}

/* --- state ----------------------------------------------------------------------------------------------------------
 */

static enum session_state compute_state(const struct session *s) {
	if (!s->running) return s->want_child ? SESSION_STARTING : s->failed ? SESSION_FAILED : SESSION_ASLEEP;
	if (s->pendings.n_person) return SESSION_ASKING;
	bool prompts = s->prompts.n_open > s->prompts.n_held;
	if (s->init_open && !s->turn && (s->warming || !prompts)) return SESSION_STARTING;
	if (s->turn || prompts) return SESSION_BUSY;
	if (s->warming && !s->got_line) return SESSION_STARTING;
	return SESSION_IDLE;
}

static void arm_idle(struct session *s) {
	bool idle = s->state == SESSION_IDLE && s->stopping == STOP_NOT && !s->ephemeral && !s->spare;
	if (idle)
		loop_timer_set(&s->idle_timer, s->profile->idle_sleep);
	else
		loop_timer_stop(&s->idle_timer);
}

static void on_state(void *arg) {
	struct session *s = arg;
	s->state = compute_state(s);
	if (s->state == s->told_state) return;
	s->previous = s->told_state;
	s->told_state = s->state;
	arm_idle(s);
	s->events->state(s);
}

void session_bring_forward(struct session *s) {
	session_check_state(s);
	s->previous = s->told_state;
	if (s->state != SESSION_IDLE) s->told_state = s->state;
	arm_idle(s);
}

void session_check_state(struct session *s) {
	if (s->removed) return; /* a task now would run after it was freed */
	s->state = compute_state(s);
	if (s->state != s->told_state) loop_defer_first(s->loop, &s->state_task);
}

static void on_idle(void *arg) {
	struct session *s = arg;
	if (s->state != SESSION_IDLE) return;
	if (s->pendings.n || s->calls.n || s->background) { /* not now; nobody else would look again */
		arm_idle(s);
		return;
	}
	log_info("session %s: idle for %lld s, goes to sleep", s->name, (long long)(s->profile->idle_sleep / 1000));
	session_stop(s, false, THEN_SLEEP);
}

void session_used(struct session *s) {
	s->used_at = now_ms();
	if (loop_timer_pending(&s->idle_timer)) arm_idle(s);
}

static void on_warm(void *arg) {
	struct session *s = arg;
	s->warming = false;
	session_check_state(s);
}

void session_set_conversation(struct session *s, const char *id) {
	char *copy = strdup(id);
	if (!copy) return;
	free(s->conversation_id);
	s->conversation_id = copy;
}

void session_set_reason(struct session *s, const char *reason) {
	free(s->reason);
	s->reason = str_dup(reason);
}

/* --- stderr ---------------------------------------------------------------------------------------------------------
 */

static void keep_stderr_line(struct session *s) {
	struct buf *b = &s->stderr_part;
	char *line = strndup(b->data ? b->data : "", b->len);
	size_t at = (s->stderr_first + s->stderr_count) % STDERR_LINES;
	b->len = 0;
	b->failed = false;
	if (!s->stderr_lines) s->stderr_lines = calloc(STDERR_LINES, sizeof *s->stderr_lines);
	if (!line || !s->stderr_lines) {
		free(line);
		return;
	}
	if (s->stderr_count == STDERR_LINES) {
		at = s->stderr_first;
		free(s->stderr_lines[at]);
		s->stderr_first = (s->stderr_first + 1) % STDERR_LINES;
	} else {
		s->stderr_count++;
	}
	s->stderr_lines[at] = line;
}

const char *session_stderr(const struct session *s, size_t index) {
	return s->stderr_lines[(s->stderr_first + index) % STDERR_LINES];
}

static void clear_stderr(struct session *s) {
	for (size_t i = 0; i < s->stderr_count; i++) free(s->stderr_lines[(s->stderr_first + i) % STDERR_LINES]);
	free(s->stderr_lines);
	s->stderr_lines = NULL;
	s->stderr_first = s->stderr_count = 0;
	buf_free(&s->stderr_part);
}

static void take_stderr(struct session *s, const char *data, size_t n) {
	s->events->stderr_data(s, data, n);
	while (n) {
		const char *lf = memchr(data, '\n', n);
		size_t len = lf ? (size_t)(lf - data) : n;
		size_t room = s->stderr_part.max - s->stderr_part.len;
		buf_put(&s->stderr_part, data, MIN(len, room)); /* the rest of a long line is cut */
		if (lf) {
			keep_stderr_line(s);
			len++;
		}
		data += len;
		n -= len;
	}
}

static void on_err(void *arg, bool readable, bool writable) {
	struct session *s = arg;
	char data[16384];
	(void)readable, (void)writable;
	ssize_t n = fd_read(s->child.err, data, sizeof data);
	if (n > 0) take_stderr(s, data, (size_t)n);
	if (n > 0 || (n < 0 && errno == EAGAIN)) return;
	loop_fd_stop(&s->err_fd);
	child_close_err(&s->child);
}

/* Everything that is there, at the child's end. */
static void drain_err(struct session *s) {
	char data[16384];
	ssize_t n;
	for (int i = 0; i < LAST_READS && s->child.err >= 0 && (n = fd_read(s->child.err, data, sizeof data)) > 0; i++)
		take_stderr(s, data, (size_t)n);
	loop_fd_stop(&s->err_fd);
	child_close_err(&s->child);
	if (s->stderr_part.len) keep_stderr_line(s);
}

/* --- stdout ---------------------------------------------------------------------------------------------------------
 */

static bool is_blank(const char *p, size_t n) {
	while (n && (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n')) p++, n--;
	return n == 0;
}

/* A byte order mark before the first line is skipped. */
static struct chunk without_bom(struct session *s, struct chunk line) {
	bool first = !s->bom_seen;
	s->bom_seen = true;
	if (!first || line.len < 3 || memcmp(line.data, "\xef\xbb\xbf", 3) != 0) return chunk_ref(line);
	return chunk_view(line, 3, line.len - 3);
}

static void take_line(struct session *s, struct chunk raw) {
	struct envelope e;
	struct chunk line = without_bom(s, raw);
	size_t n = line.len && line.data[line.len - 1] == '\n' ? line.len - 1 : line.len;
	s->lines_out++;
	s->bytes_out += line.len;
	if (n < line.len && scan_envelope(line.data, n, &e))
		s->events->line(s, line, &e);
	else if (!is_blank(line.data, n))
		s->events->stray(s, line); /* half a line at the child's death, too */
	chunk_drop(&line);
}

static void take_lines(struct session *s) {
	struct chunk line;
	size_t size;
	enum lines_result r;
	while ((r = lines_next(&s->out, &line, &size)) == LINES_LINE || r == LINES_LONG) {
		if (r == LINES_LONG)
			s->events->long_line(s, line, size);
		else
			take_line(s, line);
		chunk_drop(&line);
	}
	if (r == LINES_OOM) session_no_memory(s, "a line of the child was lost");
}

/* One read; true: there may be more. */
static bool read_out(struct session *s) {
	size_t room;
	char *space = lines_space(&s->out, &room);
	if (!space) {
		log_error("session %s: no memory to read the child", s->name);
		return false;
	}
	room = MIN(
		room, MAX(s->tape.max_bytes / 8, (size_t)4096)); /* what one read brings must not push out what is waited for */
	ssize_t n = fd_read(s->child.out, space, room);
	int number = errno;
	if (n > 0) lines_commit(&s->out, (size_t)n);
	take_lines(s);
	tape_reserve(&s->tape, lines_held(&s->out));
	if (n > 0) {
		s->last_output = now_ms();
		return true;
	}
	if (n < 0 && number == EAGAIN) return false;
	s->eof = true;
	return false;
}

static void finish_out(struct session *s) {
	struct chunk rest;
	size_t size;
	if (lines_cut(&s->out, &size)) s->events->long_line(s, s->out.head, size);
	if (lines_rest(&s->out, &rest)) {
		take_line(s, rest);
		chunk_drop(&rest);
	}
	lines_free(&s->out);
	loop_fd_stop(&s->out_fd);
	child_close_out(&s->child);
}

static void on_out(void *arg, bool readable, bool writable) {
	struct session *s = arg;
	(void)readable, (void)writable;
	read_out(s);
	s->events->read_done(s);
	if (s->eof) {
		finish_out(s);
		check_end(s);
		return;
	}
	session_read_again(s);
}

void session_read_again(struct session *s) {
	if (!s->running || s->eof || s->child.out < 0) return;
	bool may = s->exited || s->events->may_read(s);
	s->read_paused = !may;
	loop_fd_want(&s->out_fd, may, false);
}

/* --- stdin ----------------------------------------------------------------------------------------------------------
 */

static void write_in(struct session *s) {
	if (s->child.in < 0) return;
	int r = queue_write(&s->in, s->child.in);
	if (r < 0) { /* the child is gone or has closed its stdin: its exit tells the rest */
		queue_free(&s->in);
		loop_fd_stop(&s->in_fd);
		child_close_in(&s->child);
		/* one that lives on can be told nothing any more */
		if (!s->exited && s->stopping == STOP_NOT) loop_timer_set(&s->stop_timer, END_GRACE_MS);
		return;
	}
	loop_fd_want(&s->in_fd, false, r > 0);
}

static void on_in(void *arg, bool readable, bool writable) {
	(void)readable, (void)writable;
	write_in(arg);
}

bool session_has_child(const struct session *s) {
	return s->running && !s->exited && s->stopping < STOP_EOF;
}

uint64_t session_writes_to(const struct session *s) {
	return session_has_child(s) ? s->child_no : s->child_no + 1;
}

bool session_write(struct session *s, struct chunk line, bool own) {
	bool here = session_has_child(s);
	s->untouched = false;
	if ((!here && !s->want_child) || (here && s->child.in < 0) || (!own && !queue_has_room(&s->in, line.len))) {
		chunk_drop(&line);
		return false;
	}
	bool empty = s->in.count == 0;
	if (!queue_put(&s->in, line)) return false;
	if (here && empty) write_in(s);
	return true;
}

void session_no_memory(struct session *s, const char *what) {
	log_error("session %s: out of memory, %s; its child is ended", s->name, what);
	if (s->running && !s->exited) child_kill(&s->child, SIGKILL);
}

bool session_answer(struct session *s, struct chunk line) {
	if (session_has_child(s)) return session_write(s, line, true);
	chunk_drop(&line);
	return false;
}

void session_must_write(struct session *s, struct chunk line) {
	bool waits = session_has_child(s) && s->child.in >= 0; /* else its end is near anyway */
	if (line.data && session_answer(s, line)) return;
	if (waits) session_no_memory(s, "it cannot be answered");
}

bool session_write_first(struct session *s, struct chunk line) {
	if (s->in.sent || !session_has_child(s)) return session_write(s, line, true);
	s->untouched = false;
	if (!queue_put_first(&s->in, line)) return false;
	write_in(s);
	return true;
}

/* --- start ----------------------------------------------------------------------------------------------------------
 */

static void on_exited(void *arg, int status);

static void reset_for_child(struct session *s) {
	s->exited = s->eof = s->got_line = s->said_init = s->turn = s->bom_seen = s->read_paused = s->failed = false;
	s->init_open = s->want_child = s->background = s->untouched = false;
	s->warming = true;
	free(s->child_name);
	s->child_name = NULL;
	s->stopping = STOP_NOT;
	s->then = THEN_SLEEP;
	s->spawn_tries = 0;
	snapshot_clear(&s->snapshot);
	clear_stderr(s);
	session_set_reason(s, NULL);
}

static void init_fds(struct session *s) {
	loop_fd_init(&s->in_fd, s->loop, s->child.in, on_in, s);
	loop_fd_init(&s->out_fd, s->loop, s->child.out, on_out, s);
	loop_fd_init(&s->err_fd, s->loop, s->child.err, on_err, s);
}

static void connect_child(struct session *s) {
	s->running = true;
	s->child_no++;
	s->started_at = s->last_output = now_ms();
	lines_init(&s->out, s->out.pool, s->settings->limits.child_line);
	init_fds(s);
	loop_fd_want(&s->out_fd, true, false);
	loop_fd_want(&s->err_fd, true, false);
	loop_timer_set(&s->warm_timer, WARM_MS);
}

/* What the next child is to resume; NULL: a new conversation, said where an old one is lost by it. */
static const char *resume_id(struct session *s) {
	const char *id = s->resumed_id ? s->resumed_id : s->conversation_id ? s->conversation_id : s->launch.resume;
	if (!id || s->profile->resume_args.n) return id;
	log_warn("session %s: profile %s has no resume_args, a new conversation begins", s->name, s->profile->name);
	return NULL;
}

enum child_result session_start(struct session *s, char *error) {
	const char *resume = resume_id(s);
	bool fork = s->launch.fork && !s->conversation_id;
	s->child.exited = on_exited;
	s->child.arg = s;
	enum child_result r = launch_spawn(&s->launch, s->profile, s->name, resume, fork, &s->child, s->children, error);
	if (r != CHILD_OK) return r;
	reset_for_child(s);
	connect_child(s);
	log_info("session %s: child %d started%s%s", s->name, s->child.pid, resume ? ", resumes " : "",
			 resume ? resume : "");
	s->events->started(s);
	write_in(s);
	session_check_state(s);
	return CHILD_OK;
}

void session_resume(struct session *s) {
	s->child.exited = on_exited;
	s->child.arg = s;
	if (s->running) {
		init_fds(s);
		if (s->child.pid > 0) child_resume(&s->child, s->children);
		if (s->child.in >= 0) loop_fd_want(&s->in_fd, false, s->in.count > 0);
		if (s->child.err >= 0) loop_fd_want(&s->err_fd, true, false);
		session_read_again(s);
	}
	session_check_state(s);
}

static void give_up_start(struct session *s, const char *error) {
	struct session_exit e = {.status = 127, .never_ran = true};
	s->want_child = false;
	s->failed = true;
	session_set_reason(s, error);
	queue_free(&s->in);
	s->child_no++; /* the one that never was: its prompts are failed */
	s->events->exited(s, &e);
	session_check_state(s);
}

/* Tries a start that was put off; what may pass is tried some times more. */
static void try_start(struct session *s) {
	char error[CHILD_ERROR_MAX];
	if (s->running || !s->want_child) return;
	enum child_result r = session_start(s, error);
	if (r == CHILD_OK) return;
	log_warn("session %s: %s", s->name, error);
	if (r == CHILD_TRANSIENT && ++s->spawn_tries < SPAWN_TRIES)
		loop_timer_set(&s->retry_timer, SPAWN_RETRY_MS * (int64_t)s->spawn_tries);
	else
		give_up_start(s, error);
}

static void on_retry(void *arg) {
	try_start(arg);
}

static bool begin_start(struct session *s, char *error) {
	int64_t wait = s->not_before - now_ms();
	if (s->lost_profile) {
		snprintf(error, CHILD_ERROR_MAX,
				 "profile %s of session %s is not configured any more: bring it back and reload the configuration",
				 s->lost_profile, s->name);
		return false;
	}
	if (s->profile->restart_never && s->child_no) {
		snprintf(error, CHILD_ERROR_MAX, "the child of session %s has ended and profile %s says restart = never",
				 s->name, s->profile->name);
		return false;
	}
	s->want_child = true;
	session_check_state(s);
	if (s->running) return true; /* the old one is still ending */
	loop_timer_set(&s->retry_timer, MAX(wait, (int64_t)0));
	return true;
}

/* For somebody who waits to hear whether the program can be started. */
enum child_result session_wake_now(struct session *s, char *error) {
	bool wanted = s->want_child;
	if (!session_wake(s, error)) return CHILD_FAILED;
	if (s->running || s->not_before > now_ms()) return CHILD_OK; /* is there, or comes later */
	enum child_result r = session_start(s, error);
	loop_timer_stop(&s->retry_timer);
	if (r != CHILD_OK && wanted)
		give_up_start(s, error); /* others wait for it; what was held may begin another */
	else if (r != CHILD_OK)
		s->want_child = false;
	session_check_state(s);
	return r;
}

bool session_wake(struct session *s, char *error) {
	if (s->removed || (s->running && s->then == THEN_REMOVE && s->stopping)) {
		snprintf(error, CHILD_ERROR_MAX, "session %s is being removed", s->name);
		return false;
	}
	if (session_has_child(s) || s->want_child) return true;
	return begin_start(s, error);
}

/* --- handing a child over -------------------------------------------------------------------------------------------
 */

bool session_can_give(const struct session *s) {
	return session_has_child(s) && !s->stopping && s->state == SESSION_IDLE && !s->eof && !s->in.count &&
		   !lines_held(&s->out) && !s->calls.n && !s->pendings.n && !s->init_open && child_alive(&s->child);
}

static void move_output(struct session *to, struct session *from) {
	to->stderr_lines = from->stderr_lines;
	from->stderr_lines = NULL;
	to->stderr_first = from->stderr_first;
	to->stderr_count = from->stderr_count;
	from->stderr_first = from->stderr_count = 0;
	for (uint64_t seq = from->tape.oldest; seq < from->tape.next; seq++) {
		const struct tape_entry *e = tape_at(&from->tape, seq);
		tape_append(&to->tape, chunk_ref(e->line), (enum line_kind)e->kind, e->flags, (int64_t)e->ms);
	}
	tape_clear(&from->tape);
}

static void leave_child(struct session *s) {
	loop_fd_stop(&s->in_fd);
	loop_fd_stop(&s->out_fd);
	loop_fd_stop(&s->err_fd);
	loop_timer_stop(&s->warm_timer);
	lines_free(&s->out);
	s->running = s->warming = false;
	s->child_no--;
}

bool session_take_child(struct session *to, struct session *from) {
	char *name = strdup(from->child_name ? from->child_name : from->name);
	if (!name) return false;
	leave_child(from);
	reset_for_child(to);
	to->child.exited = on_exited;
	to->child.arg = to;
	child_move(&to->child, &from->child);
	move_output(to, from);
	connect_child(to);
	to->child_name = name;
	to->program = from->program;
	to->started_at = from->started_at;
	to->last_output = from->last_output;
	to->got_line = from->got_line;
	to->background = from->background;
	to->snapshot = from->snapshot;
	to->snapshot.init_seq = 0; /* the lines have other numbers here */
	from->snapshot = (struct snapshot){0};
	session_check_state(from);
	session_check_state(to);
	return true;
}

/* --- end ------------------------------------------------------------------------------------------------------------
 */

static bool spare_known(void *arg, pid_t pid) {
	return children_known(arg, pid);
}

/* The CLI runs each command in a session of its own, where no signal to its group reaches it. */
static void sweep(struct session *s) {
	_cleanup_free_ char *mark = launch_mark(&s->launch, s->child_name ? s->child_name : s->name);
	for (int i = 0; mark && i < 3; i++) {
		size_t n = proc_sweep("PLENUM_INSTANCE", mark, spare_known, s->children);
		if (n == 0) return;
		log_info("session %s: killed %zu processes that the child left behind", s->name, n);
	}
}

/* The CLI leaves its message socket behind when it is killed (PROTOCOL 6.3). */
static void remove_left_socket(struct session *s) {
	struct stat st;
	if (s->left_socket && lstat(s->left_socket, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_uid == geteuid())
		unlink(s->left_socket);
	free(s->left_socket);
	s->left_socket = NULL;
}

static bool can_resume(const struct session *s) {
	return s->conversation_id && s->profile->resume_args.n;
}

static void explain_failure(struct session *s, const struct session_exit *e) {
	const char *last = s->stderr_count ? session_stderr(s, s->stderr_count - 1) : "it printed nothing on stderr";
	_cleanup_free_ char *text = e->signal ? str_printf("the child was killed by signal %d: %s", e->signal, last)
										  : str_printf("the child exited with status %d: %s", e->status, last);
	session_set_reason(s, text);
}

static void count_failure(struct session *s, const struct session_exit *e) {
	if (e->wanted || (e->ran_ms > HEALTHY_MS && s->said_init)) {
		s->failures = 0;
		s->not_before = 0;
		return;
	}
	int64_t wait = 0;
	if (++s->failures > 1) wait = MIN((int64_t)BACKOFF_FIRST_MS << MIN(s->failures - 2, 10U), (int64_t)BACKOFF_MAX_MS);
	s->not_before = now_ms() + wait;
}

/* A session that sleeps holds little: its tape, and what a late answer or a retried prompt needs. */
static void slim(struct session *s) {
	tape_pack(&s->tape);
	prompts_trim(&s->prompts, SLEEP_PROMPTS);
	pendings_trim(&s->pendings, SLEEP_SETTLED);
	queue_free(&s->in);
	if (!s->stderr_part.len) buf_free(&s->stderr_part);
}

static void complete(struct session *s) {
	int status = s->exit_status;
	struct session_exit e = {.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
							 .wanted = s->stopping != STOP_NOT,
							 .ran_ms = s->exited_at - s->started_at};
	e.status = e.signal ? 128 + e.signal : WEXITSTATUS(status);
	loop_timer_stop(&s->end_timer);
	loop_timer_stop(&s->stop_timer);
	loop_timer_stop(&s->warm_timer);
	if (!s->eof) {
		for (int i = 0; i < LAST_READS && read_out(s); i++) {}
	}
	finish_out(s);
	drain_err(s);
	loop_fd_stop(&s->in_fd);
	child_close_in(&s->child);
	sweep(s);
	s->running = s->warming = s->turn = s->init_open = s->background = false;
	snapshot_child_gone(&s->snapshot);
	count_failure(s, &e);
	remove_left_socket(s);
	s->failed = !e.wanted && !can_resume(s);
	if (!e.wanted) explain_failure(s, &e);
	s->stopping = STOP_NOT;
	if (s->then == THEN_RESTART) s->want_child = true;
	log_info("session %s: child ended, status %d%s%s, ran %lld ms", s->name, e.status, e.signal ? ", by signal" : "",
			 e.wanted ? ", as asked" : "", (long long)e.ran_ms);
	s->events->exited(s, &e);
	if (s->removed) return;
	char error[CHILD_ERROR_MAX];
	if (s->want_child && !begin_start(s, error)) give_up_start(s, error);
	if (!s->want_child) slim(s);
	session_check_state(s);
}

static void check_end(struct session *s) {
	if (!s->running || !s->exited) return;
	if (s->eof)
		complete(s);
	else if (!loop_timer_pending(&s->end_timer))
		loop_timer_set(&s->end_timer, END_GRACE_MS);
}

static void on_end_timer(void *arg) {
	complete(arg);
}

static void on_exited(void *arg, int status) {
	struct session *s = arg;
	s->exited = true;
	s->exit_status = status;
	s->exited_at = now_ms();
	if (s->stopping < STOP_EOF) queue_free(&s->in); /* was meant for the dead one */
	session_read_again(s);
	/* the pipe may still hold lines: the loop reads them, EOF completes the end */
	check_end(s);
}

/* --- stop ladder ----------------------------------------------------------------------------------------------------
 */

static void step(struct session *s, enum stop_stage stage, int64_t wait) {
	s->stopping = stage;
	loop_timer_set(&s->stop_timer, wait);
}

static void log_step(const struct session *s, const char *what) {
	log_info("session %s: stop, %s after %lld ms", s->name, what, (long long)(now_ms() - s->stop_since));
}

static void step_interrupt(struct session *s) {
	struct buf b = BUF_INIT(512);
	struct call *c = call_new(&s->calls, s, s->loop, CALL_SILENT, NULL, 0, SPAN_NONE, NULL);
	log_step(s, "interrupt");
	step(s, STOP_INTERRUPT, MIN(s->profile->stop_grace, (int64_t)INTERRUPT_MS));
	if (!c) return;
	dialect_put_request(&b, c->id, "{\"subtype\":\"interrupt\"}");
	if (b.data) session_write(s, chunk_copy(b.data, b.len), true);
	buf_free(&b);
}

static void step_eof(struct session *s) {
	log_step(s, "closing stdin");
	write_in(s);
	queue_free(&s->in);
	loop_fd_stop(&s->in_fd);
	child_close_in(&s->child);
	step(s, STOP_EOF, s->profile->stop_grace);
}

static void step_signal(struct session *s, int signo, enum stop_stage stage) {
	log_step(s, signo == SIGTERM ? "SIGTERM" : "SIGKILL");
	child_kill(&s->child, signo);
	step(s, stage, s->profile->stop_grace);
}

static void advance_stop(struct session *s) {
	if (!s->running || s->exited) return;
	if (s->stopping == STOP_NOT && (s->turn || s->prompts.n_open > s->prompts.n_held))
		step_interrupt(s);
	else if (s->stopping < STOP_EOF)
		step_eof(s);
	else if (s->stopping == STOP_EOF)
		step_signal(s, SIGTERM, STOP_TERM);
	else
		step_signal(s, SIGKILL, STOP_KILL);
}

static void on_stop_timer(void *arg) {
	advance_stop(arg);
}

void session_turn_ended(struct session *s) {
	if (s->stopping == STOP_INTERRUPT) advance_stop(s);
}

/* A start that was put off does not come any more: those whose prompts wait for it are told. */
static void cancel_start(struct session *s, enum stop_then then) {
	struct session_exit e = {.wanted = true, .never_ran = true};
	s->want_child = false;
	s->then = then;
	queue_free(&s->in);
	s->child_no++;
	s->events->exited(s, &e);
	session_check_state(s);
}

/* Somebody's wish to end it is stronger than a restart, forgetting it stronger than sleep. */
static bool outweighs(enum stop_then then, enum stop_then before) {
	return then == THEN_REMOVE || (then == THEN_SLEEP && before == THEN_RESTART);
}

void session_stop(struct session *s, bool kill_now, enum stop_then then) {
	bool first = s->stopping == STOP_NOT;
	if (!s->running) {
		loop_timer_stop(&s->retry_timer);
		if (s->want_child && then != THEN_RESTART) cancel_start(s, then);
		return;
	}
	if (first || outweighs(then, s->then)) s->then = then;
	if (s->want_child && then != THEN_RESTART) { /* nor the child after this one; the end tells whom it concerns */
		s->want_child = false;
		if (!session_has_child(s)) queue_free(&s->in);
	}
	if (first) s->stop_since = now_ms();
	loop_timer_stop(&s->idle_timer);
	if (kill_now && s->stopping < STOP_KILL) {
		step_signal(s, SIGKILL, STOP_KILL);
		if (s->child.in >= 0) {
			loop_fd_stop(&s->in_fd);
			child_close_in(&s->child);
		}
		queue_free(&s->in);
	} else if (first) {
		advance_stop(s);
	}
}

/* --- making and removing --------------------------------------------------------------------------------------------
 */

static void free_session(void *arg) {
	struct session *s = arg;
	tape_free(&s->tape);
	snapshot_clear(&s->snapshot);
	queue_free(&s->in);
	lines_free(&s->out);
	clear_stderr(s);
	launch_free(&s->launch);
	settings_unref(s->settings);
	free(s->conversation_id);
	free(s->resumed_id);
	free(s->left_socket);
	free(s->version);
	free(s->child_name);
	free(s->lost_profile);
	free(s->reason);
	free(s->name);
	free(s);
}

struct session *session_new(struct loop *loop, struct lines_pool *pool, struct children *children,
							struct settings *settings, const struct profile *profile, const char *name,
							struct launch *launch, const struct session_events *events, void *world) {
	struct session *s = calloc(1, sizeof *s);
	if (!s || !(s->name = strdup(name))) {
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
	s->child.pid = s->child.in = s->child.out = s->child.err = -1;
	s->stderr_part.max = STDERR_LINE_MAX;
	s->state = s->told_state = SESSION_ASLEEP;
	s->created_at = now_real_ms();
	s->used_at = now_ms();
	lines_init(&s->out, pool, settings->limits.child_line);
	queue_init(&s->in, settings->limits.stdin_queue);
	tape_init(&s->tape, settings->limits.tape_bytes, settings->limits.tape_lines);
	list_init(&s->attachments);
	calls_init(&s->calls);
	pendings_init(&s->pendings);
	registry_init(&s->registry);
	prompts_init(&s->prompts);
	loop_timer_init(&s->end_timer, loop, on_end_timer, s);
	loop_timer_init(&s->stop_timer, loop, on_stop_timer, s);
	loop_timer_init(&s->warm_timer, loop, on_warm, s);
	loop_timer_init(&s->retry_timer, loop, on_retry, s);
	loop_timer_init(&s->idle_timer, loop, on_idle, s);
	loop_task_init(&s->state_task, on_state, s);
	loop_task_init(&s->free_task, free_session, s);
	return s;
}

void session_remove(struct session *s) {
	if (s->removed) return;
	s->removed = true;
	calls_free(&s->calls);
	pendings_free(&s->pendings);
	registry_free(&s->registry);
	prompts_free(&s->prompts);
	loop_timer_stop(&s->end_timer);
	loop_timer_stop(&s->stop_timer);
	loop_timer_stop(&s->warm_timer);
	loop_timer_stop(&s->retry_timer);
	loop_timer_stop(&s->idle_timer);
	loop_task_stop(&s->state_task);
	loop_defer(s->loop, &s->free_task);
}
