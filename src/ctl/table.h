/* SPDX-License-Identifier: MIT
 *
 * A table with columns as wide as their widest cell; cells are copied and escaped.
 */
#pragma once

#include "base/macros.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct table {
	char **cells;
	size_t n, cap, columns;
	char **notes; /* one for each row, or NULL: a line below it */
	size_t n_notes;
	uint32_t hidden; /* bits of columns that are not printed */
	size_t width;    /* lines are cut to this many columns, first the widest cells of them; 0: never */
};
#define TABLE(n_columns)                                                                                               \
	{ .columns = (n_columns) }
void table_add(struct table *t, const char *cell);
void table_addf(struct table *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
void table_add_age(struct table *t, int64_t ms);    /* as text_put_age() */
void table_note(struct table *t, const char *note); /* below the newest row; cells must be complete */
void table_print(struct table *t, FILE *out);       /* the last column is not padded */
void table_hide(struct table *t, size_t column);
bool table_is_hidden(const struct table *t, size_t column);
size_t table_width(const struct table *t); /* of the columns that are not hidden */
/* Measure the terminal of stdout, 80 times 24 if it does not say. False: it is no terminal. */
bool table_screen(size_t *width, size_t *height);
void table_free(struct table *t);
