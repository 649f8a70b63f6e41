/* SPDX-License-Identifier: MIT
 *
 * Queued prompts. Several queued prompts become one turn; a known uuid is acknowledged and not run again
 * (protocol-facts 3).
 */
#pragma once

#include "fakeagent/agent.h"

void backlog_init(void); /* after the conversation: the uuids that it answered are known */
void backlog_add(json_t *line);
void backlog_add_task(const char *text); /* the prompt of a turn without a client's prompt */
bool backlog_is_task(const json_t *line);
bool backlog_is_client_uuid(const json_t *line); /* its uuid came from the client */
bool backlog_empty(void);
json_t *backlog_take(void); /* the lines of the next turn, oldest first; a new array */
bool backlog_cancel(const char *uuid);
json_t *backlog_uuids(void);
json_t *backlog_clear(void); /* cancel all; their uuids; new */
