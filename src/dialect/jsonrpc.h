/* SPDX-License-Identifier: MIT
 *
 * JSON-RPC 2.0, one object on each line: the frame of several dialects. Requests have `method` and `id`, notifications
 * `method`, answers `id` and `result` or `error`. Plenum's own verbs are methods `_plenum/NAME`, its notices are
 * notifications `_plenum/event` (plenum-jsonrpc(7)).
 *
 * An id keeps its token: `"0"` is not `0`. Source: JSON-RPC 2.0 specification.
 */
#pragma once

#include "base/buf.h"
#include "dialect/dialect_frame.h"
#include "dialect/envelope.h"
#include "wire/chunk.h"

/* The beginning of a line: with the member `jsonrpc`, or for a protocol that omits it. */
#define JSONRPC_HEAD "{\"jsonrpc\":\"2.0\","
#define JSONRPC_BARE_HEAD "{"

/* The prefix of the daemon's methods, and its notices. */
#define JSONRPC_OWN_PREFIX "_plenum/"
#define JSONRPC_MARK "plenum"
#define JSONRPC_EVENT JSONRPC_OWN_PREFIX "event"

/* Scan p[0..n), one line without its newline, as struct dialect.scan. conversation: the member of `params` that names
 * the conversation, without quotes.
 *
 *   a request         type and inner_subtype: its method; request_id; request: its params if an object
 *   a notification    the same without request_id and inner_subtype
 *   an answer         no type; inner_request_id; response: the whole object; inner_response: the result; is_error: the
 *                     error; inner_subtype: "success" or "error"
 *
 * The inner_subtype of a verb is its name in plenum/protocol.h, a static span. reserved: a method of the child, or a
 * root member, has a name of the daemon. */
bool jsonrpc_scan(const char *p, size_t n, struct envelope *e, const char *conversation);

/* *e has the members of a line: type its method, request_id the id, request the params, session_id the conversation,
 * inner_response the result, is_error the error. Complete it as above. line: the whole object. */
void jsonrpc_settle(struct envelope *e, struct span line);
/* As struct dialect.hides_kind: return true if a member that makes a request or an answer is spelled with escapes. */
bool jsonrpc_hides_kind(struct chunk line, const struct envelope *e);
/* Return true for an id that a request can have: a string, or an integer of 64 bits. */
bool jsonrpc_is_id(struct span id);
/* As the members of struct dialect: an answer is no error; the reason in an answer that is one. */
bool jsonrpc_succeeded(const struct envelope *e);
struct span jsonrpc_reason(struct span response);
/* Return true for a method of the daemon, in any spelling. */
bool jsonrpc_is_own(struct span method);
/* Return true if this value of params.update._meta has the member `plenum`, in any spelling: by it the daemon names the
 * sender of a prompt in its echo. */
bool jsonrpc_is_marked(struct span meta);

/* Of clients with the one or the other head. disown: methods and root members with a name of the daemon get the prefix
 * `child_`, as in the control frame (wire/disown.h); disown_answer: the member `code` of an error's data, if it may be
 * one of the daemon's. */
extern const struct dialect_frame jsonrpc_frame, jsonrpc_bare_frame;

/* Append the method of a request, without quotes: of a verb plenum_NAME the daemon's. */
void jsonrpc_put_method(struct buf *b, const char *name);
/* Each function appends a whole line with its newline. head: one of the two above. Ids and params are raw JSON. */
void jsonrpc_put_request(struct buf *b, const char *head, const char *id, const char *method, const char *params);
void jsonrpc_put_notification(struct buf *b, const char *head, const char *method, const char *params);
void jsonrpc_put_success(struct buf *b, const char *head, struct span id, const char *result); /* NULL: {} */
#define JSONRPC_SUCCESS_END "}}\n" /* of an object, of the line */
/* id SPAN_NONE: null. code: one of plenum/protocol.h. more: further members of `data`, `,"name":value` each. */
void jsonrpc_put_error(struct buf *b, const char *head, struct span id, const char *code, const char *text,
					   const char *more);
/* As struct dialect.put_failure. To the agent the daemon is a client, which does not know all of its requests. */
void jsonrpc_put_failure(struct buf *b, const char *head, struct span id, const char *code, const char *text);
/* Append a sentence about an answer that is an error; what: what the agent has done. */
void jsonrpc_put_refusal(struct buf *b, const char *what, const struct envelope *e);
/* Return the number in an error with this code of plenum/protocol.h. */
int jsonrpc_number(const char *code);
