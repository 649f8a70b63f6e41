/* SPDX-License-Identifier: MIT */
#include "lib/handle.h"

#include "base/fd.h"
#include "base/str.h"
#include "dialect/jsonrpc.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define SEQ_MARK "{\"plenum_seq\":"

static const struct handle_frame frames[] = {{"claude", NULL}, {"acp", JSONRPC_HEAD}, {"codex", JSONRPC_BARE_HEAD}};

const struct handle_frame *handle_frame(const char *dialect) {
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++)
		if (strcmp(frames[i].dialect, dialect) == 0) return &frames[i];
	return NULL;
}

enum plenum_result handle_failed(struct plenum *p, const char *fmt, ...) {
	int saved = errno;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(p->error, sizeof p->error, fmt, ap);
	va_end(ap);
	errno = saved;
	return PLENUM_FAILED;
}

struct plenum *handle_new(int fd, const char *path) {
	struct plenum *p = calloc(1, sizeof *p);
	if (!p) return NULL;
	p->fd = fd;
	p->frame = frames;
	p->out = (struct buf)BUF_INIT(SIZE_MAX / 4);
	p->out_max = PLENUM_OUTBOX_MAX;
	snprintf(p->path, sizeof p->path, "%s", path);
	str_random_hex(p->salt, 8);
	lines_init(&p->in, &p->pool, PLENUM_CLIENT_LINE_MAX);
	return p;
}

void handle_free(struct plenum *p) {
	close(p->fd);
	chunk_drop(&p->current);
	for (size_t i = p->queue.head; i < p->queue.count; i++) chunk_drop(&p->queue.lines[i]);
	free(p->queue.lines);
	free(p->place.members);
	free(p->place.session);
	buf_free(&p->out);
	lines_free(&p->in);
	lines_pool_free(&p->pool);
	free(p);
}

static void drop_outbox(struct plenum *p) {
	buf_free(&p->out);
	p->out = (struct buf)BUF_INIT(SIZE_MAX / 4);
	p->sent = 0;
}

void handle_replace(struct plenum *p, int fd) {
	close(p->fd);
	p->fd = fd;
	p->ended = p->told = p->finished = p->shut = p->cut = p->spoke = false;
	drop_outbox(p);
	lines_free(&p->in);
	lines_init(&p->in, &p->pool, PLENUM_CLIENT_LINE_MAX);
}

/* --- The queue ---------------------------------------------------------------------------------------------------- */

static bool queue_put(struct handle_queue *q, struct chunk line) {
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

bool handle_empty(const struct plenum *p) {
	return p->queue.head == p->queue.count;
}

struct chunk handle_take(struct plenum *p, size_t at) {
	struct handle_queue *q = &p->queue;
	struct chunk line = q->lines[at];
	memmove(&q->lines[q->head + 1], &q->lines[q->head], (at - q->head) * sizeof line);
	q->head++;
	return line;
}

size_t handle_length(struct chunk line) {
	return line.len && line.data[line.len - 1] == '\n' ? line.len - 1 : line.len;
}

/* --- The place on the tape ---------------------------------------------------------------------------------------- */

static void attached(struct handle_place *place, const struct envelope *e) {
	struct span session = span_member(e->inner_response, "session");
	struct span replay = span_member(span_of(place->members), "replay");
	int64_t next;
	place->id[0] = 0;
	if (!span_equals(e->inner_subtype, "success")) return;
	free(place->session);
	place->session = session.p ? strndup(session.p, session.n) : NULL;
	if (place->counts || (replay.p && !span_equals(replay, "none"))) return;
	place->counts = span_int(span_member(e->inner_response, "seq"), &next);
	place->seq = place->counts ? next - 1 : 0;
}

/* The session has another name: with its old one the next attach would make another session. */
static void note_name(struct handle_place *place, const struct handle_frame *frame, struct chunk line) {
	const char *head = frame->head ? JSONRPC_EVENT "\",\"params\":{\"event\":\"" PLENUM_EV_CHANGED "\""
								   : PLENUM_EVENT_HEAD PLENUM_EV_CHANGED "\"";
	struct span all = {line.data, handle_length(line)}, name;
	size_t n = strlen(head) - 1; /* without the brace, which a mark replaces */
	bool changed = place->session && memmem(all.p, MIN(all.n, 3 * n), head + 1, n);
	if (changed && frame->head) all = span_member(all, "params");
	if (!changed || !span_equals(span_member(all, "what"), "name")) return;
	if (!span_same(span_member(all, "session"), span_of(place->session))) return; /* another's, as a subscriber */
	name = span_member(all, "value");
	char *session = span_is_string(name) ? strndup(name.p, name.n) : NULL;
	if (!session) return;
	free(place->session);
	place->session = session;
}

static void note_place(struct handle_place *place, const struct handle_frame *frame, struct chunk line) {
	struct envelope e;
	size_t mark = sizeof SEQ_MARK - 1;
	if (line.len > mark && memcmp(line.data, SEQ_MARK, mark) == 0) {
		size_t n = strspn(line.data + mark, "0123456789"); /* the line has its newline */
		place->counts = span_int((struct span){line.data + mark, n}, &place->seq);
	}
	if (place->id[0] && handle_answers(frame, line, place->id, &e)) attached(place, &e);
	note_name(place, frame, line);
}

/* --- Reading ------------------------------------------------------------------------------------------------------ */

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
			note_place(&p->place, p->frame, line);
			break;
		}
}

/* Read available bytes without waiting. */
static enum plenum_result take_input(struct plenum *p) {
	size_t room;
	char *space = lines_space(&p->in, &room);
	if (!space) return handle_failed(p, "out of memory");
	ssize_t n;
	do n = recv(p->fd, space, room, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	int error = n < 0 ? errno : 0;
	lines_commit(&p->in, n > 0 ? (size_t)n : 0);
	if (!collect(p)) return handle_failed(p, "out of memory");
	if (n > 0 || error == EAGAIN) return PLENUM_OK;
	p->ended = true; /* a line without its newline was cut, and is dropped */
	if (!error || error == ECONNRESET) return PLENUM_OK;
	errno = error;
	return handle_failed(p, "cannot read from the daemon: %s", strerror(error));
}

/* --- Writing ------------------------------------------------------------------------------------------------------ */

static enum plenum_result send_failed(struct plenum *p) {
	if (errno == EAGAIN) return PLENUM_OK;
	p->cut = true;
	drop_outbox(p);
	if (errno != EPIPE && errno != ECONNRESET)
		return handle_failed(p, "cannot write to the daemon: %s", strerror(errno));
	handle_failed(p, "the daemon closed the connection");
	return PLENUM_CLOSED;
}

static enum plenum_result end_input(struct plenum *p) {
	if (!p->finished || p->shut) return PLENUM_OK;
	p->shut = true;
	if (shutdown(p->fd, SHUT_WR) == 0) return PLENUM_OK;
	return errno == ENOTCONN ? PLENUM_CLOSED : handle_failed(p, "cannot end the input: %s", strerror(errno));
}

enum plenum_result handle_flush(struct plenum *p) {
	while (plenum_unsent(p)) {
		struct iovec iov = {p->out.data + p->sent, plenum_unsent(p)};
		ssize_t n = fd_sendv(p->fd, &iov, 1);
		if (n < 0) return send_failed(p);
		p->sent += (size_t)n;
	}
	if (p->out.len) drop_outbox(p);
	return end_input(p);
}

/* Keep the bytes that the socket did not take. */
static enum plenum_result keep(struct plenum *p, const char *line, size_t len, size_t sent) {
	size_t was = p->out.len;
	if (p->sent > p->out.len / 2) {
		p->out.len -= p->sent;
		memmove(p->out.data, p->out.data + p->sent, p->out.len);
		p->sent = 0;
		was = p->out.len;
	}
	if (sent < len) buf_put(&p->out, line + sent, len - sent);
	if (sent <= len) buf_putc(&p->out, '\n');
	if (!p->out.failed) return PLENUM_OK;
	p->out.failed = false;
	p->out.len = was;
	if (sent) { /* half a line was sent: no other can follow */
		p->finished = true;
		end_input(p);
	}
	errno = ENOMEM;
	return handle_failed(p, "out of memory");
}

enum plenum_result handle_put(struct plenum *p, const char *line, size_t len) {
	static const char lf[] = "\n";
	enum plenum_result r = handle_flush(p);
	if (r != PLENUM_OK) return r;
	size_t unsent = plenum_unsent(p);
	p->spoke = true;
	if (unsent && (unsent >= p->out_max || len >= p->out_max - unsent)) {
		errno = EAGAIN;
		handle_failed(p, "%zu bytes wait for the daemon to read them", unsent);
		return PLENUM_FULL;
	}
	union {
		const void *in;
		void *out;
	} text = {line}, end = {lf}; /* struct iovec has no const */
	struct iovec iov[2] = {{text.out, len}, {end.out, 1}};
	ssize_t n = unsent ? 0 : fd_sendv(p->fd, iov, 2);
	if (n < 0 && (r = send_failed(p)) != PLENUM_OK) return r;
	return keep(p, line, len, n > 0 ? (size_t)n : 0);
}

/* --- Waiting ------------------------------------------------------------------------------------------------------ */

int64_t handle_deadline(int timeout_ms) {
	return timeout_ms < 0 ? INT64_MAX : now_ms() + timeout_ms;
}

enum plenum_result handle_turn(struct plenum *p, int64_t deadline) {
	struct pollfd fd = {.fd = p->fd, .events = plenum_events(p, NULL)};
	int n;
	if (!fd.events) return PLENUM_CLOSED;
	do {
		int64_t left = deadline == INT64_MAX ? -1 : MAX(deadline - now_ms(), 0);
		n = poll(&fd, 1, (int)MIN(left, INT32_MAX));
	} while (n < 0 && errno == EINTR);
	if (n < 0) return handle_failed(p, "cannot wait for the daemon: %s", strerror(errno));
	if (n == 0) return PLENUM_TIMED_OUT;
	if (fd.revents & ~POLLIN && handle_flush(p) == PLENUM_FAILED) return PLENUM_FAILED;
	return !p->ended && fd.revents & ~POLLOUT ? take_input(p) : PLENUM_OK;
}

/* --- Requests ----------------------------------------------------------------------------------------------------- */

bool handle_answers(const struct handle_frame *frame, struct chunk line, const char *id, struct envelope *e) {
	size_t n = handle_length(line);
	if (frame->head) return jsonrpc_scan(line.data, n, e, "") && span_equals(e->inner_request_id, id);
	return scan_envelope(line.data, n, e) && span_equals(e->type, "control_response") &&
		   span_equals(e->inner_request_id, id);
}

struct span handle_members(const char *object) {
	struct span s = span_of(object);
	while (s.n && span_blank(*s.p)) s.p++, s.n--;
	while (s.n && span_blank(s.p[s.n - 1])) s.n--;
	if (s.n < 2 || s.p[0] != '{' || s.p[s.n - 1] != '}') return SPAN_NONE;
	s.p++, s.n -= 2;
	while (s.n && span_blank(*s.p)) s.p++, s.n--;
	return s;
}

/* In JSON a raw newline is only valid between tokens, where a space is equivalent. */
void handle_put_json(struct buf *b, struct span json) {
	while (json.n > 0) {
		const char *lf = memchr(json.p, '\n', json.n);
		size_t part = lf ? (size_t)(lf - json.p) : json.n, step = part + (lf != NULL);
		buf_put(b, json.p, part);
		if (lf) buf_putc(b, ' ');
		json.p += step, json.n -= step;
	}
}

void handle_request(struct plenum *p, struct buf *b, const char *subtype, struct span members, char *id) {
	snprintf(id, PLENUM_ID_SIZE, "lib_%lu_%s", ++p->counter, p->salt);
	if (p->frame->head) {
		buf_printf(b, "%s\"id\":\"%s\",\"method\":\"", p->frame->head, id);
		jsonrpc_put_method(b, subtype);
		buf_puts(b, "\",\"params\":{");
		handle_put_json(b, members);
		buf_puts(b, "}}");
		return;
	}
	buf_printf(b, "{\"type\":\"control_request\",\"request_id\":\"%s\",\"request\":{\"subtype\":", id);
	str_put_json(b, subtype, strlen(subtype));
	if (members.n) buf_putc(b, ',');
	handle_put_json(b, members);
	buf_puts(b, "}}");
}
