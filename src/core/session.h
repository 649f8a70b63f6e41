/* SPDX-License-Identifier: MIT
 *
 * A session: a named conversation that outlives its child and its clients. This module keeps the child: starts it,
 * reads it, writes to it, stops it, and knows the session's state. It knows no client: it reports through struct
 * session_events (from_child.c), and a prestarted child by those of warm.c.
 *
 * A session is freed by a task of the loop after session_remove(). Times in ms. Source: docs/contract.md 8,
 * protocol-facts 1, 6.3.
 */
#pragma once

#include "base/error.h"
#include "base/hash.h"
#include "core/agent.h"
#include "core/call.h"
#include "core/handles.h"
#include "core/launch.h"
#include "core/pending.h"
#include "core/progress.h"
#include "core/prompts.h"
#include "core/queue.h"
#include "core/registry.h"
#include "core/settings.h"
#include "core/snapshot.h"
#include "core/tail.h"
#include "core/tape.h"
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

/* What to do with a session after a deliberate stop of its child. */
enum stop_then { THEN_SLEEP, THEN_RESTART, THEN_REMOVE };

/* The reason to end a child that lived on without a working stream, and so was useless. */
enum broken { BROKEN_NOT, BROKEN_DEAF, BROKEN_MUTE, BROKEN_SECOND, BROKEN_MEMORY, BROKEN_REFUSED };

/* What to do with detached processes when the child is gone. */
enum leftovers { LEFTOVERS_AS_SET, LEFTOVERS_END, LEFTOVERS_KILL };

struct handshake;
struct router;
struct session;
struct spare;

/* The cost of a conversation, as last reported; 1e-9 USD. */
struct cost {
	int64_t nano_usd;
	bool unknown; /* it was resumed, and nothing was reported yet */
};
static inline void cost_forget(struct cost *c) {
	c->unknown = true;
}

/* The turns so far; turns.c writes it. */
struct turns {
	uint64_t count;
	struct cost cost;
};

/* The clients that are far behind; pace.c writes it. */
struct pace {
	struct loop_timer *timer; /* NULL: no client was ever far behind */
};

/* The output of a running turn; stall.c writes it. */
struct stall {
	int64_t since;               /* no output since then, monotonic ms */
	bool told;                   /* the event `stalled` was sent, and no output came since */
	struct loop_timer *timer;    /* NULL: no turn has run */
	struct stall_search *search; /* for the open tool (stall.c); NULL: none */
};

struct session_exit {
	int status; /* exit status, or 128 + signal */
	int signal; /* 0: none */
	bool wanted;
	enum broken broken;
	bool never_ran; /* it could not be started at all */
	bool stuck;     /* it lives on: SIGKILL did not end it */
	bool in_turn;   /* a turn was running */
	int64_t ran_ms;
};

struct session_events {
	/* A line of the child (with its newline) that is a JSON object; e holds its envelope. Borrowed. */
	void (*line)(struct session *s, struct chunk line, const struct envelope *e);
	/* A line that is no JSON object. */
	void (*stray)(struct session *s, struct chunk line);
	/* wide: the line is not too long, but has too many members (wire/lengths.h). */
	void (*long_line)(struct session *s, struct chunk head, size_t size, bool wide);
	void (*stderr_data)(struct session *s, const char *data, size_t n);
	/* The child was started: send it its initialize. */
	void (*started)(struct session *s);
	/* A start has ended: started() has run, or s->start_error is the reason and s->start_result the kind of failure. */
	void (*start_over)(struct session *s);
	/* The child is about to be ended: session_recorded() follows in a later turn. */
	void (*ending)(struct session *s);
	/* It has ended, and processes started by it may still be there: session_left() follows. */
	void (*left)(struct session *s);
	/* The same, and those processes are dealt with: end all that waits for the child. False: there is more to do, it is
	 * called again in a later turn. NULL: there is nothing. */
	bool (*closing)(struct session *s, const struct session_exit *e);
	/* Exit and end of output were both seen, and all output was delivered. */
	void (*exited)(struct session *s, const struct session_exit *e);
	/* The session has changed in this turn: the consequences are due (core/reconcile.h). */
	void (*changed)(struct session *s);
	/* Return true if the child may be read; else it must wait for its readers. */
	bool (*may_read)(struct session *s);
	/* The turn of a read is over: send the output. */
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
	struct router *world;
	struct settings *settings;
	const struct profile *profile;
	struct launch launch;

	char *conversation_id; /* as reported by the child */
	char *resumed_id;      /* id of the last resume, if different */
	char *left_socket;     /* a socket file made by the child and left behind when it is killed */
	char *version;         /* claude_code_version of the newest init */

	struct agent *agent;    /* the running child; NULL: none, or its end is complete */
	struct agent *starting; /* want_child, and its process has not executed the program yet; NULL: none */
	bool only_asked;        /* only clients that wait for the result have asked for that start: it is tried once */
	char *start_error;      /* reason of the newest start's failure; NULL: it succeeded */
	enum child_result start_result;
	struct lines_pool *pool;
	uint64_t child_no; /* counts starts */
	/* A child that could not be ended, here or by the daemon before, and may live on: no other is started beside it. */
	pid_t stuck_pid; /* 0: none */
	uint64_t stuck_start;
	struct spare *spare; /* not NULL: a prestarted one of core/warm.h, no client's session yet */
	bool untouched;      /* the child was prestarted, lives, and nothing was written to it since */
	struct queue in;
	struct queue later; /* lines to write once the child's conversation is known */
	unsigned unnamed;   /* not 0: it is unknown; counts the steps of the child's start, from 1 */
	bool waits;         /* the next step waits for a client (STEP_WAITS) */
	bool replays;       /* the child repeats lines that the tape has */
	bool by_client;     /* a client begins the conversation itself */
	struct memo memo;   /* of the dialect */
	struct tail tail;   /* of the newest child's stderr */

	enum stop_stage stopping;
	enum stop_then then;
	int64_t stop_since;
	uint64_t stopper;         /* the client that asked for the stop last; it is notified if the stop fails */
	bool brief;               /* the daemon ends: each step of the stop takes half of stop_grace */
	enum broken broken;       /* the reason of a stop that no client asked for */
	enum leftovers leftovers; /* of a client's stop: also end detached processes; else as in the profile */

	enum session_state told_state, previous;
	/* The state named in an answer since the last published one; else told_state. */
	enum session_state named_state;
	char *lost_profile; /* its profile if not configured any more, or SESSION_UNREADABLE: it cannot start */
	char *reason;       /* cause of the failure */
	bool failed;
	bool spent; /* restart = never, and its child has ended by itself */
	struct progress progress;
	struct loop_task task;          /* events.changed is due */
	uint64_t marked;                /* hash at the last mark of the table on disk (core/reconcile.h) */
	bool counted;                   /* its child was counted against max_children */
	unsigned failures;              /* failed starts in a row */
	int64_t not_before;             /* back-off */
	struct loop_timer *retry_timer; /* NULL: no start was delayed */
	unsigned spawn_tries;
	bool want_child; /* a start is delayed, or under way */

	int64_t used_at, created_at;

	struct tape tape;
	struct snapshot snapshot;
	struct timers timers;
	struct list attachments; /* attachment.c's, with their number */
	size_t n_attachments;
	struct pace pace;

	struct calls calls;
	struct handles handles;
	struct pendings pendings;
	struct registry registry;
	struct prompts prompts;
	struct handshake *handshake; /* state of the child's initialize */

	bool altered;     /* a client has changed settings of its child, which another session would not have */
	uint64_t made_by; /* the id of the session of the agent that made it; 0: none */
	bool ephemeral;   /* ends with the client that made it; not kept on disk */
	bool ending;      /* that client's input is over: the session ends after the answers that it waits for */
	bool unclaimed;   /* its maker left before its first start was over: it is removed if that fails */
	bool leaving;     /* it is removed when its leftovers have been swept (core/descent.h) */
	bool removed;
	struct share *payer;                   /* of the uid that it was made for; sessions.c's */
	struct loop_task free_task, over_task; /* over_task: sessions.c's; removes the session */
	uint64_t lines_out, bytes_out, strays, dropped_answers;
	struct turns turns;
	struct stall stall;
};

/* NULL without memory. Takes over launch on success. */
struct session *session_new(struct loop *loop, struct lines_pool *pool, struct children *children,
							struct settings *settings, const struct profile *profile, const char *name,
							struct launch *launch, const struct session_events *events, struct router *world);
/* Begin to start the child now, for a client that waits for the result: start_over() reports it, and it is not
 * repeated. Failure: error is the reason, the state is unchanged; transient: a retry may succeed. */
enum child_result session_start_once(struct session *s, struct error *error);
/* Make a child run, now or, after failures, at the end of the back-off. False: error is the reason. */
bool session_wake(struct session *s, struct error *error);
/* The same, but begin a start at once, for a client that waits for start_over(). */
enum child_result session_wake_now(struct session *s, struct error *error);
bool session_has_child(const struct session *s); /* running and not being stopped */
/* Return the protocol of its child, of its clients and of its tape. */
static inline const struct dialect *session_dialect(const struct session *s) {
	return s->profile->dialect;
}
/* Return true if its children go through a start with answers, and know their conversation only then. */
static inline bool session_has_steps(const struct session *s) {
	return session_dialect(s)->take_step != NULL;
}
/* Return true if prompts may be written now. */
static inline bool session_is_ready(const struct session *s) {
	return !session_has_steps(s) || (session_has_child(s) && !s->unnamed);
}
/* Return true if its next child can go on with the conversation. */
static inline bool session_can_resume(const struct session *s) {
	return s->profile->resume_args.n || session_has_steps(s);
}
/* Return the queue of lines from clients to the child. */
static inline const struct queue *session_queue(const struct session *s) {
	return session_has_child(s) && s->unnamed && !s->waits ? &s->later : &s->in;
}
/* Queue a line for the child, or for the next one if a start is wanted (session_wake()). own: beyond any limit. Takes
 * over the reference. False: full, or no child. */
bool session_write(struct session *s, struct chunk line, bool own);
/* The same beyond any limit, charged to payer until the child has read it. Takes the rope over. */
bool session_write_charged(struct session *s, struct rope *line, struct share *payer);
/* Queue an answer to a request of the child. Takes the rope over. False if its input is closed: the next child, which
 * may be wanted already, has asked nothing. */
bool session_answer(struct session *s, struct rope *line);
/* Queue a line without which this child would wait indefinitely: without memory for it (or for the line itself), the
 * child is ended. */
void session_must_write(struct session *s, struct chunk line);
/* Data of the child or for it was silently lost: kill the child, and notify all clients. */
void session_no_memory(struct session *s, const char *what);
/* The same as session_write(), before all queued lines (the initialize of a just started child). */
bool session_write_first(struct session *s, struct chunk line);
/* Return the number of the child that gets a line written now. */
uint64_t session_writes_to(const struct session *s);
/* Return true if this is the number of a future child. */
static inline bool session_awaits(const struct session *s, uint64_t child) {
	return s->want_child && child > s->child_no;
}
void session_stop(struct session *s, bool kill_now, enum stop_then then);
/* The processes of its child are known: continue the stop. */
void session_recorded(struct session *s);
/* The processes that its child left are dealt with: the end of the child is complete. */
void session_left(struct session *s);
/* Before a stop that a client asks for: it is notified if that fails. leftovers: as at least. */
void session_stop_for(struct session *s, uint64_t client, enum leftovers leftovers);
/* The same because the daemon ends: after stop_grace twice the child is gone or given up. */
void session_quit(struct session *s, bool kill_now);
/* Return true if the child lives on that could not be ended, with the reason in error. */
bool session_is_stuck(struct session *s, struct error *error);
/* End the input of the client that started the child: it ends in its own time, like without a daemon, and the session
 * with it. A session_stop() adds the other steps: when no client waits for the child any more, or one waits for its
 * name or conversation. */
void session_end_input(struct session *s);
/* Unlink it from everything; it is freed at the end of the turn. The child must be gone. */
void session_remove(struct session *s);
/* Let events.changed be called once at the end of the turn, before anything is sent. Called by every change of a
 * session: lines of its child and of its clients, starts, stops and timers. */
void session_changed(struct session *s);
void session_go_on(struct session *s); /* the same, in a later turn: other sessions come in between */
enum session_state session_state(const struct session *s); /* the current one, published or not */
/* Return true if the state must be published. It counts as published then. */
bool session_state_due(struct session *s);
/* Free memory that only a running session needs. From a task. */
void session_slim(struct session *s);
/* Return the state for an answer. The next state is published then, even if the other clients already know it. */
enum session_state session_name_state(struct session *s);
/* The caller publishes the state itself, with its cause; idle, which has consequences, is published later. */
void session_bring_forward(struct session *s);
void session_turn_ended(struct session *s); /* a result came: its start was no failure */
/* Return true if the child has tasks in the background or armed timers, which its end would end. */
bool session_works_on(struct session *s);
void session_used(struct session *s); /* used by a client: restart the idle timer */
void session_pace(struct session *s); /* read the child or pause it, by may_read() */
/* Note the conversation of the child. Lines that wait for the end of its start name it from now on. */
void session_set_conversation(struct session *s, const char *id);
/* Change the name; the caller changes the table of names. False: no memory, and nothing has changed. */
bool session_rename(struct session *s, const char *name);
/* The child's conversation is known and no other session's, or cannot be known: write the lines that waited for it. */
void session_named(struct session *s);
/* A step of the child's start was sent. replays: the child repeats lines that the tape has, until its answer. */
void session_step_sent(struct session *s, bool replays);
void session_step_answered(struct session *s, bool good);    /* good false: it comes again */
void session_step_waits(struct session *s);                  /* for a client */
void session_set_resumed(struct session *s, const char *id); /* NULL: forget it */
/* What the child has reported on itself. Takes over both; NULL: nothing. */
void session_set_child(struct session *s, char *left_socket, char *version);
void session_set_reason(struct session *s, const char *reason);
/* Return true if another session could use this child as well: alive, initialised, idle, no pending work. */
bool session_can_give(const struct session *s);
/* Return true if the child is unused since it was given. Half a line of it may be read already. */
bool session_can_return(const struct session *s);
void session_touch(struct session *s); /* its child is not unused any more */
/* Move the child of `from` to `to`, which has none; its output is on both tapes then. False without memory. */
bool session_take_child(struct session *to, struct session *from);
/* Without a child: it is removed in a later turn, and gets none until then. */
void session_leave(struct session *s);
/* Return true if the child is being stopped and the session removed afterwards, or it is removed soon. */
static inline bool session_is_going(const struct session *s) {
	return s->leaving || !list_empty(&s->over_task.node) ||
		   (s->agent && s->stopping != STOP_NOT && s->then == THEN_REMOVE);
}
/* Return the pid of the running process; 0: none, or it has exited and its output has not ended yet. */
static inline pid_t session_pid(const struct session *s) {
	return s->agent && s->agent->child.pid > 0 ? s->agent->child.pid : 0;
}
/* Return its conversation, or the one to resume; NULL: a new one. */
static inline const char *session_conversation(const struct session *s) {
	return s->conversation_id ? s->conversation_id : s->launch.fork ? NULL : s->launch.resume;
}
/* Return the conversation that a start of its child resumes; NULL: none. */
static inline const char *session_resumes(const struct session *s) {
	return s->resumed_id ? s->resumed_id : s->conversation_id ? s->conversation_id : s->launch.resume;
}
const char *session_state_name(enum session_state state);
/* The child has taken up another session's conversation: kill it before it writes more there. why: for users. */
void session_kill_second(struct session *s, const struct session *other, const char *why);
const char *session_broken_text(enum broken broken); /* "the child ..." */
/* The child has refused a step of its start: kill it. why: for users. */
void session_kill_refused(struct session *s, const char *why);
void session_use_profile(struct session *s, struct settings *settings, const struct profile *p); /* without a child */
/* Note the name of its profile, which is not configured: it cannot start. False without memory. */
bool session_lose_profile(struct session *s, const char *name);
void session_set_ephemeral(struct session *s);            /* it ends with the client that made it */
void session_set_made_by(struct session *s, uint64_t id); /* the session whose agent made it; 0: none */
/* From the table on disk: the time it was made, and a child that may live on. */
void session_set_created(struct session *s, int64_t ms);
void session_set_stuck(struct session *s, pid_t pid, uint64_t start);
bool session_is_private(const struct session *s); /* to clients of the daemon's uid */
/* Return the name of its profile, configured or not; borrowed. */
char *session_profile(const struct session *s);
/* Serialize or restore it without its name, its profile, its launch and the members of other modules
 * (session_carry.c). */
void session_carry(struct carry *c, struct session *s);
/* For session_carry(): a child without a process; a start after so many ms, false without memory. */
struct agent *session_new_agent(struct session *s);
bool session_put_off(struct session *s, int64_t ms);
/* The errand that removes left_socket. */
#define SESSION_LEFT_ERRAND "left"
int session_left_errand(void);
void session_pause_start(struct session *s); /* before a save: restart a start under way later */
void session_resume(struct session *s);      /* after a restore: begin to read its child */
