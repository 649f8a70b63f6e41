/* SPDX-License-Identifier: MIT
 *
 * The dialect of `codex app-server` (0.171.0, its JSON schema and its behaviour): JSON-RPC without the member
 * `jsonrpc`, one object on each line. The daemon is the one client of the agent. Split into codex.c (lines, and the
 * table), codex_asks.c (approvals and forms), codex_start.c (the handshake, and its results), codex_handles.c
 * (handles that clients choose).
 *
 * A session is one thread. A prompt is a request that is answered at once; `turn/completed` ends the turn, and input
 * before that joins it. The agent shows prompts to all, with the id that their sender gave them.
 */
#pragma once

#include "dialect/dialect.h"

extern const struct dialect codex_dialect;

/* --- asks (codex_asks.c), as the members of struct dialect --- */

enum ask_kind codex_asks_kind(const struct envelope *e);
struct span codex_asks_part(enum ask_kind kind, struct span request, enum ask_part part);
struct span codex_asks_summary(struct span request);
const char *codex_asks_check(enum ask_kind kind, struct span request, struct span response);
const char *codex_asks_decision(enum ask_kind kind, struct span request, struct span response);
void codex_asks_read_changes(enum ask_kind kind, struct span request, struct span response, struct changes *c);
void codex_asks_put_deny(struct buf *body, struct span request, const char *reason);
void codex_asks_put_allow(struct buf *body, struct span request);
void codex_asks_put_cancel(struct buf *body, struct span request);

/* --- handles that clients choose (codex_handles.c), as the members of struct dialect --- */

void codex_handles_read(const struct envelope *e, struct dialect_addressee *to);
void codex_handles_put_end(struct buf *b, const char *id, const struct gate_row *ends, struct span handle);

/* --- the start (codex_start.c), as the members of struct dialect --- */

#define CODEX_TURN "~turn" /* in the memo: the id of the newest turn */

enum dialect_step codex_start_put(struct buf *b, const char *id, unsigned n, const struct dialect_start *start);
bool codex_start_take(unsigned n, const struct envelope *e, struct memo *memo, struct buf *why);
struct span codex_start_model(const struct envelope *e);
enum dialect_kept codex_start_kept(struct dialect_ask *ask, struct buf *body, const char **error);
bool codex_start_takes_up(const struct envelope *e);
bool codex_start_remember(struct memo *memo, const struct envelope *e);
void codex_start_put_noted(struct buf *b, const struct memo *memo, const char *conversation);
