/* SPDX-License-Identifier: MIT */
#include "shim/cli.h"

#include "base/macros.h"
#include "base/paths.h"
#include "base/str.h"
#include "shim/daemon.h"
#include "shim/wrapper.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A `claude` that is a script around plenum-shim leads back here, as the same process if it ends with exec: then the
 * next candidate is taken. As the parent of this process it is left out (wrapper.h). The variable has the number of
 * rounds and the process of the last one. */
#define DEPTH_ENV "PLENUM_SHIM_DEPTH"
#define DEPTH_MAX 3

/* Return the path if it can be the CLI; else free it. argv: ours. */
static char *candidate(char *path, char **argv) {
	bool self = path && wrapper_same_file(path, "/proc/self/exe");
	if (path && path_is_program(path) && !self && !wrapper_is(path, argv)) return path;
	free(path);
	return NULL;
}

/* Skip *skip candidates. */
static char *find_in_path(const char *dir, char **argv, unsigned *skip) {
	for (; dir; dir = *dir ? dir + 1 : NULL) {
		size_t n = strcspn(dir, ":");
		char *path = candidate(str_printf("%.*s/claude", n ? (int)n : 1, n ? dir : "."), argv);
		if (path && !*skip) return path;
		if (path) --*skip;
		free(path);
		dir += n;
	}
	return NULL;
}

static char *find(char **argv, unsigned skip) {
	const char *set = getenv("PLENUM_CLAUDE");
	if (set && *set) return strdup(set);
	char *found = find_in_path(getenv("PATH"), argv, &skip);
	if (found) return found;
	_cleanup_free_ char *path = daemon_path();
	found = find_in_path(path, argv, &skip);
	/* The native installer's directories are not in the PATH of every service. */
	const char *home = getenv("HOME");
	char *place;
	for (size_t i = 0; home && !found && (place = path_installed(home, i, "claude")); i++)
		found = candidate(place, argv);
	return found;
}

/* Return the number of rounds before this one. *back: of this process. */
static unsigned count_rounds(bool *back) {
	unsigned rounds = 0;
	int pid = 0;
	char text[32];
	const char *value = getenv(DEPTH_ENV);
	if (value && sscanf(value, "%3u:%9d", &rounds, &pid) != 2) rounds = 0;
	*back = rounds && pid == getpid();
	snprintf(text, sizeof text, "%u:%d", rounds + 1, (int)getpid());
	setenv(DEPTH_ENV, text, 1);
	return rounds;
}

int cli_exec(char **argv) {
	bool back;
	unsigned rounds = count_rounds(&back);
	_cleanup_free_ char *path = find(argv + 1, back ? rounds : 0);
	if (!path) {
		fputs(
			"plenum-shim: claude: not found in PATH, the daemon's PATH, ~/.local/bin and ~/.claude/local (install it, "
			"or set PLENUM_CLAUDE to its path)\n",
			stderr);
		return 127;
	}
	if (rounds >= DEPTH_MAX) {
		fprintf(stderr, "plenum-shim: %s: it leads back to plenum-shim (set PLENUM_CLAUDE to the real claude)\n", path);
		return 126;
	}
	argv[0] = path;
	if (strchr(path, '/'))
		execv(path, argv);
	else
		execvp(path, argv);
	int code = errno == ENOENT ? 127 : 126;
	fprintf(stderr, "plenum-shim: cannot run %s: %s\n", path, strerror(errno));
	return code;
}
