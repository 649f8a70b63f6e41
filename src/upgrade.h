/* SPDX-License-Identifier: MIT
 *
 * Upgrade in place. First the binary that is installed now is run with --check, while everything goes on. Then, in one
 * turn of the loop, the state goes into a memory file, the new binary reads it in a trial run, and only if that ends
 * well takes this process over (same pid, same children, same descriptors). Whatever goes wrong before leaves
 * everything as it was. What the state is, is the server's business. Source: plenumd(8) UPGRADE.
 */
#pragma once

#include "core/carry.h"
#include "io/child.h"

#define UPGRADE_ERROR_MAX CHILD_ERROR_MAX
#define UPGRADE_READ "plenumd has read the state" /* the last words of a trial that went well */

struct upgrade_host {
	void (*carry)(struct carry *c, void *arg);    /* everything, in both directions */
	void (*leave)(void *arg);                     /* the last call before the new binary takes over */
	void (*failed)(void *arg, const char *error); /* this one goes on */
};

struct upgrade;

/* argv: as this program was started. NULL without memory. */
struct upgrade *upgrade_new(struct loop *loop, struct children *children, char *const *argv,
							const struct upgrade_host *host, void *arg);
void upgrade_free(struct upgrade *u); /* NULL is allowed */
const char *upgrade_path(const struct upgrade *u);
/* Ends in the other binary, or in host->failed(). Nothing, if one is under way. */
void upgrade_start(struct upgrade *u);

/* The other side: reads everything from fd (--resume-from, --check-upgrade) with the same function. */
bool upgrade_read(int fd, void (*carry)(struct carry *c, void *arg), void *arg, char *error);
/* Signals that came while nobody listened are delivered now. */
void upgrade_unblock(void);
