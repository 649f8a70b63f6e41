/* SPDX-License-Identifier: MIT
 *
 * The listening socket: its directory (0700, of this user, checked with lstat), a lock file, a probe before a stale
 * file is unlinked, mode 0600 from the start, visible only when it accepts connections, and at the end unlinked only if
 * it is still ours. A removed file is made again. Accepting backs off while descriptors are short. Source: unix(7).
 */
#pragma once

#include "base/error.h"
#include "base/fd.h"
#include "io/loop.h"

enum listen_result {
	LISTEN_OK,
	LISTEN_RUNNING, /* another daemon uses the path: exit 69 */
	LISTEN_FAILED,  /* exit 73 */
};

struct listener;

/* Take the lock of the path and remove a stale file; clients cannot connect yet. inherited: a listening descriptor
 * (then path is only used for messages and never unlinked), or -1. accepted() gets every new connection (non-blocking,
 * close-on-exec, credentials read) and owns fd. */
enum listen_result listen_claim(struct listener **out, struct loop *loop, const char *path, int inherited, mode_t mode,
								void (*accepted)(void *arg, int fd, const struct peer *peer), void *arg,
								struct error *error);
/* Make the socket and accept connections from now on. False with error set. */
bool listen_begin(struct listener *l, struct error *error);
const char *listen_path(const struct listener *l);
/* Return a pidfd for the peer of the connection in accepted(); uses a reserved descriptor if no other is free. -1 with
 * errno of peer_pidfd(). */
int listen_watch_peer(struct listener *l, int conn, const struct peer *peer);
/* The state of a listener, to continue in the next binary. */
struct listen_parts {
	int fd, lock; /* lock -1: an inherited socket */
	mode_t mode;
};
void listen_suspend(const struct listener *l, struct listen_parts *parts);
struct listener *listen_resume(struct loop *loop, const char *path, const struct listen_parts *parts,
							   void (*accepted)(void *arg, int fd, const struct peer *peer), void *arg);
/* Make the file again if it was removed (SIGUSR1). False with error set. */
bool listen_renew(struct listener *l, struct error *error);
/* Call after a descriptor was closed: try again at once if accepting is backing off. */
void listen_fd_freed(struct listener *l);
void listen_pause(struct listener *l); /* no more connections (shutdown) */
void listen_close(struct listener *l); /* unlinks the file if it is still ours; NULL is allowed */
/* Return the number of connections that failed for lack of descriptors, for the log. */
unsigned listen_refused(const struct listener *l);
