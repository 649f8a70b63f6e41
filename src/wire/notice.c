/* SPDX-License-Identifier: MIT */
#include "wire/notice.h"

#include "base/str.h"
#include "plenum/protocol.h"
#include "wire/valid.h"

#include <string.h>

#define ADOPT_FROM ((size_t)64 * 1024) /* a longer text is not copied again */

void notice_begin(struct buf *b, const char *event, const char *session) {
	buf_printf(b, PLENUM_EVENT_HEAD "%s\"", event);
	if (session) notice_text(b, "session", session);
}

static void put_key(struct buf *b, const char *key) {
	buf_puts(b, ",\"");
	buf_puts(b, key);
	buf_puts(b, "\":");
}

void notice_bytes(struct buf *b, const char *key, const char *value, size_t n) {
	put_key(b, key);
	str_put_json(b, value, n);
}

void notice_text(struct buf *b, const char *key, const char *value) {
	if (value) {
		notice_bytes(b, key, value, strlen(value));
		return;
	}
	put_key(b, key);
	buf_puts(b, "null");
}

void notice_error(struct buf *b, const char *session, const char *code, const char *text) {
	notice_begin(b, PLENUM_EV_ERROR, session);
	notice_text(b, "code", code);
	notice_text(b, "error", text);
}

void notice_number(struct buf *b, const char *key, int64_t value) {
	char digits[24], *p = digits + sizeof digits;
	uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;
	do *--p = (char)('0' + rest % 10);
	while (rest /= 10);
	if (value < 0) *--p = '-';
	put_key(b, key);
	buf_put(b, p, (size_t)(digits + sizeof digits - p));
}

void notice_flag(struct buf *b, const char *key, bool value) {
	put_key(b, key);
	buf_puts(b, value ? "true" : "false");
}

void notice_raw(struct buf *b, const char *key, struct span json) {
	put_key(b, key);
	if (!json.p)
		buf_puts(b, "null");
	else if (valid_span(json))
		buf_put(b, json.p, json.n);
	else
		str_put_json(b, json.p, json.n);
}

struct chunk notice_chunk(struct buf *b) {
	size_t n = b->len;
	if (b->failed || !b->data || n < ADOPT_FROM) {
		struct chunk c = b->failed || !b->data ? CHUNK_NONE : chunk_copy(b->data, n);
		buf_free(b);
		return c;
	}
	char *data = buf_steal(b, &n);
	return chunk_adopt(data, n);
}

struct chunk notice_end(struct buf *b) {
	buf_puts(b, "}\n");
	return notice_chunk(b);
}
