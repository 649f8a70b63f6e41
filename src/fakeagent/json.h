/* SPDX-License-Identifier: MIT
 *
 * jansson as this program needs it. A JavaScript program takes and prints lines that jansson refuses: lone surrogate
 * escapes, huge numbers, NUL. A lone surrogate becomes a character of the private plane 16 while it is in memory
 * (U+10F000 + its low 11 bits) and is printed as the escape that it was; a number that fits nowhere becomes a real.
 * Without memory the program ends: it is a test program.
 */
#pragma once

#include "base/buf.h"

#include <jansson.h>

static inline void js_freep(json_t **j) {
	json_decref(*j);
}
#define _cleanup_json_ _cleanup_(js_freep)

enum js_result { JS_OK, JS_BAD, JS_ODD }; /* ODD: JSON that JavaScript reads and jansson cannot hold; *value is NULL */

enum js_result js_parse(const char *p, size_t n, json_t **value);
void js_dump(struct buf *b, const json_t *value); /* compact, one line */
char *js_dumps(const json_t *value);              /* the caller frees */
json_t *js_text(const char *p, size_t n);         /* any bytes; invalid UTF-8 becomes U+FFFD */
json_t *js_printf(const char *fmt, ...) PRINTF_LIKE(1, 2);
const char *js_get(const json_t *obj, const char *key); /* a string member or NULL */
bool js_true(const json_t *obj, const char *key);
/* Text of a message's content: a string, or the text blocks joined by LF. The caller frees. */
char *js_content_text(const json_t *content);
void js_put(json_t *obj, const char *key, json_t *value); /* takes the value; NULL values are left out */
json_t *js_need(json_t *value);                           /* ends the program at NULL */
void js_uuid(char out[37]);                               /* version 4 */
