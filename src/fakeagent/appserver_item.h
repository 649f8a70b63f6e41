/* SPDX-License-Identifier: MIT
 *
 * The agent's frames and messages as turns, items and approval requests of codex app-server. A turn goes on while
 * prompts wait: they join it.
 */
#pragma once

#include "fakeagent/js.h"

void appserver_item_prompt(const char *uuid, json_t *content, json_t *client_id); /* of a user line; takes both */
void appserver_item_forget(void);                                                 /* the prompts that were not shown */
const char *appserver_item_turn(void);                                            /* the id of the open turn, or NULL */
json_t *appserver_item_begin(void); /* open a turn if none is open; the turn object of a reply, new */
void appserver_item_notify(const char *method, json_t *params); /* takes params; adds threadId */
void appserver_item_mute(json_t *methods);                      /* optOutNotificationMethods; takes it */
void appserver_item_frame(json_t *frame);                       /* see rpc_protocol */
json_t *appserver_item_answer(json_t *id, const json_t *request, json_t *result, json_t *error);
json_t *appserver_item_turns(void); /* of the whole conversation; new */
