/* SPDX-License-Identifier: MIT
 *
 * Open requests to the client. The sender either waits for one (query_wait) and frees it, or sets a function to call at
 * its end, after which it frees itself.
 */
#pragma once

#include "fakeagent/agent.h"
#include "fakeagent/poller.h"

enum query_end {
	QUERY_OPEN,
	QUERY_ANSWERED,  /* response is the `response` object of the client's line */
	QUERY_CANCELLED, /* by an interrupt */
	QUERY_TIMEOUT,
	QUERY_CLOSED,   /* end of stdin */
	QUERY_REPLACED, /* by a new hook table */
};

struct query {
	struct list node;
	char id[37];
	json_t *request, *response;
	enum query_end end;
	bool detached; /* by query_then(); an interrupt ends the others */
	void (*then)(struct query *q);
	json_t *arg; /* of then, or the sender's; freed with the query */
	struct timer *timer;
	struct list mark; /* the sender's */
};

/* Print the control_request (takes request) and keep it. timeout < 0: none. After the end of stdin it is not printed
 * and is QUERY_CLOSED at once. */
struct query *query_send(json_t *request, int64_t timeout);
/* Takes arg; then may be NULL. The query is detached from the turn and frees itself. */
void query_then(struct query *q, void (*then)(struct query *q), json_t *arg);
void query_wait(struct query *q);
void query_free(struct query *q);
json_t *query_payload(const struct query *q);   /* of a successful answer, borrowed, or NULL */
const char *query_error(const struct query *q); /* the text of an error answer, borrowed, or NULL */

void query_answer(json_t *line);
void query_end_turn(enum abort why); /* abort the running turn, and cancel its requests */
/* End all with that subtype (NULL: any); QUERY_CLOSED: at the end of stdin. */
void query_end_all(const char *subtype, enum query_end end);
json_t *query_list(const char *subtype); /* copies of the open control_requests with that subtype */
