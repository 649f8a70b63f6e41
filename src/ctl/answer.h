/* SPDX-License-Identifier: MIT
 *
 * Answers to what the agent asks: the body that each kind of request wants, and sending it. Source: PROTOCOL 4.2.
 */
#pragma once

#include "ctl/follow.h"

struct decision {
	bool allow, always, interrupt;
	const char *message; /* of a deny */
	json_t *input;       /* of an allow: the changed input; NULL: as asked */
};

/* Why this decision is no answer to the request: a sentence for a person; NULL: it is one. */
const char *answer_lacks(struct span request, const struct decision *d);

/* The body of the answer to a request; NULL: this kind of request cannot be answered with yes or no.
 * request is the span of the line's `request`. */
json_t *answer_body(struct span request, const struct decision *d);

/* Sends a body (consumed) under the id that we were asked under. */
int answer_send(struct plenum *p, const char *id, json_t *body);
