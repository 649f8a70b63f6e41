/* SPDX-License-Identifier: MIT
 *
 * The control frame: requests with an id and a subtype, their answers, their withdrawal. Plenum's own verbs use it
 * (plenum-protocol(7)), and so does Claude Code. Each function appends a whole line with its newline. Ids and values
 * are raw JSON text (a string with its quotes).
 */
#pragma once

#include "base/buf.h"
#include "dialect/dialect_frame.h"
#include "wire/scan.h"

void frame_put_request(struct buf *b, const char *id, const char *request_json);
/* A built body is freed. If it has failed, b fails too. */
void frame_put_built_request(struct buf *b, const char *id, struct buf *body);
void frame_put_success(struct buf *b, struct span id, const char *response_json); /* response_json NULL: none */
void frame_put_built_success(struct buf *b, struct span id, struct buf *body);
#define FRAME_SUCCESS_END "}}}\n" /* of an object, of `response`, of the line */
/* id SPAN_NONE: none. more: further members of the response, `,"name":value` each. */
void frame_put_error(struct buf *b, struct span id, const char *code, const char *text, const char *more);
void frame_put_cancel(struct buf *b, struct span id, struct span request);
extern const struct dialect_frame frame_control;
