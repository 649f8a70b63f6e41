/* SPDX-License-Identifier: MIT
 *
 * Text of agents, clients and files on its way to a terminal. What could steer the terminal or hide something in a
 * permission question is shown as an escape: control characters other than LF and TAB, the C1 ones, DEL, the marks that
 * turn the writing direction, and bytes that are no UTF-8. CR before LF is left out.
 */
#pragma once

#include "base/buf.h"

#include <stdint.h>
#include <stdio.h>

void text_put(struct buf *b, const char *text, size_t n);
void text_print(FILE *out, const char *text, size_t n);
/* On one line: LF and TAB become blanks, runs of blanks become one; cut after max characters with "…". */
void text_put_line(struct buf *b, const char *text, size_t n, size_t max);
/* On one line, as the value in a row of `name=value`: quoted where it could pass for the next one. */
void text_put_value(struct buf *b, const char *text);
/* Characters of safe text, as columns are counted here (one each). */
size_t text_width(const char *text);

void text_put_bytes(struct buf *b, uint64_t bytes); /* 17, 1.2K, 3.4M */
void text_put_age(struct buf *b, int64_t ms);       /* 340ms, 12s, 5min, 3h, 2d */

/* A table of columns as wide as their widest cell; cells are copied and made safe. */
struct table {
	char **cells;
	size_t n, cap, columns;
};
#define TABLE(n_columns)                                                                                               \
	{ .columns = (n_columns) }
void table_add(struct table *t, const char *cell);
void table_addf(struct table *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
void table_print(struct table *t, FILE *out); /* the last column is not padded */
void table_free(struct table *t);
