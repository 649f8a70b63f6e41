/* SPDX-License-Identifier: MIT
 *
 * Requests of the child to clients: which clients are asked, which answer counts, which clients are notified (contract
 * 5). The daemon allows nothing by itself unless a rule of the profile does. Owns the pendings of a session.
 */
#pragma once

#include "core/router.h"

/* only: the client whose request it is about, or 0. */
void asks_add(struct session *s, struct chunk line, const struct envelope *e, uint64_t only);
/* The same; clients get the line with this edit. */
void asks_add_edited(struct session *s, struct chunk line, const struct envelope *e, struct splice_edit edit,
					 uint64_t only);
void asks_decide(struct pending *p); /* a new entry: apply the rules, else ask its approvers */
/* Settle by a decision of the client in a itself. */
void asks_settle_own(struct pending *p, const struct attachment *a, const char *decision, const char *why);
void asks_send(const struct pending *p, struct client *c);
void asks_offer(struct attachment *a); /* send it the open requests that it may answer */
extern const struct pending_events asks_events;
void asks_late(struct pending *p); /* pending_events.late */
void asks_answer(struct client *c, struct chunk line, const struct envelope *e);
void asks_withdrawn(struct session *s, struct span child_id); /* by the child */
/* The turn was interrupted: withdraw its permission requests. Those of background agents stay open. */
void asks_withdraw_turn(struct session *s);
void asks_cancel_turn(struct session *s); /* the same, each with an answer to the child */
void asks_withdraw_all(struct session *s, const char *why);
/* Requests that are resolved together with many others leave the tables at once; their clients are notified in the
 * following turns. Notify of some more. False: there are still more. */
bool asks_tell_some(struct session *s);
void asks_leave(struct attachment *a); /* it is gone, or no approver any more */
/* Send the daemon's own answer. body: value of response.response, freed; NULL: answer with an error. */
void asks_answer_self(struct pending *p, struct buf *body, const char *decision, const char *why);
void asks_refuse(struct session *s, struct chunk line, const struct envelope *e, const char *why);
bool asks_may_answer(const struct attachment *a, const struct pending *p);
