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
/* Appends text that shows what it is: control characters and invalid UTF-8 as \xNN, characters of str_hides() as
 * \uNNNN.
 */
void str_put_safe(struct buf *b, const char *text, size_t n);
/* The same as a JSON string with its quotes. Without quotes where it has only letters, digits and other printable ASCII
 * but space, ", = and \. */
void str_put_quoted(struct buf *b, const char *text, size_t n);
void str_put_word(struct buf *b, const char *text, size_t n);
char *str_word(const char *text); /* the caller frees; NULL without memory */
/* Appends a JSON string with its quotes; invalid UTF-8 becomes U+FFFD. */
void str_put_json(struct buf *b, const char *text, size_t n);
/* Length of the valid UTF-8 sequence at p (1..4), 0 if there is none. */
size_t str_utf8(const char *p, size_t n);
bool str_is_utf8(const char *text, size_t n); /* all of it */
/* The character of n valid bytes of UTF-8. */
uint32_t str_char(const char *p, size_t n);
/* Return true for a character that controls, ends a line, turns the writing direction or does not show: text with it
 * reads otherwise than it is. Source: UAX #9, UAX #44 Default_Ignorable_Code_Point (without variation selectors);
 * CVE-2021-42574. */
bool str_hides(uint32_t c);
/* Those of them that no name needs: C0, DEL, C1, line and paragraph separators, controls of the writing direction. */
bool str_misleads(uint32_t c);
/* strdup(), or NULL for NULL. */
char *str_dup(const char *text);
char *str_printf(const char *fmt, ...) PRINTF_LIKE(1, 2);
char *str_vprintf(const char *fmt, va_list ap) PRINTF_LIKE(1, 0);
/* n random lower-case hex digits and a NUL; from getrandom(2). */
void str_random_hex(char *out, size_t n);
