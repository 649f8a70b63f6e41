/* SPDX-License-Identifier: MIT */
#include "core/queue.h"

#include "base/fd.h"
#include "wire/limits.h"

#include <errno.h>
#include <stdlib.h>

#define IOVS 64
#define OWN_MAX (64 * LIMITS_MIB) /* bytes of the daemon's own lines beside those of clients */

void queue_init(struct queue *q, size_t max) {
	*q = (struct queue){.max = max};
}

static struct queue_item *item_at(const struct queue *q, size_t i) {
	return &q->ring[(q->first + i) & (q->cap - 1)];
}

static void drop_item(struct queue_item *it) {
	share_give(it->payer, SHARE_BYTES, it->piece.len);
	chunk_drop(&it->piece);
}

void queue_free(struct queue *q) {
	for (size_t i = 0; i < q->count; i++) drop_item(item_at(q, i));
	free(q->ring);
	*q = (struct queue){.max = q->max};
}

bool queue_has_room(const struct queue *q, size_t len) {
	return q->count == 0 || (q->count < LIMITS_STDIN_LINES && len <= q->max && q->bytes <= q->max - len);
}

static bool grow(struct queue *q) {
	size_t cap = q->cap ? q->cap * 2 : 1; /* mostly its line is written at once */
	struct queue_item *ring = malloc(cap * sizeof *ring);
	if (!ring) return false;
	for (size_t i = 0; i < q->count; i++) ring[i] = *item_at(q, i);
	free(q->ring);
	q->ring = ring;
	q->cap = cap;
	q->first = 0;
	return true;
}

/* Make room for n more. */
static bool reserve(struct queue *q, size_t n) {
	while (q->cap - q->count < n)
		if (!grow(q)) return false;
	return true;
}

static void put(struct queue *q, struct queue_item it) {
	*item_at(q, q->count++) = it;
	q->bytes += it.piece.len;
	share_add(it.payer, SHARE_BYTES, it.piece.len);
}

bool queue_put_charged(struct queue *q, struct rope *line, struct share *payer) {
	if (!reserve(q, line->n)) {
		rope_drop(line);
		return false;
	}
	for (size_t i = 0; i < line->n; i++) put(q, (struct queue_item){line->parts[i], payer, i + 1 < line->n});
	line->n = line->len = 0;
	return true;
}

bool queue_put(struct queue *q, struct chunk line) {
	struct rope one = rope_of(line);
	return queue_put_charged(q, &one, NULL);
}

/* Return the number of pieces of the line that begins at i, and its bytes. */
static size_t pieces_at(const struct queue *q, size_t i, size_t *len) {
	size_t n = 1;
	*len = item_at(q, i)->piece.len;
	for (; item_at(q, i + n - 1)->goes_on; n++) *len += item_at(q, i + n)->piece.len;
	return n;
}

/* The first line does not count: an empty queue accepts any, and a child that writes before it reads must not wait. */
bool queue_is_flooded(const struct queue *q) {
	size_t first = 0;
	if (q->count) (void)pieces_at(q, 0, &first);
	size_t rest = q->bytes + q->sent - first;
	return q->count > 2 * LIMITS_STDIN_LINES || (rest > q->max && rest - q->max > OWN_MAX);
}

/* Return the line that begins at *i as a rope, and move *i behind it. */
static struct rope line_at(const struct queue *q, size_t *i) {
	struct rope line = {0};
	const struct queue_item *it;
	do {
		it = item_at(q, (*i)++);
		line.parts[line.n++] = chunk_ref(it->piece);
		line.len += it->piece.len;
	} while (it->goes_on);
	return line;
}

size_t queue_line(const struct queue *q, size_t i, struct chunk *line) {
	size_t after = i;
	struct rope all = line_at(q, &after);
	*line = rope_join(&all);
	rope_drop(&all);
	return after - i;
}

void queue_replace(struct queue *q, size_t i, struct chunk line) {
	struct share *payer = item_at(q, i)->payer;
	size_t len, n = pieces_at(q, i, &len);
	share_add(payer, SHARE_BYTES, line.len); /* first: a share lives as long as its charges */
	for (size_t k = 0; k < n; k++) drop_item(item_at(q, i + k));
	*item_at(q, i) = (struct queue_item){.piece = line, .payer = payer};
	for (size_t k = i + n; k < q->count; k++) *item_at(q, k - n + 1) = *item_at(q, k);
	q->count -= n - 1;
	q->bytes = q->bytes - len + line.len;
}

bool queue_move(struct queue *q, struct queue *from) {
	bool ok = reserve(q, from->count);
	for (size_t i = 0; ok && i < from->count; i++) {
		struct queue_item it = *item_at(from, i);
		it.piece = chunk_ref(it.piece);
		put(q, it);
	}
	queue_free(from);
	return ok;
}

bool queue_put_first(struct queue *q, struct chunk line) {
	if (!reserve(q, 1)) {
		chunk_drop(&line);
		return false;
	}
	q->first = (q->first + q->cap - 1) & (q->cap - 1);
	q->ring[q->first] = (struct queue_item){.piece = line};
	q->count++;
	q->bytes += line.len;
	return true;
}

static void drop_written(struct queue *q, size_t n) {
	size_t len;
	q->bytes -= n;
	q->sent += n;
	while (q->count) {
		size_t pieces = pieces_at(q, 0, &len);
		if (q->sent < len) break;
		q->sent -= len;
		for (; pieces; pieces--) {
			drop_item(item_at(q, 0));
			q->first = (q->first + 1) & (q->cap - 1);
			q->count--;
		}
	}
}

static int gather(const struct queue *q, struct iovec iov[IOVS]) {
	size_t skip = q->sent;
	int n = 0;
	for (size_t i = 0; i < q->count && n < IOVS; i++) {
		struct chunk c = item_at(q, i)->piece;
		size_t off = MIN(skip, c.len);
		skip -= off;
		if (off < c.len || !c.len) iov[n++] = (struct iovec){(void *)(uintptr_t)(c.data + off), c.len - off};
	}
	return n;
}

int queue_write(struct queue *q, int fd) {
	while (q->count) {
		struct iovec iov[IOVS];
		ssize_t w = fd_sendv(fd, iov, gather(q, iov));
		if (w < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS ? 1 : -1;
		drop_written(q, (size_t)w);
	}
	return 0;
}

void queue_carry(struct carry *c, struct queue *q) {
	size_t lines = 0, sent = q->sent, len = 0;
	for (size_t i = 0; i < q->count; i++) lines += !item_at(q, i)->goes_on;
	lines = carry_count(c, lines);
	for (size_t i = 0, at = 0; i < lines && carry_ok(c); i++) {
		struct rope line = c->saving ? line_at(q, &at) : (struct rope){0};
		carry_rope(c, &line);
		if (c->saving)
			rope_drop(&line);
		else if (line.n && !queue_put_charged(q, &line, NULL))
			carry_fail(c, "out of memory");
	}
	CARRY(c, sent);
	if (c->saving) return;
	if (q->count) (void)pieces_at(q, 0, &len);
	if (sent && sent >= len) {
		carry_fail(c, "more of a line was sent than it has");
		return;
	}
	q->sent = sent;
	q->bytes -= sent;
}
