/* SPDX-License-Identifier: MIT
 *
 * Queued prompts. Several queued prompts become one turn; a known uuid is acknowledged and not run again
 * (protocol-facts 3).
 */
#pragma once

#include "fakeagent/agent.h"

void backlog_init(void);                 /* after the conversation: the uuids that it answered are known */
void backlog_add(json_t *line);          /* a prompt of a client; without a uuid it gets one and the mark fake_uuid */
void backlog_add_task(const char *text); /* one without a client, with the mark fake_task */
bool backlog_empty(void);
json_t *backlog_take(void); /* the lines of the next turn, oldest first; a new array */
bool backlog_cancel(const char *uuid);
json_t *backlog_uuids(void);
json_t *backlog_clear(void); /* cancel all; their uuids; new */
