/* SPDX-License-Identifier: MIT */
#include "fakeagent/agent.h"
#include "fakeagent/asks.h"
#include "fakeagent/control.h"
#include "fakeagent/frames.h"
#include "fakeagent/queue.h"

#include "base/fd.h"

#include <errno.h>
#include <string.h>

#define MAX_LINE ((size_t)1 << 30)

void input_init(struct input *in, int fd, const struct faults *f) {
	*in = (struct input){.fd = fd, .faults = f};
	lines_init(&in->cut, &in->pool, MAX_LINE);
}

void input_free(struct input *in) {
	lines_free(&in->cut);
	lines_pool_free(&in->pool);
}

static bool is_deaf(const struct input *in) {
	return in->faults->deaf >= 0 && in->lines >= in->faults->deaf;
}

bool input_wants(const struct input *in) {
	return !in->eof && !in->ready && !is_deaf(in);
}

bool input_ready(const struct input *in) {
	return in->ready && !is_deaf(in);
}

void input_read(struct input *in) {
	size_t room;
	char *to = lines_space(&in->cut, &room);
	if (!to) js_need(NULL);
	ssize_t n = fd_read(in->fd, to, room);
	if (n < 0 && errno == EAGAIN) return;
	if (n > 0)
		lines_commit(&in->cut, (size_t)n);
	else
		in->eof = true;
	in->ready = true;
}

/* ---- judging a line -------------------------------------------------------------------------------------------- */

/* As JavaScript sees it. */
static bool is_false(const json_t *value) {
	return !value || json_is_null(value) || json_is_false(value) ||
		   (json_is_string(value) && !json_string_length(value)) ||
		   (json_is_number(value) && json_number_value(value) == 0);
}

static void take_user(struct agent *a, json_t *line) {
	json_t *role = json_object_get(json_object_get(line, "message"), "role");
	const char *text = json_string_value(role);
	_cleanup_free_ char *other = !text && role ? js_dumps(role) : NULL;
	if (!text || strcmp(text, "user") != 0)
		agent_die(a, "Error: Expected message role 'user', got '%s'", text ? text : other ? other : "undefined");
	queue_add(a, line);
}

static void take_line(struct agent *a, json_t *line) {
	const char *type = js_get(line, "type");
	if (!type) return;
	if (strcmp(type, "user") == 0) {
		take_user(a, line);
	} else if (strcmp(type, "control_request") == 0) {
		if (is_false(json_object_get(line, "request"))) agent_die(a, "Error: Missing request on control_request");
		control_take(a, line);
	} else if (strcmp(type, "control_response") == 0) {
		asks_answer(a, line);
	} else if (strcmp(type, "control_cancel_request") == 0) {
		control_cancel(a, line);
	}
}

/* With --await-initialize nothing else may come first. */
static void check_first(struct agent *a, const json_t *line) {
	if (!a->opt->await_initialize || a->initialized) return;
	const char *subtype = js_get(json_object_get(line, "request"), "subtype");
	if (subtype && strcmp(subtype, "initialize") == 0) return;
	agent_die(a, "Error: --await-initialize requires the initialize control request as the first stdin line, and the "
				 "first line is a different message.");
}

static void handle(struct agent *a, const char *p, size_t n) {
	while (n && strchr(" \t\r\n", p[n - 1])) n--;
	while (n && strchr(" \t\r\n", *p)) p++, n--;
	if (!n) return;
	json_t *line;
	enum js_result r = js_parse(p, n, &line);
	if (r == JS_BAD) agent_die(a, "Error parsing streaming input line (type=unknown, %zu chars): SyntaxError", n);
	if (r == JS_ODD) return;
	if (json_is_null(line)) agent_die(a, "Error parsing streaming input line (type=unknown, 4 chars): TypeError");
	check_first(a, line);
	take_line(a, line);
	json_decref(line);
}

/* Some CLI versions lost a long line whose beginning came in one read with a short one. */
static void check_split(struct agent *a, size_t n) {
	struct input *in = &a->in;
	bool shared = in->since_read > 0 || in->shared;
	in->since_read++;
	in->shared = false;
	if (a->faults.split >= 0 && shared && n > (size_t)a->faults.split)
		agent_die(a, "Error parsing streaming input line (type=unknown, %zu chars): SyntaxError", n);
}

static bool next_line(struct input *in, struct chunk *line) {
	size_t size;
	enum lines_result r;
	while ((r = lines_next(&in->cut, line, &size)) == LINES_LONG) chunk_drop(line);
	if (r == LINES_OOM) js_need(NULL);
	return r == LINES_LINE || (in->eof && lines_rest(&in->cut, line));
}

void input_handle(struct agent *a) {
	struct input *in = &a->in;
	struct chunk line;
	while (input_ready(in)) {
		if (!a->turn && json_array_size(a->queue)) return;
		if (!next_line(in, &line)) {
			in->ready = false;
			in->shared = in->shared || (in->since_read > 0 && lines_held(&in->cut) > 0);
			in->since_read = 0;
			break;
		}
		in->lines++;
		check_split(a, line.len);
		handle(a, line.data, line.len);
		chunk_drop(&line);
	}
	if (in->eof && !in->ready && !a->closed_told && !a->faults.ignore_eof) asks_close(a);
}
