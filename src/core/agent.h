/* SPDX-License-Identifier: MIT
 *
 * A session's running child: its process, its three streams, how far each has been read. It is there from the start
 * until its end is complete, when its exit and the end of its output have both been seen; what a session without a
 * child has to remember lies in the session. It tells its owner what comes and decides nothing.
 *
 * The owner makes it, lets it run, and frees it (a task of the loop does that, so that it may be freed from within its
 * own callbacks). Times in ms. Source: DESIGN 8, PROTOCOL 1.
 */
#pragma once

#include "core/queue.h"
#include "io/errand.h"
#include "io/loop.h"
#include "wire/lines.h"

struct agent_events {
	/* A line with its LF; at the end of the output also half a one without. Borrowed. */
	void (*line)(void *arg, struct chunk line);
	/* A line over the limit has ended: its first bytes, and how many it had. */
	void (*long_line)(void *arg, struct chunk head, size_t size);
	void (*line_lost)(void *arg); /* there was no memory for it */
	/* What one read brought has been told. */
	void (*read_done)(void *arg);
	void (*stderr_data)(void *arg, const char *data, size_t n);
	void (*may_write)(void *arg); /* its stdin takes more */
	void (*muted)(void *arg);     /* its output has ended, and it lives, for this moment or on and on */
	void (*exited)(void *arg);    /* its output may go on */
	void (*ended)(void *arg);     /* all of its output was told, and its streams are closed but for its stdin */
	/* No memory to watch its streams: the owner must stop it. May come within any call. */
	void (*unwatched)(void *arg);
};

struct agent {
	struct loop *loop;
	const struct agent_events *events;
	void *arg;
	struct child child;
	char *name;               /* what it was started as, where that is not its session's name: it was a spare */
	struct child_place place; /* with name: where it was started */
	char *program;            /* its path; NULL: unknown */
	struct errand start;      /* until its program runs */
	char *cgroup; /* its control group where that is not ours, else ""; NULL: not looked at yet (core/descent.c) */
	struct loop_fd in_fd, out_fd, err_fd;
	struct lines out;
	size_t read_max; /* bytes that one read may bring */
	bool exited, eof, read_paused, bom_seen;
	bool unread; /* not read yet: it is read once, even if readers of the child before are behind */
	bool more;   /* out has lines that were not handed out: the turn of the loop was used up */
	bool ending; /* what is left of its output is being read */
	unsigned last_reads, last_errors;        /* since then, of stdout and of stderr */
	int exit_status;                         /* as wait(2) has it */
	int64_t started_at, heard_at, exited_at; /* heard_at: its newest output was read */
	struct loop_timer end_timer;             /* exit seen, output still open */
	struct loop_timer starved_timer;         /* without memory to read it: until the next try */
	unsigned starved;                        /* tries in a row that had none */
	struct loop_timer stop_timer, idle_timer, warm_timer, pace_timer; /* the session's, while it has a child */
	struct loop_task free_task, more_task;
};

/* NULL without memory. Its process is still to be made: into child, whose exited and arg are set. */
struct agent *agent_new(struct loop *loop, struct lines_pool *pool, size_t max_line, size_t read_max,
						const struct agent_events *events, void *arg);
/* From any callback; the process goes on if it has not ended. */
void agent_free(struct agent *a);
void agent_stop_timers(struct agent *a); /* the session's: before they are another one's */
/* The process is there: it is listened to from now on. */
void agent_run(struct agent *a);
void agent_resume(struct agent *a, struct children *children, bool writes); /* it ran in the binary before this one */

/* Is it read on, or does it wait for its readers? */
void agent_read(struct agent *a, bool may);
/* As much of the queue as it takes. False: its stdin is closed. */
bool agent_write(struct agent *a, struct queue *q);
void agent_close_in(struct agent *a);
static inline bool agent_hears(const struct agent *a) {
	return a->child.in >= 0;
}
static inline bool agent_is_whole(const struct agent *a) {
	return !a->eof && agent_hears(a);
}
/* No more than what is left of its output is waited for: it is read in as many turns as it takes, then `ended` comes
 * (at once, where little is left). */
void agent_end(struct agent *a);
