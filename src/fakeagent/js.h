/* SPDX-License-Identifier: MIT
 *
 * jansson for this program. JavaScript reads and prints lines that jansson refuses: lone surrogate escapes, huge
 * numbers, NUL. In memory a lone surrogate is a character of the private plane 16 (U+10F000 + its low 11 bits), printed
 * as the original escape; a number out of range becomes a real. Without memory the program ends.
 */
#pragma once

#include "base/buf.h"

#include <jansson.h>
#include <stdint.h>
#include <string.h>

static inline void js_freep(json_t **j) {
	json_decref(*j);
}
#define _cleanup_json_ _cleanup_(js_freep)
#define JS_BUF BUF_INIT(SIZE_MAX / 2)

/* for (each value e.v of an array, with its index e.i) */
struct js_each {
	size_t i;
	json_t *v;
};
#define JS_EACH(e, list) for (struct js_each e = {0}; (e.v = json_array_get(list, e.i)); e.i++)

/* These take the value; NULL is omitted. */
#define js_put json_object_set_new
#define js_add json_array_append_new
#define js_merge json_object_update_new

enum js_result { JS_OK, JS_BAD, JS_ODD }; /* ODD: JSON valid for JavaScript but not for jansson; *value is NULL */

enum js_result js_parse(const char *p, size_t n, json_t **value);
char *js_dumps(const json_t *value); /* compact, one line; the caller frees */

/* Make a value from a template: {type:system,list:[a,%s],n:%i}. A word is a string, or an integer, true, false or null.
 * $path is a member of `of`, omitted if there is none. %s string (NULL: null), %z string (NULL: omit the member), %o
 * taken json_t, %O borrowed json_t (NULL: omit), %i int, %I json_int_t, %b bool, %t true or omitted, %f double, %u a
 * new UUID, %w the working directory, %n the time; the last three without an argument. */
#define js_make(...) js_view(NULL, __VA_ARGS__)
json_t *js_view(const json_t *of, const char *format, ...);
json_t *js_vmake(const json_t *of, const char *format, va_list ap);
json_t *js_text(const char *p, size_t n); /* any bytes; invalid UTF-8 becomes U+FFFD */
json_t *js_string(const char *text);      /* the same; NULL: null */
json_t *js_of(struct buf *b);             /* the content of the buffer, which is freed */
json_t *js_printf(const char *fmt, ...) PRINTF_LIKE(1, 2);
json_t *js_uuid(void);
json_t *js_id(const char *prefix);            /* prefix, pid and a running number */
void js_set(json_t **to, json_t *value);      /* replace *to; takes value */
void js_replace(char **to, const char *text); /* replace *to by a copy of text */
_Noreturn void js_no_memory(void);

json_t *js_at(const json_t *obj, const char *path);     /* a member, nested: "message.content"; borrowed */
const char *js_get(const json_t *obj, const char *key); /* a string member or NULL */
json_int_t js_number(const json_t *obj, const char *path);
bool js_is(const json_t *obj, const char *key, const char *value);
bool js_true(const json_t *obj, const char *key);
bool js_same(const char *a, const char *b);        /* both may be NULL, which equals nothing */
bool js_word(const char *word, const char *words); /* one of words, which spaces separate */
bool js_has(const json_t *list, const char *text);
bool js_matches(const char *pattern, const char *text); /* a POSIX extended regular expression */
/* The content of a message is a text or an array of blocks. */
json_t *js_content(const json_t *content); /* the text: all text blocks joined by newlines; new */
json_t *js_blocks(const json_t *content);  /* as blocks; a new array */
bool js_has_block(const json_t *content, const char *type);
