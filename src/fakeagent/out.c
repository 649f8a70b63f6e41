/* SPDX-License-Identifier: MIT */
#include "fakeagent/out.h"

#include "base/fd.h"
#include "fakeagent/poller.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

static bool gone; /* the reader or a fault has closed stdout */
static struct buf rest = JS_BUF;
static size_t off; /* written bytes of rest */
static long lines; /* printed lines */
static void (*diverted)(json_t *frame);

static bool write_some(void) {
	size_t n = rest.len - off;
	if (agent_has(FAULT_partial)) n = MIN(n, (size_t)agent.fault[FAULT_partial]);
	ssize_t k = write(1, rest.data + off, n);
	if (k < 0 && errno == EINTR) return true;
	if (k < 0) {
		if (errno != EAGAIN) gone = true;
		return false;
	}
	off += (size_t)k;
	if (agent_has(FAULT_partial)) nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
	return true;
}

static bool waits(void) {
	return !gone && off < rest.len;
}

static void flush(void) {
	while (waits() && write_some()) continue;
	if (gone || off == rest.len) {
		off = rest.len = 0;
	} else if (off > rest.len / 2) {
		rest.len -= off;
		memmove(rest.data, rest.data + off, rest.len);
		off = 0;
	}
}

static void drain(void) {
	for (flush(); waits(); flush()) poll(&(struct pollfd){.fd = 1, .events = POLLOUT}, 1, -1);
}

static int prepare(void) {
	flush();
	return waits() ? POLLOUT : 0;
}

static void act(struct watch *w, int events) {
	(void)w;
	if (events) flush();
}

static void finish(void) {
	if (agent_has(FAULT_no_newline) && rest.len) rest.len--;
	drain();
}

/* Other processes share the flags of a terminal or file; only a pipe or a socket is made non-blocking. */
void out_init(void) {
	static struct watch watch = {.fd = 1, .prepare = prepare, .act = act};
	struct stat st;
	if (fstat(1, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode))) fd_nonblock(1);
	poller_add(&watch);
	atexit(finish);
}

void out_half(const char *text) {
	buf_puts(&rest, text);
	drain();
}

void out_line(const char *line, size_t n) {
	long every = agent.fault[FAULT_garbage], last = agent.fault[FAULT_close_stdout];
	if (gone) return;
	if (every > 0 && lines % every == 0)
		buf_puts(&rest, lines / every % 2 ? "{\"type\":\"assistant\",\"message\":\n" : "not a JSON line\n");
	buf_put(&rest, line, n);
	buf_putc(&rest, '\n');
	if (rest.failed) js_no_memory();
	lines++;
	if (agent.fault[FAULT_die] == lines) {
		rest.len -= (n + 1) / 2;
		drain();
		kill(getpid(), SIGKILL);
	}
	if (last >= 0 && lines > last) {
		drain();
		close(1);
		gone = true;
	}
	if (rest.len - off > (size_t)64 * 1024) flush();
}

void out_message(json_t *message) {
	_cleanup_(buf_free) struct buf b = JS_BUF;
	js_dump(&b, message);
	json_decref(message);
	out_line(b.data, b.len);
}

static void print_late(json_t *message) {
	out_message(json_incref(message));
}

void out_answer(json_t *message, bool may_miss, bool may_delay) {
	if (may_miss && agent_has(FAULT_mute))
		json_decref(message);
	else if (may_delay && agent_has(FAULT_late))
		poller_after(agent.fault[FAULT_late], print_late, message);
	else
		out_message(message);
}

void out_divert(void (*to)(json_t *)) {
	diverted = to;
}

void out_json(json_t *frame) {
	(diverted ? diverted : out_message)(frame);
}
