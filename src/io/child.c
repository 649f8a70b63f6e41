/* SPDX-License-Identifier: MIT */
#include "io/child.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/paths.h"
#include "base/str.h"
#include "base/words.h"
#include "io/mark.h"
#include "io/places.h"
#include "io/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"
#define SHOWN_PATH 200    /* bytes of a PATH in an error text */
#define STRING_MAX 131071 /* bytes of one argument or variable: execve(2), MAX_ARG_STRLEN without the NUL */

extern char **environ;

struct children {
	struct loop *loop;
	struct loop_signal signal;
	struct loop_task reap_task;
	struct list list;
	struct places *places;
};

/* --- reaping ------------------------------------------------------------------------------------------------------ */

static struct child *find(const struct children *c, pid_t pid) {
	struct child *child;
	LIST_FOR_EACH (child, &c->list, struct child, node)
		if (child->pid == pid) return child;
	return NULL;
}

static void reap_one(struct children *c, pid_t pid) {
	struct child *child = find(c, pid);
	int status = 0;
	places_back(c->places, pid);
	/* the unreaped leader keeps the number of its group, so the kill cannot hit another process */
	if (child) kill(-pid, SIGKILL);
	if (waitpid(pid, &status, 0) != pid || !child) return;
	list_del(&child->node);
	child->pid = -1;
	child->exited(child->arg, status);
}

static bool reap_next(struct children *c) {
	siginfo_t info = {0};
	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0) return false;
	reap_one(c, info.si_pid);
	return true;
}

void children_reap(struct children *c) {
	while (reap_next(c)) continue;
}

/* As many as the share of the turn allows: hundreds may end together. */
static void reap_some(void *arg) {
	struct children *c = arg;
	while (reap_next(c)) {
		if (!loop_must_yield(c->loop)) continue;
		loop_defer(c->loop, &c->reap_task);
		return;
	}
}

/* Called once for each signal that has come. */
static void on_sigchld(void *arg) {
	struct children *c = arg;
	if (list_empty(&c->reap_task.node)) reap_some(c);
}

struct children *children_new(struct loop *loop) {
	struct children *c = calloc(1, sizeof *c);
	if (!c) return NULL;
	if (!(c->places = places_new(loop))) {
		free(c);
		return NULL;
	}
	c->loop = loop;
	list_init(&c->list);
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	loop_task_init(&c->reap_task, reap_some, c);
	loop_signal_init(&c->signal, loop, SIGCHLD, on_sigchld, c);
	return c;
}

void children_free(struct children *c) {
	if (!c) return;
	loop_signal_stop(&c->signal);
	loop_task_stop(&c->reap_task);
	places_free(c->places);
	free(c);
}

bool children_known(const struct children *c, pid_t pid) {
	return places_has(c->places, pid) || find(c, pid);
}

bool children_given_up(const struct children *c, pid_t pid) {
	return places_has(c->places, pid) && !find(c, pid);
}

struct loop *children_loop(const struct children *c) {
	return c->loop;
}

struct places *children_places(const struct children *c) {
	return c->places;
}

/* --- finding the program ------------------------------------------------------------------------------------------ */

static const char *env_get(char *const *envp, const char *name) {
	size_t n = strlen(name);
	for (; *envp; envp++)
		if (strncmp(*envp, name, n) == 0 && (*envp)[n] == '=') return *envp + n + 1;
	return NULL;
}

/* Return 0 if the file can be run, else an errno. */
static int check_program(const char *path) {
	struct stat st;
	if (stat(path, &st) < 0) return errno;
	if (S_ISDIR(st.st_mode)) return EISDIR;
	if (!S_ISREG(st.st_mode)) return EACCES;
	return access(path, X_OK) < 0 ? errno : 0;
}

static void explain(int number, const char *path, struct error *error) {
	const char *what = number == EISDIR   ? "is a directory, not a program"
					   : number == EACCES ? "is not executable (chmod +x it, or is its directory closed to you?)"
					   : number == ENOENT ? "is not there"
										  : "cannot be used: ";
	bool named = number == EISDIR || number == EACCES || number == ENOENT;
	error_set(error, "program %s %s%s", path, what, named ? "" : strerror(number));
}

static char *search_path(const char *name, const char *path, int *number, struct error *error) {
	_cleanup_free_ char *copy = strdup(path);
	int worst = ENOENT;
	if (!copy) return NULL;
	for (char *p = copy, *dir; (dir = strsep(&p, ":")) != NULL;) {
		if (dir[0] != '/') continue; /* never relative to the daemon's own directory */
		char *file = str_printf("%s/%s", dir, name);
		int e = file ? check_program(file) : ENOMEM;
		if (e == 0) return file;
		if (e != ENOENT && e != ENOTDIR && file && access(file, F_OK) == 0) { /* not in a closed directory */
			worst = e;
			explain(e, file, error);
		}
		free(file);
	}
	*number = worst;
	if (worst == ENOENT) error_set(error, "program %s: not found in PATH=%.200s", name, path);
	return NULL;
}

static char *search_home(const char *name, const char *home) {
	char *file = NULL;
	for (size_t i = 0; home && (file = path_installed(home, i, name)) && !path_is_program(file); i++) free(file);
	return file;
}

/* A long one ends after a whole directory. */
static void put_path(struct buf *b, const char *path) {
	size_t n = strlen(path);
	if (n > SHOWN_PATH)
		for (n = SHOWN_PATH; n > 0 && path[n] != ':';) n--;
	buf_printf(b, "PATH=%.*s%s", (int)n, path, path[n] ? ":..." : "");
}

static void explain_search(const char *name, const struct child_search *in, struct error *error) {
	const char *path = in->path ? in->path : DEFAULT_PATH;
	struct buf b = BUF_INIT(ERROR_TEXT_MAX);
	buf_printf(&b, "program %.100s: not found in ", name);
	if (in->asker && strcmp(in->asker, path) != 0) {
		buf_puts(&b, "the client's ");
		put_path(&b, in->asker);
		buf_puts(&b, ", ");
	}
	put_path(&b, path);
	if (in->own && strcmp(in->own, path) != 0) {
		buf_puts(&b, ", the daemon's ");
		put_path(&b, in->own);
	}
	if (in->home) buf_puts(&b, ", ~/.local/bin and ~/.claude/local");
	error_set(error, "%s", b.data ? b.data : "out of memory");
	buf_free(&b);
}

char *child_find(const char *name, const char *cwd, const struct child_search *in, bool *asked, int *number,
				 struct error *error) {
	int other;
	struct error ignored;
	*asked = false;
	char *file = child_find_program(name, in->path, cwd, number, error);
	if (strchr(name, '/')) return file;
	char *theirs = in->asker ? child_find_program(name, in->asker, cwd, &other, &ignored) : NULL;
	*asked = theirs && (!file || strcmp(file, theirs) != 0);
	if (!file && !theirs && in->own) file = child_find_program(name, in->own, cwd, &other, &ignored);
	if (!file && !theirs) file = search_home(name, in->home);
	if (!file && !theirs && *number == ENOENT) explain_search(name, in, error);
	free(*asked ? file : theirs);
	return *asked ? theirs : file;
}

char *child_find_program(const char *name, const char *path, const char *cwd, int *number, struct error *error) {
	*number = 0;
	if (!strchr(name, '/')) return search_path(name, path ? path : DEFAULT_PATH, number, error);
	char *file = name[0] == '/' ? strdup(name) : str_printf("%s/%s", cwd, name);
	*number = file ? check_program(file) : ENOMEM;
	if (*number == 0) return file;
	explain(*number, file ? file : name, error);
	free(file);
	return NULL;
}

/* --- spawning ----------------------------------------------------------------------------------------------------- */

enum stage { STAGE_CHDIR, STAGE_EXEC, STAGE_SETUP };

struct report {
	int stage, number;
};

/* The three streams are sockets, as Node makes them for its children. /proc/PID/fd/N of a socket cannot be opened, so
 * no other process of the same user can write a line into the child's stdin. A socket is also twice as fast as a pipe:
 * writer and reader share no lock. */
struct pipes {
	int in[2], out[2], err[2], report[2];
};

static void close_pipes(struct pipes *p) {
	int *all = (int *)p;
	for (size_t i = 0; i < sizeof *p / sizeof(int); i++)
		if (all[i] >= 0) close(all[i]);
}

/* One direction only: our end sends nothing to the child's stdout or stderr, and receives nothing from its stdin. */
static bool open_stream(int *ends, int ours) {
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) return false;
	return shutdown(ends[ours], ours == 0 ? SHUT_WR : SHUT_RD) == 0;
}

static bool open_out(int *out, bool is_pipe) {
	static const int buffer = 512 * 1024;
	if (is_pipe) return pipe2(out, O_CLOEXEC) == 0;
	if (!open_stream(out, 0)) return false;
	setsockopt(out[1], SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer); /* a refusal only costs speed */
	return true;
}

static bool open_pipes(struct pipes *p, const struct child_spec *spec) {
	memset(p, -1, sizeof *p);
	if (pipe2(p->report, O_CLOEXEC) < 0) return false;
	if (spec->no_pipes) {
		p->in[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		p->out[1] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
		p->err[1] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
		return p->in[0] >= 0;
	}
	return open_stream(p->in, 1) && open_out(p->out, spec->out_pipe) && open_stream(p->err, 0);
}

/* Move a descriptor out of the range of dup2()'s targets. */
static int above(int fd, int last) {
	return fd > last ? fd : fcntl(fd, F_DUPFD_CLOEXEC, last + 1);
}

static _Noreturn void die(int report, enum stage stage) {
	struct report r = {stage, errno};
	(void)!write(report, &r, sizeof r);
	_exit(127);
}

static void reset_signals(void) {
	struct sigaction dfl = {.sa_handler = SIG_DFL};
	sigset_t none;
	for (int i = 1; i < NSIG; i++) sigaction(i, &dfl, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

struct start {
	struct pipes pipes;
	const struct child_spec *spec;
	const char *file;
	int request, answer; /* of an errand; -1: none */
};

/* In the child: move the two descriptors of an errand to their fixed numbers. */
static bool pass_errand(int request, int answer) {
	int from = above(request, CHILD_ERRAND_ANSWER), to = above(answer, CHILD_ERRAND_ANSWER);
	return from >= 0 && to >= 0 && dup2(from, CHILD_ERRAND_REQUEST) >= 0 && dup2(to, CHILD_ERRAND_ANSWER) >= 0;
}

/* In the child, between vfork(2) and exec: make system calls only, and do not write to the parent's memory. */
static _Noreturn void run_child(const void *arg, pid_t parent) {
	const struct start *start = arg;
	const struct child_spec *spec = start->spec;
	const struct pipes *p = &start->pipes;
	setsid();
	reset_signals();
	if (!spec->outlives) prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) _exit(127);
	if (spec->nofile) {
		struct rlimit r;
		if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
			r.rlim_cur = spec->nofile;
			setrlimit(RLIMIT_NOFILE, &r);
		}
	}
	if (spec->mark) mark_set(spec->mark);
	int in = above(p->in[0], 2), out = above(p->out[1], 2), err = above(p->err[1], 2);
	int report = above(p->report[1], CHILD_ERRAND_ANSWER);
	if (chdir(spec->cwd) < 0) die(report, STAGE_CHDIR);
	if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0) die(report, STAGE_SETUP);
	close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
	if (start->answer >= 0 && !pass_errand(start->request, start->answer)) die(report, STAGE_SETUP);
	execve(start->file, spec->argv, spec->envp);
	die(report, STAGE_EXEC);
}

pid_t child_vfork(void (*run)(const void *arg, pid_t parent), const void *arg) {
	sigset_t all, before;
	pid_t parent = getpid();
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
	pid_t pid = vfork();
#pragma GCC diagnostic pop
	if (pid == 0) run(arg, parent);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return pid;
}

/* The kernel limits a single string, regardless of the total: name the option with the long one. */
static void explain_long(const struct child_spec *spec, const char *file, struct error *error) {
	static const char advice[] = "pass large values by file or in `initialize`";
	char *const *at = spec->argv, *const *env = spec->envp;
	while (*at && strlen(*at) <= STRING_MAX) at++;
	while (*env && strlen(*env) <= STRING_MAX) env++;
	const char *text = *at ? *at : *env;
	bool value = *at && **at != '-' && at > spec->argv;
	const char *name = value ? at[-1] : text;
	if (text)
		error_set(error, "the %s %.*s%s is too long for %s: it has %zu bytes, the kernel takes %d: %s",
				  *at ? "argument" : "variable", (int)MIN(strcspn(name, "="), 100), name, value ? "'s value" : "", file,
				  strlen(text), STRING_MAX, advice);
	else
		error_set(error, "all arguments and variables for %s together are too long for the kernel: %s", file, advice);
}

/* ENOENT for an existing file: the interpreter in the first line of the script is missing. */
static void explain_exec(int number, const struct child_spec *spec, const char *file, struct error *error) {
	char head[256] = "";
	_cleanup_close_ int fd = open(file, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? fd_read(fd, head, sizeof head - 1) : 0;
	bool script = n > 2 && head[0] == '#' && head[1] == '!';
	head[n > 0 ? (size_t)n : 0] = 0;
	head[strcspn(head, "\n")] = 0;
	if (number == ENOENT && script)
		error_set(error, "program %s: the interpreter of this script is missing: %.200s", file, head);
	else if (number == ENOEXEC)
		error_set(error, "program %s is no program: it has neither a #! line nor a format that the kernel knows", file);
	else if (number == E2BIG)
		explain_long(spec, file, error);
	else
		error_set(error, "cannot run %s: %s", file, strerror(number));
}

static bool transient(int number) {
	return number == ENOENT || number == EACCES || number == ETXTBSY || number == ENOEXEC || number == EAGAIN ||
		   number == ENOMEM || number == EMFILE || number == ENFILE;
}

static enum child_result failed(const struct report *r, const struct child_spec *spec, const char *file,
								struct error *error) {
	if (r->stage == STAGE_CHDIR) {
		error_set(error, "cannot use directory %s as cwd: %s", spec->cwd, strerror(r->number));
		return CHILD_FAILED;
	}
	explain_exec(r->number, spec, file, error);
	return transient(r->number) ? CHILD_TRANSIENT : CHILD_FAILED;
}

static enum child_result no_process(const char *what, int number, struct error *error) {
	error_set(error, "cannot %s: %s%s", what, strerror(number),
			  number == EAGAIN   ? " (a limit on processes: ulimit -u, TasksMax)"
			  : number == EMFILE ? " (a limit on descriptors: ulimit -n, LimitNOFILE)"
								 : "");
	return CHILD_TRANSIENT;
}

static void adopt(struct child *c, struct children *owner, struct pipes *p, pid_t pid) {
	c->owner = owner;
	c->pid = c->was = pid;
	c->in = p->in[1];
	c->out = p->out[0];
	c->err = p->err[0];
	p->in[1] = p->out[0] = p->err[0] = -1;
	if (!proc_stat(pid, NULL, NULL, &c->start)) c->start = 0;
	if (c->in >= 0) fd_nonblock(c->in);
	if (c->out >= 0) fd_nonblock(c->out);
	if (c->err >= 0) fd_nonblock(c->err);
	if (c->out >= 0) (void)!fcntl(c->out, F_SETPIPE_SZ, 256 * 1024); /* a refusal only costs speed */
	list_add_tail(&owner->list, &c->node);
}

static enum child_result check_cwd(const char *cwd, struct error *error) {
	struct stat st;
	int number = 0;
	if (cwd[0] != '/') {
		error_set(error, "cwd %s is not absolute: write the whole path", cwd);
		return CHILD_FAILED;
	}
	if (stat(cwd, &st) < 0)
		number = errno;
	else if (!S_ISDIR(st.st_mode))
		number = ENOTDIR;
	else if (access(cwd, X_OK) < 0)
		number = errno;
	if (number == 0) return CHILD_OK;
	error_set(error, "cannot use directory %s as cwd: %s", cwd, strerror(number));
	return CHILD_FAILED;
}

/* file: the program found. */
static enum child_result spawn(struct child *c, struct children *owner, struct start *start, struct error *error) {
	struct pipes *p = &start->pipes;
	struct report r;
	int number;
	if (!open_pipes(p, start->spec)) {
		number = errno;
		close_pipes(p);
		return no_process("make the child's streams", number, error);
	}
	pid_t pid = child_vfork(run_child, start);
	if (pid < 0) {
		number = errno;
		close_pipes(p);
		return no_process("create a process", number, error);
	}
	close(p->report[1]);
	p->report[1] = -1;
	ssize_t n = fd_read(p->report[0], &r, sizeof r);
	if (n == (ssize_t)sizeof r) {
		close_pipes(p);
		waitpid(pid, NULL, 0);
		return failed(&r, start->spec, start->file, error);
	}
	adopt(c, owner, p, pid);
	close_pipes(p);
	return CHILD_OK;
}

void child_clear(struct child *c) {
	list_init(&c->node);
	c->pid = c->in = c->out = c->err = -1;
}

enum child_result child_spawn(struct child *c, struct children *owner, const struct child_spec *spec,
							  struct error *error) {
	int number;
	child_clear(c);
	if (check_cwd(spec->cwd, error) != CHILD_OK) return CHILD_FAILED;
	_cleanup_free_ char *file = child_find_program(spec->argv[0], env_get(spec->envp, "PATH"), spec->cwd, &number,
												   error);
	if (!file) return transient(number) ? CHILD_TRANSIENT : CHILD_FAILED;
	return spawn(c, owner, &(struct start){.spec = spec, .file = file, .request = -1, .answer = -1}, error);
}

enum child_result child_spawn_errand(struct child *c, struct children *owner, const char *kind, int request, int answer,
									 const struct child_spec *spec, struct error *error) {
	char *argv[] = {(char[]){"plenumd"}, (char[]){"--errand"}, (char *)(uintptr_t)kind, NULL};
	struct child_spec own = *spec;
	own.argv = argv;
	own.envp = environ;
	own.cwd = "/";
	child_clear(c);
	return spawn(c, owner,
				 &(struct start){.spec = &own, .file = "/proc/self/exe", .request = request, .answer = answer}, error);
}

/* --- becoming a program ------------------------------------------------------------------------------------------- */

static uint64_t hash_numbers(const uint64_t *numbers, size_t n) {
	uint64_t h = 1;
	for (size_t i = 0; i < n; i++) h = hash_mix(h, numbers[i]);
	return h;
}

void child_place_of(const char *file, const char *cwd, bool more, struct child_place *out) {
	struct stat st;
	*out = (struct child_place){0};
	if (file && stat(file, &st) == 0) {
		uint64_t of_file[] = {st.st_dev, st.st_ino, (uint64_t)st.st_mtim.tv_sec, (uint64_t)st.st_mtim.tv_nsec};
		out->program = (hash_numbers(of_file, ARRAY_SIZE(of_file)) & ~UINT64_C(1)) | 2 | more;
	}
	if (stat(cwd, &st) == 0) {
		uint64_t of_cwd[] = {st.st_dev, st.st_ino};
		out->cwd = hash_numbers(of_cwd, ARRAY_SIZE(of_cwd)) | 1;
	}
}

static const char *word_value(const struct words *env, const char *name) {
	size_t n = strlen(name);
	ssize_t at = words_named(env, name, n);
	return at < 0 ? NULL : env->v[at] + n + 1;
}

/* Put the PATH with the program first: the interpreter of a script may be next to it. */
static bool join_paths(struct words *env, const char *first) {
	ssize_t at = words_named(env, "PATH", 4);
	if (at < 0) return words_add(env, first);
	char *both = str_printf("%s:%s", first, env->v[at] + strlen("PATH="));
	if (!both) return false;
	free(env->v[at]);
	env->v[at] = both;
	return true;
}

static char *find_for(const struct child_spec *spec, struct words *env, bool *asked, int *number, struct error *error) {
	_cleanup_free_ char *home = path_home();
	const char *named = word_value(env, "HOME");
	struct child_search in = {.asker = spec->more_path ? spec->more_path + strlen("PATH=") : NULL,
							  .path = word_value(env, "PATH"),
							  .own = getenv("PATH"),
							  .home = named && *named ? named : home};
	char *file = child_find(spec->argv[0], spec->cwd, &in, asked, number, error);
	size_t n = strlen(error->text);
	if (!file && *number == ENOENT && spec->hint)
		snprintf(error->text + n, sizeof error->text - n, " (%s)", spec->hint);
	if (!file || !*asked || join_paths(env, spec->more_path)) return file;
	*number = ENOMEM;
	error_set(error, "out of memory");
	free(file);
	return NULL;
}

static void add_default(struct words *env, const char *name, const char *value) {
	_cleanup_free_ char *word = words_named(env, name, strlen(name)) < 0 ? str_printf("%s=%s", name, value) : NULL;
	if (word) words_add(env, word);
}

static void add_user(struct words *env) {
	struct passwd pw, *user = NULL;
	char text[4096];
	if (getpwuid_r(getuid(), &pw, text, sizeof text, &user) != 0 || !user) return;
	add_default(env, "HOME", pw.pw_dir);
	add_default(env, "USER", pw.pw_name);
	add_default(env, "LOGNAME", pw.pw_name);
	add_default(env, "SHELL", pw.pw_shell && *pw.pw_shell ? pw.pw_shell : "/bin/sh");
}

enum child_result child_become(const struct child_spec *spec,
							   void (*found)(void *arg, const struct child_place *p, const char *file), void *arg,
							   struct error *error) {
	struct words env = {0};
	struct child_place place;
	bool more;
	int number = 0;
	for (char *const *v = spec->envp; *v; v++)
		if (!words_add(&env, *v)) number = ENOMEM;
	if (spec->add_user) add_user(&env);
	if (check_cwd(spec->cwd, error) != CHILD_OK) return CHILD_FAILED;
	if (chdir(spec->cwd) < 0) return failed(&(struct report){STAGE_CHDIR, errno}, spec, NULL, error);
	found(arg, &(struct child_place){0}, NULL);
	_cleanup_free_ char *file = number ? NULL : find_for(spec, &env, &more, &number, error);
	if (!file) return transient(number) ? CHILD_TRANSIENT : CHILD_FAILED;
	child_place_of(file, spec->cwd, more, &place);
	found(arg, &place, file);
	execve(file, spec->argv, env.v);
	number = errno;
	struct child_spec tried = *spec;
	tried.envp = env.v;
	enum child_result r = failed(&(struct report){STAGE_EXEC, number}, &tried, file, error);
	words_free(&env);
	return r;
}

/* --- handling ----------------------------------------------------------------------------------------------------- */

void child_kill(const struct child *c, int signo) {
	if (c->pid <= 0) return;
	kill(-c->pid, signo);
	if (signo == SIGTERM) kill(-c->pid, SIGCONT);
}

static void close_end(int *fd) {
	if (*fd >= 0) close(*fd);
	*fd = -1;
}

void child_close_in(struct child *c) {
	close_end(&c->in);
}

void child_close_out(struct child *c) {
	close_end(&c->out);
}

void child_close_err(struct child *c) {
	close_end(&c->err);
}

void child_resume(struct child *c, struct children *owner) {
	c->owner = owner;
	list_add_tail(&owner->list, &c->node);
}

void child_forget(struct child *c) {
	list_del(&c->node);
}

bool child_alive(const struct child *c) {
	siginfo_t info = {0};
	if (c->pid <= 0) return false;
	return waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}
