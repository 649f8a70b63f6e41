/* SPDX-License-Identifier: MIT
 *
 * A session: a named conversation that outlives its child and its clients. This module keeps the child: starts it,
 * reads it, writes to it, stops it, and knows the session's state. It knows no client: what the child says and what
 * becomes of it is told through struct session_events, which the router fills in.
 *
 * A session is freed by a task of the loop after session_remove(). Times in ms. Source: DESIGN 8, PROTOCOL 1, 6.3.
 */
#pragma once

#include "base/hash.h"
#include "core/agent.h"
#include "core/call.h"
#include "core/launch.h"
#include "core/pending.h"
#include "core/prompts.h"
#include "core/queue.h"
#include "core/registry.h"
#include "core/settings.h"
#include "core/snapshot.h"
#include "core/tail.h"
#include "core/tape.h"
#include "core/timers.h"
#include "io/loop.h"
#include "plenum/protocol.h"

enum session_state {
	SESSION_STARTING,
	SESSION_IDLE,
	SESSION_BUSY,
	SESSION_ASKING,
	SESSION_ASLEEP,
	SESSION_FAILED,
};

enum stop_stage { STOP_NOT, STOP_INTERRUPT, STOP_EOF, STOP_TERM, STOP_KILL };

/* What becomes of a session whose child was stopped on purpose. */
enum stop_then { THEN_SLEEP, THEN_RESTART, THEN_REMOVE };

/* A child that lived on without an end of its streams: it is of no use to anybody, and was ended for that. */
enum broken { BROKEN_NOT, BROKEN_DEAF, BROKEN_MUTE, BROKEN_SECOND, BROKEN_MEMORY };

/* What becomes of detached processes when the child is gone. */
enum leftovers { LEFTOVERS_AS_SET, LEFTOVERS_END, LEFTOVERS_KILL };

struct session;

struct session_exit {
	int status; /* exit status, or 128 + signal */
	int signal; /* 0: none */
	bool wanted;
	enum broken broken;
	bool never_ran; /* it could not be started at all */
	bool stuck;     /* it lives on: SIGKILL did not end it */
	int64_t ran_ms;
};

struct session_events {
	/* A line of the child (with its LF) that is a JSON object; e holds its envelope. Borrowed. */
	void (*line)(struct session *s, struct chunk line, const struct envelope *e);
	/* A line that is none. */
	void (*stray)(struct session *s, struct chunk line);
	void (*long_line)(struct session *s, struct chunk head, size_t size);
	void (*stderr_data)(struct session *s, const char *data, size_t n);
	/* The child was started: the time to send it its initialize. */
	void (*started)(struct session *s);
	/* A start has come to its end: started() has run, or s->start_error says why not and s->start_result whose it is.
	 */
	void (*start_over)(struct session *s);
	/* The child is about to be ended; it has ended, and what it has started may be there still. */
	void (*ending)(struct session *s);
	void (*left)(struct session *s);
	/* Exit and end of output have both been seen, everything that it printed was delivered. */
	void (*exited)(struct session *s, const struct session_exit *e);
	/* Something of it has changed in this turn: what follows from that is due (core/reconcile.h). */
	void (*changed)(struct session *s);
	/* May the child be read, or must it wait for its readers? */
	bool (*may_read)(struct session *s);
	/* The turn is over in which the child was read: time to send. */
	void (*read_done)(struct session *s);
};

#define SESSION_UNREADABLE PLENUM_UNREADABLE /* its record on disk is damaged */

struct session {
	UT_hash_handle hh;  /* by name */
	char *name, *label; /* label: the name as one word of a log line */
	uint64_t id;
	struct loop *loop;
	struct children *children;
	const struct session_events *events;
	void *world; /* the router */
	struct settings *settings;
	const struct profile *profile;
	struct launch launch;

	char *conversation_id; /* what the child calls itself */
	char *resumed_id;      /* what it was last resumed with, where that differs */
	char *left_socket;     /* a socket file that the child makes and does not remove when it is killed */
	char *version;         /* claude_code_version of the newest init */

	struct agent *agent;    /* the child that runs; NULL: none, or its end is complete */
	struct agent *starting; /* want_child, and its process is on its way to the program; NULL: none is */
	bool only_asked;        /* that start is for clients alone that wait to hear of it: it is tried once */
	char *start_error;      /* why the newest start failed; NULL: it did not */
	enum child_result start_result;
	struct lines_pool *pool;
	uint64_t child_no; /* counts starts */
	/* A child that could not be ended, here or by the daemon before, and may live on: no other is started beside it. */
	pid_t stuck_pid; /* 0: none */
	uint64_t stuck_start;
	void *spare;    /* not NULL: a spare of core/warm.h, nobody's session yet */
	bool untouched; /* the child was a spare, lives, and nothing was written to it since */
	struct queue in;
	struct queue later; /* what is to be written once it is known which conversation the child has taken up */
	unsigned unnamed;   /* not 0: that is not known; counts how often the child was asked, from 1 */
	struct tail tail;   /* of the newest child's stderr */

	enum stop_stage stopping;
	enum stop_then then;
	int64_t stop_since;
	uint64_t stopper;         /* the client that asked for the stop last; it is told if that cannot be done */
	bool brief;               /* the daemon ends: each step of the stop takes half of stop_grace */
	enum broken broken;       /* why the child is being stopped, though nobody wanted it */
	enum leftovers leftovers; /* a client that stops it wants detached processes ended, too; else as the profile says */

	enum session_state told_state, previous;
	/* What an answer named since the last one was told; else told_state. */
	enum session_state named_state;
	char *lost_profile; /* what it was made with, where that is not configured any more, or SESSION_UNREADABLE: it
						 * cannot start */
	char *reason;       /* why it failed */
	bool failed;
	bool spent;                     /* restart = never, and its child has ended by itself */
	bool init_open;                 /* the child owes the answer to its first initialize */
	bool turn;                      /* the child works on something */
	bool got_line;                  /* the child has said something */
	bool said_init;                 /* the child has printed system/init since it was started */
	bool background;                /* the child has tasks in the background */
	bool warming;                   /* just started, nothing was sent yet */
	struct loop_task task;          /* events.changed is due */
	uint64_t marked;                /* hash of what the table on disk was last marked for (core/reconcile.h) */
	bool counted;                   /* its child was counted against max_children */
	unsigned failures;              /* starts in a row that came to nothing */
	int64_t not_before;             /* back-off */
	struct loop_timer *retry_timer; /* NULL: no start was put off */
	unsigned spawn_tries;
	bool want_child; /* a start is put off, or under way */

	int64_t used_at, created_at;

	struct tape tape;
	struct snapshot snapshot;
	struct timers timers;
	struct list attachments; /* the router's */
	size_t n_attachments;
	struct loop_timer *lag_timer; /* the router's; NULL: nobody was ever far behind */

	struct calls calls;
	struct pendings pendings;
	struct registry registry;
	struct prompts prompts;
	void *init; /* the router's: state of the child's initialize */

	bool altered;     /* a client has changed settings of its child, which another session would not have */
	uint64_t made_by; /* the id of the session whose agent has made it; 0: none */
	bool ephemeral;   /* ends with the client that made it; not kept on disk */
	bool ending;      /* that client's input is over: the session ends with what it still waits for */
	bool unclaimed;   /* the client that makes it left before its first start was over: it is gone if that fails */
	bool removed;
	struct share *payer;                   /* of the uid that it was made for; the router's */
	struct loop_task free_task, over_task; /* over_task: the router's; the one that it ended with is gone */
	uint64_t lines_out, bytes_out, strays, dropped_answers, turns;
};

/* NULL without memory. launch is taken over on success. */
struct session *session_new(struct loop *loop, struct lines_pool *pool, struct children *children,
							struct settings *settings, const struct profile *profile, const char *name,
							struct launch *launch, const struct session_events *events, void *world);
/* Begins to start the child now; start_over() tells the rest. Failure: error says why, the state is unchanged;
 * transient: it may work soon. */
enum child_result session_start(struct session *s, char *error);
/* Sees to it that a child runs, now or, after failures, when the back-off is over. False: error says why not. */
bool session_wake(struct session *s, char *error);
/* The same, but a start begins at once, for a client that waits for start_over(). */
enum child_result session_wake_now(struct session *s, char *error);
bool session_has_child(const struct session *s); /* running and not being stopped */
/* Where the next line of a client waits for the child. */
static inline const struct queue *session_queue(const struct session *s) {
	return session_has_child(s) && s->unnamed ? &s->later : &s->in;
}
/* A line for the child, or for the next one where that is to be started (session_wake()). own: it must go, however full
 * the queue is. Takes over the reference. False: full, or no child. */
bool session_write(struct session *s, struct chunk line, bool own);
/* The same, charged to payer until the child has read it. */
bool session_write_charged(struct session *s, struct chunk line, bool own, struct share *payer);
/* An answer to what the child has asked: false once its input is closed. The next child, which may be wanted already,
 * has asked nothing. */
bool session_answer(struct session *s, struct chunk line);
/* A line without which this child would wait for ever: where there is no memory for it (or for the line itself), the
 * child is ended. */
void session_must_write(struct session *s, struct chunk line);
/* Something of the child's or for it was lost, which nobody could know: it is killed, and everybody is told. */
void session_no_memory(struct session *s, const char *what);
/* The same, before everything that waits (the initialize of a child that was just started). */
bool session_write_first(struct session *s, struct chunk line);
/* The number of the child that a line written now is for. */
uint64_t session_writes_to(const struct session *s);
/* Is this the number of one that is still to come? */
static inline bool session_awaits(const struct session *s, uint64_t child) {
	return s->want_child && child > s->child_no;
}
void session_stop(struct session *s, bool kill_now, enum stop_then then);
/* The same because the daemon ends: after stop_grace twice there is no child any more, or it is given up. */
void session_quit(struct session *s, bool kill_now);
/* Does the child live on that could not be ended? error[0..CHILD_ERROR_MAX) then says why it could not. */
bool session_is_stuck(struct session *s, char *error);
/* Who started the child has no more input for it: it ends in its own time, as it would without a daemon, and the
 * session with it. A session_stop() takes the other steps: when nobody waits for it any more, or somebody for what it
 * has. */
void session_end_input(struct session *s);
/* Takes it out of everything; freed at the end of the turn. The child must be gone. */
void session_remove(struct session *s);
/* events.changed is called once at the end of the turn, before anything is sent. What changes a session calls it: the
 * lines of its child and of its clients, its starts, stops and timers. */
void session_changed(struct session *s);
void session_go_on(struct session *s);                     /* the same, in a later turn: others come in between */
enum session_state session_state(const struct session *s); /* as it is now, published or not */
/* Return true if the state must be published. It counts as published then. */
bool session_state_due(struct session *s);
/* A session that sleeps gives memory back that a running one needs. From a task. */
void session_slim(struct session *s);
/* For an answer. Whoever reads it hears of the next state, also where that is what the others know already. */
enum session_state session_name_state(struct session *s);
/* The caller tells the state right now, with what it is about; idle, which brings other things with it, is told later.
 */
void session_bring_forward(struct session *s);
void session_turn_ended(struct session *s); /* a result came */
/* Return true if the child has tasks in the background or armed timers, which its end would end. */
bool session_works_on(struct session *s);
void session_used(struct session *s); /* somebody asked for something: idle time starts again */
void session_pace(struct session *s); /* the child is read, or waits, as may_read() says now */
void session_set_conversation(struct session *s, const char *id);
/* The child's conversation is known and nobody else's, or nobody can tell: what waited for that is written. */
void session_named(struct session *s);
void session_set_reason(struct session *s, const char *reason);
/* Is this a child that could be another session's as well: alive, initialised, idle, nothing under way? */
bool session_can_give(const struct session *s);
/* Is it one that nobody has used since it was given? Half a line of it may be read already. */
bool session_can_return(const struct session *s);
/* The child of `from` becomes that of `to`, which has none; what it printed stands on both tapes then. False without
 * memory. */
bool session_take_child(struct session *to, struct session *from);
/* Its child is being stopped, and the session is forgotten then; or that begins at the end of this turn. */
static inline bool session_is_going(const struct session *s) {
	return !list_empty(&s->over_task.node) || (s->agent && s->stopping != STOP_NOT && s->then == THEN_REMOVE);
}
/* The process that runs; 0: none, or it has exited and its output has not ended yet. */
static inline pid_t session_pid(const struct session *s) {
	return s->agent && s->agent->child.pid > 0 ? s->agent->child.pid : 0;
}
/* Which conversation it is in, or is to take up; NULL: a new one. */
static inline const char *session_conversation(const struct session *s) {
	return s->conversation_id ? s->conversation_id : s->launch.fork ? NULL : s->launch.resume;
}
const char *session_state_name(enum session_state state);
/* The child has taken up what is another session's conversation: it is killed before it writes more there. */
void session_kill_second(struct session *s, const struct session *other);
const char *session_broken_text(enum broken broken); /* "the child ..." */
/* The name of what it was made with, configured or not; borrowed. */
char *session_profile(const struct session *s);
/* All of it but its name, its profile, its launch and what is the router's (session_carry.c). */
void session_carry(struct carry *c, struct session *s);
/* For session_carry(): a child without a process; a start in so many ms, false without memory. */
struct agent *session_new_agent(struct session *s);
bool session_put_off(struct session *s, int64_t ms);
/* The errand that removes left_socket. */
#define SESSION_LEFT_ERRAND "left"
int session_left_errand(void);
void session_pause_start(struct session *s); /* before it is saved: a start that is under way begins anew */
void session_resume(struct session *s);      /* everything is read: its child is listened to again */
