/* SPDX-License-Identifier: MIT */
#include "base/paths.h"

#include "base/macros.h"
#include "base/str.h"
#include "plenum/protocol.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Return the value of an environment variable if it is an absolute path; XDG requires that others are ignored. */
static const char *absolute_env(const char *name) {
	const char *value = getenv(name);
	return value && *value == '/' ? value : NULL;
}

const char *path_runtime_dir_problem(void) {
	const char *dir = getenv("XDG_RUNTIME_DIR");
	struct stat st;
	if (!dir || !*dir) return "XDG_RUNTIME_DIR is not set";
	if (*dir != '/') return "XDG_RUNTIME_DIR is not an absolute path";
	if (stat(dir, &st) < 0 || !S_ISDIR(st.st_mode)) return "the directory in XDG_RUNTIME_DIR does not exist";
	if (st.st_uid != geteuid()) return "the directory in XDG_RUNTIME_DIR belongs to another user";
	if (st.st_mode & (S_IWGRP | S_IWOTH)) return "the directory in XDG_RUNTIME_DIR is writable for others";
	return NULL;
}

char *path_runtime_dir(void) {
	return path_runtime_dir_problem() ? NULL : str_dup(getenv("XDG_RUNTIME_DIR"));
}

bool path_socket_check(const char *path, const char **why) {
	const char *problem = NULL;
	if (!*path) problem = "the socket path is empty; name one, or leave it out for the usual place";
	if (strlen(path) > PATH_SOCKET_MAX)
		problem = "the socket path is longer than the 107 bytes that a Unix socket can have; choose a shorter one";
	if (problem && why) *why = problem;
	return !problem;
}

static bool put_socket(char *out, size_t size, const char *dir, const char *file, const char *rule, const char **why) {
	char path[4096];
	snprintf(path, sizeof path, "%s%s%s", dir, *dir ? "/" : "", file);
	if (size) snprintf(out, size, "%s", path);
	if (!path_socket_check(path, why)) return false;
	bool fits = strlen(path) < size;
	if (why) *why = fits ? rule : "the caller's buffer is too small for the socket path";
	return fits;
}

/* Write the directory of a login's runtime files, which cron, su and SDKs with an environment of their own do not name.
 * Return false if no socket of ours is there. */
static bool find_login(char *dir, size_t size) {
	char path[PATH_SOCKET_MAX + 1];
	struct stat st;
	const char *named = getenv("XDG_RUNTIME_DIR");
	if (named && *named) return false;
	snprintf(dir, size, "/run/user/%u", geteuid());
	snprintf(path, sizeof path, "%s/" PLENUM_SOCKET_SUBPATH, dir);
	return lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_uid == geteuid();
}

bool path_socket(char *out, size_t size, const char **why) {
	char login[32];
	const char *named = getenv("PLENUM_SOCKET");
	if (named && *named) return put_socket(out, size, "", named, "PLENUM_SOCKET", why);
	_cleanup_free_ char *runtime = path_runtime_dir();
	if (runtime) return put_socket(out, size, runtime, PLENUM_SOCKET_SUBPATH, "XDG_RUNTIME_DIR", why);
	if (find_login(login, sizeof login)) return put_socket(out, size, login, PLENUM_SOCKET_SUBPATH, "the login's", why);
	return put_socket(out, size, "", PLENUM_SYSTEM_SOCKET, "the system's default", why);
}

bool path_is_program(const char *path) {
	struct stat st;
	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

char *path_installed(const char *home, size_t n, const char *program) {
	static const char *const places[] = {".local/bin", ".claude/local"};
	return n < ARRAY_SIZE(places) ? str_printf("%s/%s/%s", home, places[n], program) : NULL;
}

char *path_own_dir(void) {
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
	if (n <= 0) return NULL;
	path[n] = 0;
	char *slash = strrchr(path, '/');
	if (slash) *slash = 0;
	return strdup(path);
}

char *path_home(void) {
	const char *home = absolute_env("HOME");
	struct passwd *pw = home ? NULL : getpwuid(geteuid());
	return str_dup(home ? home : pw ? pw->pw_dir : NULL);
}

/* $name/tail, else ~/below/tail. */
static char *xdg_dir(const char *name, const char *below, const char *tail) {
	const char *base = absolute_env(name);
	if (base) return str_printf("%s%s", base, tail);
	_cleanup_free_ char *home = path_home();
	return home ? str_printf("%s/%s%s", home, below, tail) : NULL;
}

char *path_state_dir(void) {
	return xdg_dir("XDG_STATE_HOME", ".local/state", "/plenum");
}

char *path_config_home(void) {
	return xdg_dir("XDG_CONFIG_HOME", ".config", "");
}
