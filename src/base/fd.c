/* SPDX-License-Identifier: MIT */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>

int fd_nonblock(int fd) {
	int flags = fcntl(fd, F_GETFL);
	return flags < 0 ? -1 : fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

int fd_connect(const char *path, int flags) {
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof to.sun_path) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(to.sun_path, path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof to) == 0) return fd;
	int saved = errno;
	close(fd);
	errno = saved;
	return -1;
}

int fd_peer(int fd, struct peer *peer) {
	struct ucred cred;
	socklen_t len = sizeof cred;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0) return -1;
	*peer = (struct peer){cred.pid, cred.uid, cred.gid};
	return 0;
}

gid_t *fd_peer_groups(int fd, size_t *n) {
	socklen_t len = 0;
	*n = 0;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &len) == 0 || errno != ERANGE) return NULL;
	gid_t *list = malloc(len);
	if (list && getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, list, &len) == 0) {
		*n = len / sizeof *list;
		return list;
	}
	free(list);
	return NULL;
}

ssize_t fd_read(int fd, void *data, size_t n) {
	ssize_t r;
	do r = read(fd, data, n);
	while (r < 0 && errno == EINTR);
	return r;
}

ssize_t fd_writev(int fd, const struct iovec *iov, int n) {
	ssize_t r;
	do r = writev(fd, iov, n);
	while (r < 0 && errno == EINTR);
	return r;
}

ssize_t fd_sendv(int fd, struct iovec *iov, int n) {
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = (size_t)n};
	ssize_t r;
	do r = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (r < 0 && errno == EINTR);
	return r;
}

int fd_write_all(int fd, const void *data, size_t n) {
	const char *p = data;
	while (n) {
		ssize_t r = write(fd, p, n);
		if (r < 0 && errno == EINTR) continue;
		if (r < 0) return -1;
		p += r;
		n -= (size_t)r;
	}
	return 0;
}

int fd_pidfd(pid_t pid) {
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

bool fd_pidfd_alive(int pidfd) {
	struct pollfd p = {.fd = pidfd, .events = POLLIN};
	int n = -1;
	if (pidfd < 0) return false;
	do n = poll(&p, 1, 0);
	while (n < 0 && errno == EINTR); /* a pending signal also interrupts a poll without a timeout */
	return n == 0;
}

int fd_raise_nofile(uint64_t *soft_before) {
	struct rlimit r;
	if (getrlimit(RLIMIT_NOFILE, &r) < 0) return -1;
	*soft_before = r.rlim_cur;
	r.rlim_cur = r.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &r);
}

bool fd_is_short(uint64_t keep) {
	struct rlimit r;
	int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0); /* the lowest free number */
	if (fd < 0) return errno == EMFILE;
	close(fd);
	return getrlimit(RLIMIT_NOFILE, &r) == 0 && (uint64_t)fd + keep >= r.rlim_cur;
}

int fd_signals(const int *list) {
	sigset_t set;
	sigemptyset(&set);
	for (; *list; list++) sigaddset(&set, *list);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int64_t clock_us(clockid_t id) {
	struct timespec t;
	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t now_ms(void) {
	return clock_us(CLOCK_MONOTONIC) / 1000;
}

int64_t now_us(void) {
	return clock_us(CLOCK_MONOTONIC);
}

int64_t now_real_ms(void) {
	return clock_us(CLOCK_REALTIME) / 1000;
}

void fd_fill_standard(void) {
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0) open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}
