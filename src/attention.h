/* SPDX-License-Identifier: MIT
 *
 * Runs the on_pending command when a request needs a person: at most once within notify_interval for a session, a few
 * at a time, each for notify_limit at most. The newest question of a session is queued, not lost. The command gets
 * PLENUM_SESSION, PLENUM_TOOL, PLENUM_SUMMARY and PLENUM_REQUEST in its environment. Owned by the server.
 */
#pragma once

#include "core/carry.h"
#include "core/router.h"

struct attention;

/* NULL without memory. */
struct attention *attention_new(struct loop *loop, struct children *children, struct router *router);
void attention_free(struct attention *a);
void attention_call(struct attention *a, const struct session *s, const struct pending *p);
void attention_carry(struct carry *c, struct attention *a);
bool attention_is_helper(const struct attention *a, pid_t pid);
