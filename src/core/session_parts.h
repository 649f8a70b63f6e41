/* SPDX-License-Identifier: MIT
 *
 * Functions shared by the files of the session: session.c (its state, its child's streams and start) and session_end.c
 * (the stop sequence, the end of the child), session_carry.c (upgrade). No other file includes it.
 */
#pragma once

#include "core/session.h"

/* session.c */
void session_write_in(struct session *s);                     /* as much as the child's stdin takes now */
void session_drop_input(struct session *s);                   /* drop the child's unread input */
void session_drop_start(struct session *s);                   /* a start under way; want_child stays */
void session_end_start(struct session *s, const char *error); /* notify the clients that wait for it */
void session_start_due(struct session *s);                    /* the child wanted after this one */

/* session_end.c: events of the agent and its stop timer; arg is the session */
void session_on_exited(void *arg);
void session_on_ended(void *arg);
void session_on_left(void *arg);
void session_on_stop_timer(void *arg);
void session_drop_agent(struct session *s);

/* session_carry.c */
void session_carry_timers(struct carry *c, struct timers *t);
