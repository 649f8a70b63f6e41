/* SPDX-License-Identifier: MIT */
#include "fakeagent/tools.h"

#include "base/fd.h"
#include "base/str.h"
#include "fakeagent/background.h"
#include "fakeagent/frames.h"
#include "fakeagent/mcp.h"
#include "fakeagent/permission.h"
#include "fakeagent/pump.h"
#include "fakeagent/scenario.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <string.h>
#include <sys/wait.h>

#define BASH_TIMEOUT 120000

struct call {
	struct agent *a;
	json_t *input;
	const char *id;
	struct tool_output *o;
};

static void say(struct tool_output *o, bool failed, json_t *text) {
	json_decref(o->content);
	o->content = text;
	o->failed = failed;
}

/* ---- Bash ------------------------------------------------------------------------------------------------------ */

static void say_shell(struct tool_output *o, struct proc *p) {
	const char *text = p->out.data ? p->out.data : "";
	size_t n = p->out.len;
	while (n && text[n - 1] == '\n') n--;
	int code = WIFEXITED(p->status) ? WEXITSTATUS(p->status) : 128 + WTERMSIG(p->status);
	_cleanup_(buf_free) struct buf b = BUF_INIT(SIZE_MAX / 2);
	if (code) buf_printf(&b, "Exit code %d%s", code, n ? "\n" : "");
	buf_put(&b, text, n);
	if (!b.len) buf_puts(&b, "(Bash completed with no output)");
	say(o, code != 0, js_text(b.data, b.len));
	if (!code)
		o->detail = json_pack("{s:o,s:s,s:b,s:b,s:b}", "stdout", js_text(text, n), "stderr", "", "interrupted", 0,
							  "isImage", 0, "noOutputExpected", !n);
}

static void run_bash(struct call *c) {
	const char *command = js_get(c->input, "command");
	json_t *timeout = json_object_get(c->input, "timeout");
	int64_t until = now_ms() + (json_is_integer(timeout) ? json_integer_value(timeout) : BASH_TIMEOUT);
	if (js_true(c->input, "run_in_background")) {
		_cleanup_free_ char *task = background_shell(c->a, command ? command : "", c->id);
		say(c->o, !task, js_printf("Command running in background with ID: %s", task ? task : "none"));
		return;
	}
	struct proc *p = proc_start(c->a, command ? command : "");
	if (!p) {
		say(c->o, true, js_printf("cannot start a shell: %s", strerror(errno)));
		return;
	}
	while (!p->exited && !c->a->abort && now_ms() < until) pump(c->a, until);
	if (p->exited)
		say_shell(c->o, p);
	else
		say(c->o, true, js_printf("%s", c->a->abort ? "The command was interrupted" : "Command timed out"));
	c->o->aborted = !p->exited && c->a->abort;
	proc_free(p);
}

/* ---- files ----------------------------------------------------------------------------------------------------- */

static bool read_file(const char *path, struct buf *b) {
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	char some[16384];
	ssize_t n = fd < 0 ? -1 : 0;
	while (fd >= 0 && (n = fd_read(fd, some, sizeof some)) > 0) buf_put(b, some, (size_t)n);
	return n == 0;
}

static bool write_file(const char *path, const char *text, size_t n) {
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	return fd >= 0 && fd_write_all(fd, text, n) == 0;
}

static const char *path_of(struct call *c) {
	const char *path = js_get(c->input, "file_path");
	if (!path) say(c->o, true, js_printf("file_path is missing"));
	return path;
}

static void run_read(struct call *c) {
	const char *path = path_of(c);
	_cleanup_(buf_free) struct buf in = BUF_INIT(SIZE_MAX / 4), out = BUF_INIT(SIZE_MAX / 2);
	if (!path) return;
	if (!read_file(path, &in)) {
		say(c->o, true, js_printf("File does not exist or cannot be read: %s", strerror(errno)));
		return;
	}
	const char *p = in.data ? in.data : "", *end = p + in.len;
	for (long line = 1; p < end; line++) {
		const char *lf = memchr(p, '\n', (size_t)(end - p));
		buf_printf(&out, "%s%6ld\t", line > 1 ? "\n" : "", line);
		buf_put(&out, p, (size_t)((lf ? lf : end) - p));
		p = lf ? lf + 1 : end;
	}
	say(c->o, false, js_text(out.data ? out.data : "", out.len));
}

static void run_write(struct call *c) {
	const char *path = path_of(c);
	json_t *text = json_object_get(c->input, "content");
	if (!path) return;
	const char *p = json_is_string(text) ? json_string_value(text) : "";
	if (write_file(path, p, json_is_string(text) ? json_string_length(text) : 0))
		say(c->o, false, js_printf("File created successfully at: %s", path));
	else
		say(c->o, true, js_printf("cannot write %s: %s", path, strerror(errno)));
}

static void run_edit(struct call *c) {
	const char *path = path_of(c), *from = js_get(c->input, "old_string"), *to = js_get(c->input, "new_string");
	_cleanup_(buf_free) struct buf in = BUF_INIT(SIZE_MAX / 4), out = BUF_INIT(SIZE_MAX / 2);
	if (!path) return;
	if (!read_file(path, &in) || !from || !to) {
		say(c->o, true, js_printf("File does not exist, or old_string or new_string is missing"));
		return;
	}
	const char *hit = in.data ? memmem(in.data, in.len, from, strlen(from)) : NULL;
	if (!hit) {
		say(c->o, true, js_printf("String to replace not found in file."));
		return;
	}
	buf_put(&out, in.data, (size_t)(hit - in.data));
	buf_puts(&out, to);
	buf_puts(&out, hit + strlen(from));
	bool ok = write_file(path, out.data, out.len);
	say(c->o, !ok, js_printf("The file %s has %sbeen updated.", path, ok ? "" : "not "));
}

static void run_glob(struct call *c) {
	const char *pattern = js_get(c->input, "pattern");
	glob_t g = {0};
	_cleanup_(buf_free) struct buf b = BUF_INIT(SIZE_MAX / 2);
	if (pattern && glob(pattern, 0, NULL, &g) == 0)
		for (size_t i = 0; i < g.gl_pathc; i++) buf_printf(&b, "%s%s", i ? "\n" : "", g.gl_pathv[i]);
	globfree(&g);
	say(c->o, false, b.len ? js_text(b.data, b.len) : js_printf("No files found"));
}

/* ---- questions ------------------------------------------------------------------------------------------------- */

static void run_question(struct call *c) {
	_cleanup_(buf_free) struct buf b = BUF_INIT(SIZE_MAX / 2);
	const char *question;
	json_t *answer;
	json_object_foreach(json_object_get(c->input, "answers"), question, answer) {
		const char *text = json_string_value(answer);
		buf_printf(&b, "%s\"%s\"=\"%s\"", b.len ? ", " : "", question, text ? text : "");
	}
	say(c->o, false, js_printf("User has answered your questions: %s", b.len ? b.data : "none"));
}

static void run_exit_plan(struct call *c) {
	const char *code;
	if (strcmp(c->a->mode, "plan") == 0 && permission_mode(c->a, "default", &code)) frames_status(c->a, NULL, NULL);
	say(c->o, false, js_printf("User has approved your plan. You can now start coding."));
}

static const struct tool {
	const char *name;
	void (*run)(struct call *c);
} TOOLS[] = {
	{"Bash", run_bash},
	{"Read", run_read},
	{"Write", run_write},
	{"Edit", run_edit},
	{"Glob", run_glob},
	{"AskUserQuestion", run_question},
	{"ExitPlanMode", run_exit_plan},
};

void tools_run(struct agent *a, const char *name, json_t *input, const char *id, struct tool_output *o) {
	struct call c = {a, input, id, o};
	*o = (struct tool_output){0};
	if (a->scenario && scenario_tool(a, name, o)) return;
	if (strncmp(name, "mcp__", 5) == 0) {
		mcp_call(a, name, input, id, o);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(TOOLS); i++) {
		if (strcmp(TOOLS[i].name, name) != 0) continue;
		TOOLS[i].run(&c);
		return;
	}
	say(o, false, js_printf("%s: done", name));
}

void tool_output_free(struct tool_output *o) {
	json_decref(o->content);
	json_decref(o->detail);
}
