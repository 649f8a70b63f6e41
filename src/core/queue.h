/* SPDX-License-Identifier: MIT
 *
 * The queue of lines for a child's stdin, in order, bounded in bytes and pieces. An empty queue accepts any line; the
 * daemon's own lines (answers awaited by the child) are accepted even if it is full. Owns one reference to each line. A
 * line may be charged to a share while it is queued.
 */
#pragma once

#include "core/carry.h"
#include "core/share.h"
#include "wire/rope.h"

#include <stdint.h>

/* A piece of a line: of a rope, or all of it. */
struct queue_item {
	struct chunk piece;
	struct share *payer; /* NULL: none */
	bool goes_on;        /* the next one is of the same line */
};

struct queue {
	struct queue_item *ring;
	size_t cap, first, count;
	size_t sent; /* written bytes of the first line, whose pieces stay until all of it was written */
	size_t bytes, max;
};

void queue_init(struct queue *q, size_t max);
void queue_free(struct queue *q);
bool queue_has_room(const struct queue *q, size_t len);
/* Return true if there are far more of the daemon's own lines than the child may leave: it asks, and reads no answers.
 */
bool queue_is_flooded(const struct queue *q);
/* Takes ownership of the reference; false without memory. */
bool queue_put(struct queue *q, struct chunk line);
/* The same, charged to payer; NULL: to none. Takes the rope over. */
bool queue_put_charged(struct queue *q, struct rope *line, struct share *payer);
/* Like queue_put(), before all others; nothing of the first line may have been written. */
bool queue_put_first(struct queue *q, struct chunk line);
/* Give the line that begins at piece i, in one piece, and return the number of its pieces: the next line begins after
 * them. The caller owns the reference; it has no data without memory. */
size_t queue_line(const struct queue *q, size_t i, struct chunk *line);
/* Put another line, of one piece, in the place of that one, of which nothing was written. Takes the reference over. */
void queue_replace(struct queue *q, size_t i, struct chunk line);
/* Move all lines of from, with their charges, to the end of q. False without memory; from is empty then, too. */
bool queue_move(struct queue *q, struct queue *from);
/* Write as much as the socket accepts. -1: the socket is broken (errno). 1: lines are left. 0: empty. */
int queue_write(struct queue *q, int fd);
void queue_carry(struct carry *c, struct queue *q);
