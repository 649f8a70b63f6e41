/* SPDX-License-Identifier: MIT
 *
 * Work beside the turns: a subagent that asks after the result, a task whose end starts a turn of its own, a shell
 * command in the background (PROTOCOL 2.2, 2.4, 4.2).
 */
#pragma once

#include "fakeagent/js.h"

/* After `ms` a can_use_tool with an agent_id; allowed, a shell command is run. Takes ask: {ms, name, input}. */
void background_ask(json_t *ask);
/* After ms a task ends and a turn starts with that text as its prompt. */
void background_task(long ms, const char *text);
/* A shell command in the background; returns its task id (new), or NULL. */
json_t *background_shell(const char *command, const char *tool_use_id);
void background_stop(const char *task_id);
void background_changed(void); /* prints the snapshot frame */
