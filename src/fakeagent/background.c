/* SPDX-License-Identifier: MIT */
#include "fakeagent/background.h"

#include "base/str.h"
#include "fakeagent/asks.h"
#include "fakeagent/frames.h"
#include "fakeagent/permission.h"
#include "fakeagent/pump.h"
#include "fakeagent/queue.h"

#include <string.h>
#include <sys/wait.h>

/* The old one prints no list. */
void background_changed(struct agent *a) {
	if (a->opt->old) return;
	json_t *list = js_need(json_array()), *task;
	const char *id;
	json_object_foreach(a->background, id, task) json_array_append(list, task);
	frames_emit(a, json_pack("{s:s,s:s,s:o}", "type", "system", "subtype", "background_tasks_changed", "tasks", list));
}

static char *start(struct agent *a, const char *type, const char *description, const char *tool_use_id) {
	char *id = str_printf("b%07lx%ld", (unsigned long)getpid(), ++a->ids);
	json_object_set_new(a->background, id,
						json_pack("{s:s,s:s,s:o}", "task_id", id, "task_type", type, "description",
								  js_text(description, strlen(description))));
	json_t *f = js_need(json_pack("{s:s,s:s,s:s,s:o,s:s}", "type", "system", "subtype", "task_started", "task_id", id,
								  "description", js_text(description, strlen(description)), "task_type", type));
	if (tool_use_id) json_object_set_new(f, "tool_use_id", json_string(tool_use_id));
	if (!a->opt->old) json_object_set_new(f, "is_backgrounded", json_true());
	background_changed(a);
	frames_emit(a, f);
	return id;
}

static void finish(struct agent *a, const char *id, const char *status, const char *summary) {
	json_object_del(a->background, id);
	frames_emit(a, json_pack("{s:s,s:s,s:s,s:{s:s}}", "type", "system", "subtype", "task_updated", "task_id", id,
							 "patch", "status", status));
	frames_emit(a, json_pack("{s:s,s:s,s:s,s:s,s:s,s:o}", "type", "system", "subtype", "task_notification", "task_id",
							 id, "status", status, "output_file", "", "summary", js_text(summary, strlen(summary))));
	background_changed(a);
}

/* A turn that nobody asked for. */
static void start_turn(struct agent *a, const char *text) {
	_cleanup_json_ json_t *line = js_need(json_pack("{s:s,s:{s:s,s:s},s:b,s:{s:s}}", "type", "user", "message", "role",
													"user", "content", text, "fake_task", 1, "origin", "kind",
													"task-notification"));
	json_array_append(a->queue, line);
}

static void task_done(struct agent *a, json_t *arg) {
	const char *id = js_get(arg, "id"), *text = js_get(arg, "text");
	if (!json_object_get(a->background, id)) return;
	finish(a, id, "completed", text);
	start_turn(a, text);
}

void background_task(struct agent *a, long ms, const char *text) {
	_cleanup_free_ char *id = start(a, "local_agent", text, NULL);
	pump_after(a, ms, task_done, json_pack("{s:s,s:s}", "id", id, "text", text));
}

bool background_stop(struct agent *a, const char *id) {
	struct proc *p;
	if (!id || !json_object_get(a->background, id)) return false;
	LIST_FOR_EACH (p, &a->procs, struct proc, node) {
		const char *of = js_get(p->arg, "id");
		if (of && strcmp(of, id) == 0) proc_kill(p);
	}
	finish(a, id, "stopped", "Task stopped");
	return true;
}

/* ---- commands -------------------------------------------------------------------------------------------------- */

static void shell_done(struct agent *a, json_t *arg) {
	struct proc *p, *mine = NULL;
	const char *id = js_get(arg, "id");
	LIST_FOR_EACH (p, &a->procs, struct proc, node) {
		if (p->arg == arg) mine = p;
	}
	if (!mine || !json_object_get(a->background, id)) return;
	bool ok = WIFEXITED(mine->status) && WEXITSTATUS(mine->status) == 0;
	_cleanup_free_ char *text = str_printf("Background command %s %s", id, ok ? "completed" : "failed");
	finish(a, id, ok ? "completed" : "failed", text);
	if (js_true(arg, "turn")) start_turn(a, text);
}

static char *run(struct agent *a, const char *command, const char *tool_use_id, bool turn) {
	struct proc *p = proc_start(a, command);
	if (!p) return NULL;
	char *id = start(a, "local_bash", command, tool_use_id);
	p->then = shell_done;
	p->arg = js_need(json_pack("{s:s,s:b}", "id", id, "turn", turn));
	return id;
}

char *background_shell(struct agent *a, const char *command, const char *tool_use_id) {
	return run(a, command, tool_use_id, true);
}

/* ---- a subagent that asks -------------------------------------------------------------------------------------- */

static void asked(struct agent *a, struct ask *ask) {
	json_t *payload = asks_payload(ask), *input = json_object_get(payload, "updatedInput");
	const char *behavior = js_get(payload, "behavior");
	const char *id = js_get(ask->arg, "id"), *tool = js_get(ask->arg, "name");
	bool allowed = behavior && strcmp(behavior, "allow") == 0;
	if (!input) input = json_object_get(ask->arg, "input");
	json_object_del(a->background, id);
	_cleanup_free_ char *text = str_printf("%s was %s", tool, allowed ? "allowed" : "refused");
	finish(a, id, allowed ? "completed" : "failed", text);
	const char *command = js_get(input, "command");
	if (!allowed || strcmp(tool, "Bash") != 0 || !command) return;
	free(run(a, command, NULL, false));
}

static void ask_now(struct agent *a, json_t *job) {
	char tool_use_id[64];
	snprintf(tool_use_id, sizeof tool_use_id, "toolu_%08lx%04ld", (unsigned long)getpid(), ++a->ids);
	json_t *request = permission_request(js_get(job, "name"), json_object_get(job, "input"), tool_use_id, NULL);
	json_object_set(request, "agent_id", json_object_get(job, "id"));
	if (!a->opt->ask_stdio) {
		json_decref(request);
		return;
	}
	struct ask *ask = asks_send(a, request, -1);
	ask->of_turn = false;
	asks_then(a, ask, asked, json_incref(job));
}

void background_ask(struct agent *a, json_t *job) {
	_cleanup_free_ char *id = start(a, "local_agent", js_get(job, "name"), NULL);
	json_object_set_new(job, "id", json_string(id));
	pump_after(a, json_integer_value(json_object_get(job, "ms")), ask_now, job);
}
