/* SPDX-License-Identifier: MIT */
#include "io/pressure.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define SYSTEM_FILE "/proc/pressure/memory"
/* Some process waited for 150 ms within 2 s; without privileges the kernel takes windows of whole 2 s alone. */
#define TRIGGER "some 150000 2000000"

struct pressure {
	struct loop *loop;
	void (*fn)(void *arg);
	void *arg;
	char *path;
	int fd;
	int epoll; /* PSI: watches fd for POLLPRI, which the loop's library does not know; itself readable then */
	struct loop_fd io;
	struct loop_task free_task;
	bool closed;
};

/* --- base64 ------------------------------------------------------------------------------------------------------- */

static int digit(char c) {
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;
	return at ? (int)(at - digits) : -1;
}

bool pressure_decode(const char *text, unsigned char *out, size_t *n) {
	size_t len = strlen(text), pad = 0;
	*n = 0;
	if (len % 4) return false;
	while (pad < 2 && pad < len && text[len - 1 - pad] == '=') pad++;
	for (size_t i = 0; i < len; i += 4) {
		size_t have = i + 4 == len ? 4 - pad : 4;
		uint32_t bits = 0;
		for (size_t k = 0; k < 4; k++) {
			int d = k < have ? digit(text[i + k]) : 0;
			if (d < 0) return false;
			bits = bits << 6 | (uint32_t)d;
		}
		for (size_t k = 0; k + 1 < have; k++) out[(*n)++] = (unsigned char)(bits >> (16 - 8 * k));
	}
	return true;
}

/* --- what happens ------------------------------------------------------------------------------------------------- */

static void free_pressure(void *arg) {
	struct pressure *p = arg;
	free(p->path);
	free(p);
}

static void release(struct pressure *p) {
	loop_fd_stop(&p->io);
	if (p->epoll >= 0) close(p->epoll);
	if (p->fd >= 0) close(p->fd);
	p->epoll = p->fd = -1;
}

void pressure_close(struct pressure *p) {
	if (!p || p->closed) return;
	p->closed = true;
	release(p);
	loop_defer_free(p->loop, &p->free_task);
}

/* The kernel clears the event when it is looked at, and the loop has looked through the nested epoll: that this is
 * readable is the event. The wait takes the entry off its list; an error means that the group is gone. */
static void on_kernel(void *arg, bool readable, bool writable) {
	struct pressure *p = arg;
	struct epoll_event e = {0};
	(void)readable, (void)writable;
	if (epoll_wait(p->epoll, &e, 1, 0) > 0 && (e.events & EPOLLERR)) {
		release(p);
		return;
	}
	p->fn(p->arg);
}

/* The content of the message has no meaning. */
static void on_stream(void *arg, bool readable, bool writable) {
	struct pressure *p = arg;
	char data[4096];
	ssize_t n;
	bool any = false;
	(void)readable, (void)writable;
	while ((n = fd_read(p->fd, data, sizeof data)) > 0) any = true;
	if (n == 0 || errno != EAGAIN) release(p); /* the other side is gone */
	if (any) p->fn(p->arg);
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

static bool failed(struct error *error, const char *path, const char *what) {
	return error_set(error, "%.200s: %s: %s", path, what, strerror(errno));
}

static bool watch_kernel(struct pressure *p, const void *data, size_t n, struct error *error) {
	struct epoll_event e = {.events = EPOLLPRI};
	if (write(p->fd, data, n) != (ssize_t)n) return failed(error, p->path, "the kernel takes no trigger");
	p->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (p->epoll < 0 || epoll_ctl(p->epoll, EPOLL_CTL_ADD, p->fd, &e) < 0)
		return failed(error, p->path, "it cannot be watched");
	loop_fd_init(&p->io, p->loop, p->epoll, on_kernel, p);
	return true;
}

static bool watch_stream(struct pressure *p, const void *data, size_t n, struct error *error) {
	if (n && send(p->fd, data, n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != ENOTSOCK)
		return failed(error, p->path, "it cannot be written to"); /* a FIFO would only give it back to us */
	loop_fd_init(&p->io, p->loop, p->fd, on_stream, p);
	return true;
}

static bool watch(struct pressure *p, const char *data, size_t n, struct error *error) {
	struct stat st;
	bool there = stat(p->path, &st) == 0, is_socket = there && S_ISSOCK(st.st_mode);
	if (there) p->fd = is_socket ? fd_connect(p->path, SOCK_NONBLOCK) : open(p->path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (p->fd < 0) return failed(error, p->path, "it cannot be opened");
	if (!is_socket && !S_ISFIFO(st.st_mode) && !S_ISREG(st.st_mode)) {
		errno = EINVAL;
		return failed(error, p->path, "neither a file of the kernel's, nor a FIFO, nor a socket");
	}
	bool kernel = S_ISREG(st.st_mode);
	if (kernel ? !watch_kernel(p, n ? data : TRIGGER, n ? n : sizeof TRIGGER, error) : !watch_stream(p, data, n, error))
		return false;
	return loop_fd_want(&p->io, true, false) || failed(error, p->path, "it cannot be watched");
}

struct pressure *pressure_open(struct loop *loop, void (*fn)(void *arg), void *arg, struct error *error) {
	const char *path = getenv("MEMORY_PRESSURE_WATCH"), *text = getenv("MEMORY_PRESSURE_WRITE");
	bool named = path && *path;
	size_t n = 0;
	if (named && strcmp(path, "/dev/null") == 0) {
		error_set(error, "the service manager wants no watch");
		return NULL;
	}
	_cleanup_free_ char *data = malloc(named && text ? strlen(text) + 1 : 1);
	struct pressure *p = calloc(1, sizeof *p);
	if (!data || !p || !(p->path = strdup(named ? path : SYSTEM_FILE))) {
		free(p);
		error_set(error, "out of memory");
		return NULL;
	}
	*p = (struct pressure){.loop = loop, .fn = fn, .arg = arg, .path = p->path, .fd = -1, .epoll = -1};
	loop_task_init(&p->free_task, free_pressure, p);
	if (named && text && !pressure_decode(text, (unsigned char *)data, &n)) {
		error_set(error, "MEMORY_PRESSURE_WRITE is no base64");
	} else if (watch(p, data, n, error)) {
		return p;
	}
	release(p);
	free_pressure(p);
	return NULL;
}

const char *pressure_path(const struct pressure *p) {
	return p->path;
}
