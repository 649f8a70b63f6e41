/* SPDX-License-Identifier: MIT
 *
 * The check of a client's line in JSON-RPC (message.h). Agents drop a bad line without an answer, or answer it without
 * an id, so a line that breaks the protocol ends here: with the protocol's own error, under the line's id if it can be
 * read.
 *
 * Valid is: RFC 8259 with lone surrogate escapes accepted, valid UTF-8, one object, at most VALID_MAX_DEPTH levels;
 * `method` a string without escapes; `params` an object if present; `id` a string or an integer of 64 bits; an answer
 * with exactly one of `result` and `error`. Refused are a batch, a duplicate of a member that routing reads, and a key
 * of letters, digits and underscores spelled with escapes in the first three levels.
 */
#pragma once

#include "base/error.h"
#include "dialect/message.h"

struct jsonrpc_rules {
	bool versioned;           /* "jsonrpc":"2.0" is required */
	const char *conversation; /* as for jsonrpc_scan() */
	const char *prompt; /* the member of params with the content of a prompt: m->content of each line that has it */
	/* Complete *m, whose kind is MESSAGE_REQUEST, MESSAGE_ANSWER or (a notification) MESSAGE_OTHER, not called for
	 * verbs of Plenum. Return an error text, for params that the method cannot have; else NULL. */
	const char *(*read)(struct message *m);
};

/* As message_check_fn, and as the members of struct message_steps. rules: static. */
bool jsonrpc_check(const struct jsonrpc_rules *rules, const char *p, size_t n, struct message *m,
				   struct chunk *rewritten, struct error *error, struct span *request_id);
struct message_check *jsonrpc_check_new(const struct jsonrpc_rules *rules, const char *p, size_t n);
void jsonrpc_check_free(struct message_check *k);
bool jsonrpc_check_step(struct message_check *k, size_t bytes);
bool jsonrpc_check_result(struct message_check *k, struct message *m, struct chunk *rewritten, const char **error,
						  struct span *request_id);

/* Check the answer to a form. Return an error text, or NULL. */
const char *jsonrpc_check_form(struct span response);
