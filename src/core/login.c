/* SPDX-License-Identifier: MIT */
#include "core/login.h"

#include "base/paths.h"
#include "base/str.h"
#include "io/proc.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>

/* Variables of a login, out of date in a long-running daemon: the newest login's values apply. */
static const char *const refreshed[] = {
	"SSH_AUTH_SOCK", "SSH_AGENT_PID",  "SSH_CONNECTION",   "SSH_CLIENT",
	"SSH_TTY",       "SSH_ASKPASS",    "DISPLAY",          "WAYLAND_DISPLAY",
	"XAUTHORITY",    "XDG_SESSION_ID", "XDG_SESSION_TYPE", "DBUS_SESSION_BUS_ADDRESS",
	"KRB5CCNAME",    "GPG_AGENT_INFO", "GPG_TTY",
};

static const char PROGRAM[] = "PLENUM_CLAUDE";

static const struct words no_words;

/* Takes ownership of the words. */
static struct login *make(struct words *w) {
	struct login *l = w->n ? malloc(sizeof *l) : NULL;
	if (l)
		*l = (struct login){.refs = 1, .words = *w};
	else
		words_free(w);
	return l;
}

static void take(struct words *w, const char *env, size_t len, const char *name) {
	const char *value = proc_find(env, len, name);
	_cleanup_free_ char *word = value ? str_printf("%s=%s", name, value) : NULL;
	if (word) words_add(w, word);
}

static void read_words(struct words *w, struct span environment, const struct profile *p) {
	const char *env = environment.p;
	size_t len = environment.n;
	if (!env) return;
	for (size_t i = 0; i < ARRAY_SIZE(refreshed); i++) take(w, env, len, refreshed[i]);
	for (size_t i = 0; i < p->pass_env.n; i++)
		if (strcmp(p->pass_env.v[i], "*") != 0) take(w, env, len, p->pass_env.v[i]);
	take(w, env, len, "PATH");
	take(w, env, len, PROGRAM);
}

const char *login_variable_of(const char *profile) {
	return strcmp(profile, "claude") == 0 ? PROGRAM : NULL;
}

struct login *login_read(struct span env, const struct profile *p) {
	struct words w = {0};
	read_words(&w, env, p);
	return make(&w);
}

static bool is_refreshed(const char *word, size_t n) {
	for (size_t i = 0; i < ARRAY_SIZE(refreshed); i++)
		if (strlen(refreshed[i]) == n && strncmp(refreshed[i], word, n) == 0) return true;
	return false;
}

struct login *login_renew(const struct login *old, struct span env, const struct profile *p) {
	const struct words *had = login_words(old);
	struct words now = {0}, all = {0};
	read_words(&now, env, p);
	for (size_t i = 0; i < now.n; i++) {
		size_t n = strcspn(now.v[i], "=");
		if (is_refreshed(now.v[i], n) || words_named(had, now.v[i], n) < 0) words_add(&all, now.v[i]);
	}
	for (size_t i = 0; i < had->n; i++)
		if (words_named(&all, had->v[i], strcspn(had->v[i], "=")) < 0) words_add(&all, had->v[i]);
	words_free(&now);
	return make(&all);
}

struct login *login_copy(const struct words *w) {
	struct words all = {0};
	for (size_t i = 0; i < w->n; i++) words_add(&all, w->v[i]);
	return make(&all);
}

struct login *login_ref(struct login *l) {
	if (l) l->refs++;
	return l;
}

void login_unref(struct login *l) {
	if (!l || --l->refs) return;
	words_free(&l->words);
	free(l);
}

const struct words *login_words(const struct login *l) {
	return l ? &l->words : &no_words;
}

bool login_same(const struct login *a, const struct login *b) {
	return a == b || words_same(login_words(a), login_words(b));
}

void login_share(struct login **l, struct login **newest) {
	if (!*l) return;
	if (login_same(*l, *newest)) {
		login_unref(*l);
		*l = login_ref(*newest);
	} else {
		login_unref(*newest);
		*newest = login_ref(*l);
	}
}

void login_carry(struct carry *c, struct login **l) {
	struct words w = {0};
	if (c->saving) w = *login_words(*l);
	carry_words(c, &w);
	if (!c->saving) *l = make(&w);
}

/* --- the errand --------------------------------------------------------------------------------------------------- */

void login_ask(struct buf *request, pid_t pid, const struct login_place *place) {
	char number[16];
	snprintf(number, sizeof number, "%d", (int)pid);
	errand_put(request, number);
	errand_put(request, place->cwd);
	errand_put(request, place->program);
	errand_put(request, place->path ? place->path : "");
	errand_put(request, place->variable ? place->variable : "");
}

bool login_answer(const char *answer, size_t n, struct child_place *place, struct span *env) {
	*env = SPAN_NONE;
	*place = (struct child_place){0};
	if (n < sizeof *place) return false;
	memcpy(place, answer, sizeof *place);
	*env = (struct span){answer + sizeof *place, n - sizeof *place};
	return true;
}

/* A program to be found as the start will find it, for the process that asks for the start. */
struct program_request {
	char *text, *env; /* env: of the process; NULL: unknown */
	size_t n_env;
	const char *cwd, *name, *path, *asker; /* asker: PATH in env, or NULL */
	bool variable;                         /* the name is of a variable in env */
};

static bool read_request(struct program_request *q) {
	size_t n;
	*q = (struct program_request){.text = errand_request(&n)};
	const char *at = q->text, *end = at ? at + n : NULL, *pid = errand_next(&at, end);
	q->cwd = errand_next(&at, end);
	q->name = errand_next(&at, end);
	q->path = errand_next(&at, end);
	const char *variable = errand_next(&at, end);
	if (!q->path) return false;
	q->env = proc_environ((pid_t)atoi(pid), &q->n_env);
	q->asker = q->env ? proc_find(q->env, q->n_env, "PATH") : NULL;
	const char *named = q->env && variable && *variable ? proc_find(q->env, q->n_env, variable) : NULL;
	q->variable = named && *named;
	if (q->variable) q->name = named;
	return true;
}

static void free_request(struct program_request *q) {
	free(q->text);
	free(q->env);
}

static char *find_file(const struct program_request *q, bool *asked, struct error *error) {
	int number;
	_cleanup_free_ char *home = path_home();
	struct child_search in = {
		.asker = q->asker, .path = *q->path ? q->path : NULL, .own = getenv("PATH"), .home = home};
	return child_find(q->name, q->cwd, &in, asked, &number, error);
}

int login_errand(void) {
	_cleanup_(free_request) struct program_request q;
	struct child_place place = {0};
	struct error error;
	bool asked;
	if (!read_request(&q)) return EX_USAGE;
	_cleanup_free_ char *file = find_file(&q, &asked, &error);
	child_place_of(file, q.cwd, asked, &place);
	errand_say(&place, sizeof place);
	if (q.env) errand_say(q.env, q.n_env);
	return EX_OK;
}

/* Name the place where child_find() found the program. */
static const char *origin_of(const struct program_request *q, const char *file, bool asked) {
	struct error ignored;
	int number;
	if (q->variable) return PROGRAM;
	if (strchr(q->name, '/')) return "command of the profile";
	if (asked) return "PATH of the client";
	const char *paths[] = {*q->path ? q->path : NULL, getenv("PATH")};
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		_cleanup_free_ char *same = child_find_program(q->name, paths[i], q->cwd, &number, &ignored);
		if (same && strcmp(same, file) == 0) return "PATH of the daemon";
	}
	return "directory of its installer";
}

int login_program_errand(void) {
	_cleanup_(free_request) struct program_request q;
	struct error error = {""};
	bool asked;
	if (!read_request(&q)) return EX_USAGE;
	_cleanup_free_ char *file = find_file(&q, &asked, &error);
	const char *words[] = {file ? file : "", file ? origin_of(&q, file, asked) : "", file ? "" : error.text};
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) errand_say(words[i], strlen(words[i]) + 1);
	return EX_OK;
}
