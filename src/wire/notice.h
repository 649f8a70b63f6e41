/* SPDX-License-Identifier: MIT
 *
 * Builds the daemon's own lines: {"type":"system","subtype":"plenum_event","event":...}. Text may be any bytes; raw
 * values are JSON. Source: docs/contract.md 3.1, plenum-protocol(7) EVENTS.
 */
#pragma once

#include "base/buf.h"
#include "wire/chunk.h"
#include "wire/scan.h"

#include <stdint.h>

#define NOTICE_MAX ((size_t)64 * 1024 * 1024)
#define NOTICE_INIT BUF_INIT(NOTICE_MAX)

void notice_begin(struct buf *b, const char *event, const char *session); /* session may be NULL */
/* Begin an event `error`. */
void notice_error(struct buf *b, const char *session, const char *code, const char *text);
void notice_text(struct buf *b, const char *key, const char *value); /* NULL: null */
void notice_bytes(struct buf *b, const char *key, const char *value, size_t n);
void notice_number(struct buf *b, const char *key, int64_t value);
void notice_flag(struct buf *b, const char *key, bool value);
/* Absent: null. Invalid JSON becomes a string (in a value of the child only the brackets were counted so far). */
void notice_raw(struct buf *b, const char *key, struct span json);
/* End the line and return it as a chunk; data NULL without memory. Frees b. */
struct chunk notice_end(struct buf *b);
/* Return built lines as a chunk. Frees b. */
struct chunk notice_chunk(struct buf *b);
