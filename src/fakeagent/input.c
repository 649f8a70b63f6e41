/* SPDX-License-Identifier: MIT */
#include "fakeagent/input.h"

#include "base/fd.h"
#include "base/str.h"
#include "fakeagent/backlog.h"
#include "fakeagent/control.h"
#include "fakeagent/poller.h"
#include "fakeagent/query.h"
#include "fakeagent/rpc.h"
#include "wire/lines.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>

#define MAX_LINE ((size_t)1 << 30)

static bool eof, told; /* told: the queries know it */
static bool ready;     /* the last read may have left lines */
static long handled;   /* lines */
static long since_read;
static bool shared; /* the unfinished line began in a read with another line */
static struct lines_pool pool;
static struct lines cut;

/* End like the CLI at an unacceptable line. */
__attribute__((noreturn)) static void die(char *text) {
	fprintf(stderr, "%s\n", text);
	free(text);
	exit(1);
}

/* ---- judging a line -------------------------------------------------------------------------------------------- */

/* False in JavaScript. */
static bool is_false(const json_t *value) {
	return !value || json_is_null(value) || json_is_false(value) ||
		   (json_is_string(value) && !json_string_length(value)) ||
		   (json_is_number(value) && json_number_value(value) == 0);
}

static void take(json_t *line) {
	json_t *role = js_at(line, "message.role");
	const char *type = js_get(line, "type"), *text = json_string_value(role);
	if (js_same(type, "user") && !js_same(text, "user")) {
		_cleanup_free_ char *other = !text && role ? js_dumps(role) : NULL;
		die(str_printf("Error: Expected message role 'user', got '%s'", text ? text : other ? other : "undefined"));
	}
	if (js_same(type, "control_request") && is_false(json_object_get(line, "request")))
		die(str_dup("Error: Missing request on control_request"));
	if (js_same(type, "user")) backlog_add(line);
	if (js_same(type, "control_request")) control_take(line);
	if (js_same(type, "control_response")) query_answer(line);
}

static void handle(const char *p, size_t n) {
	json_t *line;
	while (n && strchr(" \t\r\n", p[n - 1])) n--;
	while (n && strchr(" \t\r\n", *p)) p++, n--;
	if (!n) return;
	enum js_result r = js_parse(p, n, &line);
	if (rpc_spoken()) {
		rpc_take(r, line);
		json_decref(line);
		return;
	}
	if (r == JS_BAD) die(str_printf("Error parsing streaming input line (type=unknown, %zu chars): SyntaxError", n));
	if (r == JS_ODD) return;
	if (json_is_null(line)) die(str_dup("Error parsing streaming input line (type=unknown, 4 chars): TypeError"));
	if (agent.await_initialize && !control_initialized() && !js_is(line, "request.subtype", "initialize"))
		die(str_dup(
			"Error: --await-initialize requires the initialize control request as the first stdin line, and the "
			"first line is a different message."));
	take(line);
	json_decref(line);
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

/* Some CLI versions lost a long line if one read had its beginning and a short line. */
static void check_split(size_t n) {
	bool risky = since_read > 0 || shared;
	since_read++;
	shared = false;
	if (risky && agent.fault[FAULT_split] >= 0 && n > (size_t)agent.fault[FAULT_split])
		die(str_printf("Error parsing streaming input line (type=unknown, %zu chars): SyntaxError", n));
}

static bool next_line(struct chunk *line) {
	size_t size;
	enum lines_result r;
	while ((r = lines_next(&cut, line, &size)) == LINES_LONG) chunk_drop(line);
	if (r == LINES_OOM) js_no_memory();
	return r == LINES_LINE || (eof && lines_rest(&cut, line));
}

static bool is_deaf(void) {
	return agent.fault[FAULT_deaf] >= 0 && handled >= agent.fault[FAULT_deaf];
}

static void handle_all(void) {
	struct chunk line;
	while (ready && !is_deaf() && (agent.running || backlog_empty())) {
		ready = next_line(&line);
		if (!ready) {
			shared = shared || (since_read > 0 && lines_held(&cut) > 0);
			since_read = 0;
			break;
		}
		handled++;
		check_split(line.len);
		handle(line.data, line.len);
		chunk_drop(&line);
	}
	if (!eof || ready || told || agent_has(FAULT_ignore_eof)) return;
	told = true;
	if (rpc_spoken()) exit(0); /* such an agent ends at once, and an open permission with it */
	query_close();
}

static int prepare(void) {
	if (is_deaf()) return 0;
	return ready ? POLLER_NOW : eof ? 0 : POLLIN;
}

static void act(struct watch *w, int events) {
	size_t room;
	if (events) {
		char *to = lines_space(&cut, &room);
		if (!to) js_no_memory();
		ssize_t n = fd_read(w->fd, to, room);
		if (n > 0) lines_commit(&cut, (size_t)n);
		ready = n >= 0 || errno != EAGAIN;
		eof = n <= 0 && ready;
	}
	handle_all();
}

void input_init(void) {
	static struct watch watch = {.fd = 0, .prepare = prepare, .act = act};
	lines_init(&cut, &pool, MAX_LINE);
	poller_add(&watch);
}

bool input_ended(void) {
	return eof && !ready && !agent_has(FAULT_ignore_eof);
}
