/* SPDX-License-Identifier: MIT
 *
 * A line with other bytes in one place. Bytes in are bytes out (DESIGN 4): a line is never parsed and printed again;
 * where an id must change, only its bytes are replaced, and a member is put in behind the opening brace.
 *
 * Each function gives a chunk that the caller owns, with data NULL where there is no memory.
 */
#pragma once

#include "wire/chunk.h"
#include "wire/scan.h"

/* The line without its LF or CRLF. Points into it. */
struct span splice_body(struct chunk line);

/* The line as the child gets it: its body and one LF. Shared where it already is so. */
struct chunk splice_line(struct chunk line, struct span body);

/* p[0..n) with the bytes of `old` (a span into it) replaced. */
struct chunk splice_replace(const char *p, size_t n, struct span old, const char *text, size_t len);

/* The body with the string `text` (nothing in it needs an escape) in place of the value `old`; where there is no old
 * one, as the first member, `key`. Ends with LF. The body is one object. */
struct chunk splice_string(struct span body, struct span old, const char *key, const char *text);
