/* SPDX-License-Identifier: MIT
 *
 * Upgrade in place: the daemon's state goes into a memory file, the binary that is installed now reads it in a trial
 * run, and only if that ends well takes this process over (same pid, same children, same descriptors). Whatever goes
 * wrong before leaves everything as it was. What the state is, is the server's business. Source: plenumd(8) UPGRADE.
 */
#pragma once

#include "core/carry.h"

#define UPGRADE_ERROR_MAX 512

struct upgrade {
	const char *exe;                           /* the path that this program was started from */
	char *const *argv;                         /* as it was started */
	void (*carry)(struct carry *c, void *arg); /* saves everything */
	void (*leave)(void *arg);                  /* the last call before the new binary takes over */
	void *arg;
};

/* The path of this program, as it is now: remembered at the start. The caller frees. */
char *upgrade_exe(void);
/* Comes back only if it failed: error says why. */
void upgrade_run(const struct upgrade *u, char *error);
/* The other side: reads everything from fd (--resume-from, --check-upgrade) with the same function. */
bool upgrade_read(int fd, void (*carry)(struct carry *c, void *arg), void *arg, char *error);
/* Signals that came while nobody listened are delivered now. */
void upgrade_unblock(void);
