/* SPDX-License-Identifier: MIT */
#include "fakeagent/toolbox.h"

#include "base/fd.h"
#include "fakeagent/background.h"
#include "fakeagent/frames.h"
#include "fakeagent/job.h"
#include "fakeagent/phase.h"
#include "fakeagent/policy.h"
#include "fakeagent/scenario.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>

#define BASH_TIMEOUT 120000

struct call {
	json_t *input;
	const char *id, *path; /* path: file_path */
	struct tool_output *o;
};

static void say(const struct call *c, bool failed, json_t *text) {
	c->o->content = text;
	c->o->failed = failed;
}

/* ---- Bash ------------------------------------------------------------------------------------------------------ */

static void say_shell(const struct call *c, const struct job *job) {
	json_t *text = job_output(job);
	const char *p = json_string_value(text);
	size_t n = json_string_length(text);
	struct buf b = JS_BUF;
	if (job->code) buf_printf(&b, "Exit code %d%s", job->code, n ? "\n" : "");
	buf_put(&b, p, n);
	if (!b.len) buf_puts(&b, "(Bash completed with no output)");
	say(c, job->code != 0, js_of(&b));
	if (!job->code)
		c->o->detail = js_make("{stdout:%O,stderr:%s,interrupted:false,isImage:false,noOutputExpected:%b}", text, "",
							   !n);
	json_decref(text);
}

static void run_bash(const struct call *c) {
	const char *command = js_get(c->input, "command");
	json_t *timeout = json_object_get(c->input, "timeout");
	int64_t until = now_ms() + (json_is_integer(timeout) ? json_integer_value(timeout) : BASH_TIMEOUT);
	if (!command) command = "";
	if (js_true(c->input, "run_in_background")) {
		_cleanup_json_ json_t *task = background_shell(command, c->id);
		say(c, !task, js_printf("Command running in background with ID: %s", task ? json_string_value(task) : "none"));
		return;
	}
	struct job *job = job_start(command);
	if (!job) {
		say(c, true, js_printf("cannot start a shell: %s", strerror(errno)));
		return;
	}
	while (!job->exited && !phase_aborted() && now_ms() < until) poller_round(until);
	if (job->exited)
		say_shell(c, job);
	else
		say(c, true, js_make("%s", phase_aborted() ? "The command was interrupted" : "Command timed out"));
	c->o->aborted = !job->exited && phase_aborted();
	job_free(job);
}

/* ---- files ----------------------------------------------------------------------------------------------------- */

static bool read_file(const char *path, struct buf *b) {
	_cleanup_close_ int fd = open(path ? path : "", O_RDONLY | O_CLOEXEC);
	return fd >= 0 && buf_read(b, fd);
}

static bool write_file(const char *path, const char *text, size_t n) {
	_cleanup_close_ int fd = open(path ? path : "", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	return fd >= 0 && fd_write_all(fd, text, n) == 0;
}

static void run_read(const struct call *c) {
	_cleanup_(buf_free) struct buf in = JS_BUF;
	struct buf out = JS_BUF;
	if (!read_file(c->path, &in)) {
		say(c, true, js_printf("File does not exist or cannot be read: %s", strerror(errno)));
		return;
	}
	const char *p = in.data ? in.data : "", *end = p + in.len;
	for (long line = 1; p < end; line++) {
		const char *lf = memchr(p, '\n', (size_t)(end - p));
		buf_printf(&out, "%s%6ld\t", line > 1 ? "\n" : "", line);
		buf_put(&out, p, (size_t)((lf ? lf : end) - p));
		p = lf ? lf + 1 : end;
	}
	say(c, false, js_of(&out));
}

static void run_write(const struct call *c) {
	json_t *text = json_object_get(c->input, "content");
	if (write_file(c->path, json_string_value(text), json_string_length(text)))
		say(c, false, js_printf("File created successfully at: %s", c->path));
	else
		say(c, true, js_printf("cannot write %s: %s", c->path ? c->path : "a file", strerror(errno)));
}

static void run_edit(const struct call *c) {
	const char *from = js_get(c->input, "old_string"), *to = js_get(c->input, "new_string"), *hit;
	_cleanup_(buf_free) struct buf in = JS_BUF, out = JS_BUF;
	if (!from || !to || !read_file(c->path, &in)) {
		say(c, true, js_make("%s", "File does not exist, or old_string or new_string is missing"));
		return;
	}
	hit = in.data ? strstr(in.data, from) : NULL;
	if (!hit) {
		say(c, true, js_make("String to replace not found in file."));
		return;
	}
	buf_put(&out, in.data, (size_t)(hit - in.data));
	buf_puts(&out, to);
	buf_puts(&out, hit + strlen(from));
	bool ok = write_file(c->path, out.data, out.len);
	say(c, !ok, js_printf("The file %s has %sbeen updated.", c->path, ok ? "" : "not "));
}

static void run_glob(const struct call *c) {
	const char *pattern = js_get(c->input, "pattern");
	glob_t g = {0};
	struct buf b = JS_BUF;
	if (pattern && glob(pattern, 0, NULL, &g) == 0)
		for (size_t i = 0; i < g.gl_pathc; i++) buf_printf(&b, "%s%s", i ? "\n" : "", g.gl_pathv[i]);
	globfree(&g);
	if (!b.len) buf_puts(&b, "No files found");
	say(c, false, js_of(&b));
}

/* ---- questions ------------------------------------------------------------------------------------------------- */

static void run_question(const struct call *c) {
	struct buf b = JS_BUF;
	const char *question;
	json_t *answer;
	json_object_foreach(json_object_get(c->input, "answers"), question, answer) {
		const char *text = json_string_value(answer);
		buf_printf(&b, "%s\"%s\"=\"%s\"", b.len ? ", " : "User has answered your questions: ", question,
				   text ? text : "");
	}
	if (!b.len) buf_puts(&b, "User has answered your questions: none");
	say(c, false, js_of(&b));
}

static void run_exit_plan(const struct call *c) {
	if (strcmp(policy_mode(), "plan") == 0 && !policy_set_mode("default")) frames_mode();
	say(c, false, js_make("User has approved your plan. You can now start coding."));
}

static bool run_canned(const struct call *c, const json_t *canned) {
	if (!canned) return false;
	json_t *output = json_object_get(canned, "output");
	int64_t delay = json_integer_value(json_object_get(canned, "delay_ms"));
	if (delay > 0) poller_sleep(delay);
	say(c, js_true(canned, "is_error"), output ? json_incref(output) : js_make("%s", ""));
	c->o->aborted = phase_aborted();
	return true;
}

static const struct tool {
	const char *name;
	void (*run)(const struct call *c);
} TOOLS[] = {
	{"Bash", run_bash},
	{"Read", run_read},
	{"Write", run_write},
	{"Edit", run_edit},
	{"Glob", run_glob},
	{"AskUserQuestion", run_question},
	{"ExitPlanMode", run_exit_plan},
};

void toolbox_run(const char *name, json_t *input, const char *id, struct tool_output *o) {
	struct call c = {input, id, js_get(input, "file_path"), o};
	*o = (struct tool_output){0};
	if (run_canned(&c, scenario_tool(name))) return;
	if (strncmp(name, "mcp__", 5) == 0) {
		toolserver_call(name, input, id, o);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(TOOLS) && !o->content; i++)
		if (strcmp(TOOLS[i].name, name) == 0) TOOLS[i].run(&c);
	if (!o->content) say(&c, false, js_printf("%s: done", name));
}

void toolbox_free(struct tool_output *o) {
	json_decref(o->content);
	json_decref(o->detail);
}
