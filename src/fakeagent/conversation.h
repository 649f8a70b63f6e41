/* SPDX-License-Identifier: MIT
 *
 * The messages so far and their file for --resume: DIR/ID.jsonl, one message per line. DIR is --conversations,
 * $PLENUM_FAKEAGENT_DIR, $XDG_STATE_HOME/plenum-fakeagent or ~/.local/state/plenum-fakeagent. Without a writable
 * directory the conversation is only in memory.
 */
#pragma once

#include "fakeagent/agent.h"

bool conversation_start(void);                  /* set id, directory and messages by the flags; false: refused */
json_t *conversation_path(void);                /* of its file; new */
void conversation_set_model(const char *model); /* NULL: the scripted one */

json_t *conversation_last(void); /* content of the last message, borrowed, or NULL */
/* Add a message and write it to the file. Takes content; answered: the uuids of the prompts of a reply, or NULL. */
void conversation_add(const char *role, json_t *content, json_t *answered);
void conversation_reset(const char *id); /* drop the messages */
bool conversation_open(const char *id);  /* read its file; false: there is none, or id is NULL */
json_t *conversation_stored(void);       /* the ids, the one written last first; new */
