/* SPDX-License-Identifier: MIT */
#include "fakeagent/out.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* A terminal or a file shares its flags with others; only a pipe or a socket is made non-blocking. */
void out_init(struct out *o, int fd, const struct faults *f) {
	struct stat st;
	*o = (struct out){.fd = fd, .wait = BUF_INIT(SIZE_MAX / 2), .faults = f};
	if (fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode))) fd_nonblock(fd);
}

void out_free(struct out *o) {
	buf_free(&o->wait);
}

bool out_waits(const struct out *o) {
	return !o->gone && o->off < o->wait.len;
}

static void close_stdout(struct out *o) {
	out_drain(o);
	close(o->fd);
	o->gone = true;
}

static void pause_briefly(void) {
	struct timespec t = {.tv_nsec = 200000};
	nanosleep(&t, NULL);
}

static bool write_some(struct out *o) {
	size_t n = o->wait.len - o->off;
	if (o->faults->partial > 0) n = MIN(n, (size_t)o->faults->partial);
	ssize_t k = write(o->fd, o->wait.data + o->off, n);
	if (k < 0 && errno == EINTR) return true;
	if (k < 0) {
		if (errno != EAGAIN) o->gone = true;
		return false;
	}
	o->off += (size_t)k;
	if (o->faults->partial > 0) pause_briefly();
	return true;
}

void out_flush(struct out *o) {
	while (out_waits(o) && write_some(o)) continue;
	if (o->gone || o->off == o->wait.len) {
		o->off = o->wait.len = 0;
	} else if (o->off > o->wait.len / 2) {
		o->wait.len -= o->off;
		memmove(o->wait.data, o->wait.data + o->off, o->wait.len);
		o->off = 0;
	}
}

void out_drain(struct out *o) {
	for (out_flush(o); out_waits(o); out_flush(o)) {
		struct pollfd p = {.fd = o->fd, .events = POLLOUT};
		poll(&p, 1, -1);
	}
}

static void put_garbage(struct out *o) {
	const char *line = o->lines / o->faults->garbage % 2 ? "{\"type\":\"assistant\",\"message\":\n"
														 : "not a JSON line\n";
	buf_puts(&o->wait, line);
}

static void die_in_line(struct out *o, size_t line) {
	o->wait.len -= line / 2;
	out_drain(o);
	kill(getpid(), SIGKILL);
	pause();
}

static void end_line(struct out *o, size_t from) {
	buf_putc(&o->wait, '\n');
	if (o->wait.failed) js_need(NULL);
	o->lines++;
	if (o->faults->die == o->lines) die_in_line(o, o->wait.len - from);
	if (o->faults->close_stdout >= 0 && o->lines > o->faults->close_stdout) close_stdout(o);
	if (o->wait.len - o->off > 64 * 1024) out_flush(o);
}

void out_line(struct out *o, const char *line, size_t n) {
	if (o->gone) return;
	if (o->faults->garbage > 0 && o->lines % o->faults->garbage == 0) put_garbage(o);
	size_t from = o->wait.len;
	buf_put(&o->wait, line, n);
	end_line(o, from);
}

void out_json(struct out *o, json_t *frame) {
	js_need(frame);
	_cleanup_(buf_free) struct buf b = BUF_INIT(SIZE_MAX / 2);
	js_dump(&b, frame);
	json_decref(frame);
	out_line(o, b.data, b.len);
}
