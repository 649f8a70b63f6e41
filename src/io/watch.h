/* SPDX-License-Identifier: MIT
 *
 * Watches on the processes of connections, one pidfd per process for any number of connections, to save descriptors. A
 * watch is shared by its users and closed by the last one. Errors: NULL without memory. Source: pidfd_open(2).
 */
#pragma once

#include "base/hash.h"

#include <stdbool.h>
#include <sys/types.h>

struct watch {
	pid_t pid;
	int fd;
	size_t users;
	bool unlisted;       /* not in by_pid: another process may have the pid */
	int origin;          /* set by the users: their knowledge about the process; 0: none yet */
	uint64_t family;     /* likewise */
	uint64_t alive_in;   /* the turn of the loop in which it was last seen to live; 0: none */
	struct asked *asked; /* likewise: what they have asked about it; NULL: nothing */
	struct watches *all;
	UT_hash_handle hh_pid, hh_fd;
};

struct watches {
	struct watch *by_pid; /* of processes that ran at the last check */
	struct watch *by_fd;
};

/* Add a user to the watch of this process, which must run and have the pid now; NULL: there is none. */
struct watch *watch_share(struct watches *all, pid_t pid);
/* Return the watch with this pidfd, or a new one, which takes over the descriptor (and closes it on an error). */
struct watch *watch_take(struct watches *all, pid_t pid, int fd);
bool watch_alive(const struct watch *w); /* NULL: false */
/* The same, looked at once in a turn of the loop, which has this number (1 or more). */
bool watch_alive_in(struct watch *w, uint64_t turn);
void watch_drop(struct watch *w); /* NULL is allowed */
