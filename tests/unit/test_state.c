/* SPDX-License-Identifier: MIT */
#include "store/state.h"

#include "base/buf.h"
#include "base/macros.h"
#include "base/str.h"
#include "harness.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char top[64], dir[128], file[200];
static struct error error;

/* The errno of flock(2); 0: call the kernel. */
static int lock_errno;

int flock(int fd, int operation) {
	errno = lock_errno;
	return lock_errno ? -1 : (int)syscall(SYS_flock, fd, operation);
}

static void setup(void) {
	snprintf(top, sizeof top, "%s/plenum-state-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
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
	struct state *s = state_open(dir, NULL, &error);
	ck_assert_msg(s != NULL, "%s", error.text);
	return s;
}

static void put(const char *text, size_t n) {
	FILE *f = fopen(file, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(text, 1, n, f), n);
	fclose(f);
}

/* Return how many files of the directory begin with prefix. */
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
static char guards[] = "[{\"matcher\":\"\\ud800\"}]"; /* as written by a client */
static char timers[] = "[{\"id\":\"1\"}]";
static char memo[] = "{\"new\":{\"cwd\":\"/\"}}";
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
		.timers = timers,
		.memo = memo,
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
	ck_assert_str_eq(s->timers, timers);
	ck_assert_str_eq(s->memo, memo);
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

static bool has_long_arg(void *arg, const struct state_session *s) {
	ck_assert(s->n_args == 1 && strlen(s->args[0]) == 100000 && s->n_env == 2);
	ck_assert_str_eq(s->guards, guards);
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
	ck_assert_int_eq(state_load(s, same, &seen, &error), 0);
	ck_assert_str_eq(error.text, "");
	const struct state_session one = sample();
	ck_assert_msg(state_save(s, &one, 1, &error), "%s", error.text);
	ck_assert_int_eq(state_load(s, same, &seen, &error), 1);
	ck_assert_int_eq(seen, 1);
	ck_assert_str_eq(error.text, "");
	ck_assert_str_eq(state_dir(s), dir);
	ck_assert_int_eq(state_seq(s), 0);
	state_set_seq(s, UINT64_C(1) << 52);
	ck_assert(state_save(s, NULL, 0, &error));
	state_set_seq(s, 0);
	ck_assert_int_eq(state_load(s, same, &seen, &error), 0);
	ck_assert_int_eq(state_seq(s), INT64_C(1) << 52);
	state_close(s);
	state_close(NULL);
}
END_TEST

/* Process ids are valid until the next boot. */
START_TEST(test_left) {
	const struct state_left all[] = {{12, 34, 0}, {56, UINT64_C(1) << 50, (UINT64_C(1) << 60) - 1}}, *have;
	size_t n;
	struct state *s = open_it();
	ck_assert(state_set_left(s, all, 2) && state_save(s, NULL, 0, &error));
	state_close(s);
	s = open_it();
	state_left(s, &n);
	ck_assert_uint_eq(n, 0);
	ck_assert_int_eq(state_load(s, never, NULL, &error), 0);
	have = state_left(s, &n);
	ck_assert_uint_eq(n, 2);
	for (size_t i = 0; i < n; i++)
		ck_assert(have[i].pid == all[i].pid && have[i].start == all[i].start && have[i].number == all[i].number);
	state_close(s);
	char next[sizeof dir + 64];
	snprintf(next, sizeof next, "%s/sessions.json.next", dir);
	FILE *f = fopen(next, "w"); /* a newer, unreadable table */
	ck_assert(f && fputs("{", f) > 0 && fclose(f) == 0);
	s = open_it();
	ck_assert_int_eq(state_load(s, never, NULL, &error), 0);
	have = state_left(s, &n);
	ck_assert(n == 2 && have[1].pid == all[1].pid);
	state_close(s);
	static const char *const tables[] = {
		"{\"version\":1,\"sessions\":[],\"boot\":\"another\",\"left\":[[12,34,0]]}",
		"{\"version\":1,\"sessions\":[],\"boot\":\"\",\"left\":[[12,34,0]]}",
		"{\"version\":1,\"sessions\":[],\"left\":[[12,34,0]]}",
	};
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		put(tables[i], strlen(tables[i]));
		s = open_it();
		ck_assert_int_eq(state_load(s, never, NULL, &error), 0);
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
	ck_assert(state_save(s, &one, 1, &error));
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
	ck_assert_ptr_null(state_open(dir, NULL, &error));
	ck_assert_int_eq(errno, EWOULDBLOCK);
	snprintf(pid, sizeof pid, "with pid %d uses", (int)getpid());
	ck_assert_msg(strstr(error.text, pid) != NULL, "%s", error.text);
	state_close(s);
	s = state_open(dir, "/run/x/plenum.sock", &error);
	ck_assert_ptr_null(state_open(dir, "/run/y/plenum.sock", &error));
	snprintf(pid, sizeof pid, "with pid %d, which", (int)getpid());
	ck_assert_msg(strstr(error.text, pid) && strstr(error.text, "listens on /run/x/plenum.sock, uses"), "%s",
				  error.text);
	ck_assert_ptr_nonnull(strstr(error.text, "XDG_STATE_HOME"));
	state_close(s);
	state_close(open_it());
}
END_TEST

/* No other daemon holds it: this one runs, without a table. */
START_TEST(test_lock_that_cannot_be_had) {
	static const int numbers[] = {ENOLCK, ENOSYS, EACCES, EIO};
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		lock_errno = numbers[i];
		ck_assert_ptr_null(state_open(dir, NULL, &error));
		ck_assert_int_eq(errno, numbers[i]);
		ck_assert_msg(strstr(error.text, "cannot lock") && strstr(error.text, strerror(numbers[i])), "%s", error.text);
		ck_assert_ptr_null(strstr(error.text, "another plenumd"));
	}
	lock_errno = 0;
	state_close(open_it());
}
END_TEST

START_TEST(test_lock_of_a_killed_process) {
	int ready[2];
	char c;
	ck_assert_int_eq(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		if (state_open(dir, NULL, &error) && write(ready[1], "x", 1) == 1) pause();
		_exit(1);
	}
	ck_assert_int_eq(read(ready[0], &c, 1), 1);
	ck_assert_ptr_null(state_open(dir, NULL, &error));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	state_close(open_it());
}
END_TEST

START_TEST(test_default_folder) {
	setenv("XDG_STATE_HOME", top, 1);
	struct state *s = state_open(NULL, NULL, &error);
	ck_assert_msg(s != NULL, "%s", error.text);
	ck_assert_str_eq(state_dir(s) + strlen(top), "/plenum");
	state_close(s);
}
END_TEST

static size_t allocations;

static void *count_allocation(size_t n) {
	allocations++;
	return malloc(n);
}

/* The loop waits for the write, with a thousand sessions at each change: a tree of values costs three times as much. */
START_TEST(test_no_tree_is_made_to_write) {
	struct state *s = open_it();
	const struct state_session all[] = {sample(), sample()};
	allocations = 0;
	json_set_alloc_funcs(count_allocation, free);
	bool ok = state_save(s, all, ARRAY_SIZE(all), &error);
	json_set_alloc_funcs(malloc, free);
	ck_assert_msg(ok, "%s", error.text);
	ck_assert_uint_eq(allocations, 0);
	state_close(s);
}
END_TEST

/* --- damage ------------------------------------------------------------------------------------------------------- */

/* A line as written by state_save(). */
static void put_sealed(struct buf *b, const char *object) {
	uint64_t h = 14695981039346656037ULL;
	size_t n = strlen(object) - 1;
	for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)object[i]) * 1099511628211ULL;
	buf_printf(b, "%.*s,\"sum\":\"%016" PRIx64 "\"}\n", (int)n, object, h);
}

static void put_lines(const char *const *objects, size_t n) {
	struct buf b = BUF_INIT(1 << 20);
	for (size_t i = 0; i < n; i++) put_sealed(&b, objects[i]);
	put(b.data, b.len);
	buf_free(&b);
}

/* An unusable file stays until the next table is written, and a copy of it stays longer. */
START_TEST(test_damaged) {
	static const char sealed_none[] = "{\"version\":1,\"seq\":7,\"lost\":false}";
	static const char *const texts[] = {"",
										"\n",
										"[]\n",
										"{\"version\":1,\"sessions\":[]}\n",
										sealed_none,
										"{\"version\":9,\"seq\":7,\"lost\":false,\"sessions\":[]}",
										"{\"version\":1,\"seq\":7,\"lost\":false,\"sessions\":[[\"a\"]]}",
										"{\"version\":1,\"seq\":7,\"lost\":false,\"sessions\":[[7,null]]}"};
	struct state *s = open_it();
	int seen = 0;
	for (int i = 0; i < (int)ARRAY_SIZE(texts); i++) {
		if (i < 4)
			put(texts[i], strlen(texts[i]));
		else
			put_lines(&texts[i], 1);
		ck_assert_int_eq(state_load(s, count, &seen, &error), 0);
		ck_assert_msg(state_lost(s) && state_seq(s) == -1, "%s", texts[i]);
		ck_assert_msg(strstr(error.text, i == 5 ? "its version is 9" : "neither copy") &&
						  strstr(error.text, "sessions.json.damaged-"),
					  "%s", error.text);
		ck_assert_int_eq(files("sessions.json.damaged-"), i + 1);
		ck_assert_int_eq(access(file, F_OK), 0);
	}
	ck_assert(state_save(s, NULL, 0, &error));
	ck_assert_int_eq(state_load(s, count, &seen, &error), 0);
	ck_assert(state_lost(s) && !*error.text); /* until it is cleared */
	state_set_lost(s, false);
	ck_assert(state_save(s, NULL, 0, &error));
	ck_assert_int_eq(state_load(s, count, &seen, &error), 0);
	ck_assert(!state_lost(s) && seen == 0);
	state_close(s);
}
END_TEST

START_TEST(test_no_file_at_all) {
	struct state *s = open_it();
	int seen = 0;
	ck_assert_int_eq(state_load(s, count, &seen, &error), 0);
	ck_assert(!state_lost(s) && !*error.text);
	ck_assert_int_eq(mkdir(file, 0700), 0); /* not a file: it makes room for the next table */
	ck_assert_int_eq(state_load(s, count, &seen, &error), 0);
	ck_assert(state_lost(s) && strstr(error.text, "Is a directory") && files("sessions.json.damaged-") == 1);
	ck_assert_msg(state_save(s, NULL, 0, &error), "%s", error.text);
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
		const char *const both[] = {texts[i], texts[i]};
		put_lines(both, 2);
		ck_assert_int_eq(state_load(s, count, &seen, &error), 0);
		ck_assert_int_eq(state_seq(s), -1);
		ck_assert(!state_lost(s) && !*error.text);
	}
	state_close(s);
}
END_TEST

#define SAMPLE                                                                                                         \
	"\"profile\":\"p\",\"cwd\":\"/c\",\"conversation_id\":\"c-1\",\"previous_id\":null,\"args\":[\"a\"],"              \
	"\"env\":[\"b=c\"],\"guards\":\"[]\",\"mode\":null,\"uid\":5,\"env_only\":true,\"child_pid\":0,\"child_start\":0," \
	"\"created_ms\":1,\"used_ms\":2,\"seq\":3"

/* Of a damaged record only the name and the conversation are known. */
static bool is_bare(void *arg, const struct state_session *s) {
	++*(int *)arg;
	if (strcmp(s->name, "good") == 0) {
		ck_assert_str_eq(s->guards, "[]");
		ck_assert(s->uid == 5 && !s->mode && s->n_args == 1 && strcmp(s->cwd, "/c") == 0);
		return true;
	}
	ck_assert_str_eq(s->name, "bad");
	ck_assert_str_eq(s->conversation_id, "c-2");
	ck_assert_str_eq(s->guards, STATE_UNREADABLE);
	ck_assert_str_eq(s->mode, STATE_UNREADABLE);
	ck_assert_str_eq(s->profile, STATE_UNREADABLE);
	ck_assert(s->uid == geteuid() && !s->cwd && s->n_args == 0 && s->n_env == 0 && s->child_pid == 0);
	return true;
}

/* Each member missing, and of another type. */
START_TEST(test_members_of_another_type) {
	static const char head[] = "{\"version\":1,\"seq\":1,\"sessions\":[[\"bad\",\"c-2\"],[\"good\",\"c-1\"]]}";
	struct state *s = open_it();
	int seen = 0, n = 0;
	json_t *sample = json_loads("{\"name\":\"bad\"," SAMPLE "}", 0, NULL), *value;
	const char *member;
	ck_assert_ptr_nonnull(sample);
	json_object_foreach(sample, member, value) {
		json_t *j = json_copy(sample);
		json_object_set_new(j, member, json_pack("[{s:s}]", "hex", "zz"));
		_cleanup_free_ char *text = json_dumps(j, JSON_COMPACT);
		const char *const lines[] = {head, text, "{\"name\":\"good\"," SAMPLE "}", head};
		put_lines(lines, 4);
		ck_assert_int_eq(state_load(s, is_bare, &seen, &error), 2);
		ck_assert_msg(strstr(error.text, "1 of 2 sessions are lost") != NULL, "%s: %s", member, error.text);
		ck_assert(!state_lost(s) && state_seq(s) == 1);
		json_decref(j);
		n++;
	}
	ck_assert_int_eq(n, 16);
	ck_assert_int_eq(seen, 2 * n);
	ck_assert_int_eq(files("sessions.json.damaged-"), n);
	json_decref(sample);
	state_close(s);
}
END_TEST

/* Two short sessions, both guarded, for a table with each byte changed in turn. */
#define MANY 2
static char other_guards[] = "[{}]", one_name[] = "a", two_name[] = "\xff";

static void many(struct state_session all[MANY]) {
	for (int i = 0; i < MANY; i++)
		all[i] = (struct state_session){.name = i ? two_name : one_name,
										.profile = profile,
										.cwd = top,
										.args = args,
										.n_args = 1,
										.guards = i ? other_guards : guards};
}

struct shown {
	int exact, refusing;
};

static bool is_guarded(void *arg, const struct state_session *s) {
	struct shown *n = arg;
	struct state_session all[MANY];
	bool known = false;
	many(all);
	if (strcmp(s->guards, STATE_UNREADABLE) == 0) {
		REQUIRE(strcmp(s->mode, STATE_UNREADABLE) == 0, "%s", s->name);
		n->refusing++;
		return true;
	}
	for (int i = 0; i < MANY; i++)
		known = known || (strcmp(s->name, all[i].name) == 0 && strcmp(s->guards, all[i].guards) == 0);
	REQUIRE(known && strcmp(s->cwd, top) == 0 && strcmp(s->args[0], args[0]) == 0, "%s: %s", s->name, s->guards);
	n->exact++;
	return true;
}

static void remove_copies(void) {
	DIR *d = opendir(dir);
	for (struct dirent *e; (e = readdir(d));)
		if (strstr(e->d_name, ".damaged-")) unlinkat(dirfd(d), e->d_name, 0);
	closedir(d);
}

/* All sessions are there, with their guards or refusing every tool; or any new session refuses every tool. */
static void nothing_is_unguarded(struct state *s, size_t at) {
	struct shown n = {0};
	state_load(s, is_guarded, &n, &error);
	REQUIRE(state_lost(s) || n.exact + n.refusing == MANY, "at %zu: %d and %d: %s", at, n.exact, n.refusing,
			error.text);
	REQUIRE(n.exact == MANY || *error.text, "at %zu", at);
	if (*error.text) remove_copies();
}

static char *slurp(size_t *n) {
	FILE *f = fopen(file, "r");
	char *text = calloc(1, 65536);
	*n = fread(text, 1, 65535, f);
	fclose(f);
	return text;
}

static struct state *many_saved(char **text, size_t *n) {
	struct state *s = open_it();
	struct state_session all[MANY];
	many(all);
	ck_assert_msg(state_save(s, all, MANY, &error), "%s", error.text);
	*text = slurp(n);
	return s;
}

/* Change each byte of the file, one at a time: one bit of it, a newline, a quote. */
/* Every byte; one of eleven under valgrind, which is fifty times slower. */
static size_t stride(void) {
	return in_valgrind() ? 11 : 1;
}

static void change_all(struct state *s, char *text, size_t n) {
	for (size_t i = 0; i < n; i += stride()) {
		const char before = text[i], others[] = {(char)(before ^ 1 << i % 8), '\n', '"'};
		for (size_t k = 0; k < ARRAY_SIZE(others); k++) {
			text[i] = others[k];
			put(text, n);
			nothing_is_unguarded(s, i);
		}
		text[i] = before;
	}
}

/* Truncated at its end or its beginning, or with zeros at its end. */
static void cut_all(struct state *s, char *text, size_t n) {
	_cleanup_free_ char *zeros = calloc(1, n);
	for (size_t i = 0; i < n; i += stride()) {
		put(text, i);
		nothing_is_unguarded(s, i);
		put(text + i, n - i);
		nothing_is_unguarded(s, i);
		memcpy(zeros, text, i);
		put(zeros, n);
		nothing_is_unguarded(s, i);
	}
}

START_TEST(test_every_byte) {
	size_t n;
	char *text;
	struct state *s = many_saved(&text, &n);
	change_all(s, text, n);
	cut_all(s, text, n);
	free(text);
	state_close(s);
}
END_TEST

/* The same for the newer of two tables; the older one has the sessions without their guards. */
START_TEST(test_every_byte_of_a_newer_one) {
	size_t n;
	char *text;
	struct state_session all[MANY];
	struct state *s = many_saved(&text, &n);
	many(all);
	for (int i = 0; i < MANY; i++) all[i].guards = NULL;
	ck_assert(state_save(s, all, MANY, &error));
	strcat(file, ".next");
	change_all(s, text, n);
	cut_all(s, text, n);
	free(text);
	state_close(s);
}
END_TEST

/* A session deleted in the newer table does not return from the older one. */
static bool is_not_two(void *arg, const struct state_session *s) {
	ck_assert_str_eq(s->name, one_name);
	ck_assert_str_eq(s->guards, STATE_UNREADABLE);
	ck_assert_str_eq(s->profile, profile); /* from the older one */
	++*(int *)arg;
	return true;
}

START_TEST(test_forgotten_in_a_newer_one) {
	size_t n;
	char *text;
	int seen = 0;
	struct state_session all[MANY];
	struct state *s = many_saved(&text, &n);
	free(text);
	many(all);
	char older[sizeof file + 8];
	snprintf(older, sizeof older, "%s.older", file);
	ck_assert_int_eq(rename(file, older), 0);
	ck_assert(state_save(s, all, 1, &error));
	text = slurp(&n);
	ck_assert_int_eq(rename(older, file), 0);
	strcat(file, ".next");
	strchr(text, '\n')[20] ^= 1; /* its record */
	put(text, n);
	ck_assert_int_eq(state_load(s, is_not_two, &seen, &error), 1);
	ck_assert(seen == 1 && !state_lost(s));
	free(text);
	state_close(s);
}
END_TEST

/* Also when their text is kept. */
START_TEST(test_too_long_a_table) {
	struct state *s = open_it();
	const struct state_session one = sample();
	enum { N = 33 };
	struct state_session *all = calloc(N, sizeof *all);
	char *word = malloc((1 << 20) + 1), *words[] = {word, NULL};
	memset(word, 'x', 1 << 20);
	word[1 << 20] = 0;
	ck_assert(state_save(s, &one, 1, &error));
	for (int i = 0; i < N; i++) {
		all[i] = one;
		all[i].args = words;
		all[i].n_args = 1;
		all[i].id = (uint64_t)i + 1;
		all[i].marks[RECORD_LAUNCH] = 1;
	}
	for (int i = 0; i < 2; i++) {
		ck_assert(!state_save(s, all, N, &error));
		ck_assert_int_eq(errno, EFBIG);
		ck_assert_msg(strstr(error.text, "longer than 33554432") != NULL, "%s", error.text);
		int seen = 0;
		ck_assert_int_eq(state_load(s, same, &seen, &error), 1); /* the previous one */
	}
	ck_assert_msg(state_save(s, all + 2, N - 2, &error), "%s", error.text);
	free(word);
	free(all);
	state_close(s);
}
END_TEST

/* The second table has the texts that the first one kept. */
START_TEST(test_kept_parts) {
	struct state *s = open_it();
	char *text = malloc(100001), *words[] = {text, NULL};
	memset(text, 'x', 100000);
	text[100000] = 0;
	struct state_session one = sample();
	int seen = 0;
	one.id = 7;
	one.args = words;
	one.n_args = 1;
	one.marks[RECORD_LAUNCH] = one.hashes[RECORD_LAUNCH] = 5;
	ck_assert(!state_has(s, &one, RECORD_LAUNCH));
	ck_assert(state_save(s, &one, 1, &error));
	one.hashes[RECORD_LAUNCH] = 0;
	ck_assert(state_has(s, &one, RECORD_LAUNCH) && one.hashes[RECORD_LAUNCH] == 5);
	one.args = one.env = NULL;
	one.n_args = one.n_env = 0;
	ck_assert(state_save(s, &one, 1, &error));
	ck_assert_int_eq(state_load(s, has_long_arg, &seen, &error), 1);
	ck_assert_int_eq(seen, 1);
	free(text);
	state_close(s);
}
END_TEST

START_TEST(test_stop) {
	struct state *s = open_it();
	struct state_session all[5];
	for (int i = 0; i < 5; i++) all[i] = sample();
	ck_assert(state_save(s, all, 5, &error));
	int seen = 0;
	ck_assert_int_eq(state_load(s, count, &seen, &error), 2);
	ck_assert_int_eq(seen, 3);
	state_close(s);
}
END_TEST

/* A limit on the size of files in place of a full disk: the write fails in the middle. */
START_TEST(test_full_disk) {
	struct state *s = open_it();
	const struct state_session one = sample();
	ck_assert(state_save(s, &one, 1, &error));
	struct state_session many[64];
	for (int i = 0; i < 64; i++) many[i] = sample();
	signal(SIGXFSZ, SIG_IGN);
	const struct rlimit small = {1000, RLIM_INFINITY}, before = {RLIM_INFINITY, RLIM_INFINITY};
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
	ck_assert(!state_save(s, many, 64, &error));
	ck_assert_ptr_nonnull(strstr(error.text, "is kept"));
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
	ck_assert_int_eq(files("sessions.json"), 1);
	int seen = 0;
	ck_assert_int_eq(state_load(s, same, &seen, &error), 1);
	ck_assert(state_save(s, many, 64, &error));
	state_close(s);
}
END_TEST

START_TEST(test_folder_removed) {
	struct state *s = open_it();
	const struct state_session one = sample();
	ck_assert(state_save(s, &one, 1, &error));
	teardown();
	ck_assert_msg(state_save(s, &one, 1, &error), "%s", error.text);
	int seen = 0;
	ck_assert_int_eq(state_load(s, same, &seen, &error), 1);
	ck_assert_ptr_null(state_open(dir, NULL, &error));
	state_close(s);
}
END_TEST

START_TEST(test_no_folder) {
	ck_assert_ptr_null(state_open("/proc/no/such/folder", NULL, &error));
	ck_assert_int_ne(errno, EWOULDBLOCK);
	ck_assert_ptr_nonnull(strstr(error.text, "/proc/no"));
	ck_assert_ptr_null(state_open("/dev/null/x", NULL, &error));
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
	ck_assert(state_save(s, two, 1, &error));
	int seen = 0;
	ck_assert_int_eq(state_load(s, same, &seen, &error), 1); /* wherever it is by now */
	state_settle(s);
	ck_assert_int_eq(synced, 1);
	ck_assert_int_eq(files("sessions.json"), 1);
	for (int i = 0; i < 20; i++) ck_assert(state_save(s, two, i % 2 ? 2 : 1, &error));
	state_settle(s);
	seen = 0;
	ck_assert_int_eq(state_load(s, count, &seen, &error), 2);
	ck_assert_int_eq(files("sessions.json"), 1);
	ck_assert(state_save(s, two, 1, &error));
	state_close(s); /* waits for the disk, without a report */
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
	ck_assert(state_save(s, &one, 1, &error));
	loop_run(loop);
	ck_assert_int_eq(files("sessions.json.next"), 0);
	ck_assert_int_eq(files("sessions.json"), 1);
	state_close(s);
	loop_free(loop);
}
END_TEST

/* Its name, or the whole directory, was deleted before the disk had it: the caller is notified and can save again. */
START_TEST(test_behind_and_gone) {
	struct loop *loop = loop_new();
	struct state *s = open_behind(loop);
	const struct state_session one = sample();
	char next[sizeof file + 8];
	snprintf(next, sizeof next, "%s.next", file);
	ck_assert(state_save(s, &one, 1, &error));
	ck_assert_int_eq(unlink(next), 0);
	state_settle(s);
	ck_assert_int_eq(synced, 1);
	ck_assert_int_eq(failures, 1);
	ck_assert(state_save(s, &one, 1, &error));
	teardown();
	state_settle(s);
	ck_assert_int_eq(failures, 2);
	ck_assert_msg(state_save(s, &one, 1, &error), "%s", error.text);
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
	ck_assert(state_save(s, two, 2, &error));
	ck_assert_int_eq(rename(file, next), 0);
	put("not looked at", 13);
	seen = 0;
	ck_assert_int_eq(state_load(s, count, &seen, &error), 2);
	ck_assert_str_eq(error.text, "");
	ck_assert(state_save(s, two, 1, &error));
	ck_assert_int_eq(files("sessions.json.next"), 0);
	seen = 0;
	ck_assert_int_eq(state_load(s, count, &seen, &error), 1);
	state_close(s);
}
END_TEST

static bool is_older(void *arg, const struct state_session *s) {
	ck_assert_str_eq(s->cwd, cwd);
	ck_assert_str_eq(s->guards, STATE_UNREADABLE);
	++*(int *)arg;
	return true;
}

/* The older table has the session, but not its last guards. */
START_TEST(test_half_a_newer_one_is_left) {
	struct state *s = open_it();
	const struct state_session one = sample();
	char next[sizeof file + 8];
	int seen = 0;
	ck_assert(state_save(s, &one, 1, &error));
	snprintf(next, sizeof next, "%s.next", file);
	strcpy(file, next);
	put("{\"version\":1,\"sess", 18);
	ck_assert_int_eq(state_load(s, is_older, &seen, &error), 1);
	ck_assert(seen == 1 && state_lost(s));
	ck_assert_ptr_nonnull(strstr(error.text, "sessions.json.next is damaged"));
	ck_assert_int_eq(files("sessions.json.damaged-"), 1);
	ck_assert_int_eq(files("sessions.json.next"), 1);
	ck_assert(state_save(s, &one, 1, &error));
	ck_assert_int_eq(files("sessions.json.next"), 0);
	state_close(s);
}
END_TEST

RUN_TESTS_WITH(setup, teardown, "state", test_round_trip, test_left, test_rights, test_lock,
			   test_lock_that_cannot_be_had, test_lock_of_a_killed_process, test_default_folder,
			   test_no_tree_is_made_to_write, test_damaged, test_numbers_that_are_not_told, test_no_file_at_all,
			   test_members_of_another_type, test_every_byte, test_every_byte_of_a_newer_one,
			   test_forgotten_in_a_newer_one, test_too_long_a_table, test_kept_parts, test_stop, test_full_disk,
			   test_folder_removed, test_no_folder, test_behind, test_behind_in_the_loop, test_behind_and_gone,
			   test_newer_one_is_left, test_half_a_newer_one_is_left)
