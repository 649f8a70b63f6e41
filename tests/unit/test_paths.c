/* SPDX-License-Identifier: MIT */
#include "base/paths.h"

#include "harness.h"

#include <fcntl.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>

static char folder[64];

static void begin(void) {
	strcpy(folder, "/tmp/pl-XXXXXX");
	ck_assert(mkdtemp(folder));
	static const char *const names[] = {"PLENUM_SOCKET", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"};
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) unsetenv(names[i]);
}

static void end(void) {
	chmod(folder, 0700);
	rmdir(folder);
}

static void socket_is(const char *path, const char *rule) {
	char out[200];
	const char *why = NULL;
	ck_assert_msg(path_socket(out, sizeof out, &why), "%s", why);
	ck_assert_str_eq(out, path);
	ck_assert_str_eq(why, rule);
	ck_assert(path_socket(out, sizeof out, NULL));
}

START_TEST(the_socket) {
	char want[100];
	begin();
	snprintf(want, sizeof want, "%s/plenum/plenum.sock", folder);
	socket_is("/run/plenum/plenum.sock", "the system's default");
	setenv("XDG_RUNTIME_DIR", folder, 1);
	socket_is(want, "XDG_RUNTIME_DIR");
	setenv("PLENUM_SOCKET", "/x/y", 1);
	socket_is("/x/y", "PLENUM_SOCKET");
	setenv("PLENUM_SOCKET", "", 1); /* like an unset one */
	socket_is(want, "XDG_RUNTIME_DIR");
	chmod(folder, 0720);
	socket_is("/run/plenum/plenum.sock", "the system's default");
	end();
}
END_TEST

START_TEST(too_long) {
	char name[PATH_SOCKET_MAX + 2], out[200], small[10];
	const char *why = "";
	begin();
	memset(name, 'x', sizeof name);
	name[0] = '/';
	name[PATH_SOCKET_MAX] = 0;
	ck_assert(path_socket_check(name, &why));
	setenv("PLENUM_SOCKET", name, 1);
	socket_is(name, "PLENUM_SOCKET");
	ck_assert(!path_socket(small, sizeof small, &why));
	ck_assert_str_eq(small, "/xxxxxxxx");
	ck_assert_msg(strstr(why, "buffer is too small"), "%s", why);
	ck_assert(!path_socket(small, sizeof small, NULL));
	ck_assert(!path_socket(NULL, 0, &why));
	ck_assert(path_socket(out, PATH_SOCKET_MAX + 1, &why) && !path_socket(out, PATH_SOCKET_MAX, &why));
	name[PATH_SOCKET_MAX] = 'x';
	name[PATH_SOCKET_MAX + 1] = 0;
	ck_assert(!path_socket_check(name, &why));
	ck_assert_msg(strstr(why, "107"), "%s", why);
	setenv("PLENUM_SOCKET", name, 1);
	ck_assert(!path_socket(out, sizeof out, &why));
	ck_assert_msg(strstr(why, "107"), "%s", why);
	ck_assert(!path_socket_check("", &why));
	ck_assert_msg(strstr(why, "empty"), "%s", why);
	ck_assert(!path_socket_check("", NULL));
	end();
}
END_TEST

static void no_runtime(const char *dir, const char *problem) {
	if (dir)
		setenv("XDG_RUNTIME_DIR", dir, 1);
	else
		unsetenv("XDG_RUNTIME_DIR");
	ck_assert_ptr_null(path_runtime_dir());
	ck_assert_msg(strstr(path_runtime_dir_problem(), problem), "%s: %s", dir, path_runtime_dir_problem());
}

START_TEST(the_runtime_folder) {
	char file[100];
	begin();
	no_runtime(NULL, "is not set");
	no_runtime("", "is not set");
	no_runtime("tmp", "not an absolute path");
	no_runtime("/does/not/exist", "does not exist");
	snprintf(file, sizeof file, "%s/file", folder);
	fclose(fopen(file, "w"));
	no_runtime(file, "does not exist");
	unlink(file);
	if (geteuid() != 0) no_runtime("/", "another user");
	chmod(folder, 0702);
	no_runtime(folder, "writable for others");
	chmod(folder, 0755);
	ck_assert_ptr_null(path_runtime_dir_problem());
	_cleanup_free_ char *dir = path_runtime_dir();
	ck_assert_str_eq(dir, folder);
	end();
}
END_TEST

static void is(char *path, const char *want) {
	ck_assert_str_eq(path, want);
	free(path);
}

START_TEST(homes) {
	begin();
	setenv("HOME", "/home/x", 1);
	is(path_home(), "/home/x");
	is(path_state_dir(), "/home/x/.local/state/plenum");
	is(path_config_home(), "/home/x/.config");
	setenv("XDG_STATE_HOME", "/s", 1);
	setenv("XDG_CONFIG_HOME", "/c", 1);
	is(path_state_dir(), "/s/plenum");
	is(path_config_home(), "/c");
	setenv("XDG_STATE_HOME", "relative", 1); /* ignored by the specification */
	setenv("XDG_CONFIG_HOME", "", 1);
	is(path_state_dir(), "/home/x/.local/state/plenum");
	is(path_config_home(), "/home/x/.config");
	struct passwd *pw = getpwuid(geteuid());
	setenv("HOME", "relative", 1);
	_cleanup_free_ char *home = path_home();
	ck_assert_pstr_eq(home, pw ? pw->pw_dir : NULL);
	end();
}
END_TEST

START_TEST(places_of_the_native_installer) {
	_cleanup_free_ char *one = path_installed("/h", 0, "x"), *two = path_installed("/h", 1, "x");
	ck_assert_str_eq(one, "/h/.local/bin/x");
	ck_assert_str_eq(two, "/h/.claude/local/x");
	ck_assert_ptr_null(path_installed("/h", 2, "x"));
}
END_TEST

START_TEST(programs) {
	char exe[4096] = "", file[100];
	begin();
	ck_assert_int_gt(readlink("/proc/self/exe", exe, sizeof exe - 1), 0);
	_cleanup_free_ char *dir = path_own_dir();
	ck_assert(strncmp(exe, dir, strlen(dir)) == 0);
	ck_assert_str_eq(exe + strlen(dir), strrchr(exe, '/'));
	ck_assert(path_is_program(exe));
	ck_assert(!path_is_program(dir)); /* it may be entered */
	snprintf(file, sizeof file, "%s/x", folder);
	ck_assert(!path_is_program(file));
	close(creat(file, 0600));
	ck_assert(!path_is_program(file));
	unlink(file);
	end();
}
END_TEST

RUN_TESTS("paths", the_socket, too_long, the_runtime_folder, homes, places_of_the_native_installer, programs)
