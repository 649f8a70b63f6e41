/* SPDX-License-Identifier: MIT */
#include "io/child.h"

#include "base/str.h"
#include "harness.h"
#include "io/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

struct world {
	struct loop *loop;
	struct children *all;
	char dir[32];
	struct error error;
	int exits, status;
};

static void on_exit_of(void *arg, int status) {
	struct world *w = arg;
	w->exits++;
	w->status = status;
	loop_stop(w->loop);
}

static void begin(struct world *w) {
	*w = (struct world){.loop = loop_new(), .dir = "/tmp/pl-XXXXXX"};
	signal(SIGPIPE, SIG_IGN);
	w->all = children_new(w->loop);
	ck_assert(mkdtemp(w->dir));
}

static void end(struct world *w) {
	children_free(w->all);
	children_free(NULL);
	loop_free(w->loop);
	rmdir(w->dir);
}

static enum child_result start(struct world *w, struct child *c, const char *const *argv, struct child_spec spec) {
	static char path[] = "PATH=/usr/bin:/bin", *const plain[] = {path, NULL};
	*c = (struct child){.exited = on_exit_of, .arg = w};
	spec.argv = (char *const *)(uintptr_t)argv;
	if (!spec.envp) spec.envp = plain;
	if (!spec.cwd) spec.cwd = "/";
	return child_spawn(c, w->all, &spec, &w->error);
}

static void shell(struct world *w, struct child *c, const char *script, struct child_spec spec) {
	const char *const argv[] = {"sh", "-c", script, NULL};
	ck_assert_msg(start(w, c, argv, spec) == CHILD_OK, "%s", w->error.text);
}

/* Wait until readable, or the end. */
static void wait_for(int fd) {
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int r;
	do r = poll(&p, 1, 60000);
	while (r < 0 && errno == EINTR);
	ck_assert_int_eq(r, 1);
}

/* Return all output up to the end; waits for it. */
static const char *output(int fd) {
	static char text[20000];
	size_t n = 0;
	ssize_t r;
	do {
		wait_for(fd);
		r = read(fd, text + n, sizeof text - 1 - n);
		if (r > 0) n += (size_t)r;
	} while (r != 0);
	text[n] = 0;
	return text;
}

static void close_all(struct child *c) {
	child_close_in(c);
	child_close_out(c);
	child_close_err(c);
	ck_assert(c->in == -1 && c->out == -1 && c->err == -1);
	child_close_out(c); /* twice is harmless */
}

/* It ended and its owner was notified once. The loop has ended, too. */
static void ends(struct world *w, struct child *c, int status) {
	while (!w->exits) loop_run(w->loop);
	ck_assert_int_eq(w->exits, 1);
	ck_assert_msg(w->status == status, "status %x, not %x", (unsigned)w->status, (unsigned)status);
	ck_assert_int_eq(c->pid, -1);
	ck_assert(!child_alive(c));
	close_all(c);
}

static void prints(const char *script, struct child_spec spec, const char *want) {
	struct world w;
	struct child c;
	begin(&w);
	shell(&w, &c, script, spec);
	ck_assert_str_eq(output(c.out), want);
	ends(&w, &c, 0);
	end(&w);
}

#define PLAIN ((struct child_spec){0})
#define EXIT(code) ((code) << 8)

static struct world w;

static void setup(void) {
	begin(&w);
}

static void teardown(void) {
	end(&w);
}

START_TEST(streams) {
	struct child c;
	struct stat in, out, err;
	shell(&w, &c, "cat; echo error >&2; exit 3", PLAIN);
	ck_assert(children_known(w.all, c.pid) && child_alive(&c));
	ck_assert(fcntl(c.in, F_GETFL) & O_NONBLOCK && fcntl(c.out, F_GETFL) & O_NONBLOCK &&
			  fcntl(c.err, F_GETFL) & O_NONBLOCK);
	ck_assert(fcntl(c.in, F_GETFD) & FD_CLOEXEC && fcntl(c.out, F_GETFD) & FD_CLOEXEC &&
			  fcntl(c.err, F_GETFD) & FD_CLOEXEC);
	ck_assert(fstat(c.in, &in) == 0 && fstat(c.out, &out) == 0 && fstat(c.err, &err) == 0);
	ck_assert(S_ISSOCK(in.st_mode) && S_ISSOCK(out.st_mode) && S_ISSOCK(err.st_mode));
	ck_assert_int_eq(write(c.in, "hello\n", 6), 6);
	child_close_in(&c);
	ck_assert_str_eq(output(c.out), "hello\n");
	ck_assert_str_eq(output(c.err), "error\n");
	pid_t pid = c.pid;
	ends(&w, &c, EXIT(3));
	ck_assert(!children_known(w.all, pid));
}
END_TEST

START_TEST(what_it_starts_with) {
	char *const envp[] = {(char[]){"A=b c"}, (char[]){"PATH=/bin:/usr/bin"}, NULL};
	prints("echo $A; pwd; test -z \"$HOME\" && echo clean", (struct child_spec){.envp = envp, .cwd = "/tmp"},
		   "b c\n/tmp\nclean\n");
	prints("test -S /proc/self/fd/1 && echo socket", PLAIN, "socket\n");
	prints("test -p /proc/self/fd/1 && echo pipe; echo again >/dev/stdout", (struct child_spec){.out_pipe = true},
		   "pipe\nagain\n");
	/* no descriptors other than 0 to 2, even without close-on-exec */
	int spare = open("/dev/null", O_RDONLY), high = fcntl(spare, F_DUPFD, 90);
	prints("for i in 3 4 5 6 7 8 9 90 91 92 93 94 95; do test -e /proc/$$/fd/$i && ls -l /proc/$$/fd/$i; done; true",
		   PLAIN, "");
	close(spare);
	close(high);
}
END_TEST

START_TEST(the_limit_on_descriptors) {
	prints("ulimit -Sn", (struct child_spec){.nofile = 77}, "77\n");
}
END_TEST

/* No process can open them under /proc; each has only one direction. */
START_TEST(streams_are_sockets) {
	prints(
		"for n in 0 1 2; do (: </proc/$$/fd/$n) 2>/dev/null || echo no; (: >>/proc/$$/fd/$n) 2>/dev/null || echo no; "
		"done",
		PLAIN, "no\nno\nno\nno\nno\nno\n");
	prints("trap '' PIPE; (echo x >&0) 2>/dev/null || echo no; read x <&1 || echo end; read x <&2 || echo end", PLAIN,
		   "no\nend\nend\n");
}
END_TEST

/* Signals ignored or blocked by us have their defaults in the child. */
START_TEST(signals_are_as_at_the_beginning) {
	sigset_t all, before;
	sigfillset(&all);
	signal(SIGHUP, SIG_IGN);
	sigprocmask(SIG_SETMASK, &all, &before);
	struct child c;
	const char *const argv[] = {"grep", "-E", "Sig(Blk|Ign)", "/proc/self/status", NULL};
	ck_assert_int_eq(start(&w, &c, argv, PLAIN), CHILD_OK);
	sigset_t now;
	sigprocmask(SIG_SETMASK, NULL, &now);
	ck_assert(sigismember(&now, SIGTERM)); /* ours are unchanged */
	sigprocmask(SIG_SETMASK, &before, NULL);
	ck_assert_str_eq(output(c.out), "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
	ends(&w, &c, 0);
	signal(SIGHUP, SIG_DFL);
}
END_TEST

START_TEST(a_session_of_its_own) {
	struct child c;
	pid_t parent, session;
	uint64_t since;
	shell(&w, &c, "trap 'echo term; exit 0' TERM; echo up; read x; read y", PLAIN);
	wait_for(c.out);
	ck_assert(proc_stat(c.pid, &parent, &session, &since));
	ck_assert(parent == getpid() && session == c.pid && getpgid(c.pid) == c.pid && since == c.start);
	child_kill(&c, SIGTERM);
	ck_assert_str_eq(output(c.out), "up\nterm\n");
	ends(&w, &c, 0);
	child_kill(&c, SIGKILL); /* it is gone: no process is hit */
}
END_TEST

START_TEST(killed_with_all_its_group) {
	struct child c;
	shell(&w, &c, "exec 3<&0; cat <&3 & cat <&3 & wait", PLAIN);
	child_kill(&c, SIGKILL);
	ck_assert_str_eq(output(c.out), "");
	ends(&w, &c, SIGKILL);
}
END_TEST

/* Reaping the leader kills the rest of its group; a process with a session of its own still holds the pipe. */
START_TEST(exit_and_end_of_output_are_two_events) {
	struct child c;
	char byte;
	shell(&w, &c, "exec 3<&0; setsid sh -c 'echo up; cat' <&3 & while read x; do :; done; exit 5", PLAIN);
	wait_for(c.out);
	ck_assert_int_eq(kill(c.pid, SIGTERM), 0);
	while (!w.exits) loop_run(w.loop);
	ck_assert_int_eq(w.status, SIGTERM);
	ck_assert_int_eq(read(c.out, (char[3]){0}, 3), 3);
	ck_assert(read(c.out, &byte, 1) == -1 && errno == EAGAIN); /* no end yet */
	child_close_in(&c);
	ck_assert_str_eq(output(c.out), "");
	ends(&w, &c, SIGTERM);
}
END_TEST

START_TEST(without_pipes) {
	struct child c;
	shell(&w, &c, "read x; test -z \"$x\" && exit 9", (struct child_spec){.no_pipes = true});
	ck_assert(c.in == -1 && c.out == -1 && c.err == -1);
	ends(&w, &c, EXIT(9));
}
END_TEST

/* --- handing on --------------------------------------------------------------------------------------------------- */

START_TEST(forgotten_resumed) {
	struct child a;
	shell(&w, &a, "read x; exit 4", PLAIN);
	pid_t pid = a.pid;
	ck_assert(children_known(w.all, pid) && child_alive(&a));
	child_forget(&a);
	ck_assert(!children_known(w.all, pid));
	child_resume(&a, w.all);
	ck_assert(children_known(w.all, pid));
	child_close_in(&a);
	ends(&w, &a, EXIT(4));
	w.exits = 0;
	/* a forgotten child continues, and is still reaped */
	shell(&w, &a, "read x; exit 4", PLAIN);
	pid = a.pid;
	child_forget(&a);
	close_all(&a);
	while (kill(pid, 0) == 0) {
		children_reap(w.all);
		poll(NULL, 0, 1);
	}
	ck_assert_int_eq(w.exits, 0);
}
END_TEST

static bool share_is_short;

bool __real_loop_must_yield(const struct loop *l);
bool __wrap_loop_must_yield(const struct loop *l);

bool __wrap_loop_must_yield(const struct loop *l) {
	return share_is_short || __real_loop_must_yield(l);
}

struct crowd {
	struct loop *loop;
	size_t n, exits;
	uint64_t turn; /* of the newest exit, from 1 */
	size_t in_turn;
};

static void on_exit_in_crowd(void *arg, int status) {
	struct crowd *c = arg;
	uint64_t turn = loop_turns(c->loop)->n + 1;
	ck_assert_int_eq(status, 0);
	c->in_turn = turn == c->turn ? c->in_turn + 1 : 1;
	ck_assert_uint_le(c->in_turn, 2); /* for the signal, and in a task */
	c->turn = turn;
	if (++c->exits == c->n) loop_stop(c->loop);
}

START_TEST(a_turn_reaps_no_more_than_its_share) {
	struct child kids[6];
	struct crowd crowd = {.loop = w.loop, .n = ARRAY_SIZE(kids)};
	for (size_t i = 0; i < ARRAY_SIZE(kids); i++) {
		shell(&w, &kids[i], "exit 0", (struct child_spec){.no_pipes = true});
		kids[i].exited = on_exit_in_crowd;
		kids[i].arg = &crowd;
	}
	for (size_t i = 0; i < ARRAY_SIZE(kids); i++)
		ck_assert_int_eq(waitid(P_PID, (id_t)kids[i].pid, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
	share_is_short = true;
	loop_run(w.loop);
	share_is_short = false;
	ck_assert_uint_eq(crowd.exits, crowd.n);
}
END_TEST

START_TEST(processes_that_nobody_knows_are_reaped) {
	int status;
	pid_t pid = fork();
	if (pid == 0) _exit(0);
	siginfo_t info;
	ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	children_reap(w.all);
	ck_assert_int_eq(waitpid(pid, &status, WNOHANG), -1);
	ck_assert_int_eq(errno, ECHILD);
}
END_TEST

/* --- what cannot be started --------------------------------------------------------------------------------------- */

static size_t open_fds(void) {
	size_t n = 0;
	DIR *dir = opendir("/proc/self/fd");
	while (readdir(dir)) n++;
	closedir(dir);
	return n;
}

static void fails(struct world *in, const char *const *argv, struct child_spec spec, enum child_result want,
				  const char *say) {
	struct child c;
	size_t before = open_fds();
	memset(&in->error, 0, sizeof in->error);
	enum child_result have = start(in, &c, argv, spec);
	ck_assert_msg(have == want && strstr(in->error.text, say), "%d, not %d: %s (%s)", (int)have, (int)want,
				  in->error.text, say);
	ck_assert_msg(!strchr(in->error.text, '\n') && strlen(in->error.text) < sizeof in->error.text, "%s",
				  in->error.text);
	ck_assert(c.pid == -1 && c.in == -1 && c.out == -1 && c.err == -1);
	ck_assert_uint_eq(open_fds(), before);
	ck_assert(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	ck_assert_int_eq(in->exits, 0);
}

static void file(const struct world *in, const char *name, const char *text, mode_t mode) {
	char path[100];
	snprintf(path, sizeof path, "%s/%s", in->dir, name);
	if (text) {
		FILE *f = fopen(path, "w");
		ck_assert(f && fputs(text, f) >= 0 && fclose(f) == 0);
	} else {
		unlink(path);
	}
	if (text) chmod(path, mode);
}

START_TEST(no_program) {
	char path[100];
	snprintf(path, sizeof path, "PATH=relative::%s:/does/not/exist", w.dir);
	struct child_spec here = {.cwd = w.dir, .envp = (char *[]){path, NULL}};
	const char *const name[] = {"prog", NULL}, *const dot[] = {"./prog", NULL}, *const folder[] = {"/tmp", NULL};
	fails(&w, name, here, CHILD_TRANSIENT, "program prog: not found in PATH=relative:");
	fails(&w, dot, here, CHILD_TRANSIENT, "prog is not there");
	fails(&w, folder, here, CHILD_FAILED, "program /tmp is a directory, not a program");
	file(&w, "prog", "#!/bin/sh\n", 0600);
	fails(&w, name, here, CHILD_TRANSIENT, "is not executable");
	fails(&w, dot, here, CHILD_TRANSIENT, "is not executable");
	file(&w, "prog", "#!/does/not/exist -x\n", 0700);
	fails(&w, name, here, CHILD_TRANSIENT, "the interpreter of this script is missing: #!/does/not/exist -x");
	file(&w, "prog", "no program\n", 0700);
	fails(&w, dot, here, CHILD_TRANSIENT, "is no program");
	file(&w, "prog", "", 0700);
	fails(&w, name, here, CHILD_TRANSIENT, "is no program");
	char link[64];
	snprintf(link, sizeof link, "%s/loop", w.dir);
	ck_assert_int_eq(symlink("loop", link), 0);
	fails(&w, (const char *const[]){"./loop", NULL}, here, CHILD_FAILED, "/loop cannot be used: Too many levels");
	unlink(link);
	file(&w, "prog", "#!/bin/sh\nexit 6\n", 0700);
	struct child c;
	ck_assert_int_eq(start(&w, &c, dot, here), CHILD_OK); /* relative to its cwd */
	ends(&w, &c, EXIT(6));
	file(&w, "prog", NULL, 0);
}
END_TEST

START_TEST(no_folder) {
	const char *const argv[] = {"true", NULL};
	fails(&w, argv, (struct child_spec){.cwd = "/does/not/exist"}, CHILD_FAILED,
		  "cannot use directory /does/not/exist as cwd: No such");
	fails(&w, argv, (struct child_spec){.cwd = "/dev/null"}, CHILD_FAILED, "as cwd: Not a directory");
	fails(&w, argv, (struct child_spec){.cwd = "tmp"}, CHILD_FAILED, "not absolute");
	fails(&w, argv, (struct child_spec){.cwd = ""}, CHILD_FAILED, "not absolute");
}
END_TEST

START_TEST(too_much_for_the_kernel) {
	char *much = malloc(200001);
	memset(much, 'x', 200000);
	much[200000] = 0;
	const char *const argv[] = {"true", much, NULL};
	fails(&w, argv, PLAIN, CHILD_FAILED, "131071");
	free(much);
}
END_TEST

START_TEST(no_descriptors) {
	struct rlimit before, few;
	const char *const argv[] = {"true", NULL};
	getrlimit(RLIMIT_NOFILE, &before);
	int next = dup(0);
	close(next);
	for (int more = 0; more < 8; more++) { /* at most eight are needed: none of them may be lost */
		struct child c;
		size_t open = open_fds();
		few = (struct rlimit){(rlim_t)(next + more), before.rlim_max};
		setrlimit(RLIMIT_NOFILE, &few);
		enum child_result r = start(&w, &c, argv, PLAIN);
		setrlimit(RLIMIT_NOFILE, &before);
		ck_assert_int_eq(r, CHILD_TRANSIENT);
		ck_assert_msg(strstr(w.error.text, "ulimit -n"), "%s", w.error.text);
		ck_assert_uint_eq(open_fds(), open);
	}
}
END_TEST

#define LONG "/a/directory/that/is/not/there/and/has/a/name/of/one/hundred/bytes/so/that/not/many/of/it/are/shown"

START_TEST(finding_programs) {
	struct error error;
	int number;
	_cleanup_free_ char *sh = child_find_program("sh", "/does/not/exist:/bin", "/", &number, &error);
	ck_assert_str_eq(sh, "/bin/sh");
	_cleanup_free_ char *by_default = child_find_program("sh", NULL, "/", &number, &error);
	ck_assert_ptr_nonnull(by_default);
	_cleanup_free_ char *relative = child_find_program("bin/sh", NULL, "/", &number, &error);
	ck_assert_str_eq(relative, "//bin/sh");
	ck_assert_ptr_null(child_find_program("sh", "", "/", &number, &error));
	ck_assert_int_eq(number, ENOENT);
	ck_assert_ptr_null(child_find_program("sh", "bin:.", "/", &number, &error)); /* never our own directory */
	const char long_path[] = "/one:/two:" LONG ":" LONG ":" LONG;
	struct child_search in = {.asker = "/theirs", .path = long_path, .own = "/own", .home = "/home/u"};
	bool asked;
	ck_assert_ptr_null(child_find("x", "/", &in, &asked, &number, &error));
	ck_assert_str_eq(error.text, "program x: not found in the client's PATH=/theirs, PATH=/one:/two:" LONG
								 ":..., the daemon's PATH=/own, ~/.local/bin and ~/.claude/local");
}
END_TEST

START_TEST(places) {
	struct child_place a, b;
	char dir[] = "/tmp/pl-XXXXXX", one[64], two[64], link[64], same[64];
	ck_assert(mkdtemp(dir));
	snprintf(one, sizeof one, "%s/one", dir);
	snprintf(two, sizeof two, "%s/two", dir);
	snprintf(link, sizeof link, "%s/link", dir);
	snprintf(same, sizeof same, "%s/../%s", dir, dir + strlen("/tmp/"));
	ck_assert(mkdir(one, 0700) == 0 && mkdir(two, 0700) == 0 && symlink("one", link) == 0);
	child_place_of(one, dir, false, &a);
	child_place_of(link, same, false, &b);
	ck_assert(a.program && a.cwd && a.program == b.program && a.cwd == b.cwd);
	child_place_of(one, dir, true, &b);
	ck_assert(!(a.program & 1) && b.program == (a.program | 1));
	ck_assert(unlink(link) == 0 && symlink("two", link) == 0);
	child_place_of(link, "/", false, &b);
	ck_assert(b.program && a.program != b.program && a.cwd != b.cwd);
	child_place_of(NULL, "/does/not/exist", false, &b);
	ck_assert(!b.program && !b.cwd);
	unlink(link), rmdir(one), rmdir(two), rmdir(dir);
}
END_TEST

RUN_TESTS_WITH(setup, teardown, "child", places, streams, what_it_starts_with, streams_are_sockets,
			   NOT_IN_VALGRIND(the_limit_on_descriptors), signals_are_as_at_the_beginning, a_session_of_its_own,
			   killed_with_all_its_group, a_turn_reaps_no_more_than_its_share, exit_and_end_of_output_are_two_events,
			   without_pipes, forgotten_resumed, processes_that_nobody_knows_are_reaped, NOT_IN_VALGRIND(no_program),
			   no_folder, NOT_IN_VALGRIND(too_much_for_the_kernel), NOT_IN_VALGRIND(no_descriptors), finding_programs)
