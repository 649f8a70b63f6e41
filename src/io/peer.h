/* SPDX-License-Identifier: MIT
 *
 * The process at the other end of a connection. The kernel tells its number as it was at connect(2); by the time of
 * accept(2) that may be another process's. A pidfd from the socket itself is certain (SO_PEERPIDFD, Linux 6.5). Where
 * the kernel has none, the process that has the number now must be older than the connection can be, or hold the other
 * end of it. Source: unix(7), pidfd_open(2), sock_diag(7), proc(5).
 */
#pragma once

#include "base/fd.h"

/* A pidfd of the process that made the connection. since: the connection was made after that moment (peer_now()).
 * -1 with errno: ESRCH, that process has ended; ESTALE, it cannot be told whether the process that has the number made
 * it; else none can be had (EMFILE, ENOSYS, EPERM). */
int peer_pidfd(int conn, const struct peer *peer, uint64_t since);
/* The same without SO_PEERPIDFD. */
int peer_pidfd_by_number(int conn, const struct peer *peer, uint64_t since);
/* Now, in the unit of the start times of /proc: clock ticks since boot. */
uint64_t peer_now(void);
/* Does this process hold the other end of the connection? 1: yes; 0: no; -1: it cannot be told. */
int peer_holds(int conn, pid_t pid);
