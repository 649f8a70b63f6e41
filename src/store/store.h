/* SPDX-License-Identifier: MIT
 *
 * Keeps the table of sessions on disk in step with the router: written after a change, before any client hears of it;
 * read at the start, with leftovers of an earlier daemon. Failures are logged; the daemon continues. Used only by the
 * server. Source: docs/contract.md 8; the file itself: state.h.
 */
#pragma once

#include "base/error.h"
#include "core/carry.h"
#include "core/router.h"

struct store;

struct store *store_new(struct loop *loop, struct router *router); /* NULL without memory */
void store_free(struct store *k);                                  /* waits for the disk; NULL is allowed */
/* Open the directory of the settings, end processes of an earlier daemon, restore its sessions. socket: this daemon's.
 * False: another daemon has the directory, and with it the conversations; this one must not run. */
bool store_open(struct store *k, const char *socket);
const char *store_dir(const struct store *k); /* NULL: none */
void store_changed(struct store *k);          /* write it at the end of this turn; NULL is allowed */
void store_save(struct store *k);             /* write now, if changed */
/* Write the table now, before the answer that the hooks in `s` are kept. NULL: the next daemon has them, or will
 * not have the session. Else an error code, with the cause for the client in error. */
const char *store_keep(struct store *k, const struct session *s, struct error *error);
void store_carry(struct carry *c, struct store *k, const char *socket);
