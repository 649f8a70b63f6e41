/* SPDX-License-Identifier: MIT
 *
 * Strict numbers, sizes and times; text made safe for logs, terminals and JSON.
 */
#pragma once

#include "base/buf.h"

#include <stdarg.h>
#include <stdint.h>

/* The whole text is one decimal number in min..max. */
bool str_u64(const char *text, uint64_t min, uint64_t max, uint64_t *value);
/* 4096, 64K, 16M, 1G (powers of 1024; an optional B or iB after the letter). */
bool str_size(const char *text, size_t *bytes);
/* 500ms, 30s, 5min, 2h, 1d, or `never` (INT64_MAX); a number needs its unit, 0 does not. Result in ms. */
bool str_time(const char *text, int64_t *ms);
/* Appends text with control characters and invalid UTF-8 escaped as \xNN. */
void str_put_safe(struct buf *b, const char *text, size_t n);
/* Appends a JSON string with its quotes; invalid UTF-8 becomes U+FFFD. */
void str_put_json(struct buf *b, const char *text, size_t n);
/* Length of the valid UTF-8 sequence at p (1..4), 0 if there is none. */
size_t str_utf8(const char *p, size_t n);
bool str_is_utf8(const char *text, size_t n); /* all of it */
/* strdup(), or NULL for NULL. */
char *str_dup(const char *text);
char *str_printf(const char *fmt, ...) PRINTF_LIKE(1, 2);
char *str_vprintf(const char *fmt, va_list ap) PRINTF_LIKE(1, 0);
/* n random lower-case hex digits and a NUL; from getrandom(2). */
void str_random_hex(char *out, size_t n);
