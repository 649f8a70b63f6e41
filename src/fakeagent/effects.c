/* SPDX-License-Identifier: MIT */
#include "fakeagent/effects.h"

#include "base/fd.h"
#include "fakeagent/asks.h"
#include "fakeagent/background.h"
#include "fakeagent/frames.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

extern char **environ;

struct context {
	struct agent *a;
	struct turn *t;
	struct reply *r;
	const struct directive *d;
};

void effects_noise(long kib) {
	char line[1024];
	memset(line, 'n', sizeof line);
	memcpy(line, "noise: ", 7);
	for (long i = 0; i < kib; i++) fd_write_all(2, line, sizeof line);
}

void effects_lines(struct agent *a, long n) {
	for (long i = 0; i < n; i++) {
		frames_emit(a, json_pack("{s:s,s:{s:s,s:i,s:{s:s,s:o}},s:n}", "type", "stream_event", "event", "type",
								 "content_block_delta", "index", 0, "delta", "type", "text_delta", "text",
								 js_printf("line %ld", i + 1), "parent_tool_use_id"));
	}
}

/* Returns when it has become a sleep(1): the pipe's end closes then, so that nobody finds it half made. */
void effects_grandchild(void) {
	int fds[2];
	char c;
	if (pipe2(fds, O_CLOEXEC) < 0) return;
	pid_t pid = fork();
	if (pid == 0) {
		sigset_t none;
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		setsid();
		execl("/bin/sleep", "sleep", "600", (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	fd_read(fds[0], &c, 1);
	close(fds[0]);
}

static void do_tool(struct context *c) {
	reply_tool(c->a, c->r, c->d->name, json_incref(c->d->input));
}

static void do_after(struct context *c) {
	json_array_append_new(c->t->after, json_pack("{s:I,s:s,s:O}", "ms", (json_int_t)c->d->number, "name", c->d->name,
												 "input", c->d->input));
}

static void do_task(struct context *c) {
	background_task(c->a, c->d->number, c->d->name);
}

static void do_long(struct context *c) {
	struct buf b = BUF_INIT(SIZE_MAX / 2);
	size_t n = c->d->number > 0 ? (size_t)c->d->number : 0;
	if (!buf_reserve(&b, n)) js_need(NULL);
	memset(b.data, 'x', n);
	reply_text(c->r, js_text(b.data, n));
	buf_free(&b);
}

static void do_slow(struct context *c) {
	c->r->slow = c->d->number;
}

static void do_lines(struct context *c) {
	effects_lines(c->a, c->d->number);
}

static void do_exit(struct context *c) {
	agent_exit(c->a, (int)c->d->number);
}

static void do_stderr(struct context *c) {
	effects_noise(c->d->number);
}

static void do_blocks(struct context *c) {
	for (long i = 0; i < c->d->number; i++) reply_text(c->r, js_printf("block %ld", i + 1));
}

static void do_error(struct context *c) {
	free(c->r->error);
	c->r->error = strdup(c->d->name);
}

static void do_garbage(struct context *c) {
	out_line(&c->a->out, c->d->name, strlen(c->d->name));
}

static void do_think(struct context *c) {
	json_array_append_new(c->r->blocks,
						  json_pack("{s:s,s:s,s:s}", "type", "thinking", "thinking", c->d->name, "signature", "fake"));
}

static void do_text(struct context *c) {
	reply_text(c->r, js_text(c->d->name, strlen(c->d->name)));
}

static void do_die(struct context *c) {
	out_drain(&c->a->out);
	const char *half = "{\"type\":\"assistant\",\"message\":{\"role\":\"assist";
	fd_write_all(c->a->out.fd, half, strlen(half));
	kill(getpid(), SIGKILL);
}

static void do_grandchild(struct context *c) {
	(void)c;
	effects_grandchild();
}

/* ---- answers about the process --------------------------------------------------------------------------------- */

static void say_words(struct context *c, char *const *words) {
	struct buf b = BUF_INIT(SIZE_MAX / 2);
	for (size_t i = 0; words[i]; i++) {
		if (i) buf_putc(&b, '\n');
		buf_puts(&b, words[i]);
	}
	reply_text(c->r, js_text(b.data ? b.data : "", b.len));
	buf_free(&b);
}

static void do_env(struct context *c) {
	say_words(c, environ);
}

static void do_argv(struct context *c) {
	say_words(c, c->a->opt->argv);
}

static void do_cwd(struct context *c) {
	char cwd[PATH_MAX];
	if (!getcwd(cwd, sizeof cwd)) strcpy(cwd, "?");
	reply_text(c->r, js_text(cwd, strlen(cwd)));
}

static void do_pid(struct context *c) {
	reply_text(c->r, js_printf("%ld", (long)getpid()));
}

/* The prompts so far, one a line; the last is this one. */
static void do_history(struct context *c) {
	struct buf b = BUF_INIT(SIZE_MAX / 2);
	size_t i;
	json_t *message;
	json_array_foreach(c->a->conv.messages, i, message) {
		const char *role = js_get(message, "role");
		_cleanup_free_ char *text = js_content_text(json_object_get(message, "content"));
		if (!role || strcmp(role, "user") != 0 || !text || !*text) continue;
		if (b.len) buf_putc(&b, '\n');
		buf_puts(&b, text);
	}
	reply_text(c->r, js_text(b.data ? b.data : "", b.len));
	buf_free(&b);
}

/* ---- requests to the client ------------------------------------------------------------------------------------ */

static void ask_and_say(struct context *c, const char *what, json_t *request) {
	struct ask *ask = asks_send(c->a, request, -1);
	asks_wait(c->a, ask);
	json_t *payload = asks_payload(ask);
	_cleanup_free_ char *text = payload ? js_dumps(payload) : NULL;
	const char *error = asks_error(ask);
	reply_text(c->r, js_printf("%s: %s", what, text ? text : error ? error : "no answer"));
	asks_free(ask);
}

static bool may_show(const struct agent *a, const char *kind) {
	size_t i;
	json_t *k;
	json_array_foreach(a->dialogs, i, k) {
		const char *is = json_string_value(k);
		if (is && strcmp(is, kind) == 0) return true;
	}
	return false;
}

static void do_dialog(struct context *c) {
	if (!may_show(c->a, c->d->name)) {
		reply_text(c->r, js_printf("dialog: no client shows %s", c->d->name));
		return;
	}
	ask_and_say(c, "dialog",
				json_pack("{s:s,s:s,s:{s:s}}", "subtype", "request_user_dialog", "dialog_kind", c->d->name, "payload",
						  "title", "A dialog"));
}

static void do_elicit(struct context *c) {
	ask_and_say(c, "elicit",
				json_pack("{s:s,s:s,s:s,s:s,s:{s:s,s:{s:{s:s}}}}", "subtype", "elicitation", "mcp_server_name", "fake",
						  "message", "What is your name?", "mode", "form", "requested_schema", "type", "object",
						  "properties", "name", "type", "string"));
}

static void do_unknown(struct context *c) {
	ask_and_say(c, "answer", json_pack("{s:s,s:s}", "subtype", c->d->name, "detail", "fake"));
}

static const struct effect {
	const char *what;
	void (*run)(struct context *c);
} EFFECTS[] = {
	{"tool", do_tool},     {"after", do_after},   {"task", do_task},       {"long", do_long},
	{"slow", do_slow},     {"lines", do_lines},   {"exit", do_exit},       {"stderr", do_stderr},
	{"blocks", do_blocks}, {"error", do_error},   {"garbage", do_garbage}, {"think", do_think},
	{"text", do_text},     {"die", do_die},       {"env", do_env},         {"argv", do_argv},
	{"cwd", do_cwd},       {"pid", do_pid},       {"history", do_history}, {"grandchild", do_grandchild},
	{"dialog", do_dialog}, {"elicit", do_elicit}, {"unknown", do_unknown},
};

void effects_run(struct agent *a, struct turn *t, struct reply *r, const struct directive *d) {
	struct context c = {a, t, r, d};
	for (size_t i = 0; i < ARRAY_SIZE(EFFECTS); i++)
		if (strcmp(EFFECTS[i].what, d->what) == 0) EFFECTS[i].run(&c);
}
