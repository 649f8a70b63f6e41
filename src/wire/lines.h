/* SPDX-License-Identifier: MIT
 *
 * Framing: bytes come in as they were read, whole lines come out as chunks. Only byte 0x0A ends a line. No byte is
 * looked at twice. A line over the limit is skipped up to its LF and reported once, with its size.
 *
 * A quiet reader holds no buffer: a read goes to memory that all readers share, and its whole lines are copied into a
 * block of their size. A read that brings much, many small ones, or a long unfinished line give the reader a ring
 * (wire/ring): its reads go there from then on and its lines stay where they were read to. lines_pool_trim() takes the
 * ring away from a reader that rests. A line that is too long for the ring is read to a block of its own.
 *
 * Use: lines_space() says where to read to, lines_commit() what was read, then lines_next() until it returns
 * LINES_MORE, in a loop. Source: DESIGN 7, ENGINEERING 8.4.
 */
#pragma once

#include "base/list.h"
#include "wire/limits.h"
#include "wire/ring.h"

#define LINES_BLOCK ((size_t)1024 * 1024 - 64) /* a whole number of pages with its headers */
#define LINES_READ LIMITS_TURN_BYTES           /* the most that one read brings */

/* What the readers of a process share; zero-initialised by its owner. */
struct lines_pool {
	struct block *scratch; /* where quiet readers read to, one after the other */
	struct list flowing;   /* readers with a ring */
	bool busy;             /* one of them has read since the last lines_pool_trim() */
	/* It has become busy: trim it in a while. NULL: it is never trimmed. */
	void (*on_busy)(struct lines_pool *pool);
};

struct lines {
	struct lines_pool *pool;
	size_t max;           /* bytes of a line without its LF */
	size_t keeps;         /* bytes of its lines that are in use at a time, as a rule */
	struct ring *ring;    /* while much comes */
	struct list node;     /* with a ring: in the pool's list */
	struct block *block;  /* a long line's own; or the pool's, between lines_space() and lines_next() */
	bool owned;           /* block is a long line's */
	bool flowed;          /* has read to its ring since the last trim */
	size_t end;           /* bytes in ring or block that were not handed out */
	size_t searched;      /* of them, and of partial, bytes that are known to hold no LF */
	size_t carried;       /* bytes that were moved for the unfinished line */
	size_t copied;        /* bytes that small reads have brought since there was a ring */
	struct chunk batch;   /* whole lines of a small read that are being handed out */
	size_t cut;           /* bytes of batch that were handed out */
	size_t first;         /* bytes of the batch's first line that are known to hold no LF */
	struct chunk partial; /* a short unfinished line between small reads */
	bool skipping;        /* in the middle of an over-long line */
	bool skip_done;       /* its LF was found, it was not reported yet */
	size_t skipped;       /* its bytes so far */
	struct chunk head;    /* its first bytes */
};

#define LINES_HEAD 4096

enum lines_result {
	LINES_MORE, /* nothing more in what was read */
	LINES_LINE, /* *line is a whole line with its LF; the caller drops it */
	LINES_LONG, /* a line over the limit has ended: *size bytes without its LF, *line its first bytes (may be none) */
	LINES_OOM,
};

void lines_init(struct lines *l, struct lines_pool *pool, size_t max);
/* So many bytes of its lines are in use at a time (a tape's bound): its ring, made at need, has room for them. */
void lines_keep(struct lines *l, size_t bytes);
void lines_free(struct lines *l);
void lines_pool_free(struct lines_pool *pool);
/* Gives back what nobody needs now: all of it, or but for the readers that have read to a ring since the last call.
 * True: there were such readers, so it is to be called again. */
bool lines_pool_trim(struct lines_pool *pool, bool all);

/* Where the next read goes; at least 4 KiB. NULL without memory. */
char *lines_space(struct lines *l, size_t *room);
void lines_commit(struct lines *l, size_t n);
/* Must be called until it returns LINES_LINE or LINES_MORE before the reader yields (another reader may use the pool
 * then), and until it returns LINES_MORE before the next read. */
enum lines_result lines_next(struct lines *l, struct chunk *line, size_t *size);
/* At EOF: an unfinished line (without LF), or false. */
bool lines_rest(struct lines *l, struct chunk *rest);
/* At EOF: the input ended within an over-long line, which was not reported yet: *size bytes of it came. */
bool lines_cut(const struct lines *l, size_t *size);
/* Between reads: the unfinished line is dropped, and is one over the limit from now on. */
void lines_skip(struct lines *l);
/* Bytes held for an unfinished line. */
size_t lines_held(const struct lines *l);
/* What a reader has in hand between reads: for one that goes on in another process. */
struct lines_state {
	const char *whole; /* lines before it that were not handed out yet */
	size_t n_whole;
	const char *data; /* its bytes; NULL: none */
	size_t len, carried;
	bool skipping;
	size_t skipped;
	struct chunk head;
};
void lines_suspend(const struct lines *l, struct lines_state *state); /* everything is borrowed */
/* Into a reader that was just initialised; takes over head alone. All bytes are in data, where lines_next() finds whole
 * lines, too. False without memory. */
bool lines_resume(struct lines *l, const struct lines_state *state);
