/* SPDX-License-Identifier: MIT
 *
 * Framing: bytes come in as they were read, whole lines come out as chunks. Only byte 0x0A ends a line. No byte is
 * looked at twice. A line over the limit is skipped up to its LF and reported once, with its size. Reads that bring
 * much are kept as the block that they were read into (views, no copy); small ones are copied into a block of their
 * own size, so that an idle session or client holds no buffer.
 *
 * Use: lines_space() says where to read to, lines_commit() what was read, then lines_next() until it returns
 * LINES_MORE, in a loop. Source: DESIGN 7, ENGINEERING 8.4.
 */
#pragma once

#include "wire/chunk.h"

#define LINES_BLOCK ((size_t)1024 * 1024 - 64) /* a whole number of pages with its headers */
#define LINES_READ ((size_t)256 * 1024)        /* the most that one read brings */

/* Scratch memory shared by all readers of a process; zero-initialised by its owner. A block is filled by one read
 * after the other, whoever's they are: blocks of one size lie well in the heap. */
struct lines_pool {
	struct block *spare;
	size_t used; /* bytes of it that views hold */
	struct shelf *shelf;
};

struct lines {
	struct lines_pool *pool;
	size_t max;           /* bytes of a line without its LF */
	struct block *block;  /* where bytes are being read to; NULL between reads unless a long line grows */
	size_t base;          /* where in it this reader's bytes begin */
	size_t end;           /* bytes in it from there */
	size_t ready;         /* bytes of it that are whole lines */
	bool owned;           /* block is kept between reads (a long line), it is not the pool's */
	struct chunk batch;   /* whole lines that are being handed out */
	size_t cut;           /* bytes of batch that were handed out */
	size_t first;         /* bytes of the batch's first line that are known to hold no LF */
	size_t searched;      /* bytes of the unfinished line that are known to hold no LF */
	size_t carried;       /* bytes that were moved for the unfinished line */
	struct chunk partial; /* a short unfinished line between reads */
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
void lines_free(struct lines *l);
void lines_pool_free(struct lines_pool *pool);
void lines_pool_trim(struct lines_pool *pool); /* gives back what nobody needs now */

/* Where the next read goes; at least 4 KiB. NULL without memory. */
char *lines_space(struct lines *l, size_t *room);
void lines_commit(struct lines *l, size_t n);
/* Must be called until it returns LINES_MORE before the reader yields (another reader may use the pool then). */
enum lines_result lines_next(struct lines *l, struct chunk *line, size_t *size);
/* At EOF: an unfinished line (without LF), or false. */
bool lines_rest(struct lines *l, struct chunk *rest);
/* At EOF: the input ended within an over-long line, which was not reported yet: *size bytes of it came. */
bool lines_cut(const struct lines *l, size_t *size);
/* Bytes held for an unfinished line. */
size_t lines_held(const struct lines *l);
/* What an unfinished line is made of, between reads: for a reader that goes on in another process. */
struct lines_state {
	const char *data; /* its bytes; NULL: none */
	size_t len, carried;
	bool skipping;
	size_t skipped;
	struct chunk head;
};
void lines_suspend(const struct lines *l, struct lines_state *state); /* everything is borrowed */
/* Into a reader that was just initialised; takes over head alone. False without memory. */
bool lines_resume(struct lines *l, const struct lines_state *state);
