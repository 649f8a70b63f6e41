/* SPDX-License-Identifier: MIT
 *
 * Answers to requests of the agent: the body for each kind of request, and sending it. Source:
 * docs/protocol-facts.md 4.2.
 */
#pragma once

#include "base/buf.h"
#include "ctl/follow.h"

struct decision {
	bool allow, always, interrupt;
	const char *message; /* of a deny */
	json_t *input;       /* of an allow: the changed input; NULL: as asked */
};

/* Return the reason why the decision is no valid answer to the request, a message; NULL: it is valid. */
const char *answer_lacks(struct span request, const struct decision *d);

/* Return true if the agent proposes rules or the like for an "always". Without a proposal there is no "always". */
bool answer_can_remember(struct span request);
/* Append in words what one proposal (an element of `permission_suggestions`) changes, and where it is remembered. */
void answer_put_remembered(struct buf *b, struct span proposal);

/* Return the body of the answer; NULL: this kind of request has no allow or deny. request is the line's `request`. */
json_t *answer_body(struct span request, const struct decision *d);

/* Send a body (consumed) as the answer to the request id. PLENUM_REFUSED: it is not valid UTF-8. */
enum plenum_result answer_post(struct plenum *p, const char *id, json_t *body);
/* The same; prints a failure, and returns the exit code. */
int answer_send(struct plenum *p, const char *id, json_t *body);
