/* SPDX-License-Identifier: MIT
 *
 * A number that a process and all that descend from it bear, whatever becomes of their environment, their process
 * session and their parents: it stands in two hard resource limits that the kernel has no use for (RLIMIT_RSS,
 * RLIMIT_LOCKS). A process without privileges can lower a hard limit and never raise it. The two always have the same
 * sum, so that lowering one of them breaks the mark and cannot make another one of it; who lowers both below all marks
 * gets rid of it. Source: getrlimit(2), proc(5).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define MARK_BITS 60

enum mark_state {
	MARK_NONE,
	MARK_WHOLE,
	MARK_BROKEN, /* there was one, and a process has changed it */
};

/* May this process mark its children, and believe the marks of others? Not where it has such limits itself. */
bool mark_possible(void);
/* Marks the calling process. System calls only; where a limit is too low already, nothing is changed. */
void mark_set(uint64_t number);
/* The mark of a process; *number: only of a whole one. A process that cannot be read has none. */
enum mark_state mark_read(pid_t pid, uint64_t *number);
