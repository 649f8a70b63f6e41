/* SPDX-License-Identifier: MIT
 *
 * The progress of the running child of a session, by its lines: the state of the session follows from it. Owned by
 * the session; only the functions here write it.
 */
#pragma once

#include "core/carry.h"

#include <stdbool.h>

struct progress {
	bool warming;    /* it was just started, and nothing was sent to it yet */
	bool got_line;   /* it has printed something */
	bool said_init;  /* it has reported on itself */
	bool init_open;  /* it owes the answer to its first initialize, or to a step of its start */
	bool turn;       /* a turn runs */
	bool background; /* it has tasks in the background */
};

void progress_begin(struct progress *p); /* a child was started */
void progress_end(struct progress *p);   /* it is gone; its output stays known */
/* Take over a child from another session, which was as long there as its output. */
void progress_take(struct progress *to, const struct progress *from);
void progress_used(struct progress *p); /* it is not new any more */
void progress_line(struct progress *p);
void progress_init(struct progress *p);
void progress_owes_init(struct progress *p, bool owes);
void progress_turn(struct progress *p, bool runs);
void progress_background(struct progress *p, bool any);
void progress_carry(struct carry *c, struct progress *p);
