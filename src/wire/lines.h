/* SPDX-License-Identifier: MIT
 *
 * Framing: splits the bytes of reads into whole lines, as chunks. Only byte 0x0A ends a line. Each byte is scanned
 * once. A line over the limit is skipped up to its newline and reported once, with its size.
 *
 * An idle reader has no buffer: it reads into a buffer shared by all readers, and whole lines are copied into a block
 * of their size. After a large read, many small ones, or a long unfinished line the reader gets a ring (wire/ring),
 * reads into it, and its lines are not copied. lines_pool_trim() frees the rings of idle readers. A line that is too
 * long for the ring is read into a block of its own.
 *
 * Use in a loop: lines_space() returns the buffer of the next read, lines_commit() accepts the read bytes, then
 * lines_next() until it returns LINES_MORE. Source: docs/contract.md 7.
 */
#pragma once

#include "base/list.h"
#include "wire/limits.h"
#include "wire/ring.h"

#define LINES_BLOCK ((size_t)1024 * 1024 - 64) /* whole pages including its headers */
#define LINES_READ LIMITS_TURN_BYTES           /* most bytes of one read */

/* Shared by the readers of a process; zero-initialised by its owner. */
struct lines_pool {
	struct block *scratch; /* the read buffer of idle readers, in turn */
	struct list flowing;   /* readers with a ring */
	bool busy;             /* one of them has read since the last lines_pool_trim() */
	/* Called when it becomes busy: trim it later. NULL: never trimmed. */
	void (*on_busy)(struct lines_pool *pool);
};

struct lines {
	struct lines_pool *pool;
	size_t max;           /* longest line without its newline, bytes */
	size_t keeps;         /* typical bytes of its lines in use */
	struct ring *ring;    /* during a steady flow */
	struct list node;     /* with a ring: in the pool's list */
	struct block *block;  /* of a long line; or the pool's, between lines_space() and lines_next() */
	bool owned;           /* block belongs to a long line */
	bool flowed;          /* has read into its ring since the last trim */
	size_t end;           /* bytes in ring or block that were not returned yet */
	size_t searched;      /* of these, and of partial, bytes known to have no newline */
	size_t carried;       /* bytes moved for the unfinished line */
	size_t copied;        /* bytes of small reads since the last ring */
	struct chunk batch;   /* whole lines of a small read that are being returned */
	size_t cut;           /* bytes of batch that were returned */
	size_t first;         /* bytes of the batch's first line known to have no newline */
	struct chunk partial; /* a short unfinished line between small reads */
	bool skipping;        /* within a too long line */
	bool skip_done;       /* its newline was found, it was not reported yet */
	size_t skipped;       /* its bytes so far */
	struct chunk head;    /* its first bytes */
	struct chunk back;    /* a line that was put back */
};

#define LINES_HEAD 4096

enum lines_result {
	LINES_MORE, /* no further line in the read bytes */
	LINES_LINE, /* *line is a whole line with its newline; the caller drops it */
	LINES_LONG, /* end of a too long line: *size bytes without its newline, *line its first bytes (may be none) */
	LINES_OOM,
};

void lines_init(struct lines *l, struct lines_pool *pool, size_t max);
/* Set the bytes of its lines that are in use at a time (the bound of a tape): a later ring has room for them. */
void lines_keep(struct lines *l, size_t bytes);
void lines_free(struct lines *l);
void lines_pool_free(struct lines_pool *pool);
/* Free unused memory: all of it, or except the rings that were used since the last call. Return true if there are such
 * rings: then call it again. */
bool lines_pool_trim(struct lines_pool *pool, bool all);

/* Return the buffer of the next read; at least 4 KiB. NULL without memory. */
char *lines_space(struct lines *l, size_t *room);
void lines_commit(struct lines *l, size_t n);
/* Call it until it returns LINES_LINE or LINES_MORE before another reader uses the pool, and until it returns
 * LINES_MORE before the next read. */
enum lines_result lines_next(struct lines *l, struct chunk *line, size_t *size);
/* The last line that was returned: the next call returns it again. Takes over the reference. */
void lines_put_back(struct lines *l, struct chunk line);
/* At EOF: return the unfinished line (without a newline), or false. */
bool lines_rest(struct lines *l, struct chunk *rest);
/* At EOF: return true if the input ended within a too long line that was not reported yet, with *size bytes. */
bool lines_cut(const struct lines *l, size_t *size);
/* Between reads: drop the unfinished line and treat it as too long. */
void lines_skip(struct lines *l);
/* Return the bytes held for an unfinished line, or for one that was put back. */
size_t lines_held(const struct lines *l);
/* The state of a reader between reads, to continue in another process. */
struct lines_state {
	struct chunk back; /* a line that was put back: it precedes all others */
	const char *whole; /* preceding lines that were not returned yet */
	size_t n_whole;
	const char *data; /* bytes of the unfinished line; NULL: none */
	size_t len, carried;
	bool skipping;
	size_t skipped;
	struct chunk head;
};
void lines_suspend(const struct lines *l, struct lines_state *state); /* everything is borrowed */
/* Restore a newly initialised reader; takes ownership of head only. All bytes are in data, including whole lines for
 * lines_next(). False without memory. */
bool lines_resume(struct lines *l, const struct lines_state *state);
