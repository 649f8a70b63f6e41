/* SPDX-License-Identifier: MIT */
#include "plenum/client.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/paths.h"
#include "base/str.h"
#include "dialect/envelope.h"
#include "wire/lines.h"
#include "wire/scan.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* Lines that were read and not handed out, oldest first: slots head..count. */
struct queue {
	struct chunk *lines;
	size_t head, count, cap;
};

struct plenum {
	int fd;
	bool ended;    /* the daemon sends no more */
	bool finished; /* plenum_finish(): we send no more */
	int skipped;   /* over-long lines that were not reported yet */
	struct lines_pool pool;
	struct lines in;
	struct queue queue;
	struct chunk current; /* what plenum_next() handed out */
	unsigned long counter;
	char salt[9];
	char path[PLENUM_SOCKET_PATH_SIZE];
	char error[512];
};

_Static_assert(PLENUM_SOCKET_PATH_SIZE == PATH_SOCKET_MAX + 1, "the path size of the API is that of the resolver");
_Static_assert(PLENUM_UUID_SIZE == STR_UUID_SIZE, "the uuid size of the API is that of str_uuid()");

static enum plenum_result PRINTF_LIKE(2, 3) failed(struct plenum *p, const char *fmt, ...) {
	int saved = errno;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(p->error, sizeof p->error, fmt, ap);
	va_end(ap);
	errno = saved;
	return PLENUM_FAILED;
}

const char *plenum_version(void) {
	return PLENUM_VERSION;
}

bool plenum_socket_path(char *path, size_t size, const char **why) {
	return path_socket(path, size, why);
}

/* --- Opening and closing ------------------------------------------------------------------------------------------ */

static struct plenum *new_handle(int fd, const char *path) {
	struct plenum *p = calloc(1, sizeof *p);
	if (!p) return NULL;
	p->fd = fd;
	snprintf(p->path, sizeof p->path, "%s", path);
	str_random_hex(p->salt, 8);
	lines_init(&p->in, &p->pool, PLENUM_CLIENT_LINE_MAX);
	return p;
}

struct plenum *plenum_open(const char *path, char *why, size_t size) {
	char resolved[4096] = ""; /* one that is too long is shown whole */
	const char *rule = "named by the caller";
	bool ok = path ? path_socket_check(path, &rule) : path_socket(resolved, sizeof resolved, &rule);
	if (!path) path = resolved;
	if (!ok) {
		if (size && *path)
			snprintf(why, size, "%s (it has %zu bytes): %s", rule, strlen(path), path);
		else if (size)
			snprintf(why, size, "%s", rule);
		errno = ENAMETOOLONG;
		return NULL;
	}
	int fd = fd_connect(path, 0);
	struct plenum *p = fd < 0 ? NULL : new_handle(fd, path);
	if (p) return p;
	int saved = errno;
	if (fd >= 0) close(fd);
	if (size) snprintf(why, size, "no daemon answers at %s (%s): %s", path, rule, strerror(saved));
	errno = saved;
	return NULL;
}

void plenum_close(struct plenum *p) {
	if (!p) return;
	close(p->fd);
	chunk_drop(&p->current);
	for (size_t i = p->queue.head; i < p->queue.count; i++) chunk_drop(&p->queue.lines[i]);
	free(p->queue.lines);
	lines_free(&p->in);
	lines_pool_free(&p->pool);
	free(p);
}

const char *plenum_path(const struct plenum *p) {
	return p->path;
}

const char *plenum_error(const struct plenum *p) {
	return p->error;
}

int plenum_fd(const struct plenum *p) {
	return p->fd;
}

/* --- Reading ------------------------------------------------------------------------------------------------------ */

static bool queue_put(struct queue *q, struct chunk line) {
	if (q->head == q->count) q->head = q->count = 0;
	if (q->count == q->cap) {
		size_t cap = q->cap ? q->cap * 2 : 16;
		struct chunk *lines = realloc(q->lines, cap * sizeof *lines);
		if (!lines) return false;
		q->lines = lines;
		q->cap = cap;
	}
	q->lines[q->count++] = line;
	return true;
}

static struct chunk queue_take(struct queue *q, size_t at) {
	struct chunk line = q->lines[at];
	memmove(&q->lines[q->head + 1], &q->lines[q->head], (at - q->head) * sizeof line);
	q->head++;
	return line;
}

/* Move whole lines of the read bytes to the queue. False without memory. */
static bool collect(struct plenum *p) {
	struct chunk line = CHUNK_NONE;
	size_t size;
	for (;;) switch (lines_next(&p->in, &line, &size)) {
		case LINES_MORE:
			return true;
		case LINES_OOM:
			return false;
		case LINES_LONG:
			chunk_drop(&line);
			p->skipped++;
			break;
		case LINES_LINE:
			if (!queue_put(&p->queue, line)) {
				chunk_drop(&line);
				return false;
			}
			break;
		}
}

static void end_of_input(struct plenum *p) {
	struct chunk rest = CHUNK_NONE;
	p->ended = true;
	if (lines_rest(&p->in, &rest) && !queue_put(&p->queue, rest)) chunk_drop(&rest);
}

/* Read available bytes without waiting. PLENUM_TIMED_OUT: none. */
static enum plenum_result take_input(struct plenum *p) {
	size_t room;
	char *space = lines_space(&p->in, &room);
	if (!space) return failed(p, "out of memory");
	ssize_t n;
	do n = recv(p->fd, space, room, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	int error = n < 0 ? errno : 0;
	lines_commit(&p->in, n > 0 ? (size_t)n : 0);
	if (!collect(p)) return failed(p, "out of memory");
	if (error == EAGAIN) return PLENUM_TIMED_OUT;
	if (n > 0) return PLENUM_OK;
	end_of_input(p);
	if (!error || error == ECONNRESET) return PLENUM_CLOSED;
	errno = error;
	return failed(p, "cannot read from the daemon: %s", strerror(error));
}

static int64_t deadline_of(int timeout_ms) {
	return timeout_ms < 0 ? INT64_MAX : now_ms() + timeout_ms;
}

/* Waits for events until the deadline. */
static enum plenum_result wait_for(struct plenum *p, short events, short *got, int64_t deadline) {
	struct pollfd fd = {.fd = p->fd, .events = events};
	int r;
	do {
		int64_t left = deadline == INT64_MAX ? -1 : MAX(deadline - now_ms(), 0);
		r = poll(&fd, 1, (int)MIN(left, INT32_MAX));
	} while (r < 0 && errno == EINTR);
	if (r < 0) return failed(p, "cannot wait for the daemon: %s", strerror(errno));
	*got = fd.revents;
	return r ? PLENUM_OK : PLENUM_TIMED_OUT;
}

/* Waits until something was read. */
static enum plenum_result read_more(struct plenum *p, int64_t deadline) {
	short got;
	if (p->ended) return PLENUM_CLOSED;
	enum plenum_result r = wait_for(p, POLLIN, &got, deadline);
	if (r != PLENUM_OK) return r;
	r = take_input(p);
	return r == PLENUM_TIMED_OUT || r == PLENUM_CLOSED ? PLENUM_OK : r;
}

static size_t without_lf(struct chunk line) {
	return line.len && line.data[line.len - 1] == '\n' ? line.len - 1 : line.len;
}

enum plenum_result plenum_next(struct plenum *p, int timeout_ms, const char **line, size_t *len) {
	int64_t deadline = deadline_of(timeout_ms);
	chunk_drop(&p->current);
	while (p->queue.head == p->queue.count) {
		if (p->skipped) {
			p->skipped--;
			errno = EMSGSIZE;
			return failed(p, "a line of the daemon was longer than %zu bytes and was left out", PLENUM_CLIENT_LINE_MAX);
		}
		enum plenum_result r = read_more(p, deadline);
		if (r != PLENUM_OK) return r;
	}
	p->current = queue_take(&p->queue, p->queue.head);
	*line = p->current.data;
	*len = without_lf(p->current);
	return PLENUM_OK;
}

/* --- Writing ------------------------------------------------------------------------------------------------------ */

static enum plenum_result send_failed(struct plenum *p) {
	if (errno != EPIPE && errno != ECONNRESET) return failed(p, "cannot write to the daemon: %s", strerror(errno));
	failed(p, "the daemon closed the connection");
	return PLENUM_CLOSED;
}

/* Wait for room, and read meanwhile. */
static enum plenum_result wait_for_room(struct plenum *p) {
	short got = 0;
	enum plenum_result r = wait_for(p, (short)(POLLOUT | (p->ended ? 0 : POLLIN)), &got, INT64_MAX);
	if (r != PLENUM_OK) return r;
	if (!p->ended && (got & (POLLIN | POLLHUP)) && take_input(p) == PLENUM_FAILED) return PLENUM_FAILED;
	return PLENUM_OK;
}

static enum plenum_result send_all(struct plenum *p, struct iovec *iov, int n) {
	while (n > 0) {
		ssize_t sent = fd_sendv(p->fd, iov, n);
		if (sent < 0 && errno != EAGAIN) return send_failed(p);
		for (; n > 0 && sent >= (ssize_t)iov->iov_len; iov++, n--) sent -= (ssize_t)iov->iov_len;
		if (n > 0 && sent > 0) {
			iov->iov_base = (char *)iov->iov_base + sent;
			iov->iov_len -= (size_t)sent;
		}
		if (n > 0 && wait_for_room(p) == PLENUM_FAILED) return PLENUM_FAILED;
	}
	return PLENUM_OK;
}

enum plenum_result plenum_send(struct plenum *p, const char *line, size_t len) {
	static const char lf[] = "\n";
	if (p->finished) {
		errno = EPIPE;
		return failed(p, "plenum_finish() has ended the input of this connection");
	}
	if (len && line[len - 1] == '\n') len--;
	if (len && memchr(line, '\n', len)) {
		errno = EINVAL;
		return failed(p, "a line must not contain a newline");
	}
	union {
		const void *in;
		void *out;
	} text = {line}, end = {lf}; /* struct iovec has no const */
	struct iovec iov[2] = {{text.out, len}, {end.out, 1}};
	return send_all(p, iov, 2);
}

enum plenum_result plenum_finish(struct plenum *p) {
	p->finished = true;
	if (shutdown(p->fd, SHUT_WR) == 0) return PLENUM_OK;
	return errno == ENOTCONN ? PLENUM_CLOSED : failed(p, "cannot end the input: %s", strerror(errno));
}

/* --- Requests ----------------------------------------------------------------------------------------------------- */

/* Return the text between the braces of a JSON object, without surrounding spaces. */
static bool object_inside(const char *object, const char **inside, size_t *len) {
	static const char blanks[] = " \t\r\n";
	object += strspn(object, blanks);
	size_t n = strlen(object);
	while (n && strchr(blanks, object[n - 1])) n--;
	if (n < 2 || object[0] != '{' || object[n - 1] != '}') return false;
	object++;
	n -= 2;
	while (n && strchr(blanks, *object)) object++, n--;
	*inside = object;
	*len = n;
	return true;
}

/* In JSON a raw newline is only valid between tokens, where a space is equivalent. */
static void put_on_one_line(struct buf *b, const char *json, size_t n) {
	for (size_t part; n > 0; json += part, n -= part) {
		const char *lf = memchr(json, '\n', n);
		part = lf ? (size_t)(lf - json) + 1 : n;
		buf_put(b, json, lf ? part - 1 : part);
		if (lf) buf_putc(b, ' ');
	}
}

enum plenum_result plenum_post(struct plenum *p, const char *subtype, const char *object, char *id) {
	const char *inside = "";
	size_t n = 0;
	if (object && !object_inside(object, &inside, &n)) {
		errno = EINVAL;
		return failed(p, "the members of a request must be a JSON object");
	}
	snprintf(id, PLENUM_ID_SIZE, "lib_%lu_%s", ++p->counter, p->salt);
	struct buf line = BUF_INIT(PLENUM_CLIENT_LINE_MAX);
	buf_printf(&line, "{\"type\":\"control_request\",\"request_id\":\"%s\",\"request\":{\"subtype\":", id);
	str_put_json(&line, subtype, strlen(subtype));
	if (n) buf_putc(&line, ',');
	put_on_one_line(&line, inside, n);
	buf_puts(&line, "}}");
	enum plenum_result r = line.failed ? failed(p, "out of memory") : plenum_send(p, line.data, line.len);
	buf_free(&line);
	return r;
}

static bool is_answer_to(struct chunk line, const char *id, struct envelope *e) {
	return scan_envelope(line.data, without_lf(line), e) && span_equals(e->type, "control_response") &&
		   span_equals(e->inner_request_id, id);
}

static char *dup_or_empty(struct span s) {
	char *text = span_is_string(s) ? span_dup(s, NULL) : NULL;
	return text ? text : strdup("");
}

static bool fill_answer(struct chunk line, const struct envelope *e, struct plenum_answer *a) {
	*a = (struct plenum_answer){.len = without_lf(line)};
	a->line = strndup(line.data, a->len);
	a->code = dup_or_empty(span_member(e->response, "code"));
	a->error = dup_or_empty(span_member(e->response, "error"));
	if (!a->line || !a->code || !a->error) {
		plenum_answer_free(a);
		return false;
	}
	if (e->inner_response.p) {
		a->body = a->line + (e->inner_response.p - line.data);
		a->body_len = e->inner_response.n;
	}
	return true;
}

void plenum_answer_free(struct plenum_answer *a) {
	free(a->line);
	free(a->code);
	free(a->error);
	*a = (struct plenum_answer){0};
}

/* Looks for the answer from slot *at on; *at becomes the first slot that was not looked at. */
static bool find_answer(struct plenum *p, size_t *at, const char *id, struct plenum_answer *a, enum plenum_result *r) {
	struct envelope e;
	for (; *at < p->queue.count; ++*at) {
		if (!is_answer_to(p->queue.lines[*at], id, &e)) continue;
		bool filled = fill_answer(p->queue.lines[*at], &e, a);
		struct chunk line = queue_take(&p->queue, *at);
		*r = !filled ? failed(p, "out of memory") : span_equals(e.inner_subtype, "error") ? PLENUM_REFUSED : PLENUM_OK;
		chunk_drop(&line);
		if (*r == PLENUM_REFUSED) failed(p, "%s", a->error);
		return true;
	}
	return false;
}

enum plenum_result plenum_request(struct plenum *p, const char *subtype, const char *object, int timeout_ms,
								  struct plenum_answer *a) {
	int64_t deadline = deadline_of(timeout_ms);
	char id[PLENUM_ID_SIZE];
	*a = (struct plenum_answer){0};
	enum plenum_result r = plenum_post(p, subtype, object, id);
	size_t at = p->queue.head;
	while (r == PLENUM_OK && !find_answer(p, &at, id, a, &r)) {
		bool was_empty = p->queue.head == p->queue.count;
		r = read_more(p, deadline);
		if (was_empty) at = p->queue.head; /* an empty queue starts again at slot 0 */
	}
	if (r == PLENUM_TIMED_OUT) failed(p, "no answer to %s within %d ms", subtype, timeout_ms);
	if (r == PLENUM_CLOSED) failed(p, "the daemon closed the connection before it answered %s", subtype);
	return r;
}

/* --- Prompts ------------------------------------------------------------------------------------------------------ */

enum plenum_result plenum_prompt(struct plenum *p, const char *text, size_t len, char *uuid) {
	str_uuid(uuid);
	struct buf line = BUF_INIT(PLENUM_CLIENT_LINE_MAX);
	buf_puts(&line, "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":");
	str_put_json(&line, text, len);
	buf_printf(&line, "},\"parent_tool_use_id\":null,\"session_id\":\"\",\"uuid\":\"%s\"}", uuid);
	enum plenum_result r = line.failed ? failed(p, "out of memory") : plenum_send(p, line.data, line.len);
	buf_free(&line);
	return r;
}

char *plenum_quote(const char *text, size_t len) {
	struct buf b = BUF_INIT(SIZE_MAX / 2);
	str_put_json(&b, text, len);
	return buf_steal(&b, NULL);
}
