/* SPDX-License-Identifier: MIT */
#include "core/agent.h"

#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#define END_GRACE_MS 1000 /* for a grandchild that holds the output of an exited child open */
#define LINES_A_LOOK 8    /* lines between two looks at the clock */
#define STARVED_MS 100
#define STARVED_TRIES 10              /* then the unfinished line is dropped for its memory */
#define MEASURED ((size_t)256 * 1024) /* bytes of a long line between two looks at the clock */
#define LAST_READS 64 /* at the end read a pipe as far as it can be full, not as fast as a grandchild fills it */

/* A child without a watched stream would wait indefinitely. An exited one ends by its timer. */
static void watch(struct agent *a, struct loop_fd *f, bool read, bool write) {
	if (!loop_fd_want(f, read, write)) a->events->unwatched(a->arg);
}

/* --- stdout ------------------------------------------------------------------------------------------------------- */

/* Skip a byte order mark before the first line. */
static struct chunk without_bom(struct agent *a, struct chunk line) {
	bool first = !a->bom_seen;
	a->bom_seen = true;
	if (!first || line.len < 3 || memcmp(line.data, "\xef\xbb\xbf", 3) != 0) return chunk_ref(line);
	return chunk_view(line, 3, line.len - 3);
}

static void take_line(struct agent *a, struct chunk raw) {
	struct chunk line = without_bom(a, raw);
	a->events->line(a->arg, line);
	chunk_drop(&line);
}

/* A long line is measured over many turns, then handed out with its lengths; without memory it is
 * handed out at once. */
static void take_long_line(struct agent *a, struct chunk raw) {
	if (!a->lengths) a->lengths = lengths_new(raw.data, raw.len, LENGTHS_VALUE);
	if (a->lengths && !lengths_step(a->lengths, MEASURED)) {
		lines_put_back(&a->out, chunk_ref(raw));
		return;
	}
	struct lengths *lengths = a->lengths;
	a->lengths = NULL;
	lengths_use(lengths);
	take_line(a, raw);
	lengths_use(NULL);
	lengths_free(lengths);
}

/* Handle some lines, between two looks at the clock. False: there may be more. */
static bool take_some(struct agent *a) {
	struct chunk line;
	size_t size;
	enum lines_result r = LINES_LINE;
	for (int i = 0; i < LINES_A_LOOK && (r == LINES_LINE || r == LINES_LONG); i++) {
		r = lines_next(&a->out, &line, &size);
		if (r == LINES_LONG) {
			a->events->long_line(a->arg, line, size);
			i = 0; /* the shared block may have to be given back after it first */
		}
		bool is_long = r == LINES_LINE && line.len >= LENGTHS_FROM;
		if (r == LINES_LINE && !is_long) take_line(a, line);
		if (is_long) {
			take_long_line(a, line);
			i = LINES_A_LOOK;
		}
		if (r == LINES_LINE || r == LINES_LONG) chunk_drop(&line);
	}
	if (r == LINES_OOM) a->events->line_lost(a->arg);
	return r == LINES_MORE || r == LINES_OOM;
}

/* Handle the lines of a read, until the share of the turn is used up. */
static void take_lines(struct agent *a) {
	do a->more = !take_some(a);
	while (a->more && !loop_must_yield(a->loop));
}

/* Pause reading: the descriptor would be readable all the time. */
static void starve(struct agent *a) {
	if (a->starved++ == 0) log_error("no memory to read child %d: it waits", a->child.pid);
	loop_fd_want(&a->out_fd, false, false);
	loop_timer_set(&a->starved_timer, STARVED_MS);
}

static char *space_for(struct agent *a, size_t *room) {
	char *space = lines_space(&a->out, room);
	if (!space && a->starved >= STARVED_TRIES) {
		lines_skip(&a->out);
		space = lines_space(&a->out, room);
	}
	if (space)
		a->starved = 0;
	else
		starve(a);
	return space;
}

/* Read once; true: there may be more. */
static bool read_out(struct agent *a) {
	size_t room;
	char *space = space_for(a, &room);
	if (!space) return false;
	ssize_t n = fd_read(a->child.out, space, MIN(room, a->read_max));
	int number = errno;
	if (n > 0) {
		a->heard_at = now_ms();
		lines_commit(&a->out, (size_t)n);
	}
	take_lines(a);
	a->eof |= n == 0 || (n < 0 && number != EAGAIN);
	a->unread = false;
	a->events->read_done(a->arg);
	return n > 0;
}

static void finish_out(struct agent *a) {
	struct chunk rest;
	size_t size;
	if (lines_cut(&a->out, &size)) a->events->long_line(a->arg, a->out.head, size);
	if (lines_rest(&a->out, &rest)) {
		take_line(a, rest);
		chunk_drop(&rest);
	}
	lines_free(&a->out);
	loop_timer_stop(&a->starved_timer);
	loop_fd_stop(&a->out_fd);
	child_close_out(&a->child);
}

static void check_end(struct agent *a) {
	if (!a->exited) return;
	if (a->eof)
		agent_end(a);
	else if (!loop_timer_pending(&a->end_timer))
		loop_timer_set(&a->end_timer, END_GRACE_MS);
}

static void on_out(void *arg, bool readable, bool writable) {
	struct agent *a = arg;
	(void)readable, (void)writable;
	read_out(a);
	if (!a->eof) return;
	finish_out(a);
	if (!a->exited) a->events->muted(a->arg);
	check_end(a);
}

void agent_read(struct agent *a, bool may) {
	if (a->eof || a->ending || a->child.out < 0) return;
	a->read_paused = !may;
	watch(a, &a->out_fd, may && !a->more && !loop_timer_pending(&a->starved_timer), false);
	if (may && a->more)
		loop_defer(a->loop, &a->more_task);
	else
		loop_task_stop(&a->more_task);
}

static void on_starved_timer(void *arg) {
	struct agent *a = arg;
	agent_read(a, !a->read_paused);
}

/* --- stderr ------------------------------------------------------------------------------------------------------- */

static ssize_t read_err(struct agent *a) {
	char data[16384];
	ssize_t n = fd_read(a->child.err, data, sizeof data);
	int number = errno;
	if (n > 0) a->events->stderr_data(a->arg, data, (size_t)n);
	errno = number;
	return n;
}

static void close_err(struct agent *a) {
	loop_fd_stop(&a->err_fd);
	child_close_err(&a->child);
}

static void on_err(void *arg, bool readable, bool writable) {
	struct agent *a = arg;
	(void)readable, (void)writable;
	ssize_t n = read_err(a);
	if (n == 0 || (n < 0 && errno != EAGAIN)) close_err(a);
}

/* --- stdin -------------------------------------------------------------------------------------------------------- */

bool agent_write(struct agent *a, struct queue *q) {
	int r = queue_write(q, a->child.in);
	if (r >= 0)
		watch(a, &a->in_fd, false, r > 0);
	else
		agent_close_in(a);
	return r >= 0;
}

void agent_close_in(struct agent *a) {
	loop_fd_stop(&a->in_fd);
	child_close_in(&a->child);
}

void agent_pause_in(struct agent *a) {
	loop_fd_stop(&a->in_fd);
}

static void on_in(void *arg, bool readable, bool writable) {
	struct agent *a = arg;
	(void)readable, (void)writable;
	a->events->may_write(a->arg);
}

/* --- start and end ------------------------------------------------------------------------------------------------ */

/* Read the rest of its output, a part in each turn. */
static void read_last(struct agent *a) {
	if (a->more) take_lines(a);
	while (!a->more && !loop_must_yield(a->loop) && a->last_reads < LAST_READS && !a->eof) {
		a->last_reads++;
		if (!read_out(a)) a->last_reads = LAST_READS;
	}
	while (!a->more && !loop_must_yield(a->loop) && a->last_errors < LAST_READS && a->child.err >= 0) {
		a->last_errors++;
		if (read_err(a) <= 0) close_err(a);
	}
	bool out = a->more || (!a->eof && a->last_reads < LAST_READS);
	if (out || (a->child.err >= 0 && a->last_errors < LAST_READS)) {
		loop_defer(a->loop, &a->more_task);
		return;
	}
	finish_out(a);
	close_err(a);
	a->events->ended(a->arg);
}

static void on_more(void *arg) {
	struct agent *a = arg;
	if (a->ending) {
		read_last(a);
		return;
	}
	take_lines(a);
	a->events->read_done(a->arg);
}

void agent_end(struct agent *a) {
	if (a->ending) return;
	a->ending = true;
	loop_timer_stop(&a->end_timer);
	loop_timer_stop(&a->starved_timer);
	loop_fd_stop(&a->out_fd);
	loop_fd_stop(&a->err_fd);
	read_last(a);
}

static void on_end_timer(void *arg) {
	agent_end(arg);
}

static void on_exited(void *arg, int status) {
	struct agent *a = arg;
	a->exited = true;
	a->exit_status = status;
	a->exited_at = now_ms();
	agent_close_in(a); /* a grandchild may hold the other end: it must not get the child's lines */
	a->events->exited(a->arg);
	/* the pipe may still hold lines: the loop reads them, EOF completes the end */
	check_end(a);
}

static void free_agent(void *arg) {
	struct agent *a = arg;
	lines_free(&a->out);
	lengths_free(a->lengths);
	free(a->name);
	free(a->program);
	free(a->cgroup);
	free(a);
}

struct agent *agent_new(struct loop *loop, struct lines_pool *pool, size_t max_line, size_t read_max,
						const struct agent_events *events, void *arg) {
	struct agent *a = calloc(1, sizeof *a);
	if (!a) return NULL;
	a->loop = loop;
	a->events = events;
	a->arg = arg;
	a->read_max = read_max;
	a->child = (struct child){.pid = -1, .in = -1, .out = -1, .err = -1, .exited = on_exited, .arg = a};
	list_init(&a->child.node);
	list_init(&a->look.node);
	a->start = ERRAND_ZERO;
	lines_init(&a->out, pool, max_line);
	loop_timer_init(&a->end_timer, loop, on_end_timer, a);
	loop_timer_init(&a->starved_timer, loop, on_starved_timer, a);
	loop_task_init(&a->free_task, free_agent, a);
	loop_task_init(&a->more_task, on_more, a);
	list_init(&a->left_task.node);
	return a;
}

static void init_fds(struct agent *a) {
	loop_fd_init(&a->in_fd, a->loop, a->child.in, on_in, a);
	loop_fd_init(&a->out_fd, a->loop, a->child.out, on_out, a);
	loop_fd_init(&a->err_fd, a->loop, a->child.err, on_err, a);
}

void agent_run(struct agent *a) {
	a->started_at = a->heard_at = now_ms();
	a->unread = true;
	init_fds(a);
	watch(a, &a->out_fd, true, false);
	watch(a, &a->err_fd, true, false);
}

void agent_resume(struct agent *a, struct children *children, bool writes) {
	init_fds(a);
	a->more = a->child.out >= 0; /* lines of the last read may be left */
	if (a->child.pid > 0) child_resume(&a->child, children);
	if (a->child.in >= 0) watch(a, &a->in_fd, false, writes);
	if (a->child.err >= 0) watch(a, &a->err_fd, true, false);
	/* the last output was being read */
	if (a->exited && !loop_timer_pending(&a->end_timer)) loop_timer_set(&a->end_timer, 0);
}

void agent_stop_timers(struct agent *a) {
	struct loop_timer *timers[] = {&a->stop_timer, &a->idle_timer, &a->warm_timer, &a->pace_timer};
	for (size_t i = 0; i < ARRAY_SIZE(timers); i++) loop_timer_stop(timers[i]);
}

void agent_free(struct agent *a) {
	struct loop_fd *fds[] = {&a->in_fd, &a->out_fd, &a->err_fd};
	agent_stop_timers(a);
	list_del(&a->look.node);
	loop_timer_stop(&a->end_timer);
	loop_task_stop(&a->more_task);
	loop_task_stop(&a->left_task);
	loop_timer_stop(&a->starved_timer);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) loop_fd_stop(fds[i]);
	errand_drop(&a->start);
	child_forget(&a->child);
	loop_defer_free(a->loop, &a->free_task);
}
