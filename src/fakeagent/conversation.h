/* SPDX-License-Identifier: MIT
 *
 * What was said, as the Messages API has it, and where it is kept: DIR/ID.jsonl, one message a line, so that --resume
 * really goes on. DIR is --conversations, $PLENUM_FAKEAGENT_DIR, $XDG_STATE_HOME/plenum-fakeagent or
 * ~/.local/state/plenum-fakeagent. Without a folder that can be written to the conversation lives in memory alone.
 */
#pragma once

#include "fakeagent/options.h"

struct conversation {
	char *dir; /* NULL: nothing is kept */
	char *id;  /* the session_id */
	json_t *messages;
	bool resumed;
};

enum conversation_start { CONVERSATION_OK, CONVERSATION_UNKNOWN, CONVERSATION_IN_USE };

enum conversation_start conversation_start(struct conversation *c, const struct options *o);
void conversation_free(struct conversation *c);
void conversation_add(struct conversation *c, const char *role, json_t *content); /* takes content; also written */
/* A reply takes blocks, and names the prompts that it answers: these are not run again after --resume. */
void conversation_add_reply(struct conversation *c, json_t *blocks, json_t *uuids);
/* Adds their uuids, as members, to seen. */
void conversation_answered(const struct conversation *c, json_t *seen);
/* Appends texts, as blocks, to the message that was added last. */
void conversation_append(struct conversation *c, const json_t *texts);
void conversation_reset(struct conversation *c); /* forgets the messages, makes a new id */
/* The last message, borrowed, or NULL. */
json_t *conversation_last(const struct conversation *c);
