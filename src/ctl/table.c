/* SPDX-License-Identifier: MIT */
#include "ctl/table.h"

#include "ctl/text.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

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
	struct buf b = BUF_INIT(4096);
	if (!notes) return;
	t->notes = notes;
	while (t->n_notes < rows) notes[t->n_notes++] = NULL;
	text_put_line(&b, note, strlen(note), 400);
	free(notes[rows - 1]);
	notes[rows - 1] = buf_steal(&b, NULL);
}

static void print_note(const struct table *t, size_t row, FILE *out) {
	if (row < t->n_notes && t->notes[row]) fprintf(out, "  %s\n", t->notes[row]);
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
			fputc('\n', out), print_note(t, i / t->columns, out);
		else
			fprintf(out, "%*s", (int)(widths[c] - text_width(t->cells[i]) + 2), "");
	}
}

void table_free(struct table *t) {
	for (size_t i = 0; i < t->n; i++) free(t->cells[i]);
	for (size_t i = 0; i < t->n_notes; i++) free(t->notes[i]);
	free(t->notes);
	free(t->cells);
	*t = (struct table){.columns = t->columns};
}
