/* SPDX-License-Identifier: MIT
 *
 * The guards of a session as text, for the table on disk: an agent must not run unguarded because the daemon was
 * killed. Of each owner that guards, its uid, its name, its guards as an initialize would register them, and which of
 * these a child has taken; no callback's answer, no prompt. Source: DESIGN 6.
 */
#pragma once

#include "core/registry.h"

/* *text: the caller's; NULL: nobody guards. Of an owner with staged hooks these count. False: no memory. */
bool guards_text(const struct registry *r, char **text);
/* Owners as guards_text() wrote them, whose holders are gone; nobody has set their grace timers. False: the text is
 * damaged, or no memory; what could be read is there, and a stand-in that refuses every tool for the rest, until
 * guards_clear(). */
bool guards_restore(struct registry *r, struct session *s, struct loop *loop, const char *text,
					void (*on_grace)(void *));
/* The owner, there or not, of a guard that may be asked about this tool; NULL: none. */
const struct owner *guards_covering(const struct registry *r, const char *tool);
/* A stand-in alone: every tool is refused until guards_clear(). */
void guards_lose(struct registry *r, struct session *s, struct loop *loop, void (*on_grace)(void *));
bool guards_clear(struct registry *r); /* the stand-ins go; false: there is none */
bool guards_stand_in(const struct owner *o);
bool guards_lost(const struct registry *r); /* is there a stand-in? */
