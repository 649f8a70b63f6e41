/* SPDX-License-Identifier: MIT
 *
 * What follows from a change of a session. It runs once for a session and turn, as a task that session_changed()
 * schedules: whatever has changed meanwhile, its consequences are computed once, from what is there in the end. The
 * answers of this turn are in their clients' outboxes by then, before what follows from them.
 */
#pragma once

struct session;

void reconcile(struct session *s); /* changed() of struct session_events */
