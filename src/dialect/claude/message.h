/* SPDX-License-Identifier: MIT
 *
 * The check of a client's line for Claude Code, which exits at the first line that it cannot take (protocol-facts 3).
 *
 * Valid is: RFC 8259 with lone surrogate escapes accepted, valid UTF-8, one object, at most VALID_MAX_DEPTH levels;
 * numbers of any size. Refused are: a duplicate of a key that routing reads (type, request_id, request, subtype,
 * response, message, uuid, session_id at the top level; subtype, request_id in `request`; subtype, request_id, response
 * in `response`; role, content in `message`); any key of letters, digits and underscores spelled with escapes in one of
 * these places or in response.response: the child could read it differently.
 */
#pragma once

#include "dialect/message.h"

/* p[0..n): a line without LF or CR. True: it is valid JSON by the rules above and *env is filled. False: *error is a
 * static sentence for users, *at the offset. */
bool message_scan(const char *p, size_t n, struct envelope *env, const char **error, size_t *at);

/* Check a client's line completely: message_scan(), then its shape (survive.h). The old forms are
 * {"type":"user","prompt":"..."} and {"type":"user","content":"..."}. For a request with its id only inside `request`
 * (an old form, too) m->env.request_id points there. Values other than `type`, the subtypes and `role` may contain
 * escapes. */
message_check_fn message_check;

/* The same check in pieces, for a line too long for one turn of the loop. Borrows p[0..n). */
struct message_check;
struct message_check *message_check_new(const char *p, size_t n); /* NULL without memory */
void message_check_free(struct message_check *k);                 /* NULL is allowed */
/* Check about this many bytes more. True: it is over. The interruption repeats no work. */
bool message_check_step(struct message_check *k, size_t bytes);
/* At the end: the result as of message_check(), except that the error is borrowed from k. */
bool message_check_result(struct message_check *k, struct message *m, struct chunk *rewritten, const char **error,
						  struct span *request_id);

/* How the child takes a line that is refused here (protocol-facts 3). True: it skips the line. False: it ends, or uses
 * the line in some way. */
bool message_is_skipped(struct span line);
/* Return true for a control_request that ends the child: its `request` is missing or null. */
bool message_is_fatal_request(const struct envelope *e);
/* Return the line after a byte order mark, which new versions of the child skip. */
struct span message_after_mark(struct span line);
