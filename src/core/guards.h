/* SPDX-License-Identifier: MIT
 *
 * Serialize the guards of a session as text, for the table on disk: an agent must not run unguarded because the daemon
 * was killed. Per owner of a guard: its uid, its name, its guards in the format of an initialize, and which of these a
 * child has taken; no callback's answer, no prompt. Source: docs/contract.md 6.
 */
#pragma once

#include "core/registry.h"

/* *text: the caller frees; NULL: there is no guard. Of an owner with staged hooks these count. False: no memory. */
bool guards_text(const struct registry *r, char **text);
/* Return a number that is another one after any change of the guards; 0: hooks are staged, and it is not known. */
uint64_t guards_mark(const struct registry *r);
/* Restore owners from a text of guards_text(), without holders and grace timers. False: the text is damaged, or no
 * memory; the readable part is restored, and a stand-in for the rest refuses every tool until guards_clear(). */
bool guards_restore(struct registry *r, struct session *s, struct loop *loop, const char *text,
					void (*on_grace)(void *));
/* Return the owner, present or absent, of a guard that may be asked about this tool; NULL: none. */
const struct owner *guards_covering(const struct registry *r, const char *tool);
/* Add only a stand-in: every tool is refused until guards_clear(). */
void guards_lose(struct registry *r, struct session *s, struct loop *loop, void (*on_grace)(void *));
bool guards_clear(struct registry *r); /* remove the stand-ins; false: there is none */
bool guards_stand_in(const struct owner *o);
bool guards_lost(const struct registry *r); /* there is a stand-in */
