/* SPDX-License-Identifier: MIT
 *
 * The guards of a session as text, for the table on disk: an agent must not run unguarded because the daemon was
 * killed. Of each owner that guards, its uid, its name and its guards as an initialize would register them; no
 * callback's answer, no prompt. Source: DESIGN 6.
 */
#pragma once

#include "core/registry.h"

/* The caller frees. NULL: nobody guards, or no memory. */
char *guards_text(const struct registry *r);
/* Owners as guards_text() wrote them, whose holders are gone; nobody has set their grace timers. False: the text is
 * damaged, or no memory; what could be read is there. */
bool guards_restore(struct registry *r, struct session *s, struct loop *loop, const char *text,
					void (*on_grace)(void *));
