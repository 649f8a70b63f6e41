/* SPDX-License-Identifier: MIT
 *
 * Names that are reserved for lines of the daemon. In a line of the child they get the prefix `child_`; all other bytes
 * are unchanged. So no line of the child looks like a notice, a tagged line or an error of the daemon. The names:
 *
 *   at the top level    keys plenum_...; a `subtype` plenum_...
 *   in `request`        a `subtype` plenum_...
 *   in `response`       `code` of an error, `plenum` in the answer to initialize (the payload, response.response)
 *
 * In any spelling (span_spells()), including all duplicates. The functions return a chunk owned by the caller: a
 * reference to the same bytes if nothing changes; data NULL without memory. The scanner marks lines that need
 * disown_line() (envelope.reserved). Source: docs/contract.md 14; plenum-protocol(7) "Names of the daemon".
 */
#pragma once

#include "base/buf.h"
#include "wire/chunk.h"
#include "wire/scan.h"

/* A line of the child, of any type. */
struct chunk disown_line(struct chunk line);
/* For a control_response of the child, in addition. initialize: it answers an `initialize`. */
struct chunk disown_answer(struct chunk line, bool initialize);

/* For the scanner: a key to rename, or with a value that may need it. */
bool disown_is_key(struct span key);
/* For the scanner: a value of `subtype` to rename. */
bool disown_is_value(struct span value);

/* For other frames with names of their own. A line in progress: the copied part, and the start of the rest. */
struct disown {
	struct buf b;
	const char *from;
	struct chunk line; /* borrowed */
};

struct disown disown_begin(struct chunk line);
struct span disown_object(const struct disown *d); /* the line without what is before its object; absent: it has none */
/* Give a string of the line the prefix. Strings come in the order of the line. */
void disown_rename(struct disown *d, struct span string);
/* Return the result as the functions above; frees what d owns. */
struct chunk disown_finish(struct disown *d);
