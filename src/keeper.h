/* SPDX-License-Identifier: MIT
 *
 * Keeps the table of sessions on disk as the router has it: written when it changed, before anybody hears of the
 * change; read at the start, with what an earlier daemon has left behind. What cannot be done is in the log; the daemon
 * goes on. Used by the server alone. Source: DESIGN 8; the file itself: state.h.
 */
#pragma once

#include "core/carry.h"
#include "core/router.h"

struct keeper;

struct keeper *keeper_new(struct loop *loop, struct router *router); /* NULL without memory */
void keeper_free(struct keeper *k);                                  /* waits for the disk; NULL is allowed */
/* Opens the folder of the settings, ends processes of an earlier daemon, makes its sessions. socket: this daemon's.
 * False: another daemon has the folder, and with it the conversations; this one must not run beside it. */
bool keeper_open(struct keeper *k, const char *socket);
const char *keeper_dir(const struct keeper *k); /* NULL: there is none */
void keeper_changed(struct keeper *k);          /* to be written at the end of this turn; NULL is allowed */
void keeper_save(struct keeper *k);             /* now, if it changed */
/* Write the table now, because a client is to be told that its hooks in `s` are kept. NULL: the next daemon has them,
 * or there will be no such session then. Else an error code, and what to tell the client in error[0..size). */
const char *keeper_keep(struct keeper *k, const struct session *s, char *error, size_t size);
void keeper_carry(struct carry *c, struct keeper *k, const char *socket);
