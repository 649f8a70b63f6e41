/* SPDX-License-Identifier: MIT */
#include "ctl/find.h"

#include "base/fd.h"
#include "base/macros.h"
#include "base/paths.h"
#include "base/str.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char *if_program(char *path) {
	if (path && path_is_program(path)) return path;
	free(path);
	return NULL;
}

char *find_program(const char *name) {
	if (strchr(name, '/')) return if_program(strdup(name));
	const char *path = getenv("PATH");
	for (const char *p = path ? path : "/usr/local/bin:/usr/bin:/bin"; *p;) {
		size_t n = strcspn(p, ":");
		char *found = if_program(n ? str_printf("%.*s/%s", (int)n, p, name) : str_printf("./%s", name));
		if (found) return found;
		p += n + (p[n] == ':');
	}
	const char *home = getenv("HOME");
	char *place, *found = NULL;
	for (size_t i = 0; home && !found && (place = path_installed(home, i, name)); i++) found = if_program(place);
	return found;
}

char *find_own(const char *name, const char *build_subfolder) {
	_cleanup_free_ char *folder = path_own_dir();
	char *found = folder ? if_program(str_printf("%s/%s", folder, name)) : NULL;
	if (!found && folder) found = if_program(str_printf("%s/../%s%s", folder, build_subfolder, name));
	return found ? found : find_program(name);
}

/* In the child. */
static void exec_with(const char *const argv[], int out) {
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	signal(SIGPIPE, SIG_DFL);
	dup2(null, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	execvp(argv[0], (char *const *)(uintptr_t)argv);
	_exit(127);
}

char *find_output(const char *const argv[], int *status) {
	int ends[2];
	char part[4096];
	ssize_t n;
	struct buf b = BUF_INIT((size_t)64 * 1024);
	if (pipe2(ends, O_CLOEXEC) < 0) return NULL;
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) exec_with(argv, ends[1]);
	close(ends[1]);
	buf_puts(&b, "");
	while (pid > 0 && (n = fd_read(ends[0], part, sizeof part)) > 0) buf_put(&b, part, (size_t)n);
	close(ends[0]);
	bool ran = pid > 0 && waitpid(pid, status, 0) == pid && !(WIFEXITED(*status) && WEXITSTATUS(*status) == 127);
	b.failed = false; /* the beginning is enough */
	char *text = buf_steal(&b, NULL);
	if (ran) return text;
	free(text);
	return NULL;
}
