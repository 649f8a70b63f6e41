/* SPDX-License-Identifier: MIT
 *
 * Publishes the state of a session. Called by reconcile(), and by a module that must publish it before its own notice.
 */
#pragma once

struct session;

void status_publish_now(struct session *s); /* now, with its cause */
void status_publish(struct session *s);     /* session_state_due() */
