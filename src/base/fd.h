/* SPDX-License-Identifier: MIT
 *
 * System calls on descriptors and processes, with EINTR handled. All return -1 and set errno like the system call.
 * Independent of the project. Sources: unix(7), socket(7), proc(5), pidfd_open(2).
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
/* Connect a close-on-exec stream socket to a path; flags: 0 or SOCK_NONBLOCK. -1: see errno. */
int fd_connect(const char *path, int flags);
int fd_peer(int fd, struct peer *peer); /* SO_PEERCRED */
/* Return the peer's supplementary groups at the time of its connect (SO_PEERGROUPS); the caller frees. NULL: none, or
 * unknown. */
gid_t *fd_peer_groups(int fd, size_t *n);
ssize_t fd_read(int fd, void *data, size_t n);
ssize_t fd_writev(int fd, const struct iovec *iov, int n); /* pipes; SIGPIPE must be ignored */
ssize_t fd_sendv(int fd, struct iovec *iov, int n);        /* sockets; MSG_NOSIGNAL | MSG_DONTWAIT */
int fd_write_all(int fd, const void *data, size_t n);      /* blocking descriptors */
int fd_pidfd(pid_t pid);                                   /* pidfd_open(2) */
bool fd_pidfd_alive(int pidfd);
int fd_signals(const int *list);            /* block these signals (0 ends the list) and return their signalfd(2) */
int fd_raise_nofile(uint64_t *soft_before); /* raise the soft limit to the hard one */
/* Return true if at most `keep` descriptors are free below the soft limit. */
bool fd_is_short(uint64_t keep);
/* Call at the start of a program: the next opened file or socket would take the number of a closed standard descriptor.
 * The replacement reads and writes nothing, and fails like a closed descriptor. */
void fd_fill_standard(void);

int64_t now_ms(void); /* CLOCK_MONOTONIC */
int64_t now_us(void);
int64_t now_real_ms(void); /* CLOCK_REALTIME */
