/* SPDX-License-Identifier: MIT
 *
 * The process at the other end of a connection. The kernel reports its pid at the time of connect(2); at accept(2) it
 * may belong to another process. A pidfd from the socket is certain (SO_PEERPIDFD, Linux 6.5). Without it, the process
 * that has the pid now must be older than the connection, or hold its other end. Source: unix(7), pidfd_open(2),
 * sock_diag(7), proc(5).
 */
#pragma once

#include "base/fd.h"

/* Return a pidfd of the process that made the connection. since: the connection is newer than this time (peer_now()).
 * -1 with errno: ESRCH: the process has ended; ESTALE: unknown whether the process with this pid made the connection;
 * EMFILE, ENOSYS, EPERM: no pidfd is available. */
int peer_pidfd(int conn, const struct peer *peer, uint64_t since);
/* The same without SO_PEERPIDFD. */
int peer_pidfd_by_number(int conn, const struct peer *peer, uint64_t since);
/* Return the current time in the unit of /proc's start times: clock ticks since boot. */
uint64_t peer_now(void);
/* Does this process hold the other end of the connection? 1: yes; 0: no; -1: unknown. */
int peer_holds(int conn, pid_t pid);
