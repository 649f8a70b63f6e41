/* SPDX-License-Identifier: MIT
 *
 * A lock file: flock(2), released with the process. Its first line is the pid of the holder, for messages and for
 * lock_take(); the holder writes it. Source: flock(2).
 */
#pragma once

/* Take the lock without waiting for a live holder. If the holder is dead or was just killed, it or a process that it
 * was starting may have the lock for a moment longer: wait for that. -1 with errno: EWOULDBLOCK if another process has
 * it; any other value means that locking failed (ENOLCK: the file system has no locks). */
int lock_take(int fd);
