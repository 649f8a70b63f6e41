/* SPDX-License-Identifier: MIT
 *
 * A request of a client that begins or takes up a conversation, for the dialects whose clients do so.
 */
#pragma once

#include "dialect/dialect.h"

/* Return KEPT_LATER if this request may begin the conversation of its session, KEPT_ANOTHER if it may begin another
 * one, else a refusal with *error. begun: a request has begun it. */
enum dialect_kept dialect_ask_may_begin(const struct dialect_ask *ask, bool begun, const char **error);
/* Return true if the request names the conversation of its session. */
bool dialect_ask_names_own(const struct dialect_ask *ask);
