/* SPDX-License-Identifier: MIT
 *
 * When a turn begins and ends, which prompts it answers, and its cost (contract 8).
 */
#pragma once

#include "core/router.h"

struct session_exit;

void turns_begin(struct session *s, const struct envelope *e);
void turns_end(struct session *s, struct chunk line, const struct envelope *e); /* line may be none */
bool turns_is_open(const struct session *s); /* the child has prompts without a result */
/* Append `cost_usd`, the cost of the conversation as last reported; null: none was. */
void turns_put_cost(struct buf *b, const struct session *s);
void turns_sent(struct session *s, struct prompt *p); /* its answer will end its turn (CALL_PROMPT) */
/* Its answer has come. */
void turns_answered(struct call *call, struct chunk line, const struct envelope *e);
/* It has come, and was not read. */
void turns_unread(struct call *call, const char *code, const char *why);
void turns_named(struct session *s);        /* announce a turn begun before its prompts were known */
void turns_child_begins(struct session *s); /* it has reported on itself: it has echoed nothing since */
void turns_echo(struct session *s, const struct envelope *e);
void turns_fate(struct session *s, enum report_fate fate, struct span uuid); /* of a prompt */
void turns_state(struct session *s, enum report_state state);
void turns_cancelled(struct session *s, const struct envelope *e, const struct call *call);
void turns_failed(struct session *s, const struct session_exit *e, const char *text); /* the child is gone */
/* It will not run. */
void turns_prompt_cancelled(struct session *s, struct prompt *p, const struct client *by);
