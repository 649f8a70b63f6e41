/* SPDX-License-Identifier: MIT
 *
 * A table with columns as wide as their widest cell; cells are copied and escaped.
 */
#pragma once

#include "base/macros.h"

#include <stdint.h>
#include <stdio.h>

struct table {
	char **cells;
	size_t n, cap, columns;
	char **notes; /* one for each row, or NULL: a line below it */
	size_t n_notes;
};
#define TABLE(n_columns)                                                                                               \
	{ .columns = (n_columns) }
void table_add(struct table *t, const char *cell);
void table_addf(struct table *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
void table_add_age(struct table *t, int64_t ms);    /* as text_put_age() */
void table_note(struct table *t, const char *note); /* below the newest row; cells must be complete */
void table_print(struct table *t, FILE *out);       /* the last column is not padded */
void table_free(struct table *t);
