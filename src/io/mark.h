/* SPDX-License-Identifier: MIT
 *
 * A number that a process and all its descendants inherit, independent of environment, process session and parents. It
 * is stored in two hard resource limits that the kernel does not use (RLIMIT_RSS, RLIMIT_LOCKS). An unprivileged
 * process can lower a hard limit but never raise it. The sum of the two is constant, so lowering one breaks the mark
 * and cannot forge another; a process that lowers both below all marks loses its mark. Source: getrlimit(2), proc(5).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define MARK_BITS 60

enum mark_state {
	MARK_NONE,
	MARK_WHOLE,
	MARK_BROKEN, /* a process has changed it */
};

/* Return true if this process can set marks and trust the marks of others: not if it has such limits itself. */
bool mark_possible(void);
/* Mark the calling process. System calls only; without effect if a limit is already too low. */
void mark_set(uint64_t number);
/* Read the mark of a process; *number is set for MARK_WHOLE only. An unreadable process has none. */
enum mark_state mark_read(pid_t pid, uint64_t *number);
