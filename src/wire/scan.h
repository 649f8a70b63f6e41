/* SPDX-License-Identifier: MIT
 *
 * Find members of a JSON line without parsing it: spans of the line's own bytes, one pass, no allocation, no recursion.
 * For lines of the child, which is trusted to print JSON: strings are skipped, brackets are counted, nothing else is
 * checked. Lines of clients are checked by message.h first.
 *
 * Keys are compared byte by byte; a key with escapes is not recognised (message.h refuses them in keys that routing
 * reads). The last value of a duplicate key is used, as by the CLI's parser.
 *
 * Source: RFC 8259; contract 4 "bytes in = bytes out".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct buf;

/* The raw text of one JSON value (a string with its quotes), or p == NULL for an absent member. */
struct span {
	const char *p;
	size_t n;
};

#define SPAN_NONE ((struct span){NULL, 0})

/* All of a C string; NULL: absent. */
static inline struct span span_of(const char *text) {
	return text ? (struct span){text, strlen(text)} : SPAN_NONE;
}

/* White space between the tokens of JSON. */
static inline bool span_blank(char c) {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static inline struct span span_skip_blanks(struct span s) {
	while (s.n && span_blank(*s.p)) s.p++, s.n--;
	return s;
}

static inline bool span_is_blank(struct span s) {
	return span_skip_blanks(s).n == 0;
}

/* Return its first n bytes, or all of it. */
static inline struct span span_start(struct span s, size_t n) {
	return (struct span){s.p, n < s.n ? n : s.n};
}

/* Return the value of a member of an object span (the last duplicate); SPAN_NONE if absent, or if obj is not an object.
 */
struct span span_member(struct span obj, const char *key);

/* The same for a key that may have escapes. */
struct span span_member_spelled(struct span obj, const char *key);

/* Return the n-th element of an array span, or SPAN_NONE. To iterate use span_next(). */
struct span span_element(struct span array, size_t index);
/* Iterate over an array: start with *at = 0; false at the end. */
bool span_next(struct span array, size_t *at, struct span *element);
/* Iterate over an object: start with *at = 0; key is the raw key with its quotes. */
bool span_next_member(struct span obj, size_t *at, struct span *key, struct span *value);
/* Append `,key:value`. */
void span_put_member(struct buf *b, struct span key, struct span value);
/* The same, without looking inside the known value, which may be long. SPAN_NONE: none is known. */
bool span_next_member_past(struct span obj, size_t *at, struct span *key, struct span *value, struct span known);

/* Return an upper bound of the number of values in a checked JSON text, including itself and keys. */
size_t span_values(struct span s);

static inline bool span_is_string(struct span s) {
	return s.p && s.n >= 2 && s.p[0] == '"' && s.p[s.n - 1] == '"';
}

bool span_is_object(struct span s);
bool span_is_array(struct span s);
bool span_is_true(struct span s);
/* Return true if the raw content of a string span equals text (no unescaping). Inline: most texts are constant, and of
 * another length. */
static inline bool span_equals(struct span s, const char *text) {
	size_t n = strlen(text);
	return s.n == n + 2 && span_is_string(s) && memcmp(s.p + 1, text, n) == 0;
}

bool span_is_one_of(struct span s, const char *const *texts); /* any of them; ends with NULL */
bool span_same(struct span a, struct span b);                 /* byte equality of raw spans */
/* Return true if the content of a string span is `word` (whole), or begins with it, in any spelling that some parser
 * accepts: escapes, any case, U+017F for s. The word is lower-case ASCII. */
bool span_spells(struct span s, const char *word, bool whole);
/* Return a string span without its quotes (raw, with escapes); SPAN_NONE if it is not a string. */
struct span span_content(struct span s);
/* Unescape a string span into a new NUL-terminated UTF-8 string; *len without the NUL (len may be NULL). Lone
 * surrogates become U+FFFD. NULL: not a string, an embedded NUL, or no memory. The caller frees. */
char *span_dup(struct span s, size_t *len);
/* The same for its beginning: all of it, or a little more than `max` bytes. The rest is not looked at. */
char *span_dup_start(struct span s, size_t max, size_t *len);
/* Parse an integer; false if it is not one or out of range. */
bool span_int(struct span s, int64_t *value);
