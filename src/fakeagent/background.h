/* SPDX-License-Identifier: MIT
 *
 * Background work: a subagent that asks after the result, a task with a turn of its own at its end, a shell command in
 * the background (protocol-facts 2.2, 2.4, 4.2).
 */
#pragma once

#include "fakeagent/agent.h"

/* Send a can_use_tool with an agent_id after `ms`; if allowed, run a shell command. Takes ask: {ms, name, input}. */
void background_ask(json_t *ask);
/* End a task after `ms` and start a turn with this prompt. */
void background_task(long ms, const char *text);
/* Run a shell command in the background; return its task id (new), or NULL. */
json_t *background_shell(const char *command, const char *tool_use_id);
void background_stop(const char *task_id);
void background_changed(void); /* print the snapshot frame */
