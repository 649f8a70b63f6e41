/* SPDX-License-Identifier: MIT
 *
 * The consequences of a change of a session. Runs once for a session and turn, as a task that session_changed()
 * schedules: after any number of changes the consequences are computed once, from the final state. The answers of this
 * turn are in their clients' outboxes by then, before the consequences.
 */
#pragma once

struct session;

void reconcile(struct session *s); /* changed() of struct session_events */
