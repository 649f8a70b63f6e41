/* SPDX-License-Identifier: MIT
 *
 * A session's running child: its process, its three streams, and the read position of each. It exists from the start
 * until its end is complete, when its exit and the end of its output have both been seen; data for a session without a
 * child is in the session. It reports to its owner and decides nothing.
 *
 * The owner makes it, lets it run, and frees it (by a task of the loop, so that its own callbacks may free it). Times
 * in ms. Source: docs/contract.md 8, protocol-facts 1.
 */
#pragma once

#include "core/queue.h"
#include "io/errand.h"
#include "io/loop.h"
#include "wire/lengths.h"
#include "wire/lines.h"

struct agent_events {
	/* A line with its newline; at the end of the output also half a line without one. Borrowed. */
	void (*line)(void *arg, struct chunk line);
	/* A line over the limit has ended: its first bytes, and its size. */
	void (*long_line)(void *arg, struct chunk head, size_t size);
	void (*line_lost)(void *arg); /* no memory for the line */
	/* All lines of one read were reported. */
	void (*read_done)(void *arg);
	void (*stderr_data)(void *arg, const char *data, size_t n);
	void (*may_write)(void *arg); /* its stdin takes more */
	void (*muted)(void *arg);     /* its output has ended, and it lives, briefly or not */
	void (*exited)(void *arg);    /* its output may go on */
	void (*ended)(void *arg);     /* all of its output was reported, and its streams but stdin are closed */
	/* No memory to watch its streams: the owner must stop it. May be called within any function. */
	void (*unwatched)(void *arg);
};

/* For core/descent.c: the wait for a scan of all processes. */
struct agent_look {
	struct list node;
	bool left;       /* it has ended; else it will be ended after the scan */
	bool asked;      /* an errand reads environments for it */
	bool read;       /* they were read, as far as they could be */
	bool late;       /* they did not come in time: it waits for no others */
	unsigned sweeps; /* scans since then */
	unsigned fate;   /* of its detached processes, at the last one */
};

struct agent {
	struct loop *loop;
	const struct agent_events *events;
	void *arg;
	struct child child;
	char *name;               /* the name at its start, if not its session's: it was prestarted */
	struct child_place place; /* with name: place of its start */
	char *program;            /* its path; NULL: unknown */
	struct errand start;      /* until its program runs */
	char *cgroup;             /* its control group if not ours, else ""; NULL: not read yet (core/descent.c) */
	struct agent_look look;
	struct loop_fd in_fd, out_fd, err_fd;
	struct lines out;
	struct lengths *lengths; /* of the long line that was put back into out; NULL: none */
	size_t read_max;         /* the most bytes of one read */
	bool exited, eof, read_paused, bom_seen;
	bool unread; /* not read yet: it is read once, even if readers of the previous child are behind */
	bool more;   /* out has unreported lines: the turn of the loop was used up */
	bool ending; /* the rest of its output is being read */
	unsigned last_reads, last_errors;                                 /* reads since then, of stdout and of stderr */
	int exit_status;                                                  /* in the format of wait(2) */
	int64_t started_at, heard_at, exited_at;                          /* heard_at: of its newest output */
	struct loop_timer end_timer;                                      /* exit seen, output still open */
	struct loop_timer starved_timer;                                  /* no memory to read it: until the next try */
	unsigned starved;                                                 /* tries in a row without memory */
	struct loop_timer stop_timer, idle_timer, warm_timer, pace_timer; /* the session's, while it has a child */
	struct loop_task free_task, more_task;
	struct loop_task left_task; /* the session's: the end of the child goes on */
};

/* NULL without memory. The caller starts the process: into child, with exited and arg already set. */
struct agent *agent_new(struct loop *loop, struct lines_pool *pool, size_t max_line, size_t read_max,
						const struct agent_events *events, void *arg);
/* May be called in any callback; a running process goes on. */
void agent_free(struct agent *a);
void agent_stop_timers(struct agent *a); /* the session's: before it moves to another session */
/* The process exists: begin to read it. */
void agent_run(struct agent *a);
void agent_resume(struct agent *a, struct children *children, bool writes); /* it ran in the binary before this one */

/* Read on, or pause for its readers. */
void agent_read(struct agent *a, bool may);
/* Write as much of the queue as it takes. False: its stdin is closed. */
bool agent_write(struct agent *a, struct queue *q);
void agent_close_in(struct agent *a);
void agent_pause_in(struct agent *a); /* nothing more is written until it is closed */
static inline bool agent_hears(const struct agent *a) {
	return a->child.in >= 0;
}
static inline bool agent_is_whole(const struct agent *a) {
	return !a->eof && agent_hears(a);
}
/* Read only the rest of its output, in as many turns as needed; then `ended` is called (at once, if little is left). */
void agent_end(struct agent *a);
