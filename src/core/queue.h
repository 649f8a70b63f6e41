/* SPDX-License-Identifier: MIT
 *
 * Lines that wait for a child's stdin, in order, bounded in bytes. An empty queue takes any line; the daemon's own
 * lines (answers that the child waits for) are taken even when it is full. Owns one reference to each line. A line may
 * be charged to a share for as long as it is in the queue.
 */
#pragma once

#include "core/carry.h"
#include "core/share.h"
#include "wire/chunk.h"

#include <stdint.h>

struct queue_item {
	struct chunk line;
	struct share *payer; /* NULL: none */
};

struct queue {
	struct queue_item *ring;
	size_t cap, first, count;
	size_t sent; /* bytes of the first line that were written */
	size_t bytes, max;
};

void queue_init(struct queue *q, size_t max);
void queue_free(struct queue *q);
bool queue_has_room(const struct queue *q, size_t len);
/* The i-th line from the front, borrowed; i < count. */
static inline struct chunk *queue_at(const struct queue *q, size_t i) {
	return &q->ring[(q->first + i) & (q->cap - 1)].line;
}
/* Takes over the reference; false without memory. */
bool queue_put(struct queue *q, struct chunk line);
/* The same, charged to payer; NULL: to none. */
bool queue_put_charged(struct queue *q, struct chunk line, struct share *payer);
/* As queue_put(), before all others; nothing of the first line may have been written. */
bool queue_put_first(struct queue *q, struct chunk line);
/* Every line of from, with its charge, behind those of q. False without memory; from is empty then, too. */
bool queue_move(struct queue *q, struct queue *from);
/* The first line with its reference; nothing of it may have been written. False: there is none. */
bool queue_take(struct queue *q, struct chunk *line);
/* Writes what the pipe takes. -1: the pipe is broken (errno). 1: something is left. 0: empty. */
int queue_write(struct queue *q, int fd);
void queue_carry(struct carry *c, struct queue *q);
