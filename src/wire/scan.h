/* SPDX-License-Identifier: MIT
 *
 * Finding things in one JSON line without parsing it: spans of the line's own bytes, one pass, no allocation, no
 * recursion. This is for lines of the child, which is trusted to print JSON: strings are skipped, brackets are counted,
 * nothing else is checked. Lines of clients go through message.h first, which checks every byte.
 *
 * Keys are compared byte by byte; a key spelled with escapes is not recognised here (message.h refuses such spellings
 * of the keys that routing reads). Of a duplicate key the last value wins, as in the CLI's own parser.
 *
 * Source: RFC 8259; DESIGN 4 "bytes in = bytes out".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The raw text of one JSON value (a string with its quotes), or p == NULL where the member is absent. */
struct span {
	const char *p;
	size_t n;
};

#define SPAN_NONE ((struct span){NULL, 0})

/* All of a C string; NULL: absent. */
static inline struct span span_of(const char *text) {
	return text ? (struct span){text, strlen(text)} : SPAN_NONE;
}

static inline bool span_is_blank(struct span s) {
	while (s.n && (*s.p == ' ' || *s.p == '\t' || *s.p == '\r' || *s.p == '\n')) s.p++, s.n--;
	return s.n == 0;
}

/* What routing reads of a line. All spans point into the line. */
struct envelope {
	struct span type, subtype, request_id, uuid, session_id; /* top level */
	struct span request, response, message;                  /* top level, whole values */
	struct span is_replay, is_error;                         /* top level isReplay, is_error */
	struct span user_message_uuid, user_message_uuids;       /* top level */
	struct span parent_tool_use_id;                          /* top level */
	struct span inner_subtype, inner_request_id; /* of `request`, or of `response` where there is no request */
	struct span inner_response;                  /* response.response */
	bool reserved;                               /* it may use a name of the daemon's (wire/disown.h): look closer */
};

/* p[0..n) is one line without its LF. True: it is one balanced object (surrounding blanks allowed), *e is filled.
 * False: it is not, *e is undefined. Time grows with n alone. */
bool scan_envelope(const char *p, size_t n, struct envelope *e);
/* The same without the wide instructions of some processors: for tests. */
bool scan_envelope_plain(const char *p, size_t n, struct envelope *e);

/* The member of *e that a top-level key (raw, without its quotes) fills; NULL for a key that routing does not read. */
struct span *envelope_slot(struct envelope *e, const char *key, size_t n);

/* The value of a member of an object span (last one of duplicates), SPAN_NONE if absent or if obj is no object. */
struct span span_member(struct span obj, const char *key);

/* The same for a key that may be spelled with escapes. */
struct span span_member_spelled(struct span obj, const char *key);

/* The n-th element of an array span, or SPAN_NONE. For a walk use span_next(). */
struct span span_element(struct span array, size_t index);
/* Walks an array: start with *at = 0; false at the end. */
bool span_next(struct span array, size_t *at, struct span *element);
/* Walks an object: start with *at = 0; key is the raw key with its quotes. */
bool span_next_member(struct span obj, size_t *at, struct span *key, struct span *value);

/* How many values a checked JSON text has at most, itself and members' keys included. */
size_t span_values(struct span s);

bool span_is_string(struct span s);
bool span_is_object(struct span s);
bool span_is_array(struct span s);
bool span_is_true(struct span s);
/* A string span whose raw content equals text exactly (no unescaping). */
bool span_equals(struct span s, const char *text);
bool span_same(struct span a, struct span b); /* byte equality of raw spans */
/* Return true if the content of a string span is `word` (whole), or begins with it, in any spelling that some parser
 * takes for it: escapes, any case, U+017F for s. The word is lower-case ASCII. */
bool span_spells(struct span s, const char *word, bool whole);
/* A string span without its quotes (raw, escapes kept); SPAN_NONE if it is no string. */
struct span span_content(struct span s);
/* Unescapes a string span into a new NUL-terminated UTF-8 string; *len without the NUL (may be NULL). Lone surrogates
 * become U+FFFD. NULL: no string, an embedded NUL, or no memory. The caller frees. */
char *span_dup(struct span s, size_t *len);
/* A whole number; false if it is none or does not fit. */
bool span_int(struct span s, int64_t *value);
