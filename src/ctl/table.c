/* SPDX-License-Identifier: MIT */
#include "ctl/table.h"

#include "ctl/text.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define NARROW 12 /* a column of at most this width is not cut for others */

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

void table_add_age(struct table *t, int64_t ms) {
	struct buf b = BUF_INIT(64);
	text_put_age(&b, ms);
	table_add(t, b.data);
	buf_free(&b);
}

void table_note(struct table *t, const char *note) {
	size_t rows = t->n / t->columns;
	char **notes = rows ? realloc(t->notes, rows * sizeof *notes) : NULL;
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	if (!notes) return;
	t->notes = notes;
	while (t->n_notes < rows) notes[t->n_notes++] = NULL;
	text_put_line(&b, note, strlen(note), SIZE_MAX / 8);
	free(notes[rows - 1]);
	notes[rows - 1] = buf_steal(&b, NULL);
}

static size_t column_width(const struct table *t, size_t column) {
	size_t width = 0;
	for (size_t i = column; i < t->n; i += t->columns) width = MAX(width, text_width(t->cells[i]));
	return width;
}

void table_hide(struct table *t, size_t column) {
	t->hidden |= (uint32_t)1 << column;
}

bool table_is_hidden(const struct table *t, size_t column) {
	return t->hidden >> column & 1;
}

size_t table_width(const struct table *t) {
	size_t width = 0, shown = 0;
	for (size_t c = 0; c < t->columns; c++)
		if (!table_is_hidden(t, c)) width += column_width(t, c), shown++;
	return width + 2 * (shown - 1);
}

bool table_screen(size_t *width, size_t *height) {
	struct winsize size = {0};
	bool is = isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
	*width = size.ws_col ? size.ws_col : 80;
	*height = size.ws_row ? size.ws_row : 24;
	return is;
}

/* Cut a line that is too wide; it is escaped, so valid UTF-8. */
static void cut(struct buf *b, size_t width) {
	size_t n = b->len;
	while (n && text_width(b->data) + 1 > width) {
		do n--;
		while (n && ((unsigned char)b->data[n] & 0xc0) == 0x80);
		b->data[n] = 0;
	}
	b->len = n;
	buf_puts(b, "…");
}

static size_t last_column(const struct table *t) {
	size_t last = 0;
	for (size_t c = 0; c < t->columns; c++)
		if (!table_is_hidden(t, c)) last = c;
	return last;
}

/* Append the cell, cut if it is wider than its column; return its width. */
static size_t put_cell(struct buf *b, const char *text, size_t max) {
	struct buf cell = BUF_INIT(4096);
	buf_puts(&cell, text);
	if (!cell.failed && text_width(text) > max) cut(&cell, max);
	size_t width = cell.failed ? 0 : text_width(cell.data);
	buf_puts(b, cell.failed ? "" : cell.data);
	buf_free(&cell);
	return MIN(width, max);
}

/* Make the widest columns smaller until a line fits, or all of them are narrow. */
static void fit(const struct table *t, size_t *widths) {
	for (size_t all = table_width(t); t->width && all > t->width; all--) {
		size_t widest = last_column(t);
		for (size_t c = 0; c < t->columns; c++)
			if (!table_is_hidden(t, c) && widths[c] > widths[widest]) widest = c;
		if (widths[widest] <= NARROW) return;
		widths[widest]--;
	}
}

static void print_row(const struct table *t, size_t row, const size_t *widths, FILE *out) {
	struct buf b = BUF_INIT((size_t)1 << 20);
	size_t last = last_column(t);
	for (size_t c = 0; c <= last; c++) {
		if (table_is_hidden(t, c)) continue;
		size_t width = put_cell(&b, t->cells[row * t->columns + c], widths[c]);
		if (c < last) buf_printf(&b, "%*s", (int)(widths[c] - width + 2), "");
	}
	if (t->width && !b.failed && text_width(b.data) > t->width) cut(&b, t->width);
	fprintf(out, "%s\n", b.failed ? "" : b.data);
	buf_free(&b);
}

void table_print(struct table *t, FILE *out) {
	size_t widths[32];
	for (size_t c = 0; c < t->columns && c < ARRAY_SIZE(widths); c++) widths[c] = column_width(t, c);
	fit(t, widths);
	for (size_t row = 0; row < t->n / t->columns; row++) {
		print_row(t, row, widths, out);
		if (row < t->n_notes && t->notes[row]) fprintf(out, "  %s\n", t->notes[row]);
	}
}

void table_free(struct table *t) {
	for (size_t i = 0; i < t->n; i++) free(t->cells[i]);
	for (size_t i = 0; i < t->n_notes; i++) free(t->notes[i]);
	free(t->notes);
	free(t->cells);
	*t = (struct table){.columns = t->columns};
}
