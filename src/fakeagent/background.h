/* SPDX-License-Identifier: MIT
 *
 * What goes on beside the turns: a subagent that asks after the result, a task whose end starts a turn of its own, a
 * shell command in the background (PROTOCOL 2.2, 2.4, 4.2).
 */
#pragma once

#include "fakeagent/agent.h"

/* After ms a can_use_tool with an agent_id; allowed, a shell command is run. Takes job: {ms, name, input}. */
void background_ask(struct agent *a, json_t *job);
/* After ms a task ends and a turn starts with that text as its prompt. */
void background_task(struct agent *a, long ms, const char *text);
/* A shell command in the background; returns its task id (the caller frees). */
char *background_shell(struct agent *a, const char *command, const char *tool_use_id);
bool background_stop(struct agent *a, const char *task_id);
void background_changed(struct agent *a); /* the snapshot frame */
