/* SPDX-License-Identifier: MIT */
#include "fakeagent/background.h"

#include "fakeagent/backlog.h"
#include "fakeagent/frames.h"
#include "fakeagent/job.h"
#include "fakeagent/permission.h"
#include "fakeagent/query.h"

static json_t *tasks; /* running tasks by task_id */

void background_changed(void) {
	json_t *list = js_make("[]"), *task;
	const char *id;
	json_object_foreach(tasks, id, task) json_array_append(list, task);
	frames_emit("{type:system,subtype:background_tasks_changed,tasks:%o}", list);
}

/* Return the id of the new task. */
static json_t *start(const char *type, const char *description, const char *tool_use_id) {
	json_t *id = js_id("b");
	if (!tasks) tasks = js_make("{}");
	js_put(tasks, json_string_value(id), js_make("{task_id:%O,task_type:%s,description:%s}", id, type, description));
	background_changed();
	frames_emit("{type:system,subtype:task_started,task_id:%O,description:%s,task_type:%s,tool_use_id:%z,"
				"is_backgrounded:true}",
				id, description, type, tool_use_id);
	return id;
}

static void finish(const char *id, const char *status, json_t *summary) {
	json_object_del(tasks, id);
	frames_emit("{type:system,subtype:task_updated,task_id:%s,patch:{status:%s}}", id, status);
	frames_emit("{type:system,subtype:task_notification,task_id:%s,status:%s,output_file:%s,summary:%o}", id, status,
				"", summary);
	background_changed();
}

void background_stop(const char *id) {
	if (!id || !json_object_get(tasks, id)) return;
	struct job *job = job_find("id", id);
	if (job) job_kill(job);
	finish(id, "stopped", js_make("Task stopped"));
}

/* ---- tasks ----------------------------------------------------------------------------------------------------- */

static void task_done(json_t *arg) {
	const char *id = js_get(arg, "id"), *text = js_get(arg, "text");
	if (!json_object_get(tasks, id)) return;
	finish(id, "completed", js_string(text));
	backlog_add_task(text);
}

void background_task(long ms, const char *text) {
	poller_after(ms, task_done, js_make("{id:%o,text:%s}", start("local_agent", text, NULL), text));
}

/* ---- commands -------------------------------------------------------------------------------------------------- */

static void shell_done(struct job *job) {
	const char *id = js_get(job->arg, "id"), *status = job->code ? "failed" : "completed";
	if (!json_object_get(tasks, id)) return;
	_cleanup_json_ json_t *text = js_printf("Background command %s %s", id, status);
	finish(id, status, json_incref(text));
	if (js_true(job->arg, "turn")) backlog_add_task(json_string_value(text));
}

static json_t *run(const char *command, const char *tool_use_id, bool turn) {
	struct job *job = job_start(command);
	if (!job) return NULL;
	json_t *id = start("local_bash", command, tool_use_id);
	job->then = shell_done;
	job->arg = js_make("{id:%O,turn:%b}", id, turn);
	return id;
}

json_t *background_shell(const char *command, const char *tool_use_id) {
	return run(command, tool_use_id, true);
}

/* ---- a subagent that asks -------------------------------------------------------------------------------------- */

static void asked(struct query *q) {
	json_t *payload = query_payload(q), *input = json_object_get(payload, "updatedInput");
	const char *tool = js_get(q->arg, "name");
	bool allowed = js_is(payload, "behavior", "allow");
	finish(js_get(q->arg, "id"), allowed ? "completed" : "failed",
		   js_printf("%s was %s", tool, allowed ? "allowed" : "refused"));
	const char *command = js_get(input ? input : json_object_get(q->arg, "input"), "command");
	if (allowed && command && strcmp(tool, "Bash") == 0) json_decref(run(command, NULL, false));
}

static void ask_now(json_t *ask) {
	if (!agent.ask_stdio) return;
	_cleanup_json_ json_t *use = js_id("toolu_0");
	json_t *request = permission_request(js_get(ask, "name"), json_object_get(ask, "input"), json_string_value(use),
										 NULL);
	json_object_set(request, "agent_id", json_object_get(ask, "id"));
	query_then(query_send(request, -1), asked, json_incref(ask));
}

void background_ask(json_t *ask) {
	js_put(ask, "id", start("local_agent", js_get(ask, "name"), NULL));
	poller_after(json_integer_value(json_object_get(ask, "ms")), ask_now, ask);
}
