/* SPDX-License-Identifier: MIT
 *
 * The agent's frames and messages as ACP's session/update and requests to the client.
 */
#pragma once

#include "fakeagent/js.h"

void acp_update_put(json_t *update);    /* takes update; with the sessionId before it */
void acp_update_state(json_t *update);  /* the same with the sessionId at the end */
void acp_update_history(void);          /* the whole conversation */
bool acp_update_frame(const json_t *f); /* false: a frame of another kind */
/* See rpc_protocol. */
json_t *acp_update_answer(json_t *id, const json_t *request, json_t *result, json_t *error);
