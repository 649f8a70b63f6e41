/* SPDX-License-Identifier: MIT */
#include "fakeagent/tool.h"

#include "base/fd.h"
#include "fakeagent/background.h"
#include "fakeagent/conversation.h"
#include "fakeagent/out.h"
#include "fakeagent/permission.h"
#include "fakeagent/toolserver.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>

#define BASH_TIMEOUT 120000
#define REJECTED                                                                                                       \
	"The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the "  \
	"new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to "       \
	"proceed."

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
	_cleanup_json_ json_t *text = background_output(job);
	const char *p = json_string_value(text);
	if (job->code)
		say(c, true, js_printf("Exit code %d%s%s", job->code, *p ? "\n" : "", p));
	else
		say(c, false, *p ? json_incref(text) : js_string("(Bash completed with no output)"));
	if (!job->code)
		c->o->detail = js_make("{stdout:%O,stderr:%s,interrupted:false,isImage:false,noOutputExpected:%b}", text, "",
							   !*p);
}

static void run_bash(const struct call *c) {
	const char *command = js_get(c->input, "command");
	json_int_t timeout = js_number(c->input, "timeout");
	int64_t until = now_ms() + (timeout ? timeout : BASH_TIMEOUT);
	if (!command) command = "";
	if (js_true(c->input, "run_in_background")) {
		_cleanup_json_ json_t *task = background_shell(command, c->id, true);
		say(c, !task, js_printf("Command running in background with ID: %s", task ? json_string_value(task) : "none"));
		return;
	}
	struct job *job = background_run(command);
	if (!job) {
		say(c, true, js_printf("cannot start a shell: %s", strerror(errno)));
		return;
	}
	while (!job->exited && !agent.aborted && now_ms() < until) poller_round(until);
	if (job->exited)
		say_shell(c, job);
	else
		say(c, true, js_string(agent.aborted ? "The command was interrupted" : "Command timed out"));
	c->o->aborted = !job->exited && agent.aborted;
	background_free(job);
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
	const char *from = js_get(c->input, "old_string"), *to = js_get(c->input, "new_string");
	_cleanup_(buf_free) struct buf in = JS_BUF, out = JS_BUF;
	if (!from || !to || !read_file(c->path, &in)) {
		say(c, true, js_string("File does not exist, or old_string or new_string is missing"));
		return;
	}
	const char *hit = in.data ? strstr(in.data, from) : NULL;
	if (!hit) {
		say(c, true, js_string("String to replace not found in file."));
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
		buf_printf(&b, "%s\"%s\"=\"%s\"", b.len ? ", " : "", question, text ? text : "");
	}
	say(c, false, js_printf("User has answered your questions: %s", b.len ? b.data : "none"));
	buf_free(&b);
}

static void run_exit_plan(const struct call *c) {
	if (strcmp(agent.mode, "plan") == 0 && !permission_set_mode("default")) out_mode();
	say(c, false, js_string("User has approved your plan. You can now start coding."));
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

static void execute(const char *name, json_t *input, const char *id, struct tool_output *o) {
	struct call c = {input, id, js_get(input, "file_path"), o};
	const json_t *canned = json_object_get(json_object_get(agent.script, "tools"), name);
	if (canned) {
		json_t *output = json_object_get(canned, "output");
		if (js_number(canned, "delay_ms") > 0) poller_sleep(js_number(canned, "delay_ms"));
		say(&c, js_true(canned, "is_error"), output ? json_incref(output) : js_string(""));
		o->aborted = agent.aborted;
	} else if (strncmp(name, "mcp__", 5) == 0) {
		toolserver_call(name, input, id, o);
	}
	for (size_t i = 0; i < ARRAY_SIZE(TOOLS) && !o->content; i++)
		if (strcmp(TOOLS[i].name, name) == 0) TOOLS[i].run(&c);
	if (!o->content) say(&c, false, js_printf("%s: done", name));
}

/* ---- the calls of a reply -------------------------------------------------------------------------------------- */

struct batch {
	json_t *results; /* for the model */
	json_t *context; /* texts of hooks, after the results */
	struct tool_moment *moment;
	bool stopped;
	json_t *deferred;
};

/* Print one tool_result and add it to those for the model. Takes content and detail. */
static void give(struct batch *b, const json_t *use, json_t *content, bool failed, json_t *detail) {
	json_t *block = js_view(use, "{tool_use_id:$id,type:tool_result,content:%o,is_error:%b}", content, failed);
	json_array_append(b->results, block);
	out_user(js_make("[%o]", block), detail);
}

static void reject(struct batch *b, const json_t *use) {
	give(b, use, js_string(REJECTED), true, js_make("User rejected tool use"));
}

static void refuse(struct batch *b, const json_t *use, json_t *text) {
	give(b, use, text, true, js_printf("Error: %s", json_string_value(text)));
}

static void end_hooks(struct batch *b, struct callback_outcome *o) {
	json_array_extend(b->context, o->context);
	b->stopped |= o->stop;
	callback_free(o);
}

static void run_allowed(struct batch *b, const json_t *use, json_t *input) {
	struct tool_output out = {0};
	struct callback_outcome o;
	const char *name = js_get(use, "name"), *id = js_get(use, "id");
	execute(name, input, id, &out);
	if (!out.aborted && !out.failed) {
		callback_run(
			"PostToolUse", name,
			js_view(use, "{tool_name:$name,tool_input:%O,tool_use_id:$id,tool_response:%O}", input, out.content), id,
			&o);
		if (o.decision == POLICY_DENY && o.reason) js_add(b->context, js_string(o.reason));
		end_hooks(b, &o);
	}
	_cleanup_json_ json_t *text = js_content(out.content);
	js_replace(&b->moment->tool, name);
	js_replace(&b->moment->output, json_string_value(text));
	b->moment->failed = out.failed;
	give(b, use, out.content, out.failed, out.detail);
}

static void run_decided(struct batch *b, const json_t *use, const struct callback_outcome *before) {
	struct permission p;
	permission_decide(use, before, &p);
	if (p.interrupt) agent_abort(ABORT_INTERRUPT);
	if (agent.aborted || p.aborted)
		reject(b, use);
	else if (p.allowed)
		run_allowed(b, use, p.input);
	else
		refuse(b, use, js_string(p.refusal));
	permission_free(&p);
}

static void run_one(struct batch *b, const json_t *use) {
	struct callback_outcome o;
	const char *name = js_get(use, "name");
	callback_run("PreToolUse", name, js_view(use, "{tool_name:$name,tool_input:$input,tool_use_id:$id}"),
				 js_get(use, "id"), &o);
	const char *why = o.reason ? o.reason : "Blocked by hook";
	if (o.decision == POLICY_DEFER)
		b->deferred = js_view(use, "{id:$id,name:$name,input:$input}");
	else if (agent.aborted)
		reject(b, use);
	else if (o.decision == POLICY_DENY)
		refuse(b, use, agent.old ? js_string(why) : js_printf("PreToolUse:%s hook error: %s", name, why));
	else
		run_decided(b, use, &o);
	end_hooks(b, &o);
}

enum tool_end tool_run(const json_t *blocks, struct tool_moment *m, json_t **deferred) {
	struct batch b = {.results = js_make("[]"), .context = js_make("[]"), .moment = m};
	JS_EACH (use, blocks) {
		if (!js_is(use.v, "type", "tool_use")) continue;
		if (agent.aborted || b.deferred)
			reject(&b, use.v);
		else
			run_one(&b, use.v);
	}
	JS_EACH (text, b.context) js_add(b.results, js_make("{type:text,text:%O}", text.v));
	json_decref(b.context);
	conversation_add("user", b.results, NULL);
	*deferred = b.deferred;
	return b.deferred ? TOOL_DEFERRED : b.stopped ? TOOL_STOPPED : TOOL_DONE;
}
