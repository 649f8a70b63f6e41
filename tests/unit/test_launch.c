/* SPDX-License-Identifier: MIT */
#include "core/launch.h"

#include "harness.h"

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
	ck_assert(launch_same(&a, &b, p));
	knows(&a, "PLENUM_TEST_A=1");
	knows(&a, "PLENUM_TEST_B=2");
	ck_assert(!launch_same(&a, &b, p));
	knows(&b, "PLENUM_TEST_B=2"); /* in another order */
	knows(&b, "PLENUM_TEST_A=1");
	ck_assert(launch_same(&a, &b, p));
	a.uid = b.uid + 1; /* whose session it is starts nothing else */
	ck_assert(launch_same(&a, &b, p));
	done(&a, &b);
}
END_TEST

START_TEST(profile_settles_what_differs) {
	struct profile *p = make_profile();
	struct launch a = here("/"), b = here("/");
	knows(&a, "DISPLAY=:1");
	knows(&b, "DISPLAY=:2");
	ck_assert(!launch_same(&a, &b, p));
	words_add(&p->env, "DISPLAY=:3");
	ck_assert(launch_same(&a, &b, p));
	done(&a, &b);
}
END_TEST

static void differs(void (*change)(struct launch *)) {
	struct profile *p = make_profile();
	struct launch a = here("/"), b = here("/");
	ck_assert(launch_same(&a, &b, p));
	change(&b);
	ck_assert(!launch_same(&a, &b, p));
	ck_assert(!launch_same(&b, &a, p));
	done(&a, &b);
}

static void other_folder(struct launch *l) {
	free(l->cwd);
	l->cwd = strdup("/usr");
}

static void no_folder(struct launch *l) {
	free(l->cwd);
	l->cwd = strdup("/nonexistent");
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
	static void (*const changes[])(struct launch *) = {other_folder, no_folder,         argument, variable,
													   flags,        whole_environment, resumed};
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) differs(changes[i]);
}
END_TEST

static void write_file(const char *path) {
	FILE *f = fopen(path, "w");
	ck_assert(f && fputs("#!/bin/sh\n", f) >= 0 && fclose(f) == 0);
	ck_assert_int_eq(chmod(path, 0755), 0);
}

START_TEST(program) {
	struct profile *p = make_profile();
	struct launch a = here("/"), b = here("/");
	char dir[] = "/tmp/pl-XXXXXX", path[64], next[64], link[64];
	ck_assert(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/one", dir);
	snprintf(next, sizeof next, "%s/two", dir);
	snprintf(link, sizeof link, "%s/link", dir);
	write_file(path);
	write_file(next);
	ck_assert_int_eq(symlink("one", link), 0);
	free(p->command.v[0]);
	p->command.v[0] = strdup(link);
	uint64_t first = launch_program(&a, p);
	ck_assert_uint_ne(first, 0);
	ck_assert_uint_eq(launch_program(&a, p), first);
	unlink(link);
	ck_assert_uint_eq(launch_program(&a, p), 0);
	ck_assert_int_eq(symlink("two", link), 0);
	uint64_t second = launch_program(&a, p);
	ck_assert(second && second != first);
	free(p->command.v[0]);
	p->command.v[0] = strdup("one"); /* in the PATH that the child will have */
	char word[100];
	snprintf(word, sizeof word, "PATH=/bin:%s", dir);
	words_add(&a.env, word);
	ck_assert_uint_eq(launch_program(&a, p), first);
	unlink(link);
	unlink(path);
	unlink(next);
	rmdir(dir);
	done(&a, &b);
}
END_TEST

RUN_TESTS("launch", same, profile_settles_what_differs, different, program)
