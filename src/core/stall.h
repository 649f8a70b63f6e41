/* SPDX-License-Identifier: MIT
 *
 * Stalled turns: the child prints nothing for stall_after, and waits neither for a user nor for background tasks
 * (contract 12). Its clients and subscribers are notified; nothing else happens to the turn. Owns session.stall.
 */
#pragma once

#include <stdint.h>

struct session;

void stall_state(struct session *s); /* its state has changed */
void stall_line(struct session *s);  /* the child has printed a line */
void stall_watch(struct session *s, int64_t ms);
void stall_over(struct session *s); /* its turn is not watched any more */
