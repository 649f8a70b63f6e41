/* SPDX-License-Identifier: MIT
 *
 * The guards of a session as text, for the table on disk: an agent must not run unguarded because the daemon was
 * killed. Of each owner that guards, its uid, its name, its guards as an initialize would register them, and which of
 * these a child has taken; no callback's answer, no prompt. Source: DESIGN 6.
 */
#pragma once

#include "core/registry.h"

/* *text: the caller's; NULL: nobody guards. False: no memory. */
bool guards_text(const struct registry *r, char **text);
/* Owners as guards_text() wrote them, whose holders are gone; nobody has set their grace timers. False: the text is
 * damaged, or no memory; what could be read is there, and a stand-in that refuses every tool for the rest, for as long
 * as there is the session: whoever set the guards must not find that nothing was guarded. */
bool guards_restore(struct registry *r, struct session *s, struct loop *loop, const char *text,
					void (*on_grace)(void *));
/* The owner, there or not, of a guard that may be asked about this tool; NULL: none. */
const struct owner *guards_covering(const struct registry *r, const char *tool);
bool guards_stand_in(const struct owner *o);
bool guards_lost(const struct registry *r); /* is there a stand-in? */
