/* SPDX-License-Identifier: MIT */
#include "shim/sink.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

void sink_init(struct sink *s, int fd, size_t max) {
	struct stat st;
	*s = (struct sink){.fd = fd, .step = SIZE_MAX, .buf = BUF_INIT(max)};
	if (fstat(fd, &st) < 0) return;
	s->socket = S_ISSOCK(st.st_mode);
	if (s->socket || S_ISREG(st.st_mode)) return;
	/* A new open file description of the same pipe: O_NONBLOCK on it affects no other process. */
	char path[32];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	int again = S_ISFIFO(st.st_mode) ? open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC) : -1;
	if (again >= 0) {
		s->fd = again;
		s->own_fd = true;
	} else {
		s->step = PIPE_BUF; /* fits whenever poll() says POLLOUT; source: pipe(7) */
	}
}

void sink_free(struct sink *s) {
	if (s->own_fd) close(s->fd);
	buf_free(&s->buf);
	*s = (struct sink){.fd = -1};
}

size_t sink_pending(const struct sink *s) {
	return s->buf.len - s->off;
}

char *sink_room(struct sink *s, size_t n) {
	/* Move unwritten bytes to the front if they are few or room is short. */
	bool stays = s->off < s->buf.len && s->buf.cap > s->buf.len + n;
	if (s->off && !stays) {
		memmove(s->buf.data, s->buf.data + s->off, s->buf.len - s->off);
		s->buf.len -= s->off;
		s->off = 0;
	}
	bool ok = buf_reserve(&s->buf, n);
	s->buf.failed = false;
	return ok ? s->buf.data + s->buf.len : NULL;
}

void sink_commit(struct sink *s, size_t n) {
	s->buf.len += s->dead ? 0 : n;
}

bool sink_put(struct sink *s, const void *data, size_t n) {
	if (s->dead) return true;
	char *room = sink_room(s, n);
	if (!room) return false;
	memcpy(room, data, n);
	sink_commit(s, n);
	return true;
}

void sink_flush(struct sink *s) {
	while (sink_pending(s)) {
		struct iovec iov = {s->buf.data + s->off, MIN(sink_pending(s), s->step)};
		ssize_t n = s->socket ? fd_sendv(s->fd, &iov, 1) : fd_writev(s->fd, &iov, 1);
		if (n < 0 && errno == EAGAIN) return;
		if (n < 0) {
			s->dead = true;
			s->error = errno == EPIPE || errno == ECONNRESET ? 0 : errno;
			s->buf.len = s->off = 0;
			return;
		}
		s->off += (size_t)n;
		if (s->step != SIZE_MAX) break; /* poll() must be asked again before the next piece */
	}
	if (!sink_pending(s)) s->buf.len = s->off = 0;
}
