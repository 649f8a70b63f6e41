/* SPDX-License-Identifier: MIT
 *
 * Prompts of clients: accepted once, queued during another client's turn, sent, withdrawn (contract 4, 8).
 */
#pragma once

#include "core/router.h"

struct message;

void intake_prompt(struct client *c, struct session *s, struct chunk line, const struct message *m);
void intake_send_held(struct session *s); /* send the queued prompts that may go; refuse those that never may */
void intake_leave(struct client *c);      /* it detaches: withdraw prompts that wait for its initialize */
void intake_cancel_held(struct session *s, struct client *by, bool all); /* all: also those of other clients */
void intake_interrupt(struct client *c, struct session *s, struct chunk line, const struct envelope *e);
/* The same by a line without an answer: the child then expects an answer to each of its permission requests. */
void intake_interrupt_line(struct client *c, struct session *s, struct chunk line, const struct envelope *e);
/* Withdraw the prompt of this call if the child does not know it yet. False: it does. */
bool intake_withdraw_held(struct session *s, struct call *call, const struct client *by);
void intake_cancel_prompt(struct client *c, struct session *s, struct chunk line, const struct envelope *e);
