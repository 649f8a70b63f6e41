/* SPDX-License-Identifier: MIT */
#include "state.h"

#include "base/buf.h"
#include "base/macros.h"
#include "base/str.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char top[64], dir[128], file[200], error[STATE_ERROR_MAX];

static void setup(void) {
	strcpy(top, "/tmp/plenum-state-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	snprintf(dir, sizeof dir, "%s/a/plenum", top);
	snprintf(file, sizeof file, "%s/sessions.json", dir);
}

static void teardown(void) {
	char command[128];
	snprintf(command, sizeof command, "rm -rf '%s'", top);
	ck_assert_int_eq(system(command), 0);
}

static struct state *open_it(void) {
	struct state *s = state_open(dir, NULL, error);
	ck_assert_msg(s != NULL, "%s", error);
	return s;
}

static void put(const char *text, size_t n) {
	FILE *f = fopen(file, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(text, 1, n, f), n);
	fclose(f);
}

/* How many files of the folder begin with prefix. */
static int files(const char *prefix) {
	DIR *d = opendir(dir);
	int n = 0;
	for (struct dirent *e; (e = readdir(d));) n += strncmp(e->d_name, prefix, strlen(prefix)) == 0;
	closedir(d);
	return n;
}

static char name[] = "work", profile[] = "claude", conversation[] = "11111111-2222";
static char cwd[] = "/home/u/\xe9t\xe9"; /* Latin-1: a path need not be UTF-8 */
static char arg0[] = "--model", arg1[] = "x \"y\"\n",
			env0[] = "TOKEN=s\xc3\xa9"
					 "cret",
			env1[] = "RAW=\xff\xfe";
static char mode[] = "plan";
static char guards[] = "[{\"matcher\":\"\\ud800\"}]"; /* as a client wrote it */
static char *args[] = {arg0, arg1, NULL}, *env[] = {env0, env1, NULL};

static struct state_session sample(void) {
	return (struct state_session){
		.name = name,
		.profile = profile,
		.cwd = cwd,
		.conversation_id = conversation,
		.args = args,
		.n_args = 2,
		.env = env,
		.n_env = 2,
		.guards = guards,
		.mode = mode,
		.uid = 1000,
		.env_only = true,
		.child_pid = 4242,
		.child_start = 123456789012,
		.created_ms = 1700000000000,
		.used_ms = 1700000000001,
		.seq = 1700000000000002,
	};
}

static bool same(void *arg, const struct state_session *s) {
	const struct state_session want = sample();
	ck_assert_str_eq(s->name, want.name);
	ck_assert_str_eq(s->profile, want.profile);
	ck_assert_str_eq(s->cwd, want.cwd);
	ck_assert_str_eq(s->conversation_id, want.conversation_id);
	ck_assert_ptr_null(s->previous_id);
	ck_assert_uint_eq(s->n_args, 2);
	ck_assert_str_eq(s->args[1], args[1]);
	ck_assert_ptr_null(s->args[2]);
	ck_assert_str_eq(s->env[0], env[0]);
	ck_assert_str_eq(s->env[1], env[1]);
	ck_assert_str_eq(s->guards, guards);
	ck_assert_str_eq(s->mode, mode);
	ck_assert_uint_eq(s->uid, 1000);
	ck_assert(s->env_only);
	ck_assert_int_eq(s->child_pid, 4242);
	ck_assert_uint_eq(s->child_start, want.child_start);
	ck_assert_int_eq(s->created_ms, want.created_ms);
	ck_assert_int_eq(s->used_ms, want.used_ms);
	ck_assert_uint_eq(s->seq, want.seq);
	++*(int *)arg;
	return true;
}

static bool count(void *arg, const struct state_session *s) {
	(void)s;
	return ++*(int *)arg < 3;
}

static bool never(void *arg, const struct state_session *s) {
	(void)arg, (void)s;
	ck_abort();
}

START_TEST(test_round_trip) {
	struct state *s = open_it();
	int seen = 0;
	ck_assert_int_eq(state_load(s, same, &seen, error), 0);
	ck_assert_str_eq(error, "");
	const struct state_session one = sample();
	ck_assert_msg(state_save(s, &one, 1, error), "%s", error);
	ck_assert_int_eq(state_load(s, same, &seen, error), 1);
	ck_assert_int_eq(seen, 1);
	ck_assert_str_eq(error, "");
	ck_assert_str_eq(state_dir(s), dir);
	ck_assert_int_eq(state_seq(s), 0);
	state_set_seq(s, UINT64_C(1) << 52);
	ck_assert(state_save(s, NULL, 0, error));
	state_set_seq(s, 0);
	ck_assert_int_eq(state_load(s, same, &seen, error), 0);
	ck_assert_int_eq(state_seq(s), INT64_C(1) << 52);
	state_close(s);
	state_close(NULL);
}
END_TEST

/* Processes mean something until the computer starts again. */
START_TEST(test_left) {
	const struct state_left all[] = {{12, 34, 0}, {56, UINT64_C(1) << 50, (UINT64_C(1) << 60) - 1}}, *have;
	size_t n;
	struct state *s = open_it();
	ck_assert(state_set_left(s, all, 2) && state_save(s, NULL, 0, error));
	state_close(s);
	s = open_it();
	state_left(s, &n);
	ck_assert_uint_eq(n, 0);
	ck_assert_int_eq(state_load(s, never, NULL, error), 0);
	have = state_left(s, &n);
	ck_assert_uint_eq(n, 2);
	for (size_t i = 0; i < n; i++)
		ck_assert(have[i].pid == all[i].pid && have[i].start == all[i].start && have[i].number == all[i].number);
	state_close(s);
	static const char *const tables[] = {
		"{\"version\":1,\"sessions\":[],\"boot\":\"another\",\"left\":[[12,34,0]]}",
		"{\"version\":1,\"sessions\":[],\"boot\":\"\",\"left\":[[12,34,0]]}",
		"{\"version\":1,\"sessions\":[],\"left\":[[12,34,0]]}",
	};
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		put(tables[i], strlen(tables[i]));
		s = open_it();
		ck_assert_int_eq(state_load(s, never, NULL, error), 0);
		state_left(s, &n);
		ck_assert_uint_eq(n, 0);
		state_close(s);
	}
}
END_TEST

START_TEST(test_rights) {
	struct stat st;
	umask(0);
	struct state *s = open_it();
	const struct state_session one = sample();
	ck_assert(state_save(s, &one, 1, error));
	ck_assert_int_eq(stat(dir, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0700);
	ck_assert_int_eq(stat(file, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0600);
	state_close(s);
	ck_assert_int_eq(chmod(dir, 0755), 0);
	state_close(open_it());
	ck_assert_int_eq(stat(dir, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0700);
}
END_TEST

START_TEST(test_lock) {
	char pid[32];
	struct state *s = open_it();
	ck_assert_ptr_null(state_open(dir, NULL, error));
	ck_assert_int_eq(errno, EWOULDBLOCK);
	snprintf(pid, sizeof pid, "with pid %d uses", (int)getpid());
	ck_assert_msg(strstr(error, pid) != NULL, "%s", error);
	state_close(s);
	s = state_open(dir, "/run/x/plenum.sock", error);
	ck_assert_ptr_null(state_open(dir, "/run/y/plenum.sock", error));
	snprintf(pid, sizeof pid, "with pid %d, which", (int)getpid());
	ck_assert_msg(strstr(error, pid) && strstr(error, "listens on /run/x/plenum.sock, uses"), "%s", error);
	ck_assert_ptr_nonnull(strstr(error, "XDG_STATE_HOME"));
	state_close(s);
	state_close(open_it());
}
END_TEST

START_TEST(test_lock_of_a_killed_process) {
	int ready[2];
	char c;
	ck_assert_int_eq(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		if (state_open(dir, NULL, error) && write(ready[1], "x", 1) == 1) pause();
		_exit(1);
	}
	ck_assert_int_eq(read(ready[0], &c, 1), 1);
	ck_assert_ptr_null(state_open(dir, NULL, error));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	state_close(open_it());
}
END_TEST

START_TEST(test_default_folder) {
	setenv("XDG_STATE_HOME", top, 1);
	struct state *s = state_open(NULL, NULL, error);
	ck_assert_msg(s != NULL, "%s", error);
	ck_assert_str_eq(state_dir(s) + strlen(top), "/plenum");
	state_close(s);
}
END_TEST

START_TEST(test_damaged) {
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"{\"version\":1,\"sessions\":[", "line 1"},
		{"", "line 1"},
		{"[]", "no table"},
		{"{\"version\":1}", "no table"},
		{"{\"version\":99,\"sessions\":[]}", "newer plenumd"},
		{"{\"version\":1,\"sessions\":[]} x", "line 1"},
	};
	struct state *s = open_it();
	int seen = 0;
	for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
		put(cases[i].text, strlen(cases[i].text));
		ck_assert_int_eq(state_load(s, count, &seen, error), 0);
		ck_assert_msg(strstr(error, cases[i].why) && strstr(error, "sessions.json.damaged-"), "%s", error);
		ck_assert_int_eq(files("sessions.json.damaged-"), i + 1);
		ck_assert_int_eq(access(file, F_OK), -1);
	}
	ck_assert_int_eq(seen, 0);
	state_close(s);
}
END_TEST

START_TEST(test_numbers_that_are_not_told) {
	static const char *const texts[] = {"{\"version\":1,\"sessions\":[]}",
										"{\"version\":1,\"sessions\":[],\"seq\":\"5\"}",
										"{\"version\":1,\"sessions\":[],\"seq\":-2}"};
	struct state *s = open_it();
	int seen = 0;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		put(texts[i], strlen(texts[i]));
		ck_assert_int_eq(state_load(s, count, &seen, error), 0);
		ck_assert_int_eq(state_seq(s), -1);
	}
	state_close(s);
}
END_TEST

static char told[2000];

static void on_damage(void *arg, const char *text) {
	(void)arg;
	strcat(strcat(told, text), "; ");
}

START_TEST(test_damaged_in_part) {
	struct state *s = open_it();
	int seen = 0;
	*told = 0;
	state_on_damage(s, on_damage, NULL);
	const char *text =
		"{\"version\":1,\"more\":2,\"sessions\":[{\"name\":\"a\",\"profile\":\"p\",\"uid\":0,\"new\":[]},"
		"{\"profile\":\"p\",\"uid\":0},{\"name\":\"b\",\"profile\":\"p\"},"
		"{\"name\":\"c\",\"profile\":\"p\",\"uid\":0,\"args\":[1]},"
		"{\"name\":\"d\",\"profile\":\"p\",\"uid\":0,\"cwd\":{\"hex\":\"2f0\"}}]}";
	put(text, strlen(text));
	ck_assert_int_eq(state_load(s, count, &seen, error), 1);
	ck_assert_ptr_nonnull(strstr(error, "4 of its sessions"));
	ck_assert_str_eq(told, "session number 2 of the table is left out: its `name` cannot be read; "
						   "session b is left out: its `uid` cannot be read; "
						   "session c is left out: its `args` cannot be read; "
						   "session d is left out: its `cwd` cannot be read; ");
	ck_assert_int_eq(files("sessions.json.damaged-"), 1);
	ck_assert_int_eq(access(file, F_OK), 0);
	state_close(s);
}
END_TEST

/* Whatever is wrong with it, the rest of the session is there. */
static bool is_mended(void *arg, const struct state_session *s) {
	ck_assert_str_eq(s->cwd, "/c");
	ck_assert(s->n_args == 1 && s->n_env == 1 && s->env_only && s->uid == 5);
	switch (++*(int *)arg) {
	case 1:
		ck_assert_str_eq(s->guards, STATE_UNREADABLE);
		ck_assert_str_eq(s->mode, STATE_UNREADABLE);
		ck_assert_str_eq(s->conversation_id, "c-1");
		break;
	case 2:
		ck_assert_str_eq(s->profile, STATE_UNREADABLE);
		break;
	case 3:
		ck_assert_ptr_null(s->conversation_id);
		ck_assert_ptr_null(s->previous_id);
		ck_assert(s->child_pid == 0 && s->child_start == 0 && s->created_ms == 0 && s->used_ms == 0 && s->seq == 0);
		break;
	default:
		ck_abort_msg("session %s was taken", s->name);
	}
	return true;
}

#define SAMPLE                                                                                                         \
	"\"cwd\":\"/c\",\"args\":[\"a\"],\"env\":[\"b=c\"],\"env_only\":true,\"uid\":5,\"profile\":\"p\","                 \
	"\"conversation_id\":\"c-1\",\"guards\":\"[]\""

/* A session of which one member is of another type. */
static void add_damaged(struct buf *b, const char *who, const char *member, const char *value) {
	json_t *j = json_loads("{" SAMPLE "}", 0, NULL);
	json_object_set_new(j, "name", json_string(who));
	for (const char *end; *member; member = *end ? end + 1 : end) {
		end = member + strcspn(member, " ");
		_cleanup_free_ char *one = strndup(member, (size_t)(end - member));
		json_object_set_new(j, one, json_loads(value, JSON_DECODE_ANY, NULL));
	}
	_cleanup_free_ char *text = json_dumps(j, JSON_COMPACT);
	buf_printf(b, "%s%s", b->len ? "," : "{\"version\":1,\"sessions\":[", text);
	json_decref(j);
}

START_TEST(test_members_of_another_type) {
	static const char *const needed[] = {"name", "cwd", "uid", "args", "env", "env_only"};
	struct state *s = open_it();
	struct buf b = BUF_INIT(1 << 20);
	int seen = 0;
	*told = 0;
	state_on_damage(s, on_damage, NULL);
	add_damaged(&b, "g", "guards mode", "[{}]");
	add_damaged(&b, "p", "profile", "7");
	add_damaged(&b, "n", "conversation_id previous_id child_pid child_start created_ms used_ms seq", "[1]");
	for (size_t i = 0; i < ARRAY_SIZE(needed); i++) add_damaged(&b, needed[i], needed[i], "{\"hex\":\"zz\"}");
	buf_puts(&b, ",7]}");
	put(b.data, b.len);
	buf_free(&b);
	ck_assert_int_eq(state_load(s, is_mended, &seen, error), 3);
	ck_assert_msg(strstr(error, "10 of its sessions") && files("sessions.json.damaged-") == 1, "%s", error);
	ck_assert_str_eq(told,
					 "session n: its `child_pid`, `child_start`, `created_ms`, `used_ms`, `seq`, `conversation_id`, "
					 "`previous_id` cannot be read; "
					 "session number 4 of the table is left out: its `name` cannot be read; "
					 "session cwd is left out: its `cwd` cannot be read; "
					 "session uid is left out: its `uid` cannot be read; "
					 "session args is left out: its `args` cannot be read; "
					 "session env is left out: its `env` cannot be read; "
					 "session env_only is left out: its `env_only` cannot be read; "
					 "session number 10 of the table is left out: it cannot be read; ");
	state_close(s);
}
END_TEST

static bool no_child(void *arg, const struct state_session *s) {
	ck_assert_int_eq(s->child_pid, 0);
	++*(int *)arg;
	return true;
}

/* As it was written of a child that had exited. */
START_TEST(test_no_pid) {
	struct state *s = open_it();
	int seen = 0;
	const char *text = "{\"version\":1,\"sessions\":[{\"name\":\"a\",\"profile\":\"p\",\"uid\":0,\"child_pid\":-1}]}";
	put(text, strlen(text));
	ck_assert_int_eq(state_load(s, no_child, &seen, error), 1);
	ck_assert_int_eq(seen, 1);
	state_close(s);
}
END_TEST

START_TEST(test_stop) {
	struct state *s = open_it();
	struct state_session all[5];
	for (int i = 0; i < 5; i++) all[i] = sample();
	ck_assert(state_save(s, all, 5, error));
	int seen = 0;
	ck_assert_int_eq(state_load(s, count, &seen, error), 2);
	ck_assert_int_eq(seen, 3);
	state_close(s);
}
END_TEST

/* A limit on the size of files stands for a full disk: the write fails in the middle. */
START_TEST(test_full_disk) {
	struct state *s = open_it();
	const struct state_session one = sample();
	ck_assert(state_save(s, &one, 1, error));
	struct state_session many[64];
	for (int i = 0; i < 64; i++) many[i] = sample();
	signal(SIGXFSZ, SIG_IGN);
	const struct rlimit small = {1000, RLIM_INFINITY}, before = {RLIM_INFINITY, RLIM_INFINITY};
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
	ck_assert(!state_save(s, many, 64, error));
	ck_assert_ptr_nonnull(strstr(error, "is kept"));
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
	ck_assert_int_eq(files("sessions.json"), 1);
	int seen = 0;
	ck_assert_int_eq(state_load(s, same, &seen, error), 1);
	ck_assert(state_save(s, many, 64, error));
	state_close(s);
}
END_TEST

START_TEST(test_folder_removed) {
	struct state *s = open_it();
	const struct state_session one = sample();
	ck_assert(state_save(s, &one, 1, error));
	teardown();
	ck_assert_msg(state_save(s, &one, 1, error), "%s", error);
	int seen = 0;
	ck_assert_int_eq(state_load(s, same, &seen, error), 1);
	ck_assert_ptr_null(state_open(dir, NULL, error));
	state_close(s);
}
END_TEST

START_TEST(test_no_folder) {
	ck_assert_ptr_null(state_open("/proc/no/such/folder", NULL, error));
	ck_assert_int_ne(errno, EWOULDBLOCK);
	ck_assert_ptr_nonnull(strstr(error, "/proc/no"));
	ck_assert_ptr_null(state_open("/dev/null/x", NULL, error));
}
END_TEST

static int synced, failures;

static void on_synced(void *arg, const char *why) {
	(void)arg;
	synced++;
	failures += why != NULL;
}

static struct state *open_behind(struct loop *loop) {
	struct state *s = open_it();
	synced = failures = 0;
	ck_assert(state_save_behind(s, loop, on_synced, NULL));
	return s;
}

START_TEST(test_behind) {
	struct loop *loop = loop_new();
	struct state *s = open_behind(loop);
	const struct state_session two[] = {sample(), sample()};
	ck_assert(state_save(s, two, 1, error));
	int seen = 0;
	ck_assert_int_eq(state_load(s, same, &seen, error), 1); /* wherever it is by now */
	state_settle(s);
	ck_assert_int_eq(synced, 1);
	ck_assert_int_eq(files("sessions.json"), 1);
	for (int i = 0; i < 20; i++) ck_assert(state_save(s, two, i % 2 ? 2 : 1, error));
	state_settle(s);
	seen = 0;
	ck_assert_int_eq(state_load(s, count, &seen, error), 2);
	ck_assert_int_eq(files("sessions.json"), 1);
	ck_assert(state_save(s, two, 1, error));
	state_close(s); /* waits for the disk, and tells nobody */
	ck_assert_int_eq(files("sessions.json"), 1);
	ck_assert_int_eq(failures, 0);
	loop_free(loop);
}
END_TEST

static void stop_when_synced(void *arg, const char *why) {
	ck_assert_ptr_null(why);
	loop_stop(arg);
}

START_TEST(test_behind_in_the_loop) {
	struct loop *loop = loop_new();
	struct state *s = open_it();
	const struct state_session one = sample();
	ck_assert(state_save_behind(s, loop, stop_when_synced, loop));
	ck_assert(state_save(s, &one, 1, error));
	loop_run(loop);
	ck_assert_int_eq(files("sessions.json.next"), 0);
	ck_assert_int_eq(files("sessions.json"), 1);
	state_close(s);
	loop_free(loop);
}
END_TEST

/* Its name, or the whole folder, went before the disk had it: whoever saves hears of it and can do it again. */
START_TEST(test_behind_and_gone) {
	struct loop *loop = loop_new();
	struct state *s = open_behind(loop);
	const struct state_session one = sample();
	char next[sizeof file + 8];
	snprintf(next, sizeof next, "%s.next", file);
	ck_assert(state_save(s, &one, 1, error));
	ck_assert_int_eq(unlink(next), 0);
	state_settle(s);
	ck_assert_int_eq(synced, 1);
	ck_assert_int_eq(failures, 1);
	ck_assert(state_save(s, &one, 1, error));
	teardown();
	state_settle(s);
	ck_assert_int_eq(failures, 2);
	ck_assert_msg(state_save(s, &one, 1, error), "%s", error);
	state_settle(s);
	ck_assert_int_eq(synced, 3);
	ck_assert_int_eq(failures, 2);
	ck_assert_int_eq(files("sessions.json"), 1);
	state_close(s);
	loop_free(loop);
}
END_TEST

/* A daemon was killed before the disk had its last table. */
START_TEST(test_newer_one_is_left) {
	struct state *s = open_it();
	const struct state_session two[] = {sample(), sample()};
	char next[sizeof file + 8];
	int seen = 0;
	snprintf(next, sizeof next, "%s.next", file);
	ck_assert(state_save(s, two, 2, error));
	ck_assert_int_eq(rename(file, next), 0);
	put("not looked at", 13);
	seen = 0;
	ck_assert_int_eq(state_load(s, count, &seen, error), 2);
	ck_assert_str_eq(error, "");
	ck_assert(state_save(s, two, 1, error));
	ck_assert_int_eq(files("sessions.json.next"), 0);
	seen = 0;
	ck_assert_int_eq(state_load(s, count, &seen, error), 1);
	state_close(s);
}
END_TEST

START_TEST(test_half_a_newer_one_is_left) {
	struct state *s = open_it();
	const struct state_session one = sample();
	char next[sizeof file + 8];
	int seen = 0;
	ck_assert(state_save(s, &one, 1, error));
	snprintf(next, sizeof next, "%s.next", file);
	strcpy(file, next);
	put("{\"version\":1,\"sess", 18);
	seen = 0;
	ck_assert_int_eq(state_load(s, same, &seen, error), 1);
	ck_assert_ptr_nonnull(strstr(error, "sessions.json.next is damaged"));
	ck_assert_int_eq(files("sessions.json.damaged-"), 1);
	ck_assert_int_eq(files("sessions.json.next"), 0);
	state_close(s);
}
END_TEST

int main(void) {
	Suite *suite = suite_create("state");
	TCase *tc = tcase_create("all");
	suite_add_tcase(suite, tc);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, test_round_trip);
	tcase_add_test(tc, test_left);
	tcase_add_test(tc, test_rights);
	tcase_add_test(tc, test_lock);
	tcase_add_test(tc, test_lock_of_a_killed_process);
	tcase_add_test(tc, test_default_folder);
	tcase_add_test(tc, test_damaged);
	tcase_add_test(tc, test_numbers_that_are_not_told);
	tcase_add_test(tc, test_damaged_in_part);
	tcase_add_test(tc, test_members_of_another_type);
	tcase_add_test(tc, test_no_pid);
	tcase_add_test(tc, test_stop);
	tcase_add_test(tc, test_full_disk);
	tcase_add_test(tc, test_folder_removed);
	tcase_add_test(tc, test_no_folder);
	tcase_add_test(tc, test_behind);
	tcase_add_test(tc, test_behind_in_the_loop);
	tcase_add_test(tc, test_behind_and_gone);
	tcase_add_test(tc, test_newer_one_is_left);
	tcase_add_test(tc, test_half_a_newer_one_is_left);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
