/* SPDX-License-Identifier: MIT */
#include "shim/cli.h"

#include "base/macros.h"
#include "base/str.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* A `claude` that is a script around plenum-shim would start us again and again. */
#define DEPTH_ENV "PLENUM_SHIM_DEPTH"
#define DEPTH_MAX 4

static bool is_self(const struct stat *st) {
	struct stat self;
	return stat("/proc/self/exe", &self) == 0 && self.st_dev == st->st_dev && self.st_ino == st->st_ino;
}

/* A file in one folder of PATH that can be the CLI; a new string, or NULL. */
static char *candidate(const char *dir, size_t n) {
	struct stat st;
	_cleanup_free_ char *path = str_printf("%.*s/claude", (int)n, n ? dir : ".");
	if (!path || stat(path, &st) < 0 || !S_ISREG(st.st_mode) || access(path, X_OK) < 0 || is_self(&st)) return NULL;
	char *found = path;
	path = NULL;
	return found;
}

static char *find(void) {
	const char *set = getenv("PLENUM_CLAUDE");
	if (set && *set) return strdup(set);
	const char *dir = getenv("PATH");
	for (; dir; dir = *dir ? dir + 1 : NULL) {
		size_t n = strcspn(dir, ":");
		char *path = candidate(n ? dir : ".", n ? n : 1);
		if (path) return path;
		dir += n;
	}
	return NULL;
}

static bool too_deep(void) {
	uint64_t depth = 0;
	char text[8];
	const char *value = getenv(DEPTH_ENV);
	if (value && !str_u64(value, 0, 1000, &depth)) depth = 0;
	snprintf(text, sizeof text, "%u", (unsigned)depth + 1);
	setenv(DEPTH_ENV, text, 1);
	return depth >= DEPTH_MAX;
}

int cli_exec(char **argv) {
	_cleanup_free_ char *path = find();
	if (!path) {
		fputs("plenum-shim: the real claude is not in PATH; set PLENUM_CLAUDE to its path\n", stderr);
		return 127;
	}
	if (too_deep()) {
		fprintf(stderr, "plenum-shim: %s leads back to plenum-shim; set PLENUM_CLAUDE to the real claude\n", path);
		return 126;
	}
	argv[0] = path;
	if (strchr(path, '/'))
		execv(path, argv);
	else
		execvp(path, argv);
	int code = errno == ENOENT ? 127 : 126;
	fprintf(stderr, "plenum-shim: cannot run the real claude, %s: %s\n", path, strerror(errno));
	return code;
}
