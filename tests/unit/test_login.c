/* SPDX-License-Identifier: MIT */
#include "core/login.h"

#include "carrying.h"
#include "io/proc.h"
#include "words.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

struct asker {
	pid_t pid;
	int in;
};

/* Start a process with this environment from its exec on. */
static struct asker start(const char *const *env) {
	int in[2], out[2];
	char c;
	ck_assert(pipe(in) == 0 && pipe(out) == 0);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		execle("/bin/sh", "sh", "-c", "echo; read x", NULL, (char *const *)(uintptr_t)env);
		_exit(127);
	}
	ck_assert_int_eq(read(out[0], &c, 1), 1);
	close(in[0]), close(out[0]), close(out[1]);
	return (struct asker){pid, in[1]};
}

static void stop(struct asker a) {
	kill(a.pid, SIGKILL);
	waitpid(a.pid, NULL, 0);
	close(a.in);
}

/* The caller frees its bytes. */
static struct span environment(const char *const *env) {
	struct asker a = start(env);
	size_t n;
	char *text = proc_environ(a.pid, &n);
	stop(a);
	ck_assert_ptr_nonnull(text);
	return (struct span){text, n};
}

static struct login *read_one(const struct profile *p, const char *const *env) {
	struct span text = environment(env);
	struct login *l = login_read(text, p);
	free((char *)(uintptr_t)text.p);
	return l;
}

#define HAS(l, ...) WORDS(login_words(l), __VA_ARGS__)
#define ENV(...) ((const char *const[]){__VA_ARGS__, NULL})

START_TEST(what_is_read) {
	char *passed[] = {(char[]){"*"}, (char[]){"EDITOR"}, NULL};
	struct profile p = {.pass_env = {passed, 2}};
	struct login *l = read_one(&p, ENV("SECRET=1", "PATH=/usr/bin:/bin", "EDITOR=vi", "DISPLAY=:1", "DISPLAYS=2"));
	HAS(l, "DISPLAY=:1", "EDITOR=vi", "PATH=/usr/bin:/bin");
	login_unref(l);
	l = read_one(&p, ENV("SECRET=1"));
	ck_assert_ptr_null(l);
	ck_assert_uint_eq(login_words(l)->n, 0);
	ck_assert_ptr_null(login_read(SPAN_NONE, &p)); /* unreadable */
	login_unref(NULL);
}
END_TEST

START_TEST(a_newer_one) {
	struct profile p = {0};
	struct login *old = read_one(&p, ENV("DISPLAY=:1", "SSH_AUTH_SOCK=/tmp/a", "PATH=/usr/bin:/bin"));
	struct span asker = environment(ENV("DISPLAY=:2", "GPG_TTY=/dev/tty1", "PATH=/bin"));
	struct login *now = login_renew(old, asker, &p);
	HAS(now, "DISPLAY=:2", "GPG_TTY=/dev/tty1", "SSH_AUTH_SOCK=/tmp/a", "PATH=/usr/bin:/bin");
	struct login *again = login_renew(now, asker, &p);
	ck_assert_uint_eq(login_words(again)->n, 4);
	struct login *first = login_renew(NULL, asker, &p), *same = login_read(asker, &p);
	ck_assert(login_same(first, same)); /* in the same order: it can be shared */
	free((char *)(uintptr_t)asker.p);
	HAS(old, "SSH_AUTH_SOCK=/tmp/a", "DISPLAY=:1", "PATH=/usr/bin:/bin");
	struct login *all[] = {old, now, again, first, same};
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) login_unref(all[i]);
}
END_TEST

START_TEST(sessions_share_it) {
	struct profile p = {0};
	struct login *newest = NULL, *none = NULL;
	struct login *a = read_one(&p, ENV("DISPLAY=:1")), *b = read_one(&p, ENV("DISPLAY=:1"));
	struct login *c = read_one(&p, ENV("DISPLAY=:2"));
	login_share(&none, &newest);
	ck_assert(!none && !newest);
	login_share(&a, &newest);
	ck_assert(newest == a && a->refs == 2);
	login_share(&none, &newest);
	ck_assert(!none && newest == a);
	login_share(&b, &newest);
	ck_assert(b == a && newest == a && a->refs == 3);
	login_share(&b, &newest); /* a second call changes nothing */
	ck_assert(b == a && a->refs == 3);
	login_share(&c, &newest);
	ck_assert(newest == c && c->refs == 2 && a->refs == 2);
	login_unref(newest);
	login_unref(login_ref(c));
	login_unref(c);
	login_unref(a);
	HAS(b, "DISPLAY=:1");
	login_unref(b);
}
END_TEST

static void carry_login(struct carry *c, void *l) {
	login_carry(c, l);
}

static void begin_login(void *l) {
	*(struct login **)l = NULL;
}

static void end_login(void *l) {
	login_unref(*(struct login **)l);
}

START_TEST(is_carried) {
	struct profile p = {0};
	struct login *l = read_one(&p, ENV("DISPLAY=:1", "PATH=/bin")), *other = NULL, *none = NULL;
	struct error error;
	struct saved s = carry_save_thing(carry_login, &l);
	ck_assert_msg(carry_load_thing(s, s.len, carry_login, &other, &error), "%s", error.text);
	ck_assert(other != l && login_same(l, other) && other->refs == 1);
	login_unref(l);
	login_unref(other);
	carry_spoil_thing(s, carry_login, &l, begin_login, end_login);
	free(s.data);
	s = carry_save_thing(carry_login, &none);
	ck_assert(carry_load_thing(s, s.len, carry_login, &other, &error));
	ck_assert_ptr_null(other);
	free(s.data);
}
END_TEST

RUN_TESTS("login", what_is_read, a_newer_one, sessions_share_it, is_carried)
