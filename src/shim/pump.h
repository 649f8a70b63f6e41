/* SPDX-License-Identifier: MIT
 *
 * Attaches and copies bytes both ways until the session, the daemon or the SDK ends. Buffers are bounded: stdin is read
 * when the daemon has accepted the previous bytes, the daemon when stdout has accepted them.
 */
#pragma once

#include "shim/options.h"

#define EXIT_NO_DAEMON 69 /* EX_UNAVAILABLE of sysexits.h: no daemon, or it has ended */

/* The exit code of the process. */
int pump_run(const struct options *o);
