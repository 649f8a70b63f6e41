/* SPDX-License-Identifier: MIT
 *
 * Keeps the table of sessions on disk as the router has it: written when it changed, before anybody hears of the
 * change; read at the start, with what an earlier daemon has left behind. What cannot be done is in the log; the daemon
 * goes on. Used by the server alone. Source: DESIGN 8; the file itself: state.h.
 */
#pragma once

#include "core/carry.h"
#include "core/router.h"

struct store;

struct store *store_new(struct loop *loop, struct router *router); /* NULL without memory */
void store_free(struct store *k);                                  /* waits for the disk; NULL is allowed */
/* Opens the folder of the settings, ends processes of an earlier daemon, makes its sessions. socket: this daemon's.
 * False: another daemon has the folder, and with it the conversations; this one must not run beside it. */
bool store_open(struct store *k, const char *socket);
const char *store_dir(const struct store *k); /* NULL: there is none */
void store_changed(struct store *k);          /* to be written at the end of this turn; NULL is allowed */
void store_save(struct store *k);             /* now, if it changed */
/* Write the table now, because a client is to be told that its hooks in `s` are kept. NULL: the next daemon has them,
 * or there will be no such session then. Else an error code, and what to tell the client in error[0..size). */
const char *store_keep(struct store *k, const struct session *s, char *error, size_t size);
void store_carry(struct carry *c, struct store *k, const char *socket);
