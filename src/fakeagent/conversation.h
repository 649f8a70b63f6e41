/* SPDX-License-Identifier: MIT
 *
 * The messages so far, as the Messages API has them, and their file: DIR/ID.jsonl, one message a line, so that --resume
 * really goes on. DIR is --conversations, $PLENUM_FAKEAGENT_DIR, $XDG_STATE_HOME/plenum-fakeagent or
 * ~/.local/state/plenum-fakeagent. Without a writable directory the conversation lives in memory alone.
 */
#pragma once

#include "fakeagent/js.h"

enum conversation_start { CONVERSATION_OK, CONVERSATION_UNKNOWN, CONVERSATION_IN_USE };

/* Takes id, directory and messages from the flags. With CONVERSATION_UNKNOWN there is a new id. */
enum conversation_start conversation_start(void);
const char *conversation_id(void); /* the session_id */
json_t *conversation_path(void);   /* of its file; new */
const char *conversation_model(void);
void conversation_set_model(const char *model); /* NULL: the scripted one */

const json_t *conversation_messages(void);
json_t *conversation_last(void);                            /* content of the last message, borrowed, or NULL */
void conversation_add(const char *role, json_t *content);   /* takes content; also written */
void conversation_add_reply(json_t *blocks, json_t *uuids); /* takes blocks; uuids: of the prompts it answers */
void conversation_append(const json_t *texts);              /* as blocks, to the message that was added last */
json_t *conversation_answered(void);                        /* the uuids that replies name, as members; new */
void conversation_reset(const char *id);                    /* forgets the messages */
