/* SPDX-License-Identifier: MIT
 *
 * The dialect of the Agent Client Protocol, version 1 (agentclientprotocol.com): JSON-RPC 2.0, one object on each line.
 * The daemon is the one client of the agent. Split into acp.c (lines, and the table), acp_asks.c (permissions and
 * forms), acp_start.c (the handshake and its results).
 */
#pragma once

#include "dialect/dialect.h"

extern const struct dialect acp_dialect;

/* --- asks (acp_asks.c), as the members of struct dialect --- */

enum ask_kind acp_asks_kind(const struct envelope *e);
void acp_asks_read_addressee(const struct envelope *e, struct dialect_addressee *to);
struct span acp_asks_part(enum ask_kind kind, struct span request, enum ask_part part);
struct span acp_asks_summary(struct span request);
const char *acp_asks_check(enum ask_kind kind, struct span request, struct span response);
const char *acp_asks_decision(enum ask_kind kind, struct span request, struct span response);
void acp_asks_read_changes(enum ask_kind kind, struct span request, struct span response, struct changes *c);
void acp_asks_put_deny(struct buf *body, struct span request, const char *reason);
void acp_asks_put_allow(struct buf *body, struct span request);
void acp_asks_put_cancel(struct buf *body, struct span request);

/* --- the start (acp_start.c), as the members of struct dialect --- */

enum dialect_step acp_start_put(struct buf *b, const char *id, unsigned n, const struct dialect_start *start);
bool acp_start_take(unsigned n, const struct envelope *e, struct memo *memo, struct buf *why);
enum dialect_kept acp_start_kept(struct dialect_ask *ask, struct buf *body, const char **error);
bool acp_start_takes_up(const struct envelope *e);
bool acp_start_remember(struct memo *memo, const struct envelope *e);
void acp_start_remember_change(struct memo *memo, const char *what, struct span value, const struct envelope *answer);
int64_t acp_start_cost(const struct memo *memo);
const char *acp_start_strict_mode(struct span mode);
struct span acp_start_model(const struct envelope *e);
struct span acp_start_option(struct span holder, const char *id); /* the value of an option; absent: it has none */
struct span acp_start_mode(struct span update);                   /* the mode in an update; absent: it has none */
void acp_start_put_noted(struct buf *b, const struct memo *memo, const char *conversation);
