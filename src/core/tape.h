/* SPDX-License-Identifier: MIT
 *
 * The tape of a session: its lines for all clients, in the child's order, under sequence numbers without gaps. The tape
 * owns one reference to each line; readers are cursors (a number each) and own nothing. Above a limit the oldest lines
 * are dropped, even if unread; the newest line is always kept. Source: docs/contract.md 7.
 */
#pragma once

#include "core/carry.h"
#include "dialect/dialect.h"
#include "wire/chunk.h"

#define TAPE_REPLAY 1 /* an echo of a prompt */
#define TAPE_OTHERS 2 /* made by the daemon, for all but the sender: the number behind the last TAPE_SENDER */
#define TAPE_SENDER "client"

struct tape_entry {
	struct chunk line; /* with its newline */
	uint64_t end : 48; /* bytes appended so far, including this line */
	uint64_t kind : 8; /* enum line_kind */
	uint64_t flags : 8;
};

struct tape {
	struct tape_entry *ring;
	size_t cap, first, count;
	uint64_t oldest, next; /* sequence numbers: of the oldest line, of the next line */
	uint64_t began;        /* the number of the very first line; 0: earlier lines were lost */
	uint64_t total;        /* bytes appended so far */
	size_t bytes;          /* charged now */
	size_t max_bytes, max_lines;
};

void tape_init(struct tape *t, size_t max_bytes, size_t max_lines);
void tape_free(struct tape *t); /* drop all lines; numbers continue */
/* Return a first number after a restart that no earlier line had: the time in microseconds (no child prints lines
 * faster), and always above `above`, because the clock may have been set back. */
uint64_t tape_fresh_number(int64_t real_ms, uint64_t above);
/* Set the number of the first line. anew: there was no line before it. */
void tape_begin(struct tape *t, uint64_t seq, bool anew);
/* Takes ownership of the caller's reference to line. False without memory (the line is dropped then). */
bool tape_append(struct tape *t, struct chunk line, enum line_kind kind, unsigned flags);
/* A line of this many bytes is being read: drop now the lines that its append would drop. */
void tape_reserve(struct tape *t, size_t len);
/* Copy the lines into blocks without other content, and shrink the index: the memory in use is then the charged one.
 * For a session that goes to sleep. */
void tape_pack(struct tape *t);
/* Return a number of bytes of which a few do not fill the tape: an eighth of it; less for short lines, which reach the
 * limit of lines first. */
size_t tape_piece(const struct tape *t);

/* Return the index in the ring of line i, from the oldest on. */
static inline size_t tape_place(const struct tape *t, size_t i) {
	size_t at = t->first + i;
	return at < t->cap ? at : at - t->cap;
}

/* Return the entry with this number; seq must be in oldest..next-1. */
static inline const struct tape_entry *tape_at(const struct tape *t, uint64_t seq) {
	return &t->ring[tape_place(t, (size_t)(seq - t->oldest))];
}

/* Return the bytes from the line with this number to the end. */
uint64_t tape_behind(const struct tape *t, uint64_t seq);
/* Return the number after the newest line with this `uuid`, or 0. In the lines no letter may be written as an escape
 * without need. */
uint64_t tape_after_uuid(const struct tape *t, const struct dialect *d, const char *uuid);
/* Serialize or restore. Restores into a tape just initialised, and its limits apply. */
void tape_carry(struct carry *c, struct tape *t);
