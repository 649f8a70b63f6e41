/* SPDX-License-Identifier: MIT */
#include "fakeagent/background.h"

#include "fakeagent/backlog.h"
#include "fakeagent/out.h"
#include "fakeagent/permission.h"
#include "fakeagent/query.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

static struct list jobs = LIST_SELF(jobs);
static json_t *tasks; /* running tasks by task_id */

void background_changed(void) {
	json_t *list = js_make("[]"), *task;
	const char *id;
	json_object_foreach(tasks, id, task) json_array_append(list, task);
	out_emit("{type:system,subtype:background_tasks_changed,tasks:%o}", list);
}

/* Return the id of the new task. */
static json_t *start(const char *type, const char *description, const char *tool_use_id) {
	json_t *id = js_id("b");
	if (!tasks) tasks = js_make("{}");
	js_put(tasks, json_string_value(id), js_make("{task_id:%O,task_type:%s,description:%s}", id, type, description));
	background_changed();
	out_emit("{type:system,subtype:task_started,task_id:%O,description:%s,task_type:%s,tool_use_id:%z,"
			 "is_backgrounded:true}",
			 id, description, type, tool_use_id);
	return id;
}

/* Return false if the task is not running. */
static bool finish(const char *id, const char *status, const char *summary) {
	if (json_object_del(tasks, id) != 0) return false;
	out_emit("{type:system,subtype:task_updated,task_id:%s,patch:{status:%s}}", id, status);
	out_emit("{type:system,subtype:task_notification,task_id:%s,status:%s,output_file:%s,summary:%s}", id, status, "",
			 summary);
	background_changed();
	return true;
}

static void task_done(json_t *arg) {
	const char *text = js_get(arg, "text");
	if (finish(js_get(arg, "id"), "completed", text)) backlog_add_task(text);
}

void background_task(long ms, const char *text) {
	poller_after(ms, task_done, js_make("{id:%o,text:%s}", start("local_agent", text, NULL), text));
}

static void run_shell(const char *command, int out) {
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	setsid();
	dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
	dup2(out, 1);
	dup2(out, 2);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

/* A job just started may have no group yet, and then no children either. */
static void end(const struct job *job) {
	if (!job->exited && kill(-job->pid, SIGKILL) < 0) kill(job->pid, SIGKILL);
}

static void end_all(void) {
	struct job *job;
	LIST_FOR_EACH (job, &jobs, struct job, node) end(job);
}

/* A command ends with its shell; its remaining processes may run on and write. */
static void reap(struct watch *w, int events) {
	struct job *job = CONTAINER_OF(w, struct job, watch);
	const char *id = js_get(job->task, "id");
	int status;
	(void)events;
	if (waitpid(job->pid, &status, WNOHANG) != job->pid) return;
	job->exited = true;
	job->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	list_del(&w->node);
	if (!id) return;
	const char *how = job->code ? "failed" : "completed";
	_cleanup_json_ json_t *text = js_printf("Background command %s %s", id, how);
	if (finish(id, how, json_string_value(text)) && js_true(job->task, "turn"))
		backlog_add_task(json_string_value(text));
	background_free(job);
}

struct job *background_run(const char *command) {
	static bool registered;
	if (!registered) atexit(end_all);
	registered = true;
	_cleanup_close_ int out = memfd_create("output", MFD_CLOEXEC);
	pid_t pid = out < 0 ? -1 : fork();
	if (pid == 0) run_shell(command, out);
	struct job *job = pid < 0 ? NULL : calloc(1, sizeof *job);
	if (pid < 0) return NULL;
	if (!job) js_no_memory();
	*job = (struct job){.watch = {.fd = fd_pidfd(pid), .act = reap}, .pid = pid, .out = out};
	out = -1;
	list_add_tail(&jobs, &job->node);
	poller_add(&job->watch);
	return job;
}

json_t *background_output(const struct job *job) {
	struct buf b = JS_BUF;
	struct stat st;
	size_t size = fstat(job->out, &st) == 0 ? (size_t)st.st_size : 0;
	if (!buf_reserve(&b, size)) js_no_memory();
	ssize_t n = pread(job->out, b.data, size, 0);
	b.len = n > 0 ? (size_t)n : 0;
	while (b.len && b.data[b.len - 1] == '\n') b.len--;
	return js_of(&b);
}

void background_free(struct job *job) {
	end(job);
	if (!job->exited) waitpid(job->pid, NULL, 0);
	list_del(&job->watch.node);
	list_del(&job->node);
	close(job->watch.fd);
	close(job->out);
	json_decref(job->task);
	free(job);
}

json_t *background_shell(const char *command, const char *tool_use_id, bool turn) {
	struct job *job = background_run(command);
	if (!job) return NULL;
	json_t *id = start("local_bash", command, tool_use_id);
	job->task = js_make("{id:%O,turn:%b}", id, turn);
	return id;
}

void background_stop(const char *id) {
	struct job *job;
	LIST_FOR_EACH (job, &jobs, struct job, node)
		if (id && js_is(job->task, "id", id)) end(job);
	if (id) finish(id, "stopped", "Task stopped");
}

static void asked(struct query *q) {
	json_t *payload = query_payload(q), *input = json_object_get(payload, "updatedInput");
	bool allowed = js_is(payload, "behavior", "allow"), bash = js_is(q->arg, "name", "Bash");
	_cleanup_json_ json_t *text = js_printf("%s was %s", js_get(q->arg, "name"), allowed ? "allowed" : "refused");
	finish(js_get(q->arg, "id"), allowed ? "completed" : "failed", json_string_value(text));
	const char *command = js_get(input ? input : json_object_get(q->arg, "input"), "command");
	if (allowed && command && bash) json_decref(background_shell(command, NULL, false));
}

static void ask_now(json_t *ask) {
	if (!agent.ask_stdio) return;
	_cleanup_json_ json_t *use = js_view(ask, "{id:%o,name:$name}", js_id("toolu_0"));
	json_t *request = permission_request(use, json_object_get(ask, "input"), NULL);
	json_object_set(request, "agent_id", json_object_get(ask, "id"));
	query_then(query_send(request, -1), asked, json_incref(ask));
}

void background_ask(json_t *ask) {
	js_put(ask, "id", start("local_agent", js_get(ask, "name"), NULL));
	poller_after(js_number(ask, "ms"), ask_now, ask);
}
