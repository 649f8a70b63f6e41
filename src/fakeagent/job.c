/* SPDX-License-Identifier: MIT */
#include "fakeagent/job.h"

#include "base/fd.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

static struct list jobs = LIST_SELF(jobs);

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
void job_kill(struct job *job) {
	if (!job->exited && kill(-job->pid, SIGKILL) < 0) kill(job->pid, SIGKILL);
}

static void kill_all(void) {
	struct job *job;
	LIST_FOR_EACH (job, &jobs, struct job, node) job_kill(job);
}

/* A command ends with its shell; its remaining processes may run on and write. */
static void reap(struct watch *w, int events) {
	struct job *job = CONTAINER_OF(w, struct job, watch);
	int status;
	(void)events;
	if (waitpid(job->pid, &status, WNOHANG) != job->pid) return;
	job->exited = true;
	job->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	list_del(&w->node);
	if (!job->then) return;
	job->then(job);
	job_free(job);
}

struct job *job_start(const char *command) {
	static bool registered;
	if (!registered) atexit(kill_all);
	registered = true;
	int out = memfd_create("output", MFD_CLOEXEC);
	pid_t pid = out < 0 ? -1 : fork();
	if (pid == 0) run_shell(command, out);
	if (pid < 0) {
		if (out >= 0) close(out);
		return NULL;
	}
	struct job *job = calloc(1, sizeof *job);
	if (!job) js_no_memory();
	*job = (struct job){.watch = {.fd = fd_pidfd(pid), .act = reap}, .pid = pid, .out = out};
	list_add_tail(&jobs, &job->node);
	poller_add(&job->watch);
	return job;
}

json_t *job_output(const struct job *job) {
	struct buf b = JS_BUF;
	struct stat st;
	size_t size = fstat(job->out, &st) == 0 ? (size_t)st.st_size : 0;
	if (!buf_reserve(&b, size)) js_no_memory();
	ssize_t n = pread(job->out, b.data, size, 0);
	b.len = n > 0 ? (size_t)n : 0;
	while (b.len && b.data[b.len - 1] == '\n') b.len--;
	return js_of(&b);
}

struct job *job_find(const char *key, const char *value) {
	struct job *job;
	LIST_FOR_EACH (job, &jobs, struct job, node)
		if (js_is(job->arg, key, value)) return job;
	return NULL;
}

void job_free(struct job *job) {
	job_kill(job);
	if (!job->exited) waitpid(job->pid, NULL, 0);
	list_del(&job->watch.node);
	list_del(&job->node);
	close(job->watch.fd);
	close(job->out);
	json_decref(job->arg);
	free(job);
}
