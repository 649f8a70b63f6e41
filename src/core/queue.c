/* SPDX-License-Identifier: MIT */
#include "core/queue.h"

#include "base/fd.h"

#include <errno.h>
#include <stdlib.h>

#define IOVS 64

void queue_init(struct queue *q, size_t max) {
	*q = (struct queue){.max = max};
}

static struct queue_item *item_at(const struct queue *q, size_t i) {
	return &q->ring[(q->first + i) & (q->cap - 1)];
}

static void drop_item(struct queue_item *it) {
	share_give(it->payer, SHARE_BYTES, it->line.len);
	chunk_drop(&it->line);
}

void queue_free(struct queue *q) {
	for (size_t i = 0; i < q->count; i++) drop_item(item_at(q, i));
	free(q->ring);
	*q = (struct queue){.max = q->max};
}

bool queue_has_room(const struct queue *q, size_t len) {
	return q->count == 0 || (len <= q->max && q->bytes <= q->max - len);
}

static bool grow(struct queue *q) {
	size_t cap = q->cap ? q->cap * 2 : 8;
	struct queue_item *ring = malloc(cap * sizeof *ring);
	if (!ring) return false;
	for (size_t i = 0; i < q->count; i++) ring[i] = *item_at(q, i);
	free(q->ring);
	q->ring = ring;
	q->cap = cap;
	q->first = 0;
	return true;
}

bool queue_put_charged(struct queue *q, struct chunk line, struct share *payer) {
	if (q->count == q->cap && !grow(q)) {
		chunk_drop(&line);
		return false;
	}
	*item_at(q, q->count++) = (struct queue_item){line, payer};
	q->bytes += line.len;
	share_add(payer, SHARE_BYTES, line.len);
	return true;
}

bool queue_put(struct queue *q, struct chunk line) {
	return queue_put_charged(q, line, NULL);
}

bool queue_move(struct queue *q, struct queue *from) {
	bool ok = true;
	for (size_t i = 0; i < from->count; i++) {
		const struct queue_item *it = item_at(from, i);
		ok &= queue_put_charged(q, chunk_ref(it->line), it->payer);
	}
	queue_free(from);
	return ok;
}

bool queue_put_first(struct queue *q, struct chunk line) {
	if (q->count == q->cap && !grow(q)) {
		chunk_drop(&line);
		return false;
	}
	q->first = (q->first + q->cap - 1) & (q->cap - 1);
	q->ring[q->first] = (struct queue_item){.line = line};
	q->count++;
	q->bytes += line.len;
	return true;
}

static void drop_written(struct queue *q, size_t n) {
	q->bytes -= n;
	n += q->sent;
	while (q->count && n >= q->ring[q->first].line.len) {
		n -= q->ring[q->first].line.len;
		drop_item(&q->ring[q->first]);
		q->first = (q->first + 1) & (q->cap - 1);
		q->count--;
	}
	q->sent = n;
}

int queue_write(struct queue *q, int fd) {
	while (q->count) {
		struct iovec iov[IOVS];
		int n = 0;
		for (size_t i = 0; i < q->count && n < IOVS; i++) {
			struct chunk c = *queue_at(q, i);
			size_t skip = i == 0 ? q->sent : 0;
			iov[n++] = (struct iovec){(void *)(uintptr_t)(c.data + skip), c.len - skip};
		}
		ssize_t w = fd_sendv(fd, iov, n);
		if (w < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS ? 1 : -1;
		drop_written(q, (size_t)w);
	}
	return 0;
}

void queue_carry(struct carry *c, struct queue *q) {
	size_t n = carry_count(c, q->count), sent = q->sent;
	for (size_t i = 0; i < n && carry_ok(c); i++) {
		struct chunk line = c->saving ? *queue_at(q, i) : CHUNK_NONE;
		carry_chunk(c, &line);
		if (!c->saving && line.data && !queue_put(q, line)) carry_fail(c, "out of memory");
	}
	CARRY(c, sent);
	if (c->saving) return;
	if (sent && (!q->count || sent >= queue_at(q, 0)->len)) {
		carry_fail(c, "more of a line was sent than it has");
		return;
	}
	q->sent = sent;
	q->bytes -= sent;
}
