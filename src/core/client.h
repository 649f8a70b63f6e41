/* SPDX-License-Identifier: MIT
 *
 * One connection: lines in, lines out. Output comes from two sources in one order: the tape that the client reads (a
 * cursor) and its mail (lines for it alone, each placed before the tape line that followed it). Written once a turn,
 * with gathered writes. Knows no session: it reports through struct client_events.
 *
 * In one turn of the loop a client is read once and served at most LIMITS_TURN_LINES lines, fewer if they take long.
 * The rest waits in `in` for later turns, between which others are served; until then no more is read.
 *
 * A channel is a client without a descriptor of its own: it has a place in another session for the same peer, and its
 * lines pass through the connection of its carrier. The carrier's lines that are for it are served as its own; its
 * output becomes mail of the carrier. It ends with its carrier.
 *
 * A client is freed by the loop's task after client_kill(); until then its memory stays valid. All counters in bytes
 * and lines, times in ms (monotonic).
 */
#pragma once

#include "base/fd.h"
#include "base/names.h"
#include "core/carry.h"
#include "core/origin.h"
#include "core/share.h"
#include "core/tape.h"
#include "io/loop.h"
#include "io/watch.h"
#include "wire/lines.h"
#include "wire/rope.h"

struct attachment;
struct client;
struct inquiry;
struct lengths;
struct message_check;
struct router;

struct client_events {
	/* A line with its newline and CR; the chunk is borrowed. */
	void (*line)(struct client *c, struct chunk line);
	/* A dropped line: too long, or starved. */
	void (*long_line)(struct client *c, struct chunk head, size_t size);
	/* The peer sends no more; it may still read. */
	void (*no_more)(struct client *c);
	/* The connection is over (also after client_kill()); the last event of this client. */
	void (*gone)(struct client *c);
	/* Lines from..to of the tape were dropped before this client read them. The cursor is behind them already. */
	void (*overtaken)(struct client *c, uint64_t from, uint64_t to);
	/* Its uid has more than its share of bytes, and this client most of them. Its input and its unread lines were
	 * dropped; it will be closed. */
	void (*evicted)(struct client *c, size_t held);
	/* The kernel's buffer is full (blocked), or has taken some bytes. */
	void (*pace)(struct client *c, bool blocked);
};

struct client_filter {
	bool tag, no_partial, no_echo, quiet; /* quiet: no plenum_event lines from the tape */
	bool by_type;
	uint32_t kinds;      /* by_type: bit 1 << enum line_kind */
	struct names others; /* by_type: names of types that have no kind of their own */
};

/* The reason to drop a line: its length while its uid has too many bytes, or no memory. */
enum starved { STARVED_NOT, STARVED_SHARE, STARVED_MEMORY };

struct client {
	struct list node;       /* in the server's list of clients */
	struct client *carrier; /* this is a channel of that client; NULL: it is a connection */
	struct list channels;   /* of this connection, by `channel` */
	struct list channel;
	struct loop *loop;
	const struct client_events *events;
	struct router *world;
	struct loop_fd io;
	struct loop_task flush_task, free_task, serve_task;
	struct lines in;
	bool more;                           /* in has unserved lines */
	struct chunk held;                   /* the line of client_hold(), before those of in; no data: none */
	struct inquiry *inquiry;             /* question of the held line to the outside; NULL: none */
	struct lengths *lengths;             /* of its line that is being checked, or served */
	struct message_check *check;         /* progress of the held line's check; NULL: unchecked */
	const struct message_steps *checker; /* of `check` */
	uint64_t starting;                   /* id of the session that must start first; 0: none */
	bool makes;                          /* it has made that session */
	bool releasing;                      /* the held line is served again, and may be held once more */

	uint64_t id; /* of this connection, for logs */
	struct peer peer;
	struct watch *watch; /* its process; NULL: there is none, see origin */
	char program[16];
	enum origin origin;
	uint64_t family;      /* of an agent's process: the id of its session; 0: of no known one */
	bool subscribed;      /* notified of every session */
	bool chooses;         /* it asked to attach, or detached, by a verb: no implicit attach */
	size_t inits_open;    /* of them the unanswered ones */
	uint64_t inits;       /* initialize requests that it has sent */
	uint64_t init_due;    /* the newest one that its prompts need, until that or a later one succeeds; 0: none */
	char *refused_change; /* a refused change that its prompts need; NULL: none */
	char *name;           /* the label chosen by the client; may be NULL */

	struct tape *tape; /* NULL: not attached */
	uint64_t cursor;
	uint64_t repeats; /* lines before this one are repeated on request, see client_repeat_tape() */
	struct client_filter filter;
	struct names mutes; /* types of lines that the connection does not want (struct dialect_ask) */
	struct attachment *attachment;
	const struct dialect *own;     /* shown by its first line that shows one; NULL: none came */
	const struct dialect *dialect; /* of its session; of none: its own, or else the default one */

	struct list mail;
	size_t mail_bytes;
	struct chunk rest[ROPE_PARTS]; /* the rest of a partly sent line */
	size_t n_rest;
	size_t rest_whole; /* bytes of that line */
	struct share_member member;
	bool blocked, ended, closing, dead, paused;
	bool doomed;          /* it is cut off at the end of the turn */
	bool spent;           /* it was to end with its session, and has channels: it ends with the last one */
	bool deaf;            /* its peer takes no more bytes: its lines are still served */
	size_t evicted;       /* not 0: it is closed at the end of the turn, for so many bytes */
	bool taking;          /* its lines are being served: its bytes are not known */
	enum starved starved; /* the reason to drop the current line */
	int64_t blocked_since;

	uint64_t lines_in, bytes_in, bytes_out;
	int64_t since;
};

/* Take over fd and the watch of the peer (NULL: see origin). NULL without memory (both are released). */
struct client *client_new(struct loop *loop, struct lines_pool *pool, struct shares *shares, int fd,
						  const struct peer *peer, struct watch *watch, enum origin origin, size_t max_line,
						  const struct client_events *events, struct router *world);
/* Make a channel of this connection. The caller gives it a place in the list. NULL without memory. */
struct client *client_new_channel(struct client *carrier, struct shares *shares);
static inline bool client_has_channels(const struct client *c) {
	return !list_empty(&c->channels);
}
/* A line of its carrier is served as one of the channel: errors give it its number there. */
void client_count_line(struct client *channel);
/* The channel that is being restored becomes one of this connection. */
void client_carry_channel(struct client *channel, struct client *carrier);
/* Return true if it can take no line now: those of its carrier wait for it. */
static inline bool client_is_full(const struct client *c) {
	return c->held.data != NULL || c->paused;
}
/* Post a line for this client alone, after all lines now on the tape. Takes over the reference. */
void client_post(struct client *c, struct chunk line);
/* The same for a line in pieces. Takes the rope over. */
void client_post_rope(struct client *c, struct rope *line);
/* The same for a line of the child that the connection may not want. */
void client_offer(struct client *c, struct chunk line);
bool client_wants(const struct client *c, struct chunk line);
/* The same for a notice (wire/notice.h), in the client's frame. */
void client_tell(struct client *c, struct chunk notice);
void client_tell_first(struct client *c, struct chunk notice); /* before all unsent lines */
/* Called in the event `line`: hold this line and those behind it. They come again, in their order, after
 * client_release(); until then no more is read. */
void client_hold(struct client *c, struct chunk line);
void client_release(struct client *c); /* from a task; may be held again. No-op without a held line */
static inline bool client_holds(const struct client *c) {
	return c->held.data != NULL;
}
void client_speak(struct client *c, const struct dialect *d); /* NULL: it has left its session */
/* Before a line is served: the first ones show the dialect of the connection. line may be only its beginning. */
void client_begin(struct client *c, struct span line);
/* There may be something to send: check once, at the end of the turn. */
void client_wake(struct client *c);
/* Read this tape from seq on. */
void client_read_tape(struct client *c, struct tape *tape, uint64_t seq);
/* Read the tape once more from its beginning: all lines but notices, before its mail and whatever it filters. */
void client_repeat_tape(struct client *c);
/* Read on after an upgrade. False: it has read more than there is. */
bool client_resume_tape(struct client *c, struct tape *tape);
void client_skip(struct client *c); /* the unread lines of its tape */
/* It attaches and detaches by verbs: no implicit attach from now on. */
void client_choose(struct client *c);
void client_set_origin(struct client *c, enum origin origin, uint64_t family); /* family: client.family */
/* Stop reading the tape; its unread lines become mail. */
void client_leave_tape(struct client *c);
/* Return true if the peer neither writes nor reads any more, even if its last lines were not read yet. */
bool client_hung_up(const struct client *c);
/* Close after all present output was sent. */
void client_close(struct client *c);
void client_kill(struct client *c); /* at once */
/* Return the unsent bytes, of tape and mail. */
uint64_t client_behind(const struct client *c);
/* Return true if the peer has the daemon's uid or is root. */
bool client_is_ours(const struct client *c);
void client_rename(struct client *c, const char *name); /* "": it has no label */
void client_filter_free(struct client_filter *f);
bool client_filter_copy(struct client_filter *to, const struct client_filter *from); /* false without memory */
void client_set_filter(struct client *c, struct client_filter *f);                   /* takes it over */
/* From now on the connection does not want lines of these types, an array of strings. False without memory. */
bool client_mute(struct client *c, struct span types);
/* Serialize or restore all of it but its place in a session and in a share. Loading: *client becomes a new one, which
 * does nothing before client_resume(); NULL on an error. */
void client_carry(struct carry *c, struct client **client, struct loop *loop, struct lines_pool *pool,
				  struct watches *watches, size_t max_line, const struct client_events *events, struct router *world);
void client_resume(struct client *c);
