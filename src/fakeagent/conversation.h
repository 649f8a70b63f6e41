/* SPDX-License-Identifier: MIT
 *
 * The messages so far, in the form of the Messages API, and their file for --resume: DIR/ID.jsonl, one message per
 * line. DIR is --conversations, $PLENUM_FAKEAGENT_DIR, $XDG_STATE_HOME/plenum-fakeagent or
 * ~/.local/state/plenum-fakeagent. Without a writable directory the conversation is only in memory.
 */
#pragma once

#include "fakeagent/js.h"

enum conversation_start { CONVERSATION_OK, CONVERSATION_UNKNOWN, CONVERSATION_IN_USE };

/* Set id, directory and messages by the flags. CONVERSATION_UNKNOWN has a new id. */
enum conversation_start conversation_start(void);
const char *conversation_id(void); /* the session_id */
json_t *conversation_path(void);   /* of its file; new */
const char *conversation_model(void);
void conversation_set_model(const char *model); /* NULL: the scripted one */

const json_t *conversation_messages(void);
json_t *conversation_last(void);                            /* content of the last message, borrowed, or NULL */
void conversation_add(const char *role, json_t *content);   /* takes content and writes it to the file */
void conversation_add_reply(json_t *blocks, json_t *uuids); /* takes blocks; uuids: of the answered prompts */
void conversation_append(const json_t *texts);              /* append blocks to the last message */
json_t *conversation_answered(void);                        /* the uuids in replies, as members; new */
void conversation_reset(const char *id);                    /* drop the messages */
bool conversation_open(const char *id);                     /* read its file; false: there is none */
json_t *conversation_list(void);                            /* of the stored ones, as ACP lists them; new */
