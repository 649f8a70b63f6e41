/* SPDX-License-Identifier: MIT
 *
 * The start of a child up to the point where clients may write to it, and which conversation it has taken up. A dialect
 * may need steps for that; else, if the command line leaves the conversation to the child (the newest one, a title, a
 * file), it is asked before it gets a client's line: of two children that write to one conversation the second
 * is ended before it writes (contract 8, protocol-facts 1.4).
 */
#pragma once

#include "dialect/dialect.h"

struct call;
struct session;

void steps_next(struct session *s); /* the next step of its child's start is due; the last one lets clients write */

enum steps_end {
	STEPS_TAKEN,   /* the next step was sent: what waits for this one can be served */
	STEPS_REFUSED, /* call steps_again(), or kill the child */
	STEPS_ENDED,   /* the child is being killed */
};
/* The answer to a step has come. *why: the reason of a refusal, which may be NULL; the caller frees. */
enum steps_end steps_answered(struct call *call, const struct envelope *e, char **why);
void steps_again(struct session *s);                   /* a client may try again */
void steps_timer(void *call);                          /* timeout */
void steps_unread(struct call *call, const char *why); /* its answer cannot be read */
bool steps_is_told(const struct session *s);           /* the tape has lines of the child, which need not be repeated */
void steps_learn_conversation(struct session *s, struct span id);
/* Handle a system line. Return true if it answers only a question of the daemon. */
bool steps_name_line(struct session *s, const struct envelope *e, const struct report *r);
