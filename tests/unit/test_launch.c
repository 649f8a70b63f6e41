/* SPDX-License-Identifier: MIT */
#include "core/launch.h"

#include "harness.h"
#include "store/draft.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct settings *settings;

static struct profile *make_profile(void) {
	settings = settings_new();
	struct profile *p = settings_add_profile(settings, "x");
	words_add(&p->command, "/bin/sh");
	words_add(&p->command, "-p");
	return p;
}

static struct launch here(const char *cwd) {
	return (struct launch){.cwd = strdup(cwd), .uid = getuid()};
}

static void done(struct launch *a, struct launch *b) {
	launch_free(a);
	launch_free(b);
	settings_unref(settings);
}

static void knows(struct launch *l, const char *word) {
	if (!l->login) {
		l->login = calloc(1, sizeof *l->login);
		l->login->refs = 1;
	}
	ck_assert(words_add(&l->login->words, word));
}

START_TEST(same) {
	struct profile *p = make_profile();
	struct launch a = here("/usr/bin"), b = here("/usr/../usr/bin/");
	ck_assert(launch_same(&a, &b, p, true));
	knows(&a, "PLENUM_TEST_A=1");
	knows(&a, "PLENUM_TEST_B=2");
	ck_assert(!launch_same(&a, &b, p, true));
	knows(&b, "PLENUM_TEST_B=2"); /* in another order */
	knows(&b, "PLENUM_TEST_A=1");
	ck_assert(launch_same(&a, &b, p, true));
	a.uid = b.uid + 1; /* the uid of the session does not change the launch */
	ck_assert(launch_same(&a, &b, p, true));
	done(&a, &b);
}
END_TEST

START_TEST(profile_settles_what_differs) {
	struct profile *p = make_profile();
	struct launch a = here("/"), b = here("/");
	knows(&a, "DISPLAY=:1");
	knows(&b, "DISPLAY=:2");
	ck_assert(!launch_same(&a, &b, p, true));
	words_add(&p->env, "DISPLAY=:3");
	ck_assert(launch_same(&a, &b, p, true));
	done(&a, &b);
}
END_TEST

static void differs(void (*change)(struct launch *)) {
	struct profile *p = make_profile();
	struct launch a = here("/"), b = here("/");
	ck_assert(launch_same(&a, &b, p, true));
	change(&b);
	ck_assert(!launch_same(&a, &b, p, true));
	ck_assert(!launch_same(&b, &a, p, true));
	done(&a, &b);
}

static void argument(struct launch *l) {
	words_add(&l->args, "--model=x");
}

static void variable(struct launch *l) {
	words_add(&l->env, "PLENUM_TEST_A=1");
}

static void flags(struct launch *l) {
	l->has_argv = true;
	words_add(&l->argv, "-p");
}

static void whole_environment(struct launch *l) {
	l->env_only = true;
}

static void resumed(struct launch *l) {
	l->resume = strdup("11111111-1111-4111-8111-111111111111");
}

START_TEST(different) {
	static void (*const changes[])(struct launch *) = {argument, variable, flags, whole_environment, resumed};
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) differs(changes[i]);
}
END_TEST

/* The requester's PATH matters if the program was found in it. */
START_TEST(requesters_path) {
	struct profile *p = make_profile();
	struct launch a = here("/"), b = here("/");
	words_add(&p->pass_env, "PATH");
	knows(&a, "PATH=/a");
	knows(&b, "PATH=/b");
	ck_assert(launch_same(&a, &b, p, false));
	ck_assert(!launch_same(&a, &b, p, true));
	words_add(&p->env, "PATH=/c"); /* then no other one counts */
	ck_assert(launch_same(&a, &b, p, true));
	done(&a, &b);
}
END_TEST

START_TEST(umasks) {
	struct profile *p = make_profile();
	struct launch a = here("/"), b = here("/");
	mode_t before = umask(027);
	a.umask = 027 + 1; /* the same as an unknown one, which is ours */
	ck_assert(launch_same(&a, &b, p, true));
	a.umask = 022 + 1;
	ck_assert(!launch_same(&a, &b, p, true));
	umask(before);
	done(&a, &b);
}
END_TEST

START_TEST(brought_later) {
	struct profile *p = make_profile();
	struct launch a = here("/"), b = here("/");
	struct launch_more more = {.has_args = true, .has_env = true};
	words_add(&a.args, "--old");
	words_add(&a.env, "KEPT=1");
	words_add(&a.env, "CHANGED=1");
	words_add(&more.args, "--new");
	words_add(&more.env, "CHANGED=2");
	ck_assert(!launch_has_env(&a, &more.env));
	ck_assert(launch_bring(&a, &more));
	ck_assert(a.args.n == 1 && strcmp(a.args.v[0], "--new") == 0 && !a.has_argv);
	words_add(&b.args, "--new");
	words_add(&b.env, "CHANGED=2");
	ck_assert(launch_has_env(&a, &b.env) && !launch_same(&a, &b, p, true));
	words_add(&b.env, "KEPT=1");
	ck_assert(launch_same(&a, &b, p, true));
	more = (struct launch_more){.has_argv = true, .has_env = true, .env_only = true};
	words_add(&more.argv, "--all");
	words_add(&more.env, "ONLY=1");
	ck_assert(launch_bring(&a, &more));
	ck_assert(a.has_argv && a.argv.n == 1 && a.args.n == 0 && a.env_only && a.env.n == 1);
	ck_assert_uint_eq(a.changes, 2);
	done(&a, &b);
}
END_TEST

/* Clients cannot let it grow without end. */
START_TEST(brought_env_is_limited) {
	struct launch l = {0};
	struct launch_more more = {.has_env = true};
	char name[40];
	for (size_t i = 0; i < LIMITS_WORDS; i++) {
		snprintf(name, sizeof name, "OLD_%zu=x", i);
		words_add(&l.env, name);
	}
	words_add(&more.env, "OLD_7=y");
	ck_assert(launch_bring(&l, &more) && l.env.n == LIMITS_WORDS && !more.env.n);
	words_add(&more.env, "NEW=y");
	ck_assert(!launch_bring(&l, &more) && l.env.n == LIMITS_WORDS && l.changes == 1);
	words_free(&more.env);
	launch_free(&l);
}
END_TEST

/* No less than in the table, whatever the words have. */
START_TEST(test_length) {
	static const char *const words[] = {
		"", "plain", "a \"b\" \\", "\n\t\x01\x7f", "\xc3\xa9t\xc3\xa9", "\xf0\x9f\x98\x80"};
	struct launch l = {0};
	struct draft d;
	draft_init(&d);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		ck_assert(words_add(&l.args, words[i]) && words_add(&l.env, words[i]));
	draft_list(&d, l.args.v, l.args.n);
	ck_assert(!d.own.failed);
	ck_assert_uint_ge(launch_length(&l), 2 * (d.own.len - 1));
	ck_assert_uint_le(launch_length(&l), 2 * (d.own.len - 1) + 16);
	launch_move(&l, strdup("/tmp"));
	ck_assert_uint_eq(l.changes, 1);
	launch_move(&l, strdup("tmp")); /* no path: unchanged */
	ck_assert_uint_eq(l.changes, 1);
	draft_free(&d);
	launch_free(&l);
}
END_TEST

RUN_TESTS("launch", same, profile_settles_what_differs, different, requesters_path, umasks, brought_later,
		  brought_env_is_limited, test_length)
