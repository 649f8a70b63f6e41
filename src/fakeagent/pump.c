/* SPDX-License-Identifier: MIT */
#include "fakeagent/pump.h"

#include "base/fd.h"
#include "fakeagent/asks.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#define MAX_PROCS 64

struct timer {
	struct list node;
	int64_t at;
	timer_fn fn;
	json_t *arg;
};

void pump_after(struct agent *a, int64_t ms, timer_fn fn, json_t *arg) {
	struct timer *t = calloc(1, sizeof *t);
	if (!t) abort();
	*t = (struct timer){.at = now_ms() + ms, .fn = fn, .arg = arg};
	list_add_tail(&a->timers, &t->node);
}

static struct timer *first_timer(struct agent *a) {
	struct timer *t, *first = NULL;
	LIST_FOR_EACH (t, &a->timers, struct timer, node) {
		if (!first || t->at < first->at) first = t;
	}
	return first;
}

static void run_timers(struct agent *a) {
	struct timer *t;
	while ((t = first_timer(a)) && t->at <= now_ms()) {
		list_del(&t->node);
		t->fn(a, t->arg);
		json_decref(t->arg);
		free(t);
	}
}

/* ---- commands -------------------------------------------------------------------------------------------------- */

static void run_shell(const char *command, int out) {
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	setsid();
	int nothing = open("/dev/null", O_RDONLY);
	dup2(nothing, 0);
	dup2(out, 1);
	dup2(out, 2);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

struct proc *proc_start(struct agent *a, const char *command) {
	int fds[2];
	if (pipe2(fds, O_CLOEXEC) < 0) return NULL;
	pid_t pid = fork();
	if (pid == 0) run_shell(command, fds[1]);
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return NULL;
	}
	struct proc *p = calloc(1, sizeof *p);
	if (!p) abort();
	*p = (struct proc){.pid = pid, .pidfd = fd_pidfd(pid), .fd = fds[0], .out = BUF_INIT(SIZE_MAX / 2)};
	fd_nonblock(p->fd);
	list_add_tail(&a->procs, &p->node);
	return p;
}

/* One that has just been started may not have its group yet, and then nothing below it either. */
void proc_kill(struct proc *p) {
	if (!p->exited && kill(-p->pid, SIGKILL) < 0) kill(p->pid, SIGKILL);
}

static void proc_read(struct proc *p) {
	char some[65536];
	ssize_t n;
	while (p->fd >= 0 && (n = fd_read(p->fd, some, sizeof some)) != 0) {
		if (n < 0 && errno == EAGAIN) return;
		if (n < 0) break;
		buf_put(&p->out, some, (size_t)n);
	}
	if (p->fd >= 0) close(p->fd);
	p->fd = -1;
}

/* A command is over when its shell has exited; what it left running may go on and keep the pipe. One in the background
 * frees itself. */
static void proc_reap(struct agent *a, struct proc *p) {
	if (waitpid(p->pid, &p->status, WNOHANG) != p->pid) return;
	proc_read(p);
	p->exited = true;
	if (p->pidfd >= 0) close(p->pidfd);
	if (p->fd >= 0) close(p->fd);
	p->pidfd = p->fd = -1;
	if (!p->then) return;
	p->then(a, p->arg);
	proc_free(p);
}

void proc_free(struct proc *p) {
	if (!p) return;
	proc_kill(p);
	if (!p->exited) waitpid(p->pid, NULL, 0);
	if (p->pidfd >= 0) close(p->pidfd);
	if (p->fd >= 0) close(p->fd);
	list_del(&p->node);
	buf_free(&p->out);
	json_decref(p->arg);
	free(p);
}

/* ---- signals --------------------------------------------------------------------------------------------------- */

static void on_interrupt(struct agent *a) {
	a->quit = true;
	if (!a->turn) agent_exit(a, 0);
	a->abort = ABORT_SIGNAL;
	asks_settle_turn(a, ASK_CANCELLED);
}

static void read_signals(struct agent *a) {
	struct signalfd_siginfo s;
	while (fd_read(a->sigfd, &s, sizeof s) == (ssize_t)sizeof s) {
		if (s.ssi_signo == SIGINT) on_interrupt(a);
		if (s.ssi_signo == SIGTERM && !a->faults.ignore_sigterm) agent_exit(a, 143);
	}
}

/* ---- the round ------------------------------------------------------------------------------------------------- */

static int timeout_of(struct agent *a, int64_t until) {
	struct timer *t = first_timer(a);
	int64_t ask = asks_deadline(a);
	if (t && (until < 0 || t->at < until)) until = t->at;
	if (ask >= 0 && (until < 0 || ask < until)) until = ask;
	if (until < 0) return -1;
	int64_t left = until - now_ms();
	return left < 0 ? 0 : (int)MIN(left, (int64_t)1000000);
}

static nfds_t fill(struct agent *a, struct pollfd *p) {
	struct proc *c;
	p[0] = (struct pollfd){.fd = a->sigfd, .events = POLLIN};
	p[1] = (struct pollfd){.fd = input_wants(&a->in) ? a->in.fd : -1, .events = POLLIN};
	p[2] = (struct pollfd){.fd = out_waits(&a->out) ? a->out.fd : -1, .events = POLLOUT};
	nfds_t n = 3;
	LIST_FOR_EACH (c, &a->procs, struct proc, node) {
		if (n + 2 > 3 + 2 * MAX_PROCS) break;
		p[n++] = (struct pollfd){.fd = c->pidfd, .events = POLLIN};
		p[n++] = (struct pollfd){.fd = c->fd, .events = POLLIN};
	}
	return n;
}

static void run_procs(struct agent *a) {
	struct proc *c;
	LIST_FOR_EACH (c, &a->procs, struct proc, node) {
		if (c->exited) continue;
		proc_read(c);
		proc_reap(a, c);
	}
}

void pump(struct agent *a, int64_t until) {
	struct pollfd p[3 + 2 * MAX_PROCS];
	out_flush(&a->out);
	nfds_t n = fill(a, p);
	int timeout = input_ready(&a->in) ? 0 : timeout_of(a, until);
	if (poll(p, n, timeout) < 0 && errno != EINTR) agent_exit(a, 70);
	if (p[0].revents) read_signals(a);
	if (p[2].revents) out_flush(&a->out);
	if (!list_empty(&a->procs)) run_procs(a);
	if (p[1].revents) input_read(&a->in);
	input_handle(a);
	asks_expire(a);
	run_timers(a);
}

void pump_sleep(struct agent *a, int64_t ms) {
	int64_t until = now_ms() + ms;
	do {
		pump(a, until);
	} while (!a->abort && now_ms() < until);
}
