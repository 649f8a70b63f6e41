/* SPDX-License-Identifier: MIT
 *
 * The command that is run when a request waits for a person (on_pending): at most one a second for a session, a few at
 * a time. It gets PLENUM_SESSION, PLENUM_TOOL, PLENUM_SUMMARY and PLENUM_REQUEST in its environment. Owned by the
 * server.
 */
#pragma once

#include "core/carry.h"
#include "core/pending.h"
#include "core/session.h"
#include "core/settings.h"

struct attention;

struct attention *attention_new(struct children *children); /* NULL without memory */
void attention_free(struct attention *a);
void attention_call(struct attention *a, const struct settings *settings, const struct session *s,
					const struct pending *p);
void attention_carry(struct carry *c, struct attention *a);
bool attention_is_helper(const struct attention *a, pid_t pid);
