/* SPDX-License-Identifier: MIT */
#include "upgrade.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define PREVIEW_MS 10000 /* for the new binary to read the configuration, while the old one continues */
#define TRIAL_MS 5000    /* to read the state, while the old one is blocked */
#define SAID_MAX 4096    /* of its output */
#define DELETED " (deleted)"

extern char **environ;

struct upgrade {
	const struct upgrade_host *host;
	void *arg;
	struct loop *loop;
	struct children *children;
	char *exe; /* the path of this program */
	char *const *argv;
	struct loop_task hush_task, task; /* after a successful preview: takes over at the end of a turn */
	struct child preview;
	struct loop_fd preview_err;
	struct loop_timer preview_timer;
	struct buf said;
	bool under_way, late;
};

static char *find_exe(void) {
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path);
	size_t cut = strlen(DELETED);
	if (n <= 0 || (size_t)n == sizeof path) return NULL;
	if ((size_t)n > cut && memcmp(path + (size_t)n - cut, DELETED, cut) == 0) n -= (ssize_t)cut;
	return strndup(path, (size_t)n);
}

/* Return the path by which this program was started, if it still leads to it: a link that later points to another
 * version is followed then. */
static char *find_link(const char *word, const char *exe) {
	char cwd[4096];
	struct error error;
	int number;
	if (!getcwd(cwd, sizeof cwd)) return NULL;
	char *path = child_find_program(word, getenv("PATH"), cwd, &number, &error);
	_cleanup_free_ char *real = path ? realpath(path, NULL) : NULL;
	if (real && strcmp(real, exe) == 0) return path;
	free(path);
	return NULL;
}

static char *find_program(const char *word) {
	char *exe = find_exe(), *link = exe ? find_link(word, exe) : NULL;
	if (!link) return exe ? exe : strdup(word);
	free(exe);
	return link;
}

/* --- the command line --------------------------------------------------------------------------------------------- */

struct command {
	char **argv;
	char option[24], number[16];
};

/* Copy argv with one more option, without the descriptor of an earlier upgrade. fd -1: an option without value. */
static bool make_command(struct command *cmd, const struct upgrade *u, const char *option, int fd) {
	size_t n = 0, out = 0;
	while (u->argv[n]) n++;
	cmd->argv = calloc(n + 3, sizeof *cmd->argv);
	if (!cmd->argv) return false;
	snprintf(cmd->option, sizeof cmd->option, "%s", option);
	snprintf(cmd->number, sizeof cmd->number, "%d", fd);
	cmd->argv[out++] = u->argv[0];
	cmd->argv[out++] = cmd->option;
	if (fd >= 0) cmd->argv[out++] = cmd->number;
	for (size_t i = 1; i < n; i++)
		if (strcmp(u->argv[i], "--resume-from") == 0)
			i++;
		else
			cmd->argv[out++] = u->argv[i];
	cmd->argv[out] = NULL;
	return true;
}

/* Return the last line of the output: it has the result. */
static const char *last_line(struct buf *said) {
	if (!said->data) return "it said nothing";
	while (said->len && said->data[said->len - 1] == '\n') said->data[--said->len] = 0;
	const char *lf = memrchr(said->data, '\n', said->len);
	return lf ? lf + 1 : said->data;
}

static bool judge(const struct upgrade *u, int status, bool in_time, struct buf *said, struct error *error) {
	if (!in_time)
		error_set(error, "%s was tried and does not come to an end", u->exe);
	else if (WIFSIGNALED(status))
		error_set(error, "%s was tried and killed by signal %d: %.200s", u->exe, WTERMSIG(status), last_line(said));
	else if (WEXITSTATUS(status) != 0)
		error_set(error, "%s cannot take over (status %d): %.300s", u->exe, WEXITSTATUS(status), last_line(said));
	else
		return true;
	return false;
}

/* --- the preview -------------------------------------------------------------------------------------------------- */

static void read_preview(struct upgrade *u) {
	char data[1024];
	ssize_t n;
	while ((n = fd_read(u->preview.err, data, sizeof data)) > 0) buf_put(&u->said, data, (size_t)n);
	if (n == 0) loop_fd_stop(&u->preview_err);
}

static void on_preview_err(void *arg, bool readable, bool writable) {
	(void)readable, (void)writable;
	read_preview(arg);
}

static void on_preview_timer(void *arg) {
	struct upgrade *u = arg;
	u->late = true;
	child_kill(&u->preview, SIGKILL);
}

static void end_preview(struct upgrade *u) {
	loop_timer_stop(&u->preview_timer);
	loop_fd_stop(&u->preview_err);
	child_close_in(&u->preview);
	child_close_out(&u->preview);
	child_close_err(&u->preview);
}

static void fail(struct upgrade *u, const char *error) {
	u->under_way = false;
	u->host->failed(u->arg, error);
}

static void on_preview_exited(void *arg, int status) {
	struct upgrade *u = arg;
	struct error error;
	read_preview(u);
	end_preview(u);
	bool ok = judge(u, status, !u->late, &u->said, &error);
	buf_free(&u->said);
	if (ok)
		loop_defer(u->loop, &u->hush_task);
	else
		fail(u, error.text);
}

/* Check that the new binary runs and accepts the configuration. */
static bool start_preview(struct upgrade *u, struct error *error) {
	struct command cmd;
	char cwd[4096];
	if (!getcwd(cwd, sizeof cwd)) snprintf(cwd, sizeof cwd, "/");
	if (!make_command(&cmd, u, "--check", -1)) return error_set(error, "out of memory");
	cmd.argv[0] = u->exe;
	struct child_spec spec = {.argv = cmd.argv, .envp = environ, .cwd = cwd};
	enum child_result r = child_spawn(&u->preview, u->children, &spec, error);
	free(cmd.argv);
	if (r != CHILD_OK) return false;
	u->preview.exited = on_preview_exited;
	u->preview.arg = u;
	u->late = false;
	loop_fd_init(&u->preview_err, u->loop, u->preview.err, on_preview_err, u);
	loop_fd_want(&u->preview_err, true, false);
	loop_timer_set(&u->preview_timer, PREVIEW_MS);
	return true;
}

/* Only system calls: also used between vfork(2) and exec. */
static void keep(const int *fds, size_t n, int flags) {
	for (size_t i = 0; i < n; i++) fcntl(fds[i], F_SETFD, flags);
}

/* --- the trial ---------------------------------------------------------------------------------------------------- */

struct trial {
	const struct upgrade *u;
	const struct carry *state;
	struct command cmd;
	int out[2], report[2]; /* its output; errno of a failed exec */
};

static _Noreturn void run_trial(const void *arg, pid_t parent) {
	static const int handled[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD};
	const struct trial *t = arg;
	struct sigaction dfl = {.sa_handler = SIG_DFL};
	sigset_t none;
	/* Reset the handlers before the mask lets one run. */
	for (size_t i = 0; i < ARRAY_SIZE(handled); i++) sigaction(handled[i], &dfl, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) _exit(127);
	dup2(t->out[1], STDOUT_FILENO);
	dup2(t->out[1], STDERR_FILENO);
	keep(t->state->fds, t->state->n_fds, 0);
	keep(&t->state->fd, 1, 0);
	execve(t->u->exe, t->cmd.argv, environ);
	int number = errno;
	(void)!write(t->report[1], &number, sizeof number);
	_exit(127);
}

/* Read its output until it ends; false: timeout. Descriptors left open by it do not matter. */
static bool listen_to(int fd, int pidfd, struct buf *said) {
	int64_t until = now_ms() + TRIAL_MS;
	struct pollfd p[] = {{.fd = pidfd, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
	for (;;) {
		char data[1024];
		int64_t left = until - now_ms();
		if (left <= 0) return false;
		if (poll(p, 2, (int)left) <= 0) continue;
		ssize_t n = p[1].revents ? fd_read(fd, data, sizeof data) : -1;
		if (n > 0) buf_put(said, data, (size_t)n);
		if (n == 0) p[1].fd = -1;
		if (n <= 0 && p[0].revents) return true;
	}
}

static bool watch_trial(struct trial *t, pid_t pid, struct error *error) {
	struct buf said = BUF_INIT(SAID_MAX);
	int status = 0;
	close(t->out[1]);
	close(t->report[1]);
	t->out[1] = t->report[1] = -1;
	_cleanup_close_ int pidfd = fd_pidfd(pid);
	bool in_time = pidfd >= 0 && listen_to(t->out[0], pidfd, &said);
	if (!in_time) kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
	int number = 0;
	bool ran = fd_read(t->report[0], &number, sizeof number) != sizeof number;
	if (!ran) error_set(error, "cannot run %s: %s", t->u->exe, strerror(number));
	bool ok = ran && judge(t->u, status, in_time, &said, error);
	if (ok && strcmp(last_line(&said), UPGRADE_READ) != 0) { /* any script can exit with 0 */
		error_set(error, "%s was tried and did not read the state: is it a plenumd?", t->u->exe);
		ok = false;
	}
	buf_free(&said);
	return ok;
}

static bool try_it(const struct upgrade *u, const struct carry *state, struct error *error) {
	struct trial t = {.u = u, .state = state, .out = {-1, -1}, .report = {-1, -1}};
	bool ok = false;
	if (!make_command(&t.cmd, u, "--check-upgrade", state->fd) || pipe2(t.out, O_CLOEXEC) < 0 ||
		pipe2(t.report, O_CLOEXEC) < 0) {
		error_set(error, "the trial cannot be made: %s", strerror(errno));
	} else {
		pid_t pid = child_vfork(run_trial, &t);
		if (pid < 0)
			error_set(error, "the trial cannot be started: %s", strerror(errno));
		else
			ok = watch_trial(&t, pid, error);
	}
	for (int i = 0; i < 2; i++) {
		if (t.out[i] >= 0) close(t.out[i]);
		if (t.report[i] >= 0) close(t.report[i]);
	}
	free(t.cmd.argv);
	return ok;
}

/* --- taking over -------------------------------------------------------------------------------------------------- */

/* Block or unblock the signals for which a starting binary has no handlers yet. */
static void block(int how) {
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigprocmask(how, &set, NULL);
}

void upgrade_unblock(void) {
	block(SIG_UNBLOCK);
}

static bool same_file(const struct stat *a, const struct stat *b) {
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
		   a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static void take_over(const struct upgrade *u, const struct carry *state, struct error *error) {
	struct command cmd;
	if (!make_command(&cmd, u, "--resume-from", state->fd)) {
		error_set(error, "out of memory");
		return;
	}
	u->host->leave(u->arg);
	keep(state->fds, state->n_fds, 0);
	keep(&state->fd, 1, 0);
	execve(u->exe, cmd.argv, environ);
	error_set(error, "cannot run %s: %s", u->exe, strerror(errno));
	keep(state->fds, state->n_fds, FD_CLOEXEC);
	free(cmd.argv);
}

/* Returns only after a failure: error has the cause. */
static void run(const struct upgrade *u, struct error *error) {
	struct stat before, after;
	struct carry state;
	_cleanup_close_ int fd = memfd_create("plenum-state", MFD_CLOEXEC);
	if (!u->exe || stat(u->exe, &before) < 0) {
		error_set(error, "cannot look at %s: %s", u->exe ? u->exe : "this program", strerror(errno));
		return;
	}
	if (fd < 0) {
		error_set(error, "cannot make a memory file: %s", strerror(errno));
		return;
	}
	carry_begin_save(&state, fd);
	u->host->carry(&state, u->arg);
	if (!carry_end_save(&state))
		error_set(error, "%s", state.error.text);
	else if (try_it(u, &state, error)) {
		if (stat(u->exe, &after) == 0 && same_file(&before, &after))
			take_over(u, &state, error);
		else
			error_set(error, "%s was replaced while it was tried: try again", u->exe);
	}
	carry_free(&state);
}

/* Block signals: later ones are delivered after the unblock, in the old or the new binary. One caught earlier would be
 * lost with this process; it is handled in the next turn. */
static void on_hush(void *arg) {
	struct upgrade *u = arg;
	block(SIG_BLOCK);
	loop_defer(u->loop, &u->task);
}

/* At the end of a turn every line read was processed, and nothing is half done. */
static void on_task(void *arg) {
	struct upgrade *u = arg;
	struct error error;
	run(u, &error);
	block(SIG_UNBLOCK);
	fail(u, error.text);
}

/* --- the outside -------------------------------------------------------------------------------------------------- */

struct upgrade *upgrade_new(struct loop *loop, struct children *children, char *const *argv,
							const struct upgrade_host *host, void *arg) {
	struct upgrade *u = calloc(1, sizeof *u);
	if (!u || !(u->exe = find_program(argv[0]))) {
		free(u);
		return NULL;
	}
	u->loop = loop;
	u->children = children;
	u->argv = argv;
	u->host = host;
	u->arg = arg;
	u->said.max = SAID_MAX;
	loop_task_init(&u->hush_task, on_hush, u);
	loop_task_init(&u->task, on_task, u);
	loop_timer_init(&u->preview_timer, loop, on_preview_timer, u);
	return u;
}

void upgrade_free(struct upgrade *u) {
	if (!u) return;
	loop_task_stop(&u->hush_task);
	loop_task_stop(&u->task);
	if (u->preview.pid > 0) {
		child_kill(&u->preview, SIGKILL);
		child_forget(&u->preview);
		end_preview(u);
	}
	buf_free(&u->said);
	free(u->exe);
	free(u);
}

const char *upgrade_path(const struct upgrade *u) {
	return u->exe;
}

void upgrade_start(struct upgrade *u) {
	struct error error;
	if (u->under_way) return;
	u->under_way = true;
	if (!start_preview(u, &error)) fail(u, error.text);
}

/* --- the other side ----------------------------------------------------------------------------------------------- */

bool upgrade_read(int fd, void (*carry)(struct carry *c, void *arg), void *arg, struct error *error) {
	struct stat st;
	struct carry state;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0)
		return error_set(error, "descriptor %d holds no state", fd);
	size_t len = (size_t)st.st_size;
	char *data = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED) return error_set(error, "the state cannot be read: %s", strerror(errno));
	bool ok = carry_begin_load(&state, data, len);
	if (ok) {
		carry(&state, arg);
		ok = carry_end_load(&state);
	}
	if (!ok) error_set(error, "%s", state.error.text);
	munmap(data, len);
	close(fd);
	return ok;
}
