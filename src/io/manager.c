/* SPDX-License-Identifier: MIT */
#include "io/manager.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define FULL_MS 2000

static int connect_to(const char *path) {
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	size_t n = strlen(path);
	if ((path[0] != '/' && path[0] != '@') || n >= sizeof to.sun_path) return -1;
	memcpy(to.sun_path, path, n);
	if (path[0] == '@') to.sun_path[0] = 0;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0) return -1;
	if (connect(fd, (struct sockaddr *)&to, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool is_me(const char *pid) {
	uint64_t value;
	return pid && str_u64(pid, 1, INT32_MAX, &value) && (pid_t)value == getpid();
}

void manager_init(struct manager *n) {
	const char *path = getenv("NOTIFY_SOCKET");
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	uint64_t value;
	*n = (struct manager){.fd = path ? connect_to(path) : -1};
	if (usec && (!pid || is_me(pid)) && str_u64(usec, 1, INT64_MAX, &value)) n->watchdog = (int64_t)value / 2000;
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
}

static bool try_send(const struct manager *n, const char *text) {
	return n->fd < 0 || send(n->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 || errno != EAGAIN;
}

void manager_send(const struct manager *n, const char *text) {
	(void)try_send(n, text);
}

void manager_send_once(const struct manager *n, const char *text) {
	struct pollfd room = {.fd = n->fd, .events = POLLOUT};
	if (!try_send(n, text) && poll(&room, 1, FULL_MS) > 0) (void)try_send(n, text);
}

void manager_close(struct manager *n) {
	if (n->fd >= 0) close(n->fd);
	n->fd = -1;
}

static bool listens(int fd) {
	int domain = 0, type = 0, accepts = 0;
	socklen_t len = sizeof(int);
	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == AF_UNIX &&
		   getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_STREAM &&
		   getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &len) == 0 && accepts;
}

int manager_listen_fd(void) {
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
	uint64_t n;
	int found = -1;
	if (is_me(pid) && fds && str_u64(fds, 1, 1024, &n)) {
		for (int fd = 3; fd < 3 + (int)n; fd++) {
			fcntl(fd, F_SETFD, FD_CLOEXEC);
			if (found < 0 && listens(fd)) found = fd;
		}
	}
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	return found;
}
