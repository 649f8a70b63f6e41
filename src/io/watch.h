/* SPDX-License-Identifier: MIT
 *
 * Processes that hold connections, each watched through one pidfd however many connections it has: a descriptor is the
 * first thing that a daemon with ten thousand of them runs out of. A watch belongs to its users together; the last one
 * to drop it closes it. Errors: NULL, without memory. Source: pidfd_open(2).
 */
#pragma once

#include "base/hash.h"

#include <stdbool.h>
#include <sys/types.h>

struct watch {
	pid_t pid;
	int fd;
	size_t users;
	bool unlisted;   /* not in by_pid: another process may have the number */
	int origin;      /* of its users' making: what they have found out about the process; 0: nothing yet */
	uint64_t family; /* likewise */
	struct watches *all;
	UT_hash_handle hh_pid, hh_fd;
};

struct watches {
	struct watch *by_pid; /* of processes that lived when last looked at */
	struct watch *by_fd;
};

/* One user more of the watch of this process, which must live and have the number now; NULL: there is none. */
struct watch *watch_share(struct watches *all, pid_t pid);
/* The watch that has this pidfd, or a new one, which takes over the descriptor (and closes it on an error). */
struct watch *watch_take(struct watches *all, pid_t pid, int fd);
bool watch_alive(const struct watch *w); /* NULL is not */
void watch_drop(struct watch *w);        /* NULL is nothing */
