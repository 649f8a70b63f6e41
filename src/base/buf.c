/* SPDX-License-Identifier: MIT */
#include "base/buf.h"

#include "base/fd.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

void buf_free(struct buf *b) {
	free(b->data);
	*b = (struct buf){.max = b->max};
}

bool buf_reserve(struct buf *b, size_t more) {
	if (b->failed || more > b->max || b->len > b->max - more || more > PTRDIFF_MAX - b->len - 1) {
		b->failed = true;
		return false;
	}
	size_t want = b->len + more + 1;
	if (want <= b->cap) return true;
	size_t cap = MAX(want, b->cap * 2);
	char *data = realloc(b->data, MAX(cap, (size_t)64));
	if (!data) {
		b->failed = true;
		return false;
	}
	b->data = data;
	b->cap = MAX(cap, (size_t)64);
	return true;
}

bool buf_put(struct buf *b, const void *data, size_t n) {
	if (!buf_reserve(b, n)) return false;
	if (n) memcpy(b->data + b->len, data, n);
	b->len += n;
	b->data[b->len] = 0;
	return true;
}

bool buf_read(struct buf *b, int fd) {
	char part[65536];
	ssize_t n;
	while ((n = fd_read(fd, part, sizeof part)) > 0)
		if (!buf_put(b, part, (size_t)n)) return false;
	return n == 0;
}

bool buf_puts(struct buf *b, const char *text) {
	return buf_put(b, text, strlen(text));
}

bool buf_putc(struct buf *b, char c) {
	return buf_put(b, &c, 1);
}

bool buf_printf(struct buf *b, const char *fmt, ...) {
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	size_t room = b->failed ? 0 : b->cap - b->len;
	int n = vsnprintf(b->data ? b->data + b->len : NULL, room, fmt, ap);
	va_end(ap);
	bool ok = n >= 0 && buf_reserve(b, (size_t)n);
	if (ok) {
		if ((size_t)n >= room) vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
		b->len += (size_t)n;
	}
	va_end(again);
	return ok;
}

char *buf_steal(struct buf *b, size_t *len) {
	if (b->failed || !buf_reserve(b, 0)) {
		buf_free(b);
		return NULL;
	}
	char *exact = realloc(b->data, b->len + 1); /* shrink to the exact size for long-lived owners */
	char *data = exact ? exact : b->data;
	data[b->len] = 0;
	if (len) *len = b->len;
	*b = (struct buf){.max = b->max};
	return data;
}
