/* SPDX-License-Identifier: MIT */
#include "io/proc.h"

#include "base/str.h"
#include "harness.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>

extern char **environ;

#define NOBODY 0x3ffffffe /* above every pid_max */

/* A program with this environment; it and its descendants run until *hold is closed. */
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

/* Read one line of its output. */
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
	ck_assert(proc_stat(getpid(), &parent, &session, &start)); /* whatever its name contains */
	ck_assert(parent == getppid() && session == getsid(0) && start > 0);
	prctl(PR_SET_NAME, ") R 1 1", 0, 0, 0);
	ck_assert(proc_stat(getpid(), &parent, &session, NULL));
	ck_assert(parent == getppid() && session == getsid(0));
	prctl(PR_SET_NAME, "12345678901234\xc3\xa9", 0, 0, 0); /* the kernel cuts it within the character */
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

START_TEST(whether_and_why_a_process_goes_on) {
	char *const envp[] = {NULL};
	struct error why;
	char want[64];
	int hold, out;
	uint64_t start;
	pid_t pid = run("read x", envp, &hold, &out);
	ck_assert(proc_stat(pid, NULL, NULL, &start) && proc_lives(pid, start));
	ck_assert(!proc_lives(pid, start + 1) && !proc_lives(NOBODY, start) && !proc_lives(0, 0));
	proc_explain(pid, &why);
	ck_assert_ptr_nonnull(strstr(why.text, "it goes on after SIGKILL (state "));
	bool held = ptrace(PTRACE_SEIZE, pid, NULL, PTRACE_O_TRACEEXIT) == 0; /* stopped in its exit, if permitted */
	kill(pid, SIGKILL);
	if (held) {
		ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
		ck_assert(proc_lives(pid, start));
		proc_explain(pid, &why);
		snprintf(want, sizeof want, "process %d traces it and holds it (state t)", getpid());
		ck_assert_str_eq(why.text, want);
		ptrace(PTRACE_DETACH, pid, NULL, NULL);
	}
	waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT);
	ck_assert(!proc_lives(pid, start)); /* a zombie */
	finish(pid, hold, out);
	if (getuid() == 0) { /* of another user */
		pid = fork();
		if (pid == 0) {
			if (setresuid(1, 1, 1) < 0) _exit(1);
			proc_explain(getppid(), &why);
			_exit(strcmp(why.text, "it runs as uid 0, and may not be signalled") != 0);
		}
		int status;
		ck_assert(waitpid(pid, &status, 0) == pid && status == 0);
	}
}
END_TEST

/* --- listing ------------------------------------------------------------------------------------------------------ */

START_TEST(a_list_of_all_but_ourselves) {
	char *const envp[] = {(char[]){"PATH=/usr/bin:/bin"}, NULL};
	char text[64];
	int hold, out;
	size_t n = 0;
	pid_t pid = run("exec 3<&0; sh -c 'echo $$; read x' <&3 & wait", envp, &hold, &out), parent, session;
	uint64_t start;
	line(out, text, sizeof text);
	pid_t below = (pid_t)atoi(text), gone = fork();
	if (gone == 0) _exit(0);
	waitid(P_PID, (id_t)gone, &(siginfo_t){0}, WEXITED | WNOWAIT);
	struct proc_scan scan;
	proc_scan_begin(&scan);
	for (size_t read = 0; proc_scan_next(&scan); read = scan.n) ck_assert_uint_le(scan.n, read + 1);
	struct proc *all = proc_scan_end(&scan, &n);
	ck_assert_ptr_nonnull(all);
	for (size_t i = 1; i < n; i++) ck_assert(all[i - 1].pid < all[i].pid);
	const struct proc *p = proc_in(all, n, pid), *b = proc_in(all, n, below), *z = proc_in(all, n, gone);
	ck_assert(p && b && z && p->parent == getpid() && b->parent == pid && z->zombie && !p->zombie);
	ck_assert(proc_stat(pid, &parent, &session, &start) && p->session == session && p->start == start);
	ck_assert(!proc_in(all, n, getpid()) && !proc_in(all, n, NOBODY) && !proc_in(NULL, 0, pid));
	free(all);
	waitpid(gone, NULL, 0);
	finish(pid, hold, out);
}
END_TEST

START_TEST(our_own_children) {
	size_t before, n;
	pid_t *all = proc_children(&before), pid = fork();
	if (pid == 0) {
		pause();
		_exit(0);
	}
	free(all);
	all = proc_children(&n);
	ck_assert(all && n == before + 1 && all[n - 1] == pid);
	free(all);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	all = proc_children(&n);
	ck_assert(all && n == before);
	free(all);
}
END_TEST

START_TEST(masks) {
	mode_t before = umask(0);
	ck_assert_int_eq(proc_umask(getpid()), 0);
	umask(0127);
	ck_assert_int_eq(proc_umask(getpid()), 0127);
	umask(before);
	ck_assert_int_eq(proc_umask(NOBODY), -1);
}
END_TEST

START_TEST(control_groups) {
	_cleanup_free_ char *own = proc_cgroup(getpid());
	ck_assert(!own || (own[0] == '/' && !strchr(own, '\n')));
	ck_assert_ptr_null(proc_cgroup(NOBODY));
}
END_TEST

RUN_TESTS("proc", names, of_nobody_nothing_is_said, what_a_process_has, whether_and_why_a_process_goes_on,
		  a_list_of_all_but_ourselves, our_own_children, masks, control_groups)
