/* SPDX-License-Identifier: MIT */
#include "plenum/client.h"

#include "base/fd.h"
#include "base/paths.h"
#include "base/str.h"
#include "lib/handle.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

_Static_assert(PLENUM_SOCKET_PATH_SIZE == PATH_SOCKET_MAX + 1, "the path size of the API is that of the resolver");
_Static_assert(PLENUM_UUID_SIZE == STR_UUID_SIZE, "the uuid size of the API is that of str_uuid()");

const char *plenum_version(void) {
	return PLENUM_VERSION;
}

bool plenum_socket_path(char *path, size_t size, const char **why) {
	return path_socket(path, size, why);
}

/* --- Opening and closing ------------------------------------------------------------------------------------------ */

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
	struct plenum *p = fd < 0 ? NULL : handle_new(fd, path);
	if (p) return p;
	int saved = errno;
	if (fd >= 0) close(fd);
	if (size) snprintf(why, size, "no daemon answers at %s (%s): %s", path, rule, strerror(saved));
	errno = saved;
	return NULL;
}

void plenum_close(struct plenum *p) {
	if (p) handle_free(p);
}

const char *plenum_path(const struct plenum *p) {
	return p->path;
}

const char *plenum_error(const struct plenum *p) {
	return p->error;
}

/* --- Protocols ---------------------------------------------------------------------------------------------------- */

enum plenum_result plenum_speak(struct plenum *p, const char *dialect) {
	const struct handle_frame *frame = handle_frame(dialect);
	if (!frame) {
		errno = EINVAL;
		return handle_failed(p, "dialect %s: this library does not speak it", dialect);
	}
	if (frame == p->frame) return PLENUM_OK;
	if (p->spoke) {
		int fd = fd_connect(p->path, 0);
		if (fd < 0) return handle_failed(p, "no daemon answers at %s: %s", p->path, strerror(errno));
		handle_replace(p, fd);
	}
	p->frame = frame;
	return PLENUM_OK;
}

const char *plenum_dialect(const struct plenum *p) {
	return p->frame->dialect;
}

/* --- Waiting ------------------------------------------------------------------------------------------------------ */

int plenum_fd(const struct plenum *p) {
	return p->fd;
}

short plenum_events(const struct plenum *p, int *timeout_ms) {
	bool due = !handle_empty(p) || p->skipped || (p->ended && !p->told);
	if (timeout_ms) *timeout_ms = due ? 0 : -1;
	return (short)((p->ended ? 0 : POLLIN) | (plenum_unsent(p) ? POLLOUT : 0));
}

enum plenum_result plenum_next(struct plenum *p, int timeout_ms, const char **line, size_t *len) {
	int64_t deadline = handle_deadline(timeout_ms);
	chunk_drop(&p->current);
	if (handle_flush(p) == PLENUM_FAILED) return PLENUM_FAILED;
	while (handle_empty(p)) {
		if (p->skipped) {
			p->skipped--;
			errno = EMSGSIZE;
			return handle_failed(p, "a line of the daemon was longer than %zu bytes and was left out",
								 PLENUM_CLIENT_LINE_MAX);
		}
		if (p->ended) {
			p->told = true;
			return PLENUM_CLOSED;
		}
		enum plenum_result r = handle_turn(p, deadline);
		if (r != PLENUM_OK) return r;
	}
	p->current = handle_take(p, p->queue.head);
	*line = p->current.data;
	*len = handle_length(p->current);
	return PLENUM_OK;
}

/* --- Sending ------------------------------------------------------------------------------------------------------ */

static enum plenum_result check_line(struct plenum *p, const char *line, size_t *len) {
	if (p->finished) {
		errno = EPIPE;
		return handle_failed(p, "plenum_finish() has ended the input of this connection");
	}
	if (*len && line[*len - 1] == '\n') --*len;
	if (*len && memchr(line, '\n', *len)) {
		errno = EINVAL;
		return handle_failed(p, "a line must not contain a newline");
	}
	return PLENUM_OK;
}

enum plenum_result plenum_send(struct plenum *p, const char *line, size_t len) {
	enum plenum_result r = check_line(p, line, &len);
	return r == PLENUM_OK ? handle_put(p, line, len) : r;
}

static enum plenum_result put_waiting(struct plenum *p, const char *line, size_t len, int64_t deadline) {
	enum plenum_result r = check_line(p, line, &len);
	while (r == PLENUM_OK && (r = handle_put(p, line, len)) == PLENUM_FULL) r = handle_turn(p, deadline);
	return r;
}

static enum plenum_result flush_waiting(struct plenum *p, int64_t deadline) {
	enum plenum_result r = handle_flush(p);
	while (r == PLENUM_OK && plenum_unsent(p)) r = handle_turn(p, deadline);
	return r == PLENUM_OK && p->cut ? PLENUM_CLOSED : r;
}

enum plenum_result plenum_send_wait(struct plenum *p, const char *line, size_t len, int timeout_ms) {
	int64_t deadline = handle_deadline(timeout_ms);
	enum plenum_result r = put_waiting(p, line, len, deadline);
	return r == PLENUM_OK ? flush_waiting(p, deadline) : r;
}

enum plenum_result plenum_flush(struct plenum *p, int timeout_ms) {
	return flush_waiting(p, handle_deadline(timeout_ms));
}

size_t plenum_unsent(const struct plenum *p) {
	return p->out.len - p->sent;
}

void plenum_outbox(struct plenum *p, size_t bytes) {
	p->out_max = bytes;
}

enum plenum_result plenum_finish(struct plenum *p) {
	p->finished = true;
	return handle_flush(p);
}

/* --- Requests ----------------------------------------------------------------------------------------------------- */

static enum plenum_result build_request(struct plenum *p, struct buf *b, const char *subtype, const char *object,
										char *id) {
	struct span members = object ? handle_members(object) : span_of("");
	if (!members.p) {
		errno = EINVAL;
		return handle_failed(p, "the members of a request must be a JSON object");
	}
	handle_request(p, b, subtype, members, id);
	if (b->failed) return handle_failed(p, "out of memory");
	if (strcmp(subtype, PLENUM_ATTACH) != 0) return PLENUM_OK;
	char *kept = strdup(object ? object : "{}"); /* for plenum_reopen() */
	if (!kept) return handle_failed(p, "out of memory");
	free(p->place.members);
	free(p->place.session);
	p->place = (struct handle_place){.members = kept};
	snprintf(p->place.id, sizeof p->place.id, "%s", id);
	return PLENUM_OK;
}

enum plenum_result plenum_post(struct plenum *p, const char *subtype, const char *object, char *id) {
	struct buf line = BUF_INIT(PLENUM_CLIENT_LINE_MAX);
	enum plenum_result r = build_request(p, &line, subtype, object, id);
	if (r == PLENUM_OK) r = plenum_send(p, line.data, line.len);
	buf_free(&line);
	return r;
}

static char *dup_or_empty(struct span s) {
	char *text = span_is_string(s) ? span_dup(s, NULL) : NULL;
	return text ? text : strdup("");
}

static bool fill_answer(const struct handle_frame *frame, struct chunk line, const struct envelope *e,
						struct plenum_answer *a) {
	struct span error = e->is_error; /* in JSON-RPC */
	*a = (struct plenum_answer){.len = handle_length(line)};
	a->line = strndup(line.data, a->len);
	a->code = dup_or_empty(span_member(frame->head ? span_member(error, "data") : e->response, "code"));
	a->error = dup_or_empty(frame->head ? span_member(error, "message") : span_member(e->response, "error"));
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
		if (!handle_answers(p->frame, p->queue.lines[*at], id, &e)) continue;
		bool filled = fill_answer(p->frame, p->queue.lines[*at], &e, a);
		struct chunk line = handle_take(p, *at);
		*r = !filled                                 ? handle_failed(p, "out of memory")
			 : span_equals(e.inner_subtype, "error") ? PLENUM_REFUSED
													 : PLENUM_OK;
		chunk_drop(&line);
		if (*r == PLENUM_REFUSED) handle_failed(p, "%s", a->error);
		return true;
	}
	return false;
}

static enum plenum_result wait_answer(struct plenum *p, const char *subtype, const char *id, int64_t deadline,
									  struct plenum_answer *a) {
	enum plenum_result r = PLENUM_OK;
	size_t at = p->queue.head;
	while (r == PLENUM_OK && !find_answer(p, &at, id, a, &r)) {
		bool was_empty = handle_empty(p);
		r = p->ended ? PLENUM_CLOSED : handle_turn(p, deadline);
		if (was_empty) at = p->queue.head; /* an empty queue starts again at slot 0 */
	}
	if (r == PLENUM_TIMED_OUT) handle_failed(p, "no answer to %s in time", subtype);
	if (r == PLENUM_CLOSED) handle_failed(p, "the daemon closed the connection before it answered %s", subtype);
	return r;
}

enum plenum_result plenum_request(struct plenum *p, const char *subtype, const char *object, int timeout_ms,
								  struct plenum_answer *a) {
	int64_t deadline = handle_deadline(timeout_ms);
	struct buf line = BUF_INIT(PLENUM_CLIENT_LINE_MAX);
	char id[PLENUM_ID_SIZE];
	*a = (struct plenum_answer){0};
	enum plenum_result r = build_request(p, &line, subtype, object, id);
	if (r == PLENUM_OK) r = put_waiting(p, line.data, line.len, deadline);
	buf_free(&line);
	if (r == PLENUM_FULL) r = PLENUM_TIMED_OUT;
	return r == PLENUM_OK ? wait_answer(p, subtype, id, deadline, a) : r;
}

/* --- Connecting again --------------------------------------------------------------------------------------------- */

/* Write the members of the last attach for another connection: by the session's name, from the line after the last one
 * that was read. */
static void put_members(const struct handle_place *place, struct buf *b) {
	static const char *const changed[] = {"session", "replay", "create"};
	struct span all = span_of(place->members), key, value;
	bool tagged = span_is_true(span_member(all, "tag"));
	for (size_t at = 0; span_next_member(all, &at, &key, &value);) {
		bool other = true;
		for (size_t i = 0; i < ARRAY_SIZE(changed); i++) other = other && !span_equals(key, changed[i]);
		bool keeps = span_equals(key, "session")  ? !place->session
					 : span_equals(key, "create") ? !span_equals(value, "new")
					 : span_equals(key, "replay") ? tagged && !place->counts
												  : other;
		if (keeps) buf_printf(b, "%s%.*s:%.*s", b->len ? "," : "", (int)key.n, key.p, (int)value.n, value.p);
	}
	if (place->session) buf_printf(b, "%s\"session\":%s", b->len ? "," : "", place->session);
	if (tagged && place->counts)
		buf_printf(b, "%s\"replay\":{\"after\":%lld}", b->len ? "," : "", (long long)place->seq);
}

enum plenum_result plenum_reopen(struct plenum *p, char *id) {
	struct buf members = BUF_INIT(PLENUM_CLIENT_LINE_MAX), line = BUF_INIT(PLENUM_CLIENT_LINE_MAX);
	if (!p->place.members) {
		errno = EINVAL;
		return handle_failed(p, "this connection was not attached to a session");
	}
	int fd = fd_connect(p->path, 0);
	if (fd < 0) return handle_failed(p, "no daemon answers at %s: %s", p->path, strerror(errno));
	handle_replace(p, fd);
	put_members(&p->place, &members);
	handle_request(p, &line, PLENUM_ATTACH, (struct span){members.data, members.len}, id);
	snprintf(p->place.id, sizeof p->place.id, "%s", id);
	enum plenum_result r = members.failed || line.failed ? handle_failed(p, "out of memory")
														 : plenum_send(p, line.data, line.len);
	buf_free(&members);
	buf_free(&line);
	return r;
}

#define TRY_AGAIN_MS 100

/* Return true if the daemon may be there later: it is being started, or another takes over. */
static bool may_come(enum plenum_result r, const struct plenum_answer *a) {
	if (r == PLENUM_REFUSED) return strcmp(a->code, PLENUM_E_SHUTTING_DOWN) == 0;
	return r == PLENUM_CLOSED ||
		   (r == PLENUM_FAILED && (errno == ENOENT || errno == ECONNREFUSED || errno == EAGAIN || errno == ECONNRESET));
}

enum plenum_result plenum_reconnect(struct plenum *p, int timeout_ms, struct plenum_answer *a) {
	int64_t deadline = handle_deadline(timeout_ms);
	char id[PLENUM_ID_SIZE];
	*a = (struct plenum_answer){0};
	for (;;) {
		plenum_answer_free(a);
		enum plenum_result r = plenum_reopen(p, id);
		if (r == PLENUM_OK) r = wait_answer(p, PLENUM_ATTACH, id, deadline, a);
		if (!may_come(r, a) || now_ms() >= deadline) return r;
		poll(NULL, 0, (int)MIN(deadline - now_ms(), (int64_t)TRY_AGAIN_MS));
	}
}

/* --- Prompts ------------------------------------------------------------------------------------------------------ */

enum plenum_result plenum_prompt_again(struct plenum *p, const char *text, size_t len, const char *uuid) {
	struct buf line = BUF_INIT(PLENUM_CLIENT_LINE_MAX);
	buf_puts(&line, "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":");
	str_put_json(&line, text, len);
	buf_puts(&line, "},\"parent_tool_use_id\":null,\"session_id\":\"\",\"uuid\":");
	str_put_json(&line, uuid, strlen(uuid));
	buf_putc(&line, '}');
	enum plenum_result r = line.failed ? handle_failed(p, "out of memory") : plenum_send(p, line.data, line.len);
	buf_free(&line);
	return r;
}

enum plenum_result plenum_prompt(struct plenum *p, const char *text, size_t len, char *uuid) {
	str_uuid(uuid);
	return plenum_prompt_again(p, text, len, uuid);
}

char *plenum_quote(const char *text, size_t len) {
	struct buf b = BUF_INIT(SIZE_MAX / 2);
	str_put_json(&b, text, len);
	return buf_steal(&b, NULL);
}
