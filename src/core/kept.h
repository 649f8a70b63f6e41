/* SPDX-License-Identifier: MIT
 *
 * Requests that the daemon answers in the child's place, because the child gets them once, from the daemon: by the
 * start of the child (steps.h). And reports of the child from before a client came.
 */
#pragma once

#include "dialect/dialect.h"

struct attachment;
struct client;
struct session;

/* Return the session that has the conversation which this request takes up, if the client may join it; else NULL. */
struct session *kept_holder(struct client *c, const struct envelope *e);
/* Answer a request from what the child told, now or when it is told. Return true if it begins another conversation
 * (core/channels.h), and was not served. */
bool kept_ask(struct client *c, struct session *s, struct chunk line, const struct envelope *e);
void kept_due(struct session *s); /* a step was answered: serve the clients that wait for it */
/* A step has failed: its clients get the reason. Return true if the start goes on with another try of theirs. */
bool kept_failed(struct session *s, const char *why);
/* Send the newest values that the child has reported before the client came. Before it reads the tape. */
void kept_post(struct attachment *a);
