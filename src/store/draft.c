/* SPDX-License-Identifier: MIT */
#include "store/draft.h"

#include "base/fd.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 64 /* pieces of one writev(2) */
#define EMPTY_SUM 14695981039346656037ULL

struct draft_piece {
	const char *text; /* NULL: at `at` of own, which moves as it grows */
	size_t at, n;
};

/* FNV-1a: a change of one byte always changes it. It detects damage, not forgery. */
static uint64_t sum_more(uint64_t sum, const char *text, size_t n) {
	for (size_t i = 0; i < n; i++) sum = (sum ^ (unsigned char)text[i]) * 1099511628211ULL;
	return sum;
}

void draft_seal(char out[DRAFT_SEAL_LEN + 1], const char *line, size_t n) {
	snprintf(out, DRAFT_SEAL_LEN + 1, DRAFT_SEAL_BEFORE "%016" PRIx64 "\"}", sum_more(EMPTY_SUM, line, n));
}

void draft_init(struct draft *d) {
	*d = (struct draft){.own = BUF_INIT(SIZE_MAX / 4), .sum = EMPTY_SUM};
}

void draft_free(struct draft *d) {
	buf_free(&d->own);
	free(d->pieces);
}

static bool has_room(struct draft *d) {
	if (d->n < d->cap) return true;
	size_t cap = d->cap ? 2 * d->cap : 8;
	struct draft_piece *more = realloc(d->pieces, cap * sizeof *more);
	d->own.failed |= !more;
	if (!more) return false;
	d->pieces = more;
	d->cap = cap;
	return true;
}

static void add_piece(struct draft *d, struct draft_piece piece) {
	struct draft_piece *last = d->n ? &d->pieces[d->n - 1] : NULL;
	d->len += piece.n;
	if (last && !last->text && !piece.text && last->at + last->n == piece.at)
		last->n += piece.n;
	else if (has_room(d))
		d->pieces[d->n++] = piece;
}

/* Make a piece of the own bytes that are in none yet. */
static void add_own(struct draft *d) {
	size_t n = d->own.len - d->in;
	if (!n) return;
	d->sum = sum_more(d->sum, d->own.data + d->in, n);
	add_piece(d, (struct draft_piece){.at = d->in, .n = n});
	d->in = d->own.len;
}

void draft_text(struct draft *d, const char *text) {
	struct buf *b = &d->own;
	size_t n = text ? strlen(text) : 0;
	if (!text) {
		buf_puts(b, "null");
	} else if (str_is_utf8(text, n)) {
		str_put_json(b, text, n);
	} else {
		buf_puts(b, "{\"hex\":\"");
		for (size_t i = 0; i < n; i++) buf_printf(b, "%02x", (unsigned char)text[i]);
		buf_puts(b, "\"}");
	}
}

void draft_list(struct draft *d, char *const *v, size_t n) {
	buf_putc(&d->own, '[');
	for (size_t i = 0; i < n; i++) {
		if (i) buf_putc(&d->own, ',');
		draft_text(d, v[i]);
	}
	buf_putc(&d->own, ']');
}

bool draft_cut(struct draft *d, size_t at, struct draft_part *part) {
	size_t n = d->own.len - at;
	char *text = d->own.failed ? NULL : malloc(n);
	if (!text) return false;
	memcpy(text, d->own.data + at, n);
	d->own.len = at;
	add_own(d);
	*part = (struct draft_part){.text = text, .n = n, .before = ~d->sum};
	draft_use(d, part);
	return true;
}

void draft_use(struct draft *d, struct draft_part *part) {
	add_own(d);
	if (part->before != d->sum) {
		part->before = d->sum;
		part->after = sum_more(d->sum, part->text, part->n);
	}
	d->sum = part->after;
	add_piece(d, (struct draft_piece){.text = part->text, .n = part->n});
}

size_t draft_end_line(struct draft *d) {
	add_own(d);
	buf_printf(&d->own, DRAFT_SEAL_BEFORE "%016" PRIx64 "\"}\n", d->sum);
	add_own(d);
	d->sum = EMPTY_SUM;
	return d->len;
}

void draft_repeat(struct draft *d, size_t n) {
	add_own(d);
	add_piece(d, (struct draft_piece){.n = n});
}

/* Forget the first bytes; return how many pieces are left. */
static int drop_bytes(struct iovec *iov, int n, size_t bytes) {
	int done = 0;
	while (done < n && bytes >= iov[done].iov_len) bytes -= iov[done++].iov_len;
	if (done) memmove(iov, iov + done, (size_t)(n - done) * sizeof *iov);
	if (done < n) {
		iov->iov_base = (char *)iov->iov_base + bytes;
		iov->iov_len -= bytes;
	}
	return n - done;
}

int draft_write(const struct draft *d, int fd) {
	struct iovec iov[BATCH];
	size_t next = 0;
	int n = 0;
	for (;;) {
		for (; n < BATCH && next < d->n; n++, next++) {
			const struct draft_piece *p = &d->pieces[next];
			iov[n] = (struct iovec){(void *)(uintptr_t)(p->text ? p->text : d->own.data + p->at), p->n};
		}
		if (!n) return 0;
		ssize_t written = fd_writev(fd, iov, n);
		if (written < 0) return -1;
		n = drop_bytes(iov, n, (size_t)written);
	}
}
