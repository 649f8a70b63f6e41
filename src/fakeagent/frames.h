/* SPDX-License-Identifier: MIT
 *
 * The frames of PROTOCOL 2 that this program prints. Every frame but the control family gets a uuid and the session_id.
 */
#pragma once

#include "fakeagent/agent.h"
#include "fakeagent/turn.h"

void frames_emit(struct agent *a, json_t *frame); /* takes frame; adds uuid and session_id */
void frames_init(struct agent *a, const struct turn *t);
void frames_status(struct agent *a, const char *status, const struct turn *t); /* NULL: the mode has changed */
/* idle, running, requires_action, if the environment asks; said once a change, idle each time. */
void frames_state(struct agent *a, const char *state);
void frames_lifecycle(struct agent *a, const char *uuid, const char *state);
void frames_replay(struct agent *a, const json_t *line, bool stamp); /* acknowledges a user line, if asked for */
void frames_user(struct agent *a, json_t *content, json_t *more);    /* takes both; more: extra members or NULL */
void frames_result(struct agent *a, struct turn *t);
void frames_failed_start(struct agent *a, const char *text);
void frames_informational(struct agent *a, const char *tag, const char *level, json_t *content);
/* Names the prompts that a turn answers; nothing on an old CLI. */
void frames_name(struct agent *a, const struct turn *t, json_t *frame, bool both);
void frames_stamp(json_t *frame); /* timestamp */
json_t *frames_servers(const struct agent *a);
