/* SPDX-License-Identifier: MIT
 *
 * What the files of the session share among themselves: session.c (its state, its child's streams and start) and
 * session_end.c (the stop ladder, the end of the child). Nobody else includes it.
 */
#pragma once

#include "core/session.h"

/* session.c */
void session_write_in(struct session *s);                     /* what the child's stdin takes now */
void session_drop_input(struct session *s);                   /* what the child was to read is lost with it */
void session_drop_start(struct session *s);                   /* one that is under way; want_child stays */
void session_end_start(struct session *s, const char *error); /* those who wait for it are told */
void session_start_due(struct session *s);                    /* the child that is wanted after this one */

/* session_end.c: events of the agent and its stop timer; arg is the session */
void session_on_exited(void *arg);
void session_on_ended(void *arg);
void session_on_stop_timer(void *arg);
void session_drop_agent(struct session *s);
