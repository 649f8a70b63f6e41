/* SPDX-License-Identifier: MIT */
#include "ctl/screen.h"

#include "base/fd.h"
#include "base/str.h"
#include "ctl/text.h"
#include "ctl/wtext.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define BUF_LIMIT (SIZE_MAX / 4)

/* --- Output above ------------------------------------------------------------------------------------------------- */

static ssize_t take(void *cookie, const char *data, size_t n) {
	struct screen *s = cookie;
	return buf_put(&s->fresh, data, n) ? (ssize_t)n : 0;
}

/* Keep the last row of the tail, if the terminal wraps the line as we do. */
static void cut_tail(struct screen *s) {
	size_t column = 0, row = 0;
	for (size_t i = 0, n; i < s->tail.len; i += n) {
		n = MAX(str_utf8(s->tail.data + i, s->tail.len - i), (size_t)1);
		size_t width = wtext_columns((wchar_t)str_char(s->tail.data + i, n), column);
		if (column + width > s->columns) {
			if (s->tail.data[i] == '\t') continue; /* a tab never wraps */
			column = 0;
			row = i;
		}
		column += width;
	}
	memmove(s->tail.data, s->tail.data + row, s->tail.len - row + 1);
	s->tail.len -= row;
}

/* Append the tail and the fresh output; the tail is then the new one. */
static void put_fresh(struct screen *s, struct buf *b) {
	buf_put(b, s->tail.data ? s->tail.data : "", s->tail.len);
	if (!s->fresh.len) return;
	buf_put(b, s->fresh.data, s->fresh.len);
	char *newline = memrchr(s->fresh.data, '\n', s->fresh.len);
	if (newline) {
		s->tail.len = 0;
		buf_put(&s->tail, newline + 1, s->fresh.len - (size_t)(newline + 1 - s->fresh.data));
	} else {
		buf_put(&s->tail, s->fresh.data, s->fresh.len);
	}
	s->fresh.len = 0;
	if (s->tail.len) cut_tail(s);
}

/* --- The typed text ----------------------------------------------------------------------------------------------- */

struct layout {
	size_t *rows; /* where each begins in the text */
	size_t n;
	size_t cursor_row, cursor_column;
};

static bool begin_row(struct layout *l, size_t at) {
	size_t *grown = (l->n & (l->n - 1)) == 0 ? realloc(l->rows, MAX(l->n * 2, (size_t)1) * sizeof *grown) : l->rows;
	if (!grown) return false;
	l->rows = grown;
	l->rows[l->n++] = at;
	return true;
}

/* Append the character as it is shown. */
static void put_char(struct buf *b, wchar_t c) {
	size_t n;
	_cleanup_free_ char *text = wtext_to(&c, 1, &n);
	if (text) text_put(b, text, n);
}

/* A character that hides or misleads is shown escaped. */
static size_t columns_of(wchar_t c, size_t column) {
	if (c < 0x80 || !str_hides((uint32_t)c)) return wtext_columns(c, column);
	struct buf b = BUF_INIT(64);
	put_char(&b, c);
	size_t width = b.data ? text_width(b.data) : 0;
	buf_free(&b);
	return width;
}

/* Each row begins behind the indent. */
static bool lay_out(struct layout *l, const struct view *v, size_t indent, size_t columns) {
	size_t column = indent;
	if (!begin_row(l, 0)) return false;
	for (size_t i = 0; i <= v->n; i++) {
		bool newline = i < v->n && v->text[i] == '\n';
		size_t width = i == v->n || newline ? i == v->cursor : columns_of(v->text[i], column);
		if (column + width > columns) {
			if (!begin_row(l, i)) return false;
			column = indent;
		}
		if (i == v->cursor) {
			l->cursor_row = l->n - 1;
			l->cursor_column = column;
		}
		column += width;
		if (newline) {
			if (!begin_row(l, i + 1)) return false;
			column = indent;
		}
	}
	return true;
}

/* Return the column behind it. */
static size_t put_row(struct buf *b, const wchar_t *text, size_t n, size_t column) {
	for (size_t i = 0; i < n && text[i] != '\n'; i++) {
		size_t width = columns_of(text[i], column);
		column += width;
		if (text[i] == '\t') {
			while (width--) buf_putc(b, ' ');
		} else if (text[i] < ' ' || text[i] == 0x7f) {
			buf_printf(b, "^%c", text[i] ^ 0x40);
		} else {
			put_char(b, text[i]);
		}
	}
	return column;
}

/* Append the rows around the cursor, at most `room`. The cursor stays at the end of the last one; *up and *column:
 * where it belongs. */
static size_t put_typed(struct screen *s, struct buf *b, const struct view *v, const struct layout *l, size_t indent,
						size_t room) {
	size_t shown = MIN(l->n, room);
	size_t first = l->cursor_row < shown ? 0 : l->cursor_row - shown + 1;
	for (size_t row = first; row < first + shown; row++) {
		size_t end = row + 1 < l->n ? l->rows[row + 1] : v->n;
		if (row > first) buf_puts(b, "\r\n");
		if (row == 0)
			buf_printf(b, "\033[1m%s\033[0m", v->prompt);
		else
			buf_printf(b, "%*s", (int)indent, "");
		size_t width = put_row(b, v->text + l->rows[row], end - l->rows[row], indent);
		if (row < l->cursor_row) buf_put(&s->widths, &width, sizeof width);
	}
	size_t up = first + shown - 1 - l->cursor_row;
	if (up) buf_printf(b, "\033[%zuA", up);
	buf_puts(b, "\r");
	if (l->cursor_column) buf_printf(b, "\033[%zuC", l->cursor_column);
	return l->cursor_row - first;
}

/* --- The end ------------------------------------------------------------------------------------------------------ */

/* Append the end; return the rows from its top to the cursor. */
static size_t put_end(struct screen *s, struct buf *b, const struct view *v) {
	size_t rows = 0, indent = text_width(v->prompt);
	struct layout l = {0};
	s->widths.len = 0;
	if (s->tail.len) {
		buf_puts(b, "\r\n");
		rows++;
	}
	if (v->status) {
		buf_puts(b, "\033[2m");
		size_t width = MIN(text_width(v->status), s->columns > 2 ? s->columns - 2 : 1);
		text_put_line(b, v->status, strlen(v->status), width);
		buf_put(&s->widths, &width, sizeof width);
		buf_puts(b, "\033[0m\r\n");
		rows++;
	}
	if (indent + 4 > s->columns) indent = 0;
	if (lay_out(&l, v, indent, s->columns)) rows += put_typed(s, b, v, &l, indent, MAX(s->rows, rows + 2) - rows - 1);
	free(l.rows);
	return rows;
}

static void put_erase(const struct screen *s, struct buf *b) {
	buf_puts(b, "\r");
	if (s->above) buf_printf(b, "\033[%zuA", s->above);
	buf_puts(b, "\033[J");
}

static void write_out(const struct buf *b) {
	if (b->data) fd_write_all(STDOUT_FILENO, b->data, b->len);
}

void screen_update(struct screen *s, const struct view *v) {
	fflush(s->out);
	if (s->held) return;
	struct buf all = BUF_INIT(BUF_LIMIT), text = BUF_INIT(BUF_LIMIT), end = BUF_INIT(BUF_LIMIT);
	bool printed = s->fresh.len > 0;
	put_fresh(s, &text);
	size_t above = put_end(s, &end, v);
	bool same = !printed && end.len == s->drawn.len && s->drawn.len && memcmp(end.data, s->drawn.data, end.len) == 0;
	if (!same) {
		put_erase(s, &all);
		buf_put(&all, text.data ? text.data : "", text.len);
		buf_put(&all, end.data ? end.data : "", end.len);
		write_out(&all);
		s->above = above;
		s->drawn.len = 0;
		buf_put(&s->drawn, end.data ? end.data : "", end.len);
	}
	buf_free(&all);
	buf_free(&text);
	buf_free(&end);
}

void screen_erase(struct screen *s) {
	struct buf b = BUF_INIT(BUF_LIMIT);
	put_erase(s, &b);
	fflush(s->out);
	put_fresh(s, &b);
	if (s->tail.len) buf_puts(&b, "\r\n");
	write_out(&b);
	s->tail.len = s->drawn.len = s->widths.len = s->above = 0;
	buf_free(&b);
}

void screen_clear(struct screen *s) {
	const char *clear = "\033[H\033[2J";
	fd_write_all(STDOUT_FILENO, clear, strlen(clear));
	s->drawn.len = s->above = 0;
}

void screen_measure(struct screen *s) {
	struct winsize size;
	size_t before = s->columns;
	bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
	s->columns = known && size.ws_col ? size.ws_col : 80;
	s->rows = known && size.ws_row ? size.ws_row : 24;
	s->drawn.len = 0;
	if (s->columns == before || !s->above) return;
	/* The rows that end at the cursor, as the terminal has wrapped them. The tail may have joined the row before it:
	 * it stays, and its line goes on in a new row. */
	s->above = 0;
	for (size_t at = 0, width; at + sizeof width <= s->widths.len; at += sizeof width) {
		memcpy(&width, s->widths.data + at, sizeof width);
		s->above += MAX((width + s->columns - 1) / s->columns, (size_t)1);
	}
	s->tail.len = 0;
}

bool screen_open(struct screen *s) {
	*s = (struct screen){.fresh = BUF_INIT(BUF_LIMIT),
						 .tail = BUF_INIT(BUF_LIMIT),
						 .drawn = BUF_INIT(BUF_LIMIT),
						 .widths = BUF_INIT(BUF_LIMIT)};
	s->out = fopencookie(s, "w", (cookie_io_functions_t){.write = take});
	screen_measure(s);
	return s->out;
}

void screen_close(struct screen *s) {
	if (!s->out) return;
	s->held = false;
	screen_erase(s);
	fclose(s->out);
	buf_free(&s->fresh);
	buf_free(&s->tail);
	buf_free(&s->drawn);
	buf_free(&s->widths);
	*s = (struct screen){0};
}
