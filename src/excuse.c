/* SPDX-License-Identifier: MIT */
#include "excuse.h"

#include "base/fd.h"
#include "wire/notice.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define LEAVE_MS 1000

/* Until the client has closed its end: its request may be on the way, and a close would come before the error. */
static void see_off(int fd) {
	char ignored[4096];
	int64_t deadline = now_ms() + LEAVE_MS, left;
	shutdown(fd, SHUT_WR);
	while ((left = deadline - now_ms()) > 0) {
		struct pollfd in = {.fd = fd, .events = POLLIN};
		if (poll(&in, 1, (int)left) < 0 && errno == EINTR) continue;
		if (!in.revents || fd_read(fd, ignored, sizeof ignored) <= 0) return;
	}
}

bool excuse_send(int fd, const char *code, const char *text) {
	struct buf b = NOTICE_INIT;
	notice_error(&b, NULL, code, text);
	notice_number(&b, "line", 0);
	struct chunk line = notice_end(&b);
	struct iovec iov = {(void *)(uintptr_t)line.data, line.len};
	bool sent = line.data && fd_sendv(fd, &iov, 1) > 0;
	chunk_drop(&line);
	return sent;
}

void excuse_client(int listener, const char *code, const char *text) {
	_cleanup_close_ int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	struct peer peer;
	if (fd < 0 || fd_peer(fd, &peer) != 0 || (peer.uid != geteuid() && peer.uid != 0)) return;
	if (excuse_send(fd, code, text)) see_off(fd);
}

bool excuse_await(int listener, int ms) {
	struct pollfd in = {.fd = listener, .events = POLLIN};
	int n;
	do n = poll(&in, 1, ms);
	while (n < 0 && errno == EINTR);
	return n > 0;
}
