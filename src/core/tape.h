/* SPDX-License-Identifier: MIT
 *
 * A session's tape: its lines for everybody, in the child's order, each under a sequence number without holes. The tape
 * owns one reference to each line; readers are cursors, a number each, and own nothing. When a bound is passed the
 * oldest lines go, whoever still wanted them; the newest line always stays. Source: DESIGN 7.
 */
#pragma once

#include "core/carry.h"
#include "wire/chunk.h"
#include "wire/dialect.h"

#define TAPE_REPLAY 1 /* the child's echo of a prompt (isReplay) */

struct tape_entry {
	struct chunk line; /* with its LF */
	uint64_t end : 48; /* bytes that the tape has taken, this line included */
	uint64_t kind : 8; /* enum line_kind */
	uint64_t flags : 8;
};

struct tape {
	struct tape_entry *ring;
	size_t cap, first, count;
	uint64_t oldest, next; /* sequence numbers: of the oldest line, of the line to come */
	uint64_t began;        /* the number of the first line that there ever was; 0: some were lost before that */
	uint64_t total;        /* bytes taken since the beginning */
	size_t bytes;          /* charged now */
	size_t max_bytes, max_lines;
};

void tape_init(struct tape *t, size_t max_bytes, size_t max_lines);
void tape_free(struct tape *t);
/* A number to begin with after a restart, that no line before it had: the time in microseconds, which no child outruns
 * with its lines, and always over `above`, since the clock may have been set back. */
uint64_t tape_fresh_number(int64_t real_ms, uint64_t above);
/* Begins there, before the first line. anew: there never was a line before it. */
void tape_begin(struct tape *t, uint64_t seq, bool anew);
/* Takes over the caller's reference to line. False without memory (the line is dropped then). */
bool tape_append(struct tape *t, struct chunk line, enum line_kind kind, unsigned flags);
/* So many bytes of a line are being read: what would go for it when it is whole goes now. */
void tape_reserve(struct tape *t, size_t len);
/* Each line into blocks that hold the tape's own lines alone, and an index of that size: what it holds is then what it
 * charges. For a session that goes to sleep. */
void tape_pack(struct tape *t);
/* Bytes of which a few do not fill the tape: an eighth of it, by its bound of lines too where these are short. */
size_t tape_piece(const struct tape *t);
/* Forgets every line; numbers go on. */
void tape_clear(struct tape *t);

/* Where in the ring the i-th line is, from the oldest on. */
static inline size_t tape_place(const struct tape *t, size_t i) {
	size_t at = t->first + i;
	return at < t->cap ? at : at - t->cap;
}

/* The line with this number; seq must be in oldest..next-1. */
static inline const struct tape_entry *tape_at(const struct tape *t, uint64_t seq) {
	return &t->ring[tape_place(t, (size_t)(seq - t->oldest))];
}

/* Bytes from the line with this number to the end. */
uint64_t tape_behind(const struct tape *t, uint64_t seq);
/* The number after the newest line whose `uuid` is this text (a line may spell no letter with an escape that could be
 * written as it is); 0 if there is none. */
uint64_t tape_after_uuid(const struct tape *t, const char *uuid);
/* Into a tape that was just initialised; its own bounds hold. */
void tape_carry(struct carry *c, struct tape *t);
