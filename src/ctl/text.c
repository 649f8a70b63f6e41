/* SPDX-License-Identifier: MIT */
#include "ctl/text.h"

#include "base/str.h"

#include <inttypes.h>
#include <string.h>
#include <wchar.h>

/* Scripts and emoji join letters with these; between ASCII letters they only hide. */
static bool joins(const char *text, size_t n, size_t at, size_t len) {
	uint32_t c = str_char(text + at, len);
	bool joiner = c == 0x200c || c == 0x200d;
	return joiner && at > 0 && at + len < n && (text[at - 1] & 0x80) && (text[at + len] & 0x80);
}

void text_put(struct buf *b, const char *text, size_t n) {
	for (size_t i = 0, len; i < n; i += MAX(len, (size_t)1)) {
		len = str_utf8(text + i, n - i);
		if (text[i] == '\r' && i + 1 < n && text[i + 1] == '\n') continue;
		if (text[i] == '\n' || text[i] == '\t' || (len && joins(text, n, i, len)))
			buf_put(b, text + i, len);
		else
			str_put_safe(b, text + i, MAX(len, (size_t)1));
	}
}

void text_print(FILE *out, const char *text, size_t n) {
	struct buf b = BUF_INIT(SIZE_MAX / 2);
	text_put(&b, text, n);
	if (b.data) fwrite(b.data, 1, b.len, out);
	buf_free(&b);
}

/* Where the character that starts at p ends (p is safe text, so valid UTF-8). */
static const char *next_char(const char *p) {
	do p++;
	while (((unsigned char)*p & 0xc0) == 0x80);
	return p;
}

static size_t columns(const char *p, const char *end) {
	int width = wcwidth((wchar_t)str_char(p, (size_t)(end - p)));
	return width < 0 ? 1 : (size_t)width;
}

size_t text_width(const char *text) {
	size_t width = 0;
	for (const char *next; *text; text = next) {
		next = next_char(text);
		width += columns(text, next);
	}
	return width;
}

char *text_dup(struct span s, size_t *len) {
	char *text = span_dup(s, len);
	if (text || !span_is_string(s)) return text;
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	for (size_t i = 0, n; i < s.n; i += n) {
		bool escape = s.p[i] == '\\' && i + 1 < s.n,
			 zero = escape && s.n - i >= 6 && memcmp(s.p + i, "\\u0000", 6) == 0;
		n = zero ? 6 : escape ? 2 : 1;
		buf_put(&b, zero ? "\\u2400" : s.p + i, n);
	}
	if (!b.failed) text = span_dup((struct span){b.data, b.len}, len);
	buf_free(&b);
	return text;
}

void text_put_line(struct buf *b, const char *text, size_t n, size_t max) {
	struct buf safe = BUF_INIT(SIZE_MAX / 2);
	text_put(&safe, text, n > max * 8 ? max * 8 : n); /* no more than can show */
	size_t shown = 0;
	bool blank = true;
	for (const char *p = safe.data ? safe.data : "", *next; *p; p = next) {
		next = next_char(p);
		bool is_blank = *p == ' ' || *p == '\n' || *p == '\t';
		if (is_blank && blank) continue;
		shown += columns(p, next);
		if (shown > max) {
			buf_puts(b, "…");
			break;
		}
		blank = is_blank;
		buf_put(b, is_blank ? " " : p, is_blank ? 1 : (size_t)(next - p));
	}
	buf_free(&safe);
}

char *text_line(const char *text, size_t n, size_t max) {
	struct buf b = BUF_INIT(65536);
	buf_puts(&b, "");
	text_put_line(&b, text, n, max);
	return buf_steal(&b, NULL);
}

char *text_value(struct span value, size_t max) {
	size_t n;
	_cleanup_free_ char *text = span_is_string(value) ? text_dup(value, &n) : NULL;
	if (text) return text_line(text, n, max);
	return text_line(value.p ? value.p : "", value.n, max);
}

void text_put_value(struct buf *b, const char *text) {
	if (strpbrk(text, "=\""))
		str_put_quoted(b, text, strlen(text));
	else
		text_put_line(b, text, strlen(text), (size_t)1 << 16);
}

void text_put_bytes(struct buf *b, uint64_t bytes) {
	static const char units[] = " KMGT";
	double value = (double)bytes;
	size_t unit = 0;
	while (value >= 1024 && unit < 4) value /= 1024, unit++;
	if (unit)
		buf_printf(b, "%.1f%c", value, units[unit]);
	else
		buf_printf(b, "%" PRIu64, bytes);
}

void text_put_age(struct buf *b, int64_t ms) {
	int64_t s = ms / 1000;
	if (ms < 1000)
		buf_printf(b, "%" PRId64 "ms", ms);
	else if (s < 120)
		buf_printf(b, "%" PRId64 "s", s);
	else if (s < 7200)
		buf_printf(b, "%" PRId64 "min", s / 60);
	else if (s < 172800)
		buf_printf(b, "%" PRId64 "h", s / 3600);
	else
		buf_printf(b, "%" PRId64 "d", s / 86400);
}
