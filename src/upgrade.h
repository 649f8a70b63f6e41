/* SPDX-License-Identifier: MIT
 *
 * Upgrade in place. First the installed binary is run with --check, while the daemon continues. Then, in one turn of
 * the loop, the state is written to a memory file and the new binary reads it in a trial run; only after its success
 * the new binary replaces this process (same pid, children and descriptors). A failure before that changes nothing. The
 * server defines the state. Source: plenumd(8) UPGRADE.
 */
#pragma once

#include "base/error.h"
#include "core/carry.h"
#include "io/child.h"

#define UPGRADE_READ "plenumd has read the state" /* the last output of a successful trial */

struct upgrade_host {
	void (*carry)(struct carry *c, void *arg);    /* everything, in both directions */
	void (*leave)(void *arg);                     /* the last call before the new binary takes over */
	void (*failed)(void *arg, const char *error); /* this binary continues */
};

struct upgrade;

/* argv: of this process. NULL without memory. */
struct upgrade *upgrade_new(struct loop *loop, struct children *children, char *const *argv,
							const struct upgrade_host *host, void *arg);
void upgrade_free(struct upgrade *u); /* NULL is allowed */
const char *upgrade_path(const struct upgrade *u);
/* Start an upgrade. It ends in the other binary, or in host->failed(). Ignored during another one. */
void upgrade_start(struct upgrade *u);

/* In the new binary: read everything from fd (--resume-from, --check-upgrade) with the same function. */
bool upgrade_read(int fd, void (*carry)(struct carry *c, void *arg), void *arg, struct error *error);
/* Unblock signals: pending ones are delivered now. */
void upgrade_unblock(void);
