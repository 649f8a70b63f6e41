/* SPDX-License-Identifier: MIT */
#include "io/errand.h"

#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define REQUEST_MAX ((size_t)256 * 1024 * 1024)

static void stop(struct errand *e) {
	int fd = e->fd.fd;
	loop_timer_stop(&e->timer);
	if (fd >= 0) loop_fd_stop(&e->fd);
	if (fd >= 0) close(fd);
	e->fd.fd = -1;
	places_wait_no_more(&e->turn);
	free(e->request);
	free(e->place);
	e->request = e->place = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(e->then); i++) {
		free(e->then[i]);
		e->then[i] = NULL;
	}
}

/* Kill its process without waiting for the end: it may be in a state in which it cannot die. */
static void leave(struct errand *e) {
	child_kill(e->child, SIGKILL);
	if (e->child->pid > 0) places_left(children_places(e->owner), e->child->pid);
	child_forget(e->child);
	child_close_in(e->child);
	child_close_out(e->child);
	child_close_err(e->child);
	e->child->pid = -1;
}

static void finish(struct errand *e, enum errand_end end) {
	stop(e);
	if (e->becomes && end == ERRAND_DONE) {
		places_back(children_places(e->owner), e->child->pid);
		e->child->exited = e->exited;
		e->child->arg = e->exited_arg;
	} else {
		leave(e);
	}
	e->done(e->arg, end);
}

/* Return false at the end of the answer. */
static bool read_some(struct errand *e) {
	char data[16384];
	ssize_t n = fd_read(e->fd.fd, data, sizeof data);
	if (n < 0 && errno == EAGAIN) return true;
	if (n <= 0 || !buf_put(&e->answer, data, (size_t)n)) return false;
	for (; e->at < ARRAY_SIZE(e->then) && e->then[e->at] && e->answer.len >= (e->at + 1) * e->step; e->at++)
		places_move(children_places(e->owner), e->child->pid, e->then[e->at]);
	return true;
}

static void on_answer(void *arg, bool readable, bool writable) {
	struct errand *e = arg;
	(void)readable, (void)writable;
	if (!read_some(e)) finish(e, e->answer.failed ? ERRAND_LOST : ERRAND_DONE);
}

/* A start waits as long as the queue moves: many at once are no fault. */
static void on_limit(void *arg) {
	struct errand *e = arg;
	uint64_t served = e->becomes && e->turn.places ? places_served(e->turn.places) : e->served;
	bool moves = served != e->served;
	e->served = served;
	if (moves)
		loop_timer_set(&e->timer, e->limit);
	else
		finish(e, ERRAND_TIMEOUT);
}

/* The exit is seen before the end of the answer; the answer is complete by now. */
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
	if (becomes && c->exited) c->exited(c->arg, status); /* the errand's own child may already be freed */
}

/* Return the request as a file in memory, read from its beginning. Until an errand has hidden itself (prctl(2),
 * PR_SET_DUMPABLE), processes of the same user can open its descriptors through /proc/PID/fd. The file is sealed
 * against changes; a socket cannot be opened there. */
static int request_file(const void *request, size_t n) {
	int fd = memfd_create("plenum-errand", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd >= 0 && fd_write_all(fd, request, n) == 0 && lseek(fd, 0, SEEK_SET) == 0 &&
		fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0)
		return fd;
	if (fd >= 0) close(fd);
	return -1;
}

/* Make the process. place: its first place. */
static enum child_result go(struct errand *e, const void *text, size_t n, const char *place, struct error *error) {
	int answer[2];
	_cleanup_close_ int request = request_file(text, n);
	if (request < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, answer) < 0) {
		error_set(error, "cannot create a process: %s", strerror(errno));
		return CHILD_TRANSIENT;
	}
	shutdown(answer[0], SHUT_WR); /* the errand's end is [1] */
	enum child_result r = child_spawn_errand(e->child, e->owner, e->kind, request, answer[1], &e->streams, error);
	close(answer[1]);
	if (r != CHILD_OK) {
		close(answer[0]);
		return r;
	}
	e->exited = e->child->exited;
	e->exited_arg = e->child->arg;
	e->child->exited = on_exited;
	e->child->arg = e;
	places_out(children_places(e->owner), e->child->pid, place, e->uid);
	fd_nonblock(answer[0]);
	loop_fd_init(&e->fd, children_loop(e->owner), answer[0], on_answer, e);
	loop_timer_set(&e->timer, loop_fd_want(&e->fd, true, false) ? e->limit : 0);
	return CHILD_OK;
}

static void on_turn(void *arg, enum places_state state) {
	struct errand *e = arg;
	struct error error;
	enum child_result r = CHILD_TIMEOUT;
	if (state == PLACES_OPEN) r = go(e, e->request, e->n, e->place, &error);
	if (r == CHILD_OK) {
		free(e->request);
		e->request = NULL;
		return;
	}
	if (r != CHILD_TIMEOUT) log_warn("%s: %s", e->kind, error.text);
	finish(e, r == CHILD_TIMEOUT ? ERRAND_TIMEOUT : ERRAND_LOST);
}

static enum child_result wait(struct errand *e, const struct errand_spec *spec, struct error *error) {
	e->request = malloc(spec->n + 1);
	e->place = strdup(spec->place);
	if (!e->request || !e->place) {
		error_set(error, "out of memory");
		return CHILD_TRANSIENT;
	}
	memcpy(e->request, spec->request, spec->n);
	e->n = spec->n;
	e->served = places_served(children_places(e->owner));
	if (!places_wait(children_places(e->owner), &e->turn, spec->place, spec->uid, e->becomes, on_turn, e)) {
		error_set(error, "too many requests wait for file systems and other processes (outside_timeout)");
		return CHILD_TIMEOUT;
	}
	loop_timer_set(&e->timer, spec->limit);
	return CHILD_OK;
}

enum child_result errand_begin(struct errand *e, struct children *owner, const struct errand_spec *spec,
							   void (*done)(void *arg, enum errand_end end), void *arg, struct error *error) {
	static const struct child_spec none = {.no_pipes = true};
	*e = ERRAND_ZERO;
	e->owner = owner;
	e->child = spec->becomes ? spec->becomes : &e->own;
	e->becomes = spec->becomes != NULL;
	e->kind = spec->kind;
	e->uid = spec->uid;
	e->limit = spec->limit;
	e->streams = spec->streams ? *spec->streams : none;
	e->answer = (struct buf)BUF_INIT(spec->answer_max);
	e->done = done;
	e->arg = arg;
	loop_timer_init(&e->timer, children_loop(owner), on_limit, e);
	child_clear(e->child);
	e->step = spec->step;
	enum places_state state = places_look(children_places(owner), spec->place, spec->uid);
	const char *closed = state == PLACES_CLOSED ? spec->place : NULL;
	for (size_t i = 0; i < ARRAY_SIZE(e->then) && spec->then[i] && !closed; i++) {
		if (places_look(children_places(owner), spec->then[i], spec->uid) == PLACES_CLOSED) closed = spec->then[i];
		e->then[i] = strdup(spec->then[i]); /* without memory it stays at the previous place */
	}
	enum child_result r = CHILD_TIMEOUT;
	if (closed)
		error_set(error, "%s does not answer: other processes wait for it already (is it on a mount?)", closed);
	else if (state == PLACES_OPEN)
		r = go(e, spec->request, spec->n, spec->place, error);
	else
		r = wait(e, spec, error);
	if (r != CHILD_OK) stop(e);
	return r;
}

void errand_send(struct children *owner, const char *kind, const void *request, size_t n, const char *place) {
	static const struct child_spec none = {.no_pipes = true, .outlives = true};
	struct places *places = children_places(owner);
	struct child c = {0};
	struct error error;
	if (places_look(places, place, getuid()) != PLACES_OPEN) return;
	_cleanup_close_ int fd = request_file(request, n);
	if (fd < 0 || child_spawn_errand(&c, owner, kind, fd, fd, &none, &error) != CHILD_OK) return;
	places_out(places, c.pid, place, getuid());
	places_left(places, c.pid);
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
