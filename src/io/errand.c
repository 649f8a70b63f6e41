/* SPDX-License-Identifier: MIT */
#include "io/errand.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define REQUEST_MAX ((size_t)256 * 1024 * 1024)

static void stop(struct errand *e) {
	int fd = e->fd.fd;
	loop_timer_stop(&e->timer);
	loop_fd_stop(&e->fd);
	if (fd >= 0) close(fd);
	e->fd.fd = -1;
}

/* Its process is killed and is not waited for: it may be in a state in which it cannot die. */
static void leave(struct errand *e) {
	child_kill(e->child, SIGKILL);
	children_left(e->child->owner, e->child->pid);
	child_forget(e->child);
	child_close_in(e->child);
	child_close_out(e->child);
	child_close_err(e->child);
	e->child->pid = -1;
}

static void finish(struct errand *e, enum errand_end end) {
	stop(e);
	if (e->becomes && end == ERRAND_DONE) {
		children_back(e->child->owner, e->child->pid);
		e->child->exited = e->exited;
		e->child->arg = e->exited_arg;
	} else {
		leave(e);
	}
	e->done(e->arg, end);
}

/* Return false if nothing more comes. */
static bool read_some(struct errand *e) {
	char data[16384];
	ssize_t n = fd_read(e->fd.fd, data, sizeof data);
	if (n < 0 && errno == EAGAIN) return true;
	if (n <= 0 || !buf_put(&e->answer, data, (size_t)n)) return false;
	return true;
}

static void on_answer(void *arg, bool readable, bool writable) {
	struct errand *e = arg;
	(void)readable, (void)writable;
	if (!read_some(e)) finish(e, e->answer.failed ? ERRAND_LOST : ERRAND_DONE);
}

static void on_limit(void *arg) {
	finish(arg, ERRAND_TIMEOUT);
}

/* Its exit is seen before the end of its answer, which is complete by now. */
static void on_exited(void *arg, int status) {
	struct errand *e = arg;
	struct child *c = e->child;
	size_t before;
	do before = e->answer.len;
	while (read_some(e) && e->answer.len > before);
	bool becomes = e->becomes;
	stop(e);
	c->exited = e->exited;
	c->arg = e->exited_arg;
	e->done(e->arg, e->answer.failed ? ERRAND_LOST : ERRAND_DONE);
	if (becomes && c->exited) c->exited(c->arg, status); /* an own one may be freed by now */
}

/* The request as a file in memory, read from its beginning. Until an errand has hidden itself (prctl(2),
 * PR_SET_DUMPABLE), processes of the same user can open what it has through /proc/PID/fd: a file that none can change,
 * and a socket, which cannot be opened so. */
static int request_file(const struct errand_spec *spec) {
	int fd = memfd_create("plenum-errand", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd >= 0 && fd_write_all(fd, spec->request, spec->n) == 0 && lseek(fd, 0, SEEK_SET) == 0 &&
		fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0)
		return fd;
	if (fd >= 0) close(fd);
	return -1;
}

/* From its end [1] to ours. */
static bool answer_socket(int ends[2]) {
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) return false;
	shutdown(ends[0], SHUT_WR);
	return true;
}

static enum child_result no_descriptor(char *error) {
	snprintf(error, CHILD_ERROR_MAX, "cannot create a process: %s", strerror(errno));
	return CHILD_TRANSIENT;
}

static void listen_to(struct errand *e, struct loop *loop, int fd, int64_t limit) {
	fd_nonblock(fd);
	loop_fd_init(&e->fd, loop, fd, on_answer, e);
	loop_timer_init(&e->timer, loop, on_limit, e);
	loop_timer_set(&e->timer, loop_fd_want(&e->fd, true, false) ? limit : 0);
}

enum child_result errand_begin(struct errand *e, struct children *owner, const struct errand_spec *spec,
							   void (*done)(void *arg, enum errand_end end), void *arg, char *error) {
	static const struct child_spec none = {.no_pipes = true};
	int answer[2];
	*e = ERRAND_ZERO;
	if (!children_may_go(owner, spec->place)) {
		snprintf(error, CHILD_ERROR_MAX, "%s does not answer: other processes wait for it already (is it on a mount?)",
				 spec->place);
		return CHILD_TIMEOUT;
	}
	_cleanup_close_ int request = request_file(spec);
	if (request < 0 || !answer_socket(answer)) return no_descriptor(error);
	e->child = spec->becomes ? spec->becomes : &e->own;
	e->becomes = spec->becomes != NULL;
	enum child_result r = child_spawn_errand(e->child, owner, spec->kind, request, answer[1],
											 spec->streams ? spec->streams : &none, error);
	close(answer[1]);
	if (r != CHILD_OK) {
		close(answer[0]);
		return r;
	}
	e->exited = e->child->exited;
	e->exited_arg = e->child->arg;
	e->child->exited = on_exited;
	e->child->arg = e;
	e->answer = (struct buf)BUF_INIT(spec->answer_max);
	e->done = done;
	e->arg = arg;
	children_out(owner, e->child->pid, spec->place);
	listen_to(e, children_loop(owner), answer[0], spec->limit);
	return CHILD_OK;
}

void errand_send(struct children *owner, const char *kind, const void *request, size_t n, const char *place) {
	static const struct child_spec none = {.no_pipes = true, .outlives = true};
	struct errand_spec spec = {.kind = kind, .request = request, .n = n};
	struct child c = {0};
	char error[CHILD_ERROR_MAX];
	if (!children_may_go(owner, place)) return;
	_cleanup_close_ int fd = request_file(&spec);
	if (fd < 0 || child_spawn_errand(&c, owner, kind, fd, fd, &none, error) != CHILD_OK) return;
	children_out(owner, c.pid, place);
	children_left(owner, c.pid);
	child_forget(&c);
}

void errand_drop(struct errand *e) {
	if (errand_runs(e)) {
		stop(e);
		leave(e);
	}
	buf_free(&e->answer);
}

/* --- in its process ----------------------------------------------------------------------------------------------- */

char *errand_request(size_t *n) {
	struct buf b = BUF_INIT(REQUEST_MAX);
	ssize_t got = 1;
	fcntl(CHILD_ERRAND_REQUEST, F_SETFD, FD_CLOEXEC);
	fcntl(CHILD_ERRAND_ANSWER, F_SETFD, FD_CLOEXEC);
	while (got > 0 && buf_reserve(&b, 65536)) {
		got = fd_read(CHILD_ERRAND_REQUEST, b.data + b.len, 65536);
		if (got > 0) b.len += (size_t)got;
	}
	if (b.data) b.data[b.len] = 0;
	b.failed |= got < 0;
	return buf_steal(&b, n);
}

void errand_say(const void *data, size_t n) {
	fd_write_all(CHILD_ERRAND_ANSWER, data, n);
}

void errand_put(struct buf *b, const char *text) {
	buf_put(b, text, strlen(text) + 1);
}

const char *errand_next(const char **at, const char *end) {
	const char *text = *at, *nul = text < end ? memchr(text, 0, (size_t)(end - text)) : NULL;
	if (!nul) return NULL;
	*at = nul + 1;
	return text;
}
