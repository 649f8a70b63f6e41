/* SPDX-License-Identifier: MIT */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#define LOCK_MS 5000    /* for a holder that is dying */
#define LOCK_STEP_MS 10 /* between two looks at it */
#define LOCK_LOOK_MS 50
#define PF_EXITING 4 /* of the flags in /proc/PID/stat */

int fd_nonblock(int fd) {
	int flags = fcntl(fd, F_GETFL);
	return flags < 0 ? -1 : fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

int fd_peer(int fd, struct peer *peer) {
	struct ucred cred;
	socklen_t len = sizeof cred;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0) return -1;
	*peer = (struct peer){cred.pid, cred.uid, cred.gid};
	return 0;
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
	return pidfd >= 0 && poll(&p, 1, 0) == 0;
}

static bool read_proc(pid_t pid, const char *name, char *text, size_t size) {
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : fd_read(fd, text, size - 1);
	if (fd >= 0) close(fd);
	text[n > 0 ? n : 0] = 0;
	return n > 0;
}

/* The bit of SIGKILL in a line of /proc/PID/status, "SigPnd:" and a hexadecimal number. */
static bool has_sigkill(const char *status, const char *line) {
	const char *at = strstr(status, line);
	return at && strtoull(at + strlen(line), NULL, 16) & (1ULL << (SIGKILL - 1));
}

/* Dead, or killed, or on its way out: then it lets go of its descriptors in a moment. */
static bool is_dying(pid_t pid) {
	char text[4096];
	unsigned long flags;
	if (kill(pid, 0) < 0 && errno == ESRCH) return true;
	if (read_proc(pid, "status", text, sizeof text) && (has_sigkill(text, "SigPnd:") || has_sigkill(text, "ShdPnd:")))
		return true;
	if (!read_proc(pid, "stat", text, sizeof text)) return true;
	const char *after = strrchr(text, ')');
	return after && sscanf(after, ") %*c %*d %*d %*d %*d %*d %lu", &flags) == 1 && flags & PF_EXITING;
}

static bool holder_is_dying(int fd) {
	char text[24] = "";
	if (pread(fd, text, sizeof text - 1, 0) <= 0) return false;
	int pid = atoi(text);
	return pid > 0 && is_dying(pid);
}

/* A holder that seems to live is looked at twice: between SIGKILL and its exit there is a moment that shows nothing. */
int fd_lock(int fd) {
	int64_t until = now_ms() + LOCK_MS;
	for (bool seen = false;;) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0) return 0;
		int number = errno;
		bool dying = number == EWOULDBLOCK && holder_is_dying(fd);
		if (number != EWOULDBLOCK || (!dying && seen) || now_ms() >= until) {
			errno = number;
			return -1;
		}
		seen = !dying;
		poll(NULL, 0, dying ? LOCK_STEP_MS : LOCK_LOOK_MS);
	}
}

int fd_raise_nofile(uint64_t *soft_before) {
	struct rlimit r;
	if (getrlimit(RLIMIT_NOFILE, &r) < 0) return -1;
	*soft_before = r.rlim_cur;
	r.rlim_cur = r.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &r);
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
