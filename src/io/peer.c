/* SPDX-License-Identifier: MIT */
#include "io/peer.h"

#include "io/proc.h"

#include <dirent.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

uint64_t peer_now(void) {
	struct timespec t;
	uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK);
	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * hz + (uint64_t)t.tv_nsec * hz / 1000000000;
}

/* --- the other end of a socket ------------------------------------------------------------------------------------ */

struct question {
	struct nlmsghdr head;
	struct unix_diag_req body;
};

static bool ask(int fd, uint32_t inode) {
	struct question q = {
		.head = {.nlmsg_len = sizeof q, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST},
		.body = {.sdiag_family = AF_UNIX,
				 .udiag_states = UINT32_MAX,
				 .udiag_ino = inode,
				 .udiag_show = UDIAG_SHOW_PEER,
				 .udiag_cookie = {UINT32_MAX, UINT32_MAX}},
	};
	return send(fd, &q, sizeof q, MSG_NOSIGNAL) == (ssize_t)sizeof q;
}

/* The attribute of that type, or NULL. */
static const void *attribute(const char *at, size_t len, int type) {
	struct nlattr a;
	while (len >= sizeof a) {
		memcpy(&a, at, sizeof a);
		if (a.nla_len < sizeof a || a.nla_len > len) return NULL;
		if (a.nla_type == type) return at + NLA_HDRLEN;
		size_t step = NLA_ALIGN(a.nla_len);
		at += step;
		len -= step < len ? step : len;
	}
	return NULL;
}

/* Return the inode of the socket at the other end; 0: unknown. */
static uint32_t other_inode(int conn) {
	struct stat st;
	union {
		struct nlmsghdr head;
		char data[4096];
	} got;
	uint32_t inode = 0;
	_cleanup_close_ int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (fd < 0 || fstat(conn, &st) < 0 || !ask(fd, (uint32_t)st.st_ino)) return 0;
	ssize_t n = recv(fd, &got, sizeof got, MSG_DONTWAIT); /* the kernel has answered within send(2) */
	size_t fixed = NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(struct unix_diag_msg));
	if (n < (ssize_t)fixed || got.head.nlmsg_type != SOCK_DIAG_BY_FAMILY || got.head.nlmsg_len > (size_t)n) return 0;
	const void *peer = attribute(got.data + fixed, got.head.nlmsg_len - fixed, UNIX_DIAG_PEER);
	if (peer) memcpy(&inode, peer, sizeof inode);
	return inode;
}

int peer_holds(int conn, pid_t pid) {
	char path[64], want[32], have[64];
	uint32_t inode = other_inode(conn);
	if (inode == 0) return -1;
	int len = snprintf(want, sizeof want, "socket:[%u]", inode), held = 0;
	snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
	DIR *dir = opendir(path);
	if (!dir) return errno == ENOENT ? 0 : -1;
	for (struct dirent *e; !held && (e = readdir(dir)) != NULL;) {
		ssize_t n = readlinkat(dirfd(dir), e->d_name, have, sizeof have);
		held = n == len && memcmp(have, want, (size_t)len) == 0;
	}
	closedir(dir);
	return held;
}

/* --- its process -------------------------------------------------------------------------------------------------- */

int peer_pidfd_by_number(int conn, const struct peer *peer, uint64_t since) {
	uint64_t start;
	_cleanup_close_ int fd = fd_pidfd(peer->pid);
	if (fd < 0) return -1;
	/* With its pidfd open the number is its own: what /proc says now is said of it, if it lives afterwards. */
	int number = proc_stat(peer->pid, NULL, NULL, &start) ? 0 : ESTALE;
	if (!number && start >= since) {
		int held = peer_holds(conn, peer->pid);
		number = held > 0 ? 0 : held == 0 ? ESRCH : ESTALE;
	}
	if (number || !fd_pidfd_alive(fd)) {
		errno = number ? number : ESRCH;
		return -1;
	}
	int result = fd;
	fd = -1;
	return result;
}

int peer_pidfd(int conn, const struct peer *peer, uint64_t since) {
	int fd;
	socklen_t len = sizeof fd;
	if (getsockopt(conn, SOL_SOCKET, SO_PEERPIDFD, &fd, &len) == 0) return fd;
	if (errno == ENOPROTOOPT) return peer_pidfd_by_number(conn, peer, since);
	if (errno != EMFILE && errno != ENFILE && errno != ENOMEM) errno = ESRCH; /* ENODATA, EINVAL: it was reaped */
	return -1;
}
