/* SPDX-License-Identifier: MIT */
#include "fakeagent/tool.h"

#include "fakeagent/background.h"
#include "fakeagent/callback.h"
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

/* ---- tools: each returns its output, new: content; failed, aborted, and detail, the tool_use_result -------------- */

/* These take text. */
static json_t *good(json_t *text) {
	return js_make("{content:%o}", text);
}

static json_t *bad(json_t *text) {
	return js_make("{content:%o,failed:true}", text);
}

static json_t *run_bash(const json_t *use) {
	const char *command = js_get(use, "input.command");
	json_int_t timeout = js_number(use, "input.timeout");
	int64_t until = now_ms() + (timeout ? timeout : BASH_TIMEOUT);
	if (!command) command = "";
	if (json_is_true(js_at(use, "input.run_in_background"))) {
		_cleanup_json_ json_t *task = background_shell(command, js_get(use, "id"), true);
		return task ? good(js_printf("Command running in background with ID: %s", json_string_value(task)))
					: bad(js_printf("cannot start a shell: %s", strerror(errno)));
	}
	struct job *job = background_run(command);
	if (!job) return bad(js_printf("cannot start a shell: %s", strerror(errno)));
	while (!job->exited && !agent.aborted && now_ms() < until) poller_round(until);
	_cleanup_json_ json_t *text = background_output(job);
	bool exited = job->exited;
	const char *p = json_string_value(text);
	int code = job->code;
	background_free(job);
	if (!exited && agent.aborted) return js_make("{content:The command was interrupted,failed:true,aborted:true}");
	if (!exited) return bad(js_string("Command timed out"));
	if (code) return bad(js_printf("Exit code %d%s%s", code, *p ? "\n" : "", p));
	return js_make("{content:%o,detail:{stdout:%O,stderr:%s,interrupted:false,isImage:false,noOutputExpected:%b}}",
				   *p ? json_incref(text) : js_string("(Bash completed with no output)"), text, "", !*p);
}

static bool read_file(const char *path, struct buf *b) {
	_cleanup_close_ int fd = open(path ? path : "", O_RDONLY | O_CLOEXEC);
	return fd >= 0 && buf_read(b, fd);
}

static bool write_file(const char *path, const char *text, size_t n) {
	_cleanup_close_ int fd = open(path ? path : "", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	return fd >= 0 && fd_write_all(fd, text, n) == 0;
}

static json_t *run_read(const json_t *use) {
	_cleanup_(buf_free) struct buf in = JS_BUF;
	struct buf out = JS_BUF;
	if (!read_file(js_get(use, "input.file_path"), &in))
		return bad(js_printf("File does not exist or cannot be read: %s", strerror(errno)));
	const char *p = in.data ? in.data : "", *end = p + in.len;
	for (long line = 1; p < end; line++) {
		const char *lf = memchr(p, '\n', (size_t)(end - p));
		buf_printf(&out, "%s%6ld\t", line > 1 ? "\n" : "", line);
		buf_put(&out, p, (size_t)((lf ? lf : end) - p));
		p = lf ? lf + 1 : end;
	}
	return good(js_of(&out));
}

static json_t *run_write(const json_t *use) {
	const char *path = js_get(use, "input.file_path");
	json_t *text = js_at(use, "input.content");
	if (write_file(path, json_string_value(text), json_string_length(text)))
		return good(js_printf("File created successfully at: %s", path));
	return bad(js_printf("cannot write %s: %s", path ? path : "a file", strerror(errno)));
}

static json_t *run_edit(const json_t *use) {
	const char *path = js_get(use, "input.file_path"), *from = js_get(use, "input.old_string");
	const char *to = js_get(use, "input.new_string");
	_cleanup_(buf_free) struct buf in = JS_BUF, out = JS_BUF;
	if (!from || !to || !read_file(path, &in))
		return bad(js_string("File does not exist, or old_string or new_string is missing"));
	const char *hit = in.data ? strstr(in.data, from) : NULL;
	if (!hit) return bad(js_string("String to replace not found in file."));
	buf_put(&out, in.data, (size_t)(hit - in.data));
	buf_printf(&out, "%s%s", to, hit + strlen(from));
	if (write_file(path, out.data, out.len)) return good(js_printf("The file %s has been updated.", path));
	return bad(js_printf("The file %s has not been updated.", path));
}

static json_t *run_glob(const json_t *use) {
	const char *pattern = js_get(use, "input.pattern");
	glob_t g = {0};
	struct buf b = JS_BUF;
	if (pattern && glob(pattern, 0, NULL, &g) == 0)
		for (size_t i = 0; i < g.gl_pathc; i++) buf_printf(&b, "%s%s", i ? "\n" : "", g.gl_pathv[i]);
	globfree(&g);
	if (!b.len) buf_puts(&b, "No files found");
	return good(js_of(&b));
}

static json_t *run_question(const json_t *use) {
	_cleanup_(buf_free) struct buf b = JS_BUF;
	const char *question;
	json_t *answer;
	json_object_foreach(js_at(use, "input.answers"), question, answer) {
		const char *text = json_string_value(answer);
		buf_printf(&b, "%s\"%s\"=\"%s\"", b.len ? ", " : "", question, text ? text : "");
	}
	return good(js_printf("User has answered your questions: %s", b.len ? b.data : "none"));
}

static json_t *run_exit_plan(const json_t *use) {
	(void)use;
	if (strcmp(agent.mode, "plan") == 0 && !permission_set_mode("default")) out_mode();
	return good(js_string("User has approved your plan. You can now start coding."));
}

static const struct tool {
	const char *name;
	json_t *(*run)(const json_t *use);
} TOOLS[] = {
	{"Bash", run_bash},
	{"Read", run_read},
	{"Write", run_write},
	{"Edit", run_edit},
	{"Glob", run_glob},
	{"AskUserQuestion", run_question},
	{"ExitPlanMode", run_exit_plan},
};

static json_t *execute(const json_t *use) {
	const char *name = js_get(use, "name");
	const json_t *canned = json_object_get(json_object_get(agent.script, "tools"), name);
	if (canned) {
		if (js_number(canned, "delay_ms") > 0) poller_sleep(js_number(canned, "delay_ms"));
		json_t *output = json_object_get(canned, "output");
		return js_make("{content:%o,failed:%b,aborted:%b}", output ? json_incref(output) : js_string(""),
					   js_true(canned, "is_error"), agent.aborted != ABORT_NONE);
	}
	if (strncmp(name, "mcp__", 5) == 0) return toolserver_call(use);
	for (size_t i = 0; i < ARRAY_SIZE(TOOLS); i++)
		if (strcmp(TOOLS[i].name, name) == 0) return TOOLS[i].run(use);
	return good(js_printf("%s: done", name));
}

/* ---- the calls of a reply -------------------------------------------------------------------------------------- */

struct batch {
	json_t *results; /* for the model */
	json_t *context; /* texts of hooks, after the results */
	json_t *moment;
	json_t *end; /* what tool_run() returns */
};

/* Print one tool_result and add it to those for the model. Takes content and detail. */
static void give(struct batch *b, const json_t *use, json_t *content, bool failed, json_t *detail) {
	json_t *block = js_view(use, "{tool_use_id:$id,type:tool_result,content:%o,is_error:%b}", content, failed);
	json_array_append(b->results, block);
	out_user(js_make("[%o]", block), detail);
}

static void reject(struct batch *b, const json_t *use) {
	give(b, use, js_string(REJECTED), true, js_string("User rejected tool use"));
}

static void refuse(struct batch *b, const json_t *use, json_t *text) {
	give(b, use, text, true, js_printf("Error: %s", json_string_value(text)));
}

static void take_hooks(struct batch *b, const json_t *outcome) {
	json_array_extend(b->context, json_object_get(outcome, "context"));
	if (js_true(outcome, "stop")) js_put(b->end, "stopped", json_true());
}

/* use: with the input that was allowed. */
static void run_allowed(struct batch *b, const json_t *use) {
	_cleanup_json_ json_t *out = execute(use);
	json_t *content = json_object_get(out, "content");
	bool failed = js_true(out, "failed");
	if (!failed && !js_true(out, "aborted")) {
		_cleanup_json_ json_t *o = callback_run("PostToolUse", use,
												js_view(use, "{tool_use_id:$id,tool_response:%O}", content));
		if (js_is(o, "decision", "deny") && js_get(o, "reason")) js_add(b->context, js_view(o, "$reason"));
		take_hooks(b, o);
	}
	js_merge(b->moment, js_view(use, "{tool:$name,output:%o,is_error:%b}", js_content(content), failed));
	give(b, use, json_incref(content), failed, json_incref(json_object_get(out, "detail")));
}

static void run_one(struct batch *b, const json_t *use) {
	const char *name = js_get(use, "name");
	_cleanup_json_ json_t *o = callback_run("PreToolUse", use, js_view(use, "{tool_use_id:$id}")), *p = NULL,
						  *allowed = NULL;
	const char *why = js_get(o, "reason") ? js_get(o, "reason") : "Blocked by hook";
	if (js_is(o, "decision", "defer")) {
		js_put(b->end, "deferred", js_view(use, "{id:$id,name:$name,input:$input}"));
	} else if (agent.aborted) {
		reject(b, use);
	} else if (js_is(o, "decision", "deny")) {
		refuse(b, use, agent.old ? js_string(why) : js_printf("PreToolUse:%s hook error: %s", name, why));
	} else {
		p = permission_decide(use, o);
		allowed = js_view(use, "{id:$id,name:$name,input:%O}", json_object_get(p, "input"));
		if (js_true(p, "interrupt")) agent_abort(ABORT_INTERRUPT);
		if (agent.aborted || !json_object_size(p))
			reject(b, use);
		else if (json_object_get(p, "input"))
			run_allowed(b, allowed);
		else
			refuse(b, use, js_view(p, "$message"));
	}
	take_hooks(b, o);
}

json_t *tool_run(const json_t *blocks, json_t *moment) {
	struct batch b = {.results = js_make("[]"), .context = js_make("[]"), .moment = moment, .end = json_object()};
	JS_EACH (use, blocks) {
		if (!js_is(use.v, "type", "tool_use")) continue;
		if (agent.aborted || json_object_get(b.end, "deferred"))
			reject(&b, use.v);
		else
			run_one(&b, use.v);
	}
	JS_EACH (text, b.context) js_add(b.results, js_make("{type:text,text:%O}", text.v));
	json_decref(b.context);
	conversation_add("user", b.results, NULL);
	return b.end;
}
