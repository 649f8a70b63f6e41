/* SPDX-License-Identifier: MIT
 *
 * Strict parsing of numbers, sizes and times; escaping of text for logs, terminals and JSON.
 */
#pragma once

#include "base/buf.h"

#include <stdarg.h>
#include <stdint.h>

/* Parse a decimal number in min..max; the whole text must match. */
bool str_u64(const char *text, uint64_t min, uint64_t max, uint64_t *value);
/* Parse 4096, 64K, 16M, 1G (powers of 1024; an optional B or iB after the letter). */
bool str_size(const char *text, size_t *bytes);
/* Parse 500ms, 30s, 5min, 2h, 1d, or `never` (INT64_MAX) into ms; a unit is required except for 0. */
bool str_time(const char *text, int64_t *ms);
/* Append text, with control characters and invalid UTF-8 as \xNN and characters of str_hides() as \uNNNN. */
void str_put_safe(struct buf *b, const char *text, size_t n);
/* The same as a JSON string with quotes; str_put_word() omits them if the text has only printable ASCII without space,
 * ", = and \. */
void str_put_quoted(struct buf *b, const char *text, size_t n);
void str_put_word(struct buf *b, const char *text, size_t n);
char *str_word(const char *text); /* the caller frees; NULL without memory */
/* Append a JSON string with quotes; invalid UTF-8 becomes U+FFFD. */
void str_put_json(struct buf *b, const char *text, size_t n);
/* Return the length of the valid UTF-8 sequence at p (1..4), or 0. */
size_t str_utf8(const char *p, size_t n);
bool str_is_utf8(const char *text, size_t n); /* all of it */
/* Return the length of the text, or of its longest beginning of at most max bytes that cuts no character. */
size_t str_fit(const char *text, size_t max);
/* Return the character of n valid bytes of UTF-8. */
uint32_t str_char(const char *p, size_t n);
/* Return true for a control, a line separator, a change of the writing direction or an invisible character: text with
 * it looks different from its content. Source: UAX #9, UAX #44 Default_Ignorable_Code_Point (without variation
 * selectors); CVE-2021-42574. */
bool str_hides(uint32_t c);
/* The subset that no name needs: C0, DEL, C1, line and paragraph separators, controls of the writing direction. */
bool str_misleads(uint32_t c);
/* strdup(), or NULL for NULL. */
char *str_dup(const char *text);
char *str_printf(const char *fmt, ...) PRINTF_LIKE(1, 2);
char *str_vprintf(const char *fmt, va_list ap) PRINTF_LIKE(1, 0);
/* n random lower-case hex digits and a NUL; from getrandom(2). */
void str_random_hex(char *out, size_t n);
/* A random UUID, version 4, and a NUL. Source: RFC 9562, 5.4. */
#define STR_UUID_SIZE 37
void str_uuid(char out[STR_UUID_SIZE]);
