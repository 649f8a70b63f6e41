/* SPDX-License-Identifier: MIT */
#include "io/proc.h"

#include "base/str.h"
#include "harness.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

extern char **environ;

#define NOBODY 0x3ffffffe /* above every pid_max */

/* A program with this environment; *hold: it goes on until that is closed, and everything that it starts. */
static pid_t run(const char *script, char *const *envp, int *hold, int *out) {
	int p[2], o[2];
	ck_assert_int_eq(pipe2(p, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(o, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(p[0], 0);
		dup2(o[1], 1);
		execle("/bin/sh", "sh", "-c", script, NULL, envp);
		_exit(127);
	}
	close(p[0]);
	close(o[1]);
	*hold = p[1];
	*out = o[0];
	return pid;
}

/* One line that it printed. */
static void line(int out, char *text, size_t size) {
	size_t n = 0;
	while (n < size - 1 && read(out, text + n, 1) == 1 && text[n] != '\n') n++;
	text[n] = 0;
}

static void finish(pid_t pid, int hold, int out) {
	close(hold);
	close(out);
	waitpid(pid, NULL, 0);
}

START_TEST(names) {
	char name[64], small[4];
	prctl(PR_SET_NAME, "a (b) c", 0, 0, 0);
	proc_name(getpid(), name, sizeof name);
	ck_assert_str_eq(name, "a (b) c");
	proc_name(getpid(), small, sizeof small);
	ck_assert_str_eq(small, "a (");
	pid_t parent, session;
	uint64_t start;
	ck_assert(proc_stat(getpid(), &parent, &session, &start)); /* whatever the name holds */
	ck_assert(parent == getppid() && session == getsid(0) && start > 0);
	prctl(PR_SET_NAME, ") R 1 1", 0, 0, 0);
	ck_assert(proc_stat(getpid(), &parent, &session, NULL));
	ck_assert(parent == getppid() && session == getsid(0));
	prctl(PR_SET_NAME, "12345678901234\xc3\xa9", 0, 0, 0); /* the kernel cuts it in the middle of the letter */
	proc_name(getpid(), name, sizeof name);
	ck_assert_str_eq(name, "12345678901234?");
	prctl(PR_SET_NAME, "test_proc", 0, 0, 0);
	proc_name(NOBODY, name, sizeof name);
	ck_assert_str_eq(name, "?");
}
END_TEST

START_TEST(of_nobody_nothing_is_said) {
	ck_assert(!proc_stat(NOBODY, NULL, NULL, NULL) && !proc_stat(0, NULL, NULL, NULL) &&
			  !proc_stat(-1, NULL, NULL, NULL));
	ck_assert(!proc_cwd(NOBODY) && !proc_env(NOBODY, "PATH") && proc_rss(NOBODY) == 0);
}
END_TEST

START_TEST(what_a_process_has) {
	char *const envp[] = {(char[]){"A=1"}, (char[]){"AB=2"}, (char[]){"EMPTY="}, (char[]){"A=3"}, NULL};
	char text[64], cwd[4096];
	int hold, out;
	pid_t pid = run("cd /; echo ready; read x", envp, &hold, &out), parent, session;
	uint64_t start, again;
	line(out, text, sizeof text);
	ck_assert_str_eq(text, "ready");
	ck_assert(proc_stat(pid, &parent, &session, &start) && parent == getpid() && session == getsid(0));
	ck_assert(proc_stat(pid, NULL, NULL, &again) && start == again);
	_cleanup_free_ char *where = proc_cwd(pid), *own = proc_cwd(getpid()), *a = proc_env(pid, "A"),
						*ab = proc_env(pid, "AB"), *empty = proc_env(pid, "EMPTY"), *none = proc_env(pid, "B");
	ck_assert_str_eq(where, "/");
	ck_assert_str_eq(own, getcwd(cwd, sizeof cwd));
	ck_assert_str_eq(a, "1");
	ck_assert_str_eq(ab, "2");
	ck_assert_str_eq(empty, "");
	ck_assert_ptr_null(none);
	ck_assert(proc_rss(pid) > 0 && proc_rss(pid) < ((size_t)1 << 40));
	finish(pid, hold, out);
	ck_assert(!proc_stat(pid, NULL, NULL, NULL));
}
END_TEST

/* --- sweeping ----------------------------------------------------------------------------------------------------- */

static bool is_spared(void *arg, pid_t pid) {
	return pid == *(pid_t *)arg;
}

static bool dies(pid_t pid) {
	int status;
	return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

/* Nobody has the write end any more: all that were started are gone. */
static void all_gone(int out) {
	char text[64];
	while (read(out, text, sizeof text) > 0) {}
}

START_TEST(a_sweep_takes_the_marked_and_what_they_started) {
	char mark[64], other[64], text[64];
	int hold[3], out[3];
	snprintf(mark, sizeof mark, "PLENUM_TEST_MARK=%d.x", (int)getpid());
	snprintf(other, sizeof other, "PLENUM_TEST_MARK=%d.xy", (int)getpid());
	const char *value = strchr(mark, '=') + 1;
	char *const marked[] = {mark, (char[]){"PATH=/usr/bin:/bin"}, NULL}, *const unmarked[] = {other, NULL};
	/* a session of its own, a clean environment: still its descendants */
	pid_t a = run("exec 3<&0; setsid cat <&3 & env -i cat <&3 & echo up; wait", marked, &hold[0], &out[0]);
	pid_t b = run("echo up; read x", unmarked, &hold[1], &out[1]);
	pid_t c = run("echo up; read x", marked, &hold[2], &out[2]);
	for (int i = 0; i < 3; i++) {
		line(out[i], text, sizeof text);
		ck_assert_str_eq(text, "up");
	}
	size_t hit = proc_sweep("PLENUM_TEST_MARK", value, is_spared, &c);
	ck_assert_uint_ge(hit, 1);
	ck_assert(dies(a));
	while (proc_sweep("PLENUM_TEST_MARK", value, is_spared, &c) > 0) {}
	all_gone(out[0]);
	ck_assert(kill(b, 0) == 0 && kill(c, 0) == 0);
	ck_assert_int_eq(waitpid(b, NULL, WNOHANG), 0);
	ck_assert_int_eq(waitpid(c, NULL, WNOHANG), 0);
	ck_assert_uint_eq(proc_sweep("PLENUM_TEST_MARK", "x", NULL, NULL), 0);
	char begins[64];
	snprintf(begins, sizeof begins, "%d.", (int)getpid()); /* all that begin so */
	ck_assert_uint_eq(proc_sweep("PLENUM_TEST_MARK", begins, NULL, NULL), 2);
	ck_assert(dies(b) && dies(c));
	ck_assert_uint_eq(proc_sweep("PLENUM_TEST_MARK", begins, NULL, NULL), 0);
	for (int i = 0; i < 3; i++) {
		close(hold[i]);
		close(out[i]);
	}
}
END_TEST

RUN_TESTS("proc", names, of_nobody_nothing_is_said, what_a_process_has, a_sweep_takes_the_marked_and_what_they_started)
