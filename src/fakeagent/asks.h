/* SPDX-License-Identifier: MIT
 *
 * Requests to the client that are open. Whoever sent one either waits for it (asks_wait) and frees it, or gives a
 * function that is called when it is settled, after which it frees itself.
 */
#pragma once

#include "fakeagent/agent.h"

enum ask_how {
	ASK_OPEN,
	ASK_ANSWERED,  /* response is the `response` object of the client's line */
	ASK_CANCELLED, /* by an interrupt */
	ASK_TIMEOUT,
	ASK_CLOSED,   /* stdin has ended */
	ASK_REPLACED, /* a new hook table came */
};

struct ask;
typedef void (*ask_fn)(struct agent *a, struct ask *ask);

struct ask {
	struct list node;
	char id[37];
	json_t *request;
	enum ask_how how;
	json_t *response;
	ask_fn then;
	json_t *arg;
	int64_t deadline; /* -1: none */
	bool of_turn;     /* an interrupt settles it */
	struct list mark; /* in the list of whoever sent several */
	json_t *entry;    /* the hook table's entry */
};

/* Prints the control_request (takes request) and keeps it. timeout < 0: none. After the end of stdin it is not printed
 * and is ASK_CLOSED at once. */
struct ask *asks_send(struct agent *a, json_t *request, int64_t timeout);
void asks_then(struct agent *a, struct ask *ask, ask_fn then, json_t *arg); /* takes arg; the ask now frees itself */
void asks_mark(struct ask *ask, struct list *of, const json_t *entry);
struct ask *asks_take_marked(struct list *of); /* the oldest, or NULL */
void asks_wait(struct agent *a, struct ask *ask);
void asks_free(struct ask *ask);
/* The payload of a successful answer, borrowed, or NULL. */
json_t *asks_payload(const struct ask *ask);
/* The text of an answer of subtype error, borrowed, or NULL. */
const char *asks_error(const struct ask *ask);

void asks_answer(struct agent *a, json_t *line);
void asks_settle(struct agent *a, struct ask *ask, enum ask_how how); /* tells the client where it must know */
void asks_settle_turn(struct agent *a, enum ask_how how);
void asks_settle_kind(struct agent *a, const char *subtype, enum ask_how how);
void asks_close(struct agent *a); /* stdin has ended */
void asks_expire(struct agent *a);
int64_t asks_deadline(const struct agent *a);
/* Copies of the open control_requests of that subtype. */
json_t *asks_open(const struct agent *a, const char *subtype);
