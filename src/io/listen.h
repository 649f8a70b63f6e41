/* SPDX-License-Identifier: MIT
 *
 * The listening socket: its folder (0700, ours, checked with lstat), a lock beside it, a probe before a stale file is
 * unlinked, mode 0600 from the first moment, there only once somebody listens on it, and only our own file unlinked at
 * the end. A file that disappears is made again. Accepting backs off while descriptors are short. Source:
 * ENGINEERING 7.3, unix(7).
 */
#pragma once

#include "base/fd.h"
#include "io/loop.h"

#define LISTEN_ERROR_MAX 512

enum listen_result {
	LISTEN_OK,
	LISTEN_RUNNING, /* another daemon holds the place: exit 69 */
	LISTEN_FAILED,  /* exit 73 */
};

struct listener;

/* Takes the lock of the place and clears it of a stale file; no client can connect yet. path: where; inherited: a
 * descriptor that listens already (then path is only used for messages and never unlinked), or -1. accepted() gets
 * every new connection (non-blocking, close-on-exec, credentials read) and owns fd. */
enum listen_result listen_claim(struct listener **out, struct loop *loop, const char *path, int inherited, mode_t mode,
								void (*accepted)(void *arg, int fd, const struct peer *peer), void *arg, char *error);
/* Makes the socket and accepts from now on. False: error says why. */
bool listen_begin(struct listener *l, char *error);
const char *listen_path(const struct listener *l);
/* A pidfd for the peer of a connection that accepted() has just been given, from the descriptor kept for it if no other
 * is left. -1 with errno as peer_pidfd() has it. */
int listen_watch_peer(struct listener *l, int conn, const struct peer *peer);
/* What a listener is made of, for one that goes on in the next binary. */
struct listen_parts {
	int fd, lock; /* lock -1: an inherited socket */
	mode_t mode;
};
void listen_suspend(const struct listener *l, struct listen_parts *parts);
struct listener *listen_resume(struct loop *loop, const char *path, const struct listen_parts *parts,
							   void (*accepted)(void *arg, int fd, const struct peer *peer), void *arg);
/* Makes the file again if it is gone (SIGUSR1). False: it could not, error says why. */
bool listen_renew(struct listener *l, char *error);
/* A descriptor was closed: try again at once if accepting is backing off. */
void listen_fd_freed(struct listener *l);
void listen_pause(struct listener *l); /* no more connections (shutdown) */
void listen_close(struct listener *l); /* unlinks the file if it is still ours; NULL is allowed */
/* Connections that could not be accepted for want of descriptors, for the log. */
unsigned listen_refused(const struct listener *l);
