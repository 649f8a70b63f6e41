/* SPDX-License-Identifier: MIT
 *
 * Requests of clients to the child: under an id of the daemon, with a timeout, within the limits of the client; and the
 * way back of the answer. Owns the calls of a session. Called for lines of clients, by the modules that send lines of
 * their own.
 */
#pragma once

#include "core/router.h"
#include "dialect/dialect_gate.h"

/* Builds the line for the child in place of a client's; id: without quotes. */
typedef void requests_put_fn(struct buf *b, const struct session *s, const char *id, const char *body);
requests_put_fn requests_put; /* with this body */
/* Send a client's request to the child under a fresh id; put NULL: the line's own. NULL: the client was notified. */
struct call *requests_send(struct client *c, struct session *s, struct chunk line, const struct envelope *e,
						   requests_put_fn *put, const char *body);
/* Return the client's line for the child: under this raw id (absent: a line without one), and with the conversation
 * named if it is left out. Without memory it has no pieces. */
struct rope requests_line_for(const struct session *s, struct chunk line, const struct envelope *e, struct span id);
/* Announce the change as soon as the child confirms it. call may be NULL: there is nothing to announce. */
void requests_announce_change(struct call *call, const struct gate_row *row, const struct envelope *e);
/* Send a line without an answer to the child. False: the client was notified. */
bool requests_pass_line(struct client *c, struct session *s, struct chunk line, const struct envelope *e);
void requests_timer(void *call); /* timeout */
/* Pass the child's answer to the asker, if it is there. */
void requests_pass_answer(const struct call *call, struct chunk line, const struct envelope *e);
void requests_answered(struct call *call, struct chunk line, const struct envelope *e);
void requests_fail(struct call *call, const char *code, const char *text); /* text NULL: no client is notified */
/* Return the row of a request in the table of rights, or NULL. */
const struct gate_row *requests_row(const struct client *c, const struct envelope *e);
/* Return true if the client may have one more open request, of so many bytes. False: it was notified. */
bool requests_may_send(struct client *c, const struct session *s, const struct envelope *e, struct span id, size_t len);
/* Return true if the request names a timeout that none can have; the client was notified. */
bool requests_has_bad_timeout(struct client *c, const struct envelope *e);
/* No prompt of the client runs before a request for this change is taken. */
void requests_need_change(struct client *c, const char *what);
/* Announce a line without an answer as soon as it was sent. */
void requests_announce_line(struct session *s, struct client *c, const struct gate_row *row, struct span body);
