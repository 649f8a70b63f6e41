/* SPDX-License-Identifier: MIT
 *
 * Replace bytes of a line in one place. Bytes in are bytes out (contract 4): a line is never parsed and written anew.
 * If an id must change, only its bytes are replaced; a new member is inserted after the opening brace.
 *
 * Chunks and rows that are returned are owned by the caller; without memory they have no data.
 */
#pragma once

#include "wire/rope.h"
#include "wire/scan.h"

/* Return the line without its newline or CRLF, as a span of it. */
struct span splice_body(struct chunk line);

/* Return the line for the child: its body and one newline. Shares the bytes if possible. */
struct chunk splice_line(struct chunk line, struct span body);

/* Return p[0..n) with the bytes of `old`, a span of it, replaced by text. */
struct chunk splice_replace(const char *p, size_t n, struct span old, const char *text, size_t len);

#define SPLICE_PARTS 5

/* Replace `cut` bytes at `at` by parts, which are not copied before: one may be most of a line. */
struct splice_edit {
	const char *at;
	size_t cut;
	struct span parts[SPLICE_PARTS];
};

#define SPLICE_NOTHING ((struct splice_edit){0})

/* Return the edit of a body, one object, that puts the string `text` (which needs no escapes) in place of the value
 * `old`; without an old value, with a new first member `key`. */
struct splice_edit splice_string(struct span body, struct span old, const char *key, const char *text);

#define SPLICE_EDITS 3
/* Add an edit to a list of up to SPLICE_EDITS, in their order in the line. */
void splice_add(struct splice_edit *edits, size_t *n, struct splice_edit one);

/* Return body, a span of line, with these edits and one newline at its end. Parts of
 * edits may be of `other`. Long pieces of both are views. */
struct rope splice_edits(struct chunk line, struct span body, const struct splice_edit *edits, size_t n,
						 struct chunk other);
