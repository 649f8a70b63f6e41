/* SPDX-License-Identifier: MIT
 *
 * Names that only the daemon's own lines use. Where a line of the child has one, `child_` is put in front of it; every
 * other byte stays. So no line of the child looks like a notice, a tagged line or an error of the daemon. The names:
 *
 *   at the top level    keys plenum_...; a `subtype` plenum_...
 *   in `request`        a `subtype` plenum_...
 *   in `response`       `code` of an error, `plenum` in the answer to initialize (the payload, response.response)
 *
 * Each in any spelling (span_spells()), and each of several duplicates. The functions return a chunk owned by the
 * caller: the same bytes, shared, where nothing was to be changed; data NULL without memory. The scanner finds the
 * lines that need disown_line() (envelope.reserved). Source: DESIGN 14; plenum-protocol(7) "Names of the daemon".
 */
#pragma once

#include "wire/chunk.h"
#include "wire/scan.h"

/* A line of the child, of any type. */
struct chunk disown_line(struct chunk line);
/* A control_response of the child, in addition. initialize: it answers that request. */
struct chunk disown_answer(struct chunk line, bool initialize);

/* For the scanner: a key that has to be renamed, or whose value may have to be. */
bool disown_is_key(struct span key);
/* For the scanner: a value of `subtype` that has to be renamed. */
bool disown_is_value(struct span value);
