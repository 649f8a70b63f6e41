/* SPDX-License-Identifier: MIT */
#include "base/log.h"
#include "base/str.h"
#include "config/config.h"
#include "harness.h"
#include "words.h"

#include <check.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64], file[128], error[1024];

static struct errors errors;

static void setup(void) {
	strcpy(dir, "/tmp/plenum-config-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(file, sizeof file, "%s/plenum.conf", dir);
}

static void teardown(void) {
	char command[128];
	snprintf(command, sizeof command, "rm -rf '%s'", dir);
	ck_assert_int_eq(system(command), 0);
	errors_free(&errors);
}

static void put(const char *name, const char *text) {
	char path[256];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	for (char *p = path + 1; (p = strchr(p, '/')); p++) {
		*p = 0;
		mkdir(path, 0700);
		*p = '/';
	}
	FILE *f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	ck_assert_int_eq(fclose(f), 0);
}

/* error: the first one. */
static struct settings *load_path(const char *path) {
	errors_free(&errors);
	struct buf text = BUF_INIT(1024 * 1024);
	config_read(&text, path);
	struct settings *s = config_load(&text, &errors);
	buf_free(&text);
	ck_assert(!s == !!errors.n && errors.list.n == errors.n);
	snprintf(error, sizeof error, "%s", s ? "" : errors.list.v[0]);
	return s;
}

static struct settings *load(const char *text) {
	put("plenum.conf", text);
	struct settings *s = load_path(file);
	ck_assert_msg(s != NULL, "%s", error);
	return s;
}

/* The error begins with FILE:LINE: and contains `what`. */
static void refuse(const char *text, int line, const char *what) {
	char head[160];
	put("plenum.conf", text);
	struct settings *s = load_path(file);
	ck_assert_msg(s == NULL, "accepted: %s", text);
	snprintf(head, sizeof head, line ? "%s:%d: " : "%s: ", file, line);
	ck_assert_msg(strncmp(error, head, strlen(head)) == 0, "%s", error);
	ck_assert_msg(strstr(error, what) != NULL, "no \"%s\" in: %s", what, error);
}

START_TEST(test_daemon) {
	struct settings *s = load(
		"# a comment\n[daemon]\nsocket = /run/x/plenum.sock\nstate_dir=/var/lib/plenum ; why not\n"
		"default_profile = fake\nlog_level = debug\nmax_sessions = 7\nmax_children = 3\n"
		"max_clients = 9\nallow_uids = root, 1234 77\nallow_groups = 0\napprove_uids = 0\n"
		"on_pending = notify-send \"Agent; asks\" 'a ; b'\non_turn_end = a\non_failed = b\non_stalled = c d\n");
	ck_assert_str_eq(s->socket, "/run/x/plenum.sock");
	ck_assert_str_eq(s->state_dir, "/var/lib/plenum");
	ck_assert_str_eq(s->default_profile, "fake");
	ck_assert_int_eq(s->log_level, LOG_DEBUG);
	ck_assert_uint_eq(s->max_sessions, 7);
	ck_assert_uint_eq(s->max_children, 3);
	ck_assert_uint_eq(s->max_clients, 9);
	ck_assert_uint_eq(s->allow.n_uids, 3);
	ck_assert_uint_eq(s->allow.uids[0], 0);
	ck_assert_uint_eq(s->allow.uids[1], 1234);
	ck_assert_uint_eq(s->allow.n_gids, 1);
	ck_assert_uint_eq(s->approve.n_uids, 1);
	WORDS(&s->on[ALERT_PENDING], "notify-send", "Agent; asks", "a ; b");
	WORDS(&s->on[ALERT_TURN_END], "a");
	WORDS(&s->on[ALERT_FAILED], "b");
	WORDS(&s->on[ALERT_STALLED], "c", "d");
	WORDS(&s->files, file);
	settings_unref(s);
}
END_TEST

START_TEST(test_limits) {
	struct settings *s = load("[limits]\nchild_line = 1M\nclient_line = 64K\ntape_bytes = 2G\ntape_lines = 12\n"
							  "stdin_queue = 8MiB\nclient_lag_soft = 4096\nclient_lag_soft_time = never\n"
							  "lag_wait = 500ms\nmax_pending = 5\nmax_calls = 6\n");
	ck_assert_uint_eq(s->limits.child_line, 1 << 20);
	ck_assert_uint_eq(s->limits.client_line, 1 << 16);
	ck_assert_uint_eq(s->limits.tape_bytes, (size_t)2 << 30);
	ck_assert_uint_eq(s->limits.tape_lines, 12);
	ck_assert_uint_eq(s->limits.stdin_queue, 8 << 20);
	ck_assert_uint_eq(s->limits.client_lag_soft, 4096);
	ck_assert(s->limits.client_lag_soft_time == SETTINGS_NEVER);
	ck_assert_int_eq(s->limits.lag_wait, 500);
	ck_assert_uint_eq(s->limits.max_pending, 5);
	ck_assert_uint_eq(s->limits.max_calls, 6);
	settings_unref(s);
}
END_TEST

START_TEST(test_booleans) {
	static const char *const words[] = {"1", "yes", "Y", "true", "T", "ON", "0", "no", "n", "FALSE", "f", "Off"};
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		_cleanup_free_ char *text = str_printf("[profile x]\ncommand = a\nprivate = %s\n", words[i]);
		struct settings *s = load(text);
		ck_assert_msg(settings_profile(s, "x")->is_private == (i < 6), "private = %s", words[i]);
		settings_unref(s);
	}
}
END_TEST

START_TEST(test_profile) {
	struct settings *s = load(
		"[profile safe]\ncommand = agent --flag 'two words' \\\"x\ncwd = /srv\nenv = A=1 B='2 3'\n"
		"pass_env = PATH HOME\nprivate = yes\nresume_args = --resume {id}\n"
		"session_id_args =\nallow_tools = Read Bash(git status) Bash(npm run:*), mcp__x\n"
		"deny_tools = Bash(rm:*)\nask_tools = WebFetch\npermission_wait = 5min\nowner_grace = 0\n"
		"control_timeout = never\nidle_sleep = 2h\nstop_grace = 1s\nprompts = queue\n"
		"restart = never\ndialect = claude\n");
	const struct profile *p = settings_profile(s, "safe");
	ck_assert_ptr_nonnull(p);
	WORDS(&p->command, "agent", "--flag", "two words", "\"x");
	WORDS(&p->env, "A=1", "B=2 3");
	WORDS(&p->pass_env, "PATH", "HOME");
	WORDS(&p->resume_args, "--resume", "{id}");
	WORDS(&p->allow_tools, "Read", "Bash(git status)", "Bash(npm run:*)", "mcp__x");
	WORDS(&p->deny_tools, "Bash(rm:*)");
	ck_assert_uint_eq(p->session_id_args.n, 0);
	ck_assert_str_eq(p->cwd, "/srv");
	ck_assert(p->is_private && p->prompts_queue && p->restart_never);
	ck_assert_int_eq(p->permission_wait, 300000);
	ck_assert_int_eq(p->owner_grace, 0);
	ck_assert(p->control_timeout == SETTINGS_NEVER);
	ck_assert_int_eq(p->idle_sleep, 7200000);
	ck_assert_int_eq(p->stop_grace, 1000);
	ck_assert_str_eq(p->file, file);
	ck_assert_int_eq(p->line, 1);
	settings_unref(s);
}
END_TEST

START_TEST(test_built_in_profile_changes_in_part) {
	struct settings *s = load("[profile claude]\nidle_sleep = never\n");
	const struct profile *p = settings_profile(s, "claude");
	ck_assert(p->idle_sleep == SETTINGS_NEVER);
	ck_assert_uint_eq(p->command.n, 11);
	ck_assert_int_eq(p->owner_grace, 15000);
	struct settings *built_in = settings_new();
	ck_assert_uint_eq(s->n_profiles, built_in->n_profiles); /* none is added */
	settings_unref(built_in);
	settings_unref(s);
}
END_TEST

START_TEST(test_later_files_win) {
	put("plenum.conf.d/20-b.conf", "[profile mine]\nenv = C=3\n[daemon]\nmax_clients = 2\n");
	put("plenum.conf.d/10-a.conf", "[daemon]\nmax_clients = 1\ndefault_profile = mine\n");
	put("plenum.conf.d/.hidden.conf", "nonsense\n");
	put("plenum.conf.d/README", "nonsense\n");
	struct settings *s = load("[profile mine]\ncommand = x\nenv = A=1 B=2\ncwd = /a\n");
	const struct profile *p = settings_profile(s, "mine");
	WORDS(&p->env, "C=3");
	ck_assert_str_eq(p->cwd, "/a");
	ck_assert_uint_eq(s->max_clients, 2);
	ck_assert_uint_eq(s->files.n, 3);
	settings_unref(s);
}
END_TEST

START_TEST(test_usual_places) {
	setenv("XDG_CONFIG_HOME", dir, 1);
	struct settings *s = load_path(NULL);
	ck_assert_msg(s != NULL, "%s", error);
	settings_unref(s);
	put("plenum/plenum.conf", "[daemon]\nmax_sessions = 11\n");
	put("plenum/plenum.conf.d/x.conf", "[daemon]\nmax_clients = 12\n");
	s = load_path(NULL);
	ck_assert_msg(s != NULL, "%s", error);
	ck_assert_uint_eq(s->max_sessions, 11);
	ck_assert_uint_eq(s->max_clients, 12);
	settings_unref(s);
	ck_assert_ptr_null(load_path(file));
	ck_assert_ptr_nonnull(strstr(error, "No such file"));
	ck_assert_ptr_null(load_path(dir));
}
END_TEST

/* inih's own line buffer has 200 bytes. */
START_TEST(test_long_lines) {
	char text[40000], *p = text;
	p += sprintf(p, "[profile long]\ncommand = agent");
	for (int i = 0; i < 1000; i++) p += sprintf(p, " --word=%d ;#[%d", i, i);
	strcpy(p, "\n");
	for (p = text; (p = strstr(p, " ;#"));) *p = '_'; /* not a comment: no space before the ; */
	strcat(text, "env = A='");
	p = text + strlen(text);
	memset(p, 'x', 3000);
	strcpy(p + 3000, "'\ncwd = /\n[limits]\nx = 1\n");
	refuse(text, 6, "no key \"x\"");
	*strstr(text, "[limits]") = 0;
	struct settings *s = load(text);
	const struct profile *q = settings_profile(s, "long");
	ck_assert_uint_eq(q->command.n, 1001);
	ck_assert_str_eq(q->command.v[1000], "--word=999_;#[999");
	ck_assert_uint_eq(strlen(q->env.v[0]), 3002);
	ck_assert_str_eq(q->cwd, "/");
	settings_unref(s);
}
END_TEST

START_TEST(test_long_comments_and_blanks) {
	char text[3000] = "[daemon]\nmax_clients = 5 ; ";
	memset(text + strlen(text), 'c', 400);
	strcat(text, "\n# ");
	memset(text + strlen(text), 'x', 400);
	strcat(text, "\n; [profile\nmax_sessions = 4");
	memset(text + strlen(text), ' ', 400);
	strcat(text, "\r\n");
	struct settings *s = load(text);
	ck_assert_uint_eq(s->max_clients, 5);
	ck_assert_uint_eq(s->max_sessions, 4);
	settings_unref(s);
}
END_TEST

START_TEST(test_continuation) {
	struct settings *s = load(
		"\xef\xbb\xbf[profile c]\r\n  command = a b\r\n  c\r\n\r\n# x\r\n\td 'e\r\n  f'\r\ncwd = /x");
	const struct profile *p = settings_profile(s, "c");
	WORDS(&p->command, "a", "b", "c", "d", "e f");
	ck_assert_str_eq(p->cwd, "/x");
	settings_unref(s);
	refuse("[profile c]\n command = a\n cwd = /x\n", 3, "begin \"cwd\" in the first column");
}
END_TEST

START_TEST(test_mistakes) {
	refuse("[daemon]\n\nsokket = /x\n", 3, "no key \"sokket\" in [daemon]; its keys are: socket, state_dir");
	refuse("[deamon]\n", 1, "no section [deamon]");
	refuse("[profile x]\ncommand = a\n[profile]\n", 3, "no section [profile]");
	refuse("max_clients = 3\n", 1, "before any section");
	refuse("[daemon]\nnonsense\n", 2, "neither a section nor a member");
	refuse("[daemon\n", 1, "closing bracket");
	refuse("[daemon]\nnonsense\nsokket = 1\n", 2, "neither");
	refuse("[daemon]\nsokket = 1\nnonsense\n", 2, "sokket");
	refuse("[daemon]\nmax_clients = 1\nmax_sessions = 1\nmax_clients = 2\n", 4, "given twice");
	refuse("[daemon]\nmax_clients = 1\n[limits]\n[daemon]\nmax_clients = 2\n", 5, "given twice");
	refuse("[daemon]\nmax_clients = 0\n", 2, "from 1 to 1000000");
	refuse("[daemon]\nmax_clients = 5 # five\n", 2, "whole number");
	refuse("[daemon]\nlog_level = loud\n", 2, "write error, warn, info or debug");
	refuse("[daemon]\nsocket = plenum.sock\n", 2, "absolute path");
	refuse("[daemon]\nstate_dir =\n", 2, "absolute path");
	refuse("[daemon]\nallow_uids = no-such-user-here\n", 2, "no user \"no-such-user-here\"");
	refuse("[daemon]\nallow_groups = 4294967295\n", 2, "no group");
	refuse("[limits]\ntape_bytes = 16 M\n", 2, "write a size from 4K to 64G");
	refuse("[limits]\ntape_bytes = 1\n", 2, "write a size");
	refuse("[limits]\nlag_wait = never\n", 2, "write a time");
	refuse("[limits]\nlag_wait = 10\n", 2, "such as 500ms");
}
END_TEST

/* Exactly these lines of the file have errors, one each, in this order. */
static void refuse_lines(const char *text, const int *lines, size_t n) {
	char head[160];
	put("plenum.conf", text);
	ck_assert_ptr_null(load_path(file));
	for (size_t i = 0; i < n && i < errors.n; i++) {
		snprintf(head, sizeof head, "%s:%d: ", file, lines[i]);
		ck_assert_msg(strncmp(errors.list.v[i], head, strlen(head)) == 0, "not %s: %s", head, errors.list.v[i]);
	}
	ck_assert_msg(errors.n == n, "%zu, not %zu; the last: %s", errors.n, n, errors.list.v[errors.n - 1]);
}
#define REFUSE_LINES(text, ...)                                                                                        \
	refuse_lines(text, (const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

START_TEST(test_every_mistake) {
	REFUSE_LINES("x = 1\n[deamon]\nsokket = 1\nnonsense = 2\n[daemon]\nsokket = 1\nnonsense\nmax_clients = 0\n"
				 "log_level = debug\n[limits\ntape_bytes = 1\nlag_wait = 10\n",
				 1, 2, 6, 7, 8, 10, 11, 12);
	REFUSE_LINES("[profile a/b]\ncommand = 'x\n[profile b]\ncwd = x\nwarm = 2\ncwd = /\n[daemon]\n"
				 "default_profile = a/b\nallow_uids = no-such-user 0 nor-such-a-one\n",
				 1, 2, 4, 6, 9, 9, 3);
	REFUSE_LINES("[profile a]\nallow_tools = B* Read Read(src/**)\ndeny_tools = (x) Read (y)\n", 2, 2, 3, 3, 1);
}
END_TEST

/* Consequences of a reported error are not reported. */
START_TEST(test_one_mistake_one_line) {
	char text[3000];
	REFUSE_LINES("[daemon]\nnonsense\n  that = goes on\n\n  and on\n; here too\n  and on\nmax_clients = x\n", 2, 8);
	REFUSE_LINES("[daemon]\nmax_clients = 3\nnonsense\n  5\nmax_sessions = 0\n", 3, 5);
	REFUSE_LINES("[daemon]\nsokket = 1\n  2\n\tlog_level\nmax_clients = 0\n", 2, 5);
	REFUSE_LINES("[profile x]\n command = a\n warm = 2\n cwd = /\n", 3, 4);
	REFUSE_LINES("[profile x]\ncommand = 'a\nwarm = 2\ncwd = b\n", 2, 4);
	REFUSE_LINES("[deamon]\nsocket = x\nsocket = y\nnonsense = 3\n  [limits]\n", 1);
	memset(text, 'x', sizeof text);
	strcpy(text + 2000, " = 1\n[limits]\nx\n");
	REFUSE_LINES(text, 1, 3);
	memcpy(text, "[daemon]\nmax_clients = 1\n[limits\n", 33);
	REFUSE_LINES(text, 3, 4, 6);
}
END_TEST

START_TEST(test_mistakes_of_several_files) {
	put("plenum.conf.d/1.conf", "[daemon]\nmax_clients = x\n[profile y]\n");
	put("plenum.conf.d/2.conf", "a\0");
	put("plenum.conf.d/3.conf", "max_clients = 3\n");
	put("plenum.conf", "[daemon]\nmax_clients = 0\ndefault_profile = none\n");
	ck_assert_ptr_null(load_path(file));
	ck_assert_uint_eq(errors.n, 6);
	static const char *const want[] = {"/plenum.conf:2: max_clients",
									   "/1.conf:2: max_clients",
									   "/2.conf:1: this is neither",
									   "/3.conf:1: \"max_clients\" stands before any section",
									   "/1.conf:3: [profile y] has no command",
									   "/plenum.conf:3: default_profile"};
	for (size_t i = 0; i < 6; i++) ck_assert_msg(strstr(errors.list.v[i], want[i]) != NULL, "%s", errors.list.v[i]);
	struct error all;
	errors_sum_up(&errors, &all);
	ck_assert_ptr_nonnull(strstr(all.text, "(and 5 more: "));
}
END_TEST

START_TEST(test_profile_mistakes) {
	refuse("[profile x]\n", 1, "[profile x] has no command");
	refuse("[daemon]\n[profile x]\ncwd = /\n", 2, "[profile x] has no command");
	refuse("[profile x]\ncommand =\n", 2, "command is empty");
	refuse("[profile x]\ncommand = ''\n", 2, "command is empty");
	refuse("[profile x]\ncommand = a 'b\n", 2, "single quote is not closed");
	refuse("[profile x]\ncommand = a \"b\ncwd = /\n", 2, "double quote is not closed");
	refuse("[profile x]\ncommand = a \\\n", 2, "backslash");
	refuse("[profile x]\ncommand = bin/a\n", 2, "absolute path");
	refuse("[profile a/b]\ncommand = x\n", 1, "letters, digits");
	refuse("[profile x]\ncommand = a\ndialect = latin\n", 3, "no such dialect (known: claude, acp, codex)");
	refuse("[profile x]\ncommand = a\ndialect = acp\ncwd = /\nwarm = 1\n", 5, "not prestarted");
	refuse("[profile x]\ncommand = a\nenv = FOO\n", 3, "NAME=VALUE");
	refuse("[profile x]\ncommand = a\nenv = 1A=2\n", 3, "NAME=VALUE");
	refuse("[profile x]\ncommand = a\npass_env = A=1\n", 3, "no name of a variable");
	refuse("[profile x]\ncommand = a\nresume_args = --resume\n", 3, "{id}");
	refuse("[profile x]\ncommand = a\nprivate = 2\n", 3, "write yes or no");
	refuse("[profile x]\ncommand = a\nprompts = hold\n", 3, "write pass or queue");
	refuse("[profile x]\ncommand = a\nrestart = always\n", 3, "write on-demand or never");
	refuse("[profile x]\ncommand = a\nstdout = file\n", 3, "write socket or pipe");
	refuse("[profile x]\ncommand = a\nhot = 2\n", 3, "no key \"hot\"");
	refuse("[profile x]\nwarm = 2\ncommand = a\n", 2, "warm = 2 needs a cwd in [profile x]");
	refuse("[profile x]\ncommand = a\ncwd = /\nwarm = 65\n", 4, "from 0 to 64");
	refuse("[daemon]\nmemory_pressure = maybe\n", 2, "write yes or no");
	refuse("[profile x]\ncommand = a\nallow_tools = Bash(git\n", 3, "rule \"Bash(git\"");
	refuse("[daemon]\ndefault_profile = clod\n", 2, "no [profile clod]; there are: claude, fake");
}
END_TEST

START_TEST(test_bytes_and_rights) {
	FILE *f = fopen(file, "w");
	fwrite("[daemon]\nsocket = /a\0b\n", 1, 23, f);
	fclose(f);
	ck_assert_ptr_null(load_path(file));
	ck_assert_ptr_nonnull(strstr(error, ":2: "));
	put("plenum.conf", "");
	chmod(file, 0666);
	ck_assert_ptr_null(load_path(file));
	ck_assert_ptr_nonnull(strstr(error, "chmod o-w"));
	chmod(file, 0600);
	refuse("[daemon]\n\x1b[31m = 1\n", 2, "\\x1b");
	struct settings *s = load("");
	settings_unref(s);
}
END_TEST

/* The installed example is valid, as it is and with every example uncommented. */
START_TEST(test_example) {
	char command[600];
	const char *root = getenv("PLENUM_SOURCE_ROOT"); /* set by meson */
	ck_assert_ptr_nonnull(root);
	snprintf(command, sizeof command, "cp '%s/examples/plenum.conf.example' '%s'", root, file);
	ck_assert_int_eq(system(command), 0);
	struct settings *s = load_path(file);
	ck_assert_msg(s != NULL, "%s", error);
	settings_unref(s);
	snprintf(command, sizeof command, "sed -E 's/^#([a-z_]+ =|\\[)/\\1/' '%s/examples/plenum.conf.example' > '%s'",
			 root, file);
	ck_assert_int_eq(system(command), 0);
	s = load_path(file);
	ck_assert_msg(s != NULL, "%s", error);
	ck_assert_uint_gt(s->n_profiles, 2);
	settings_unref(s);
}
END_TEST

/* Every key is in the manual, and the manual's examples are valid configurations. */
static FILE *open_manual(void) {
	char path[512];
	const char *root = getenv("PLENUM_SOURCE_ROOT");
	ck_assert_ptr_nonnull(root);
	snprintf(path, sizeof path, "%s/man/plenum.conf.5", root);
	FILE *f = fopen(path, "r");
	ck_assert_ptr_nonnull(f);
	return f;
}

static bool manual_has(const char *key) {
	char line[1000], want[100];
	FILE *f = open_manual();
	bool found = false;
	snprintf(want, sizeof want, ".It Ic %s No = ", key);
	while (!found && fgets(line, sizeof line, f)) found = strncmp(line, want, strlen(want)) == 0;
	fclose(f);
	return found;
}

START_TEST(test_manual_keys) {
	static const char *const sections[] = {"[daemon]", "[limits]", "[profile x]"};
	char text[64];
	int n = 0;
	for (size_t i = 0; i < 3; i++) {
		snprintf(text, sizeof text, "%s\nnonsense = 1\n", sections[i]);
		refuse(text, 2, "its keys are: ");
		char *keys = strstr(error, "its keys are: ") + 14;
		for (char *key = strtok(keys, ", "); key; key = strtok(NULL, ", "), n++)
			ck_assert_msg(manual_has(key), "not in plenum.conf(5): %s", key);
	}
	ck_assert_int_gt(n, 35);
}
END_TEST

START_TEST(test_manual_examples) {
	char line[1000], text[4000] = "";
	FILE *f = open_manual();
	int n = 0;
	while (fgets(line, sizeof line, f)) {
		bool starts = !*text && line[0] == '[', ends = *text && line[0] == '.';
		if (starts || (*text && !ends)) strcat(text, line);
		if (!ends) continue;
		settings_unref(load(text));
		*text = 0;
		n++;
	}
	fclose(f);
	ck_assert_int_eq(n, 3);
}
END_TEST

/* Only the data of the errand counts: the files are not read again. */
START_TEST(test_what_was_read) {
	struct buf text = BUF_INIT(1024 * 1024);
	put("plenum.conf", "[profile x]\ncommand = a\n");
	put("plenum.conf.d/a.conf", "");
	config_read(&text, file);
	put("plenum.conf", "[profile x]\ncommand = b\n");
	unlink(file);
	struct settings *s = config_load(&text, &errors);
	ck_assert_ptr_nonnull(s);
	ck_assert_str_eq(settings_profile(s, "x")->command.v[0], "a");
	ck_assert_uint_eq(s->files.n, 2);
	settings_unref(s);
	for (size_t cut = 0; cut < text.len; cut++) { /* an errand killed in the middle of a file */
		struct buf part = {.data = text.data, .len = cut};
		ck_assert_ptr_null(config_load(&part, &errors));
		errors_free(&errors);
	}
	buf_free(&text);
}
END_TEST

static size_t failing; /* this call of str_printf() fails, from now; 0: none */

char *__wrap_str_printf(const char *fmt, ...) PRINTF_LIKE(1, 2);

char *__wrap_str_printf(const char *fmt, ...) {
	va_list ap;
	if (failing && --failing == 0) return NULL;
	va_start(ap, fmt);
	char *text = str_vprintf(fmt, ap);
	va_end(ap);
	return text;
}

/* Whatever is not found without memory: the configuration is never taken in part. */
START_TEST(test_no_memory_for_a_name) {
	struct buf text = BUF_INIT(1024 * 1024);
	struct settings *s = NULL;
	put("plenum.conf", "[profile claude]\ndeny_tools = Bash\nwarm = 1\ncwd = /\n[profile x]\ncommand = true\n");
	config_read(&text, file);
	for (size_t n = 1; !s; n++) {
		failing = n;
		s = config_load(&text, &errors);
		ck_assert_msg(failing || (!s && errors.n), "call %zu", n);
		ck_assert_msg(!failing || s, "call %zu: %s", n, errors_text(&errors, 0));
		errors_free(&errors);
	}
	failing = 0;
	buf_free(&text);
	settings_unref(s);
}
END_TEST

RUN_TESTS_WITH(setup, teardown, "config", test_daemon, test_limits, test_booleans, test_profile,
			   test_built_in_profile_changes_in_part, test_later_files_win, test_usual_places, test_long_lines,
			   test_long_comments_and_blanks, test_continuation, test_mistakes, test_every_mistake,
			   test_one_mistake_one_line, test_mistakes_of_several_files, test_profile_mistakes, test_bytes_and_rights,
			   test_example, test_manual_keys, test_manual_examples, test_what_was_read, test_no_memory_for_a_name)
