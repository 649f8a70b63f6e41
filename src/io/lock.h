/* SPDX-License-Identifier: MIT
 *
 * A lock file: flock(2), which goes with the process. Its first line is the pid of who has it, for messages and for
 * lock_take(); whoever takes it writes that. Source: ENGINEERING 7.3, flock(2).
 */
#pragma once

/* Takes it at once. Where the process that the file names is dead, or was killed just now, it, or what it was about to
 * start, may have the lock for a moment more: that is waited for. -1 with errno: EWOULDBLOCK if another process has
 * it; any other value says that it cannot be had (ENOLCK: the file system has no locks). */
int lock_take(int fd);
