/* SPDX-License-Identifier: MIT
 *
 * Runs the user's commands: on_pending, on_turn_end, on_failed, on_stalled. Each at most once within notify_interval
 * for a session, a few at a time, each for notify_limit at most. The newest alert of a session is queued, not lost. The
 * command gets PLENUM_SOCKET, PLENUM_SESSION, PLENUM_EVENT, PLENUM_TOOL, PLENUM_SUMMARY and PLENUM_REQUEST in its
 * environment, as far as they apply. Owned by the server.
 */
#pragma once

#include "core/carry.h"
#include "core/router.h"

struct attention;

/* NULL without memory. */
struct attention *attention_new(struct loop *loop, struct children *children, struct router *router);
void attention_free(struct attention *a);
void attention_call(struct attention *a, const struct session *s, const struct alert *alert);
void attention_carry(struct carry *c, struct attention *a);
bool attention_is_helper(const struct attention *a, pid_t pid);
