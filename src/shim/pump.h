/* SPDX-License-Identifier: MIT
 *
 * Attaches and carries bytes both ways until the session, the daemon or the SDK ends it. Buffers are bounded: stdin is
 * read when the daemon took what came before, the daemon is read when stdout took what came before.
 */
#pragma once

#include "shim/options.h"

#define EXIT_NO_DAEMON 69 /* EX_UNAVAILABLE of sysexits.h: there is no daemon, or it has gone */

/* The exit code of the process. */
int pump_run(const struct options *o);
