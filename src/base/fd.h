/* SPDX-License-Identifier: MIT
 *
 * System calls on descriptors and processes, with EINTR handled. All return -1 with errno as the call does. No project
 * knowledge. Sources: unix(7), socket(7), proc(5), pidfd_open(2).
 */
#pragma once

#include "base/macros.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct peer {
	pid_t pid;
	uid_t uid;
	gid_t gid;
};

int fd_nonblock(int fd);
int fd_peer(int fd, struct peer *peer); /* SO_PEERCRED */
/* The groups that the peer had when it connected, beside its first one (SO_PEERGROUPS); to be freed. NULL: there are
 * none, or it cannot be said. */
gid_t *fd_peer_groups(int fd, size_t *n);
ssize_t fd_read(int fd, void *data, size_t n);
ssize_t fd_writev(int fd, const struct iovec *iov, int n); /* pipes; SIGPIPE must be ignored */
ssize_t fd_sendv(int fd, struct iovec *iov, int n);        /* sockets; MSG_NOSIGNAL | MSG_DONTWAIT */
int fd_write_all(int fd, const void *data, size_t n);      /* blocking descriptors */
int fd_pidfd(pid_t pid);                                   /* pidfd_open(2) */
bool fd_pidfd_alive(int pidfd);
int fd_signals(const int *list);            /* blocks them (0 ends the list); a signalfd(2) of them */
int fd_raise_nofile(uint64_t *soft_before); /* soft limit to the hard one */
/* Return true if no descriptor is free below the last `keep` of the soft limit: so many or fewer are left. */
bool fd_is_short(uint64_t keep);
/* For the beginning of a program: a standard descriptor that whoever started it left closed would become the next file
 * or socket that is opened. What takes its place reads and writes nothing, and fails as the closed one would. */
void fd_fill_standard(void);

int64_t now_ms(void); /* CLOCK_MONOTONIC */
int64_t now_us(void);
int64_t now_real_ms(void); /* CLOCK_REALTIME */
