/* SPDX-License-Identifier: MIT */
#include "ctl/text.h"

#include "base/str.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

/* U+202A..U+202E, U+2066..U+2069, U+200E, U+200F: they make text read otherwise than it is. U+2028 and U+2029 are line
 * ends to some terminals. Source: UAX #9; CVE-2021-42574. */
static bool misleads(const unsigned char *p, size_t n) {
	if (n != 3 || p[0] != 0xe2) return false;
	if (p[1] == 0x80) return p[2] == 0x8e || p[2] == 0x8f || (p[2] >= 0xa8 && p[2] <= 0xae);
	return p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9;
}

static void put_escaped(struct buf *b, const unsigned char *p, size_t n) {
	if (n == 3)
		buf_printf(b, "\\u%04x", (unsigned)((p[0] & 15) << 12 | (p[1] & 63) << 6 | (p[2] & 63)));
	else
		buf_printf(b, "\\x%02x", n == 2 ? (unsigned)p[1] : (unsigned)p[0]);
}

void text_put(struct buf *b, const char *text, size_t n) {
	for (size_t i = 0; i < n;) {
		size_t len = str_utf8(text + i, n - i);
		const unsigned char *p = (const unsigned char *)text + i;
		bool c1 = len == 2 && p[0] == 0xc2 && p[1] < 0xa0;
		bool plain = *p == '\n' || *p == '\t' || (*p >= 0x20 && *p != 0x7f);
		if (*p == '\r' && i + 1 < n && p[1] == '\n')
			;
		else if (len && plain && !c1 && !misleads(p, len))
			buf_put(b, text + i, len);
		else
			put_escaped(b, p, len);
		i += MAX(len, (size_t)1);
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

size_t text_width(const char *text) {
	size_t width = 0;
	for (; *text; text = next_char(text)) width++;
	return width;
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
		if (shown++ == max) {
			buf_puts(b, "…");
			break;
		}
		blank = is_blank;
		buf_put(b, is_blank ? " " : p, is_blank ? 1 : (size_t)(next - p));
	}
	buf_free(&safe);
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

/* --- Tables ------------------------------------------------------------------------------------------------------- */

void table_add(struct table *t, const char *cell) {
	if (t->n == t->cap) {
		size_t cap = t->cap ? t->cap * 2 : 64;
		char **cells = realloc(t->cells, cap * sizeof *cells);
		if (!cells) return;
		t->cells = cells;
		t->cap = cap;
	}
	struct buf b = BUF_INIT(4096);
	buf_puts(&b, "");
	text_put_line(&b, cell ? cell : "", cell ? strlen(cell) : 0, 200);
	t->cells[t->n] = buf_steal(&b, NULL);
	if (t->cells[t->n]) t->n++;
}

void table_addf(struct table *t, const char *fmt, ...) {
	char text[1024];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	table_add(t, text);
}

static size_t column_width(const struct table *t, size_t column) {
	size_t width = 0;
	for (size_t i = column; i < t->n; i += t->columns) width = MAX(width, text_width(t->cells[i]));
	return width;
}

void table_print(struct table *t, FILE *out) {
	size_t widths[32];
	for (size_t c = 0; c < t->columns && c < ARRAY_SIZE(widths); c++) widths[c] = column_width(t, c);
	for (size_t i = 0; i < t->n; i++) {
		size_t c = i % t->columns;
		bool last = c + 1 == t->columns;
		fputs(t->cells[i], out);
		if (last)
			fputc('\n', out);
		else
			fprintf(out, "%*s", (int)(widths[c] - text_width(t->cells[i]) + 2), "");
	}
}

void table_free(struct table *t) {
	for (size_t i = 0; i < t->n; i++) free(t->cells[i]);
	free(t->cells);
	*t = (struct table){.columns = t->columns};
}
