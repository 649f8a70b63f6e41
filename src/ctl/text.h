/* SPDX-License-Identifier: MIT
 *
 * Escape text of agents, clients and files for a terminal, because it could control the terminal or hide a part of a
 * permission request: control characters except newline and tab, C1, DEL, changes of the writing direction, and invalid
 * UTF-8. CR before a newline is dropped.
 */
#pragma once

#include "base/buf.h"
#include "wire/scan.h"

#include <stdint.h>
#include <stdio.h>

void text_put(struct buf *b, const char *text, size_t n);
void text_print(FILE *out, const char *text, size_t n);
/* On one line: newlines and tabs become spaces, runs of spaces become one; cut after max columns with "…". */
void text_put_line(struct buf *b, const char *text, size_t n, size_t max);
/* The same as a new string, which the caller frees. */
char *text_line(const char *text, size_t n, size_t max);
/* A value of a JSON line in that form: the text of a string, anything else as its JSON. */
char *text_value(struct span value, size_t max);
/* On one line, as the value in a row of `name=value`: quoted if it is ambiguous. */
void text_put_value(struct buf *b, const char *text);
/* Return the columns of escaped text, by wcwidth(3): main() sets the locale. */
size_t text_width(const char *text);

/* Unescape a string of a JSON line as span_dup(), with U+2400 in the place of each NUL. NULL: not a string, or no
 * memory. The caller frees. */
char *text_dup(struct span s, size_t *len);

void text_put_bytes(struct buf *b, uint64_t bytes); /* 17, 1.2K, 3.4M */
void text_put_age(struct buf *b, int64_t ms);       /* 340ms, 12s, 5min, 3h, 2d */
