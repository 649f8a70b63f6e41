/* SPDX-License-Identifier: MIT */
#include "core/launch.h"

#include "base/hash.h"
#include "base/str.h"
#include "core/prompts.h"
#include "io/mark.h"
#include "io/proc.h"
#include "plenum/protocol.h"

#include <stdio.h>
#include <string.h>

extern char **environ;

/* Markers of an agent session around the daemon, and variables of systemd: both are wrong for the child. */
static const char *const stripped[] = {
	"CLAUDECODE",
	"CLAUDE_CODE_*",
	"CLAUDE_AGENT_SDK_*",
	"CLAUDE_PID",
	"CLAUDE_EFFORT",
	"AI_AGENT",
	"NOTIFY_SOCKET",
	"LISTEN_PID",
	"LISTEN_FDS",
	"LISTEN_FDNAMES",
	"LISTEN_PIDFDID",
	"WATCHDOG_PID",
	"WATCHDOG_USEC",
	"INVOCATION_ID",
	"JOURNAL_STREAM",
	"MANAGERPID",
	"SYSTEMD_EXEC_PID",
	"MAINPID",
	"FDSTORE",
	"CREDENTIALS_DIRECTORY",
	"RUNTIME_DIRECTORY",
	"STATE_DIRECTORY",
	"MEMORY_PRESSURE_WATCH",
	"MEMORY_PRESSURE_WRITE",
	"PLENUM_CHILD",
	"PLENUM_INSTANCE",
	"PLENUM_SESSION",
	"PLENUM_KEEP",
};

/* Return true if this variable is removed from every child's environment (plenumd(8), ENVIRONMENT). */
static bool is_stripped(const char *variable) {
	size_t n = strcspn(variable, "=");
	for (size_t i = 0; i < ARRAY_SIZE(stripped); i++) {
		size_t len = strlen(stripped[i]);
		bool prefix = stripped[i][len - 1] == '*';
		if (prefix ? n >= len - 1 && strncmp(variable, stripped[i], len - 1) == 0
				   : n == len && strncmp(variable, stripped[i], n) == 0)
			return true;
	}
	return false;
}

void launch_free(struct launch *l) {
	free(l->cwd);
	free(l->resume);
	words_free(&l->args);
	words_free(&l->env);
	login_unref(l->login);
	words_free(&l->argv);
	*l = (struct launch){0};
}

/* --- environment -------------------------------------------------------------------------------------------------- */

struct variable {
	UT_hash_handle hh; /* by the n bytes of its name */
	size_t at;         /* index in the words */
	size_t n;
};

/* An environment with each name once. */
struct env {
	struct words w;
	struct variable *by_name;
	const char *more_path; /* PATH=... of the requester, searched after PATH for the program; borrowed */
	bool failed;
};

static struct variable *env_find(const struct env *e, const char *name, size_t n) {
	struct variable *v;
	HASH_FIND(hh, e->by_name, name, n, v);
	return v;
}

/* Return the value; NULL: no such variable. */
static const char *env_value(const struct env *e, const char *name) {
	const struct variable *v = env_find(e, name, strlen(name));
	return v && e->w.v[v->at][v->n] ? e->w.v[v->at] + v->n + 1 : NULL;
}

static void env_free(struct env *e) {
	struct variable *v, *next;
	HASH_ITER (hh, e->by_name, v, next) {
		HASH_DELETE(hh, e->by_name, v);
		free(v);
	}
	words_free(&e->w);
}

static bool env_add(struct env *e, const char *word, size_t n) {
	struct variable *v = calloc(1, sizeof *v);
	if (!v || !words_add(&e->w, word)) {
		free(v);
		return false;
	}
	v->at = e->w.n - 1;
	v->n = n;
	if (HASH_TRY_ADD(hh, e->by_name, e->w.v[v->at], n, v)) return true;
	free(v);
	return false;
}

/* Replace the word that has this name: the name is the key of the table. */
static bool env_replace(struct env *e, struct variable *v, const char *word) {
	char *copy = strdup(word);
	if (!copy) return false;
	HASH_DELETE(hh, e->by_name, v);
	free(e->w.v[v->at]);
	e->w.v[v->at] = copy;
	if (HASH_TRY_ADD(hh, e->by_name, copy, v->n, v)) return true;
	free(v);
	return false;
}

static void env_put(struct env *e, const char *word) {
	size_t n = strcspn(word, "=");
	struct variable *v = env_find(e, word, n);
	if (!(v ? env_replace(e, v, word) : env_add(e, word, n))) e->failed = true;
}

static void env_default(struct env *e, const char *name, const char *value) {
	if (!value || env_value(e, name)) return;
	_cleanup_free_ char *word = str_printf("%s=%s", name, value);
	if (word) env_put(e, word);
}

static bool passes(const struct profile *p, const char *word) {
	size_t n = strcspn(word, "=");
	if (word[n] != '=' || is_stripped(word)) return false;
	for (size_t i = 0; i < p->pass_env.n; i++) {
		const char *name = p->pass_env.v[i];
		if (strcmp(name, "*") == 0 || (strlen(name) == n && strncmp(name, word, n) == 0)) return true;
	}
	return false;
}

static void put_mark(struct env *e, const char *name, const char *value) {
	_cleanup_free_ char *word = str_printf("%s=%s", name, value);
	if (word)
		env_put(e, word);
	else
		e->failed = true;
}

/* FLAG, --FLAG=VALUE. */
static bool is_flag(const char *word, const char *flag) {
	size_t n = strlen(flag);
	return strncmp(word, flag, n) == 0 && (word[n] == 0 || word[n] == '=');
}

/* --- more from a later client ------------------------------------------------------------------------------------- */

static void replace(struct words *old, struct words *new) {
	words_free(old);
	*old = *new;
	*new = (struct words){0};
}

bool launch_has_env(const struct launch *l, const struct words *env) {
	for (size_t i = 0; i < env->n; i++) {
		ssize_t at = words_named(&l->env, env->v[i], strcspn(env->v[i], "="));
		if (at < 0 || strcmp(l->env.v[at], env->v[i]) != 0) return false;
	}
	return true;
}

/* Complete the new environment by the variables of the old one that it does not have. */
static bool keep_env(struct words *new, const struct words *old) {
	for (size_t i = 0; i < old->n; i++)
		if (words_named(new, old->v[i], strcspn(old->v[i], "=")) < 0 && !words_add(new, old->v[i])) return false;
	return true;
}

bool launch_bring(struct launch *l, struct launch_more *more) {
	if (more->has_env && !more->env_only && !keep_env(&more->env, &l->env)) return false;
	if (more->has_env) replace(&l->env, &more->env);
	if (more->has_args || more->has_argv) replace(&l->args, &more->args); /* argv is a whole command line */
	if (more->has_argv) replace(&l->argv, &more->argv);
	l->env_only |= more->env_only;
	l->has_argv |= more->has_argv;
	l->changes++;
	return true;
}

/* --- which conversation ------------------------------------------------------------------------------------------- */

/* 8-4-4-4-12 hexadecimal digits; the CLI takes anything else as a title or a file. */
static bool is_id(const char *text) {
	size_t n = strspn(text, "0123456789abcdefABCDEF-");
	return n == 36 && text[n] == 0 && text[8] == '-' && text[13] == '-' && text[18] == '-' && text[23] == '-';
}

static void claim_resume(struct launch_claim *claim, const char *id) {
	claim->resume = id;
	claim->open |= !is_id(id);
}

/* Return the optional value of a flag in the next word. */
static const char *optional_value(const struct words *w, size_t i) {
	const char *next = i + 1 < w->n ? w->v[i + 1] : NULL;
	return next && *next != '-' ? next : NULL;
}

/* Parse short flags in one word like the CLI: -pc, -pr ID, -prID. The first flag with a value takes the rest of the
 * word. Return the index of -r, or of the end of the flags; *continues: -c is before it. */
static size_t read_short(const char *word, bool *continues) {
	*continues = false;
	if (word[0] != '-' || word[1] == '-' || !word[1]) return strlen(word);
	size_t n = strcspn(word, "rndw");
	*continues = memchr(word, 'c', n) != NULL;
	return word[n] == 'r' ? n : strlen(word);
}

void launch_read_claim(const struct words *w, struct launch_claim *claim) {
	static const char *const unnamed[] = {"--continue", "--from-pr", "--teleport"};
	for (size_t i = 0; i < w->n && strcmp(w->v[i], "--") != 0; i++) {
		const char *word = w->v[i], *eq = strchr(word, '='), *value = eq ? eq + 1 : optional_value(w, i);
		bool continues;
		size_t at = read_short(word, &continues);
		claim->forks |= strcmp(word, "--fork-session") == 0;
		claim->open |= continues;
		for (size_t k = 0; k < ARRAY_SIZE(unnamed); k++) claim->open |= is_flag(word, unnamed[k]);
		if (is_flag(word, "--session-id") && value) claim->fresh = value;
		if (word[at]) value = word[at + 1] ? word + at + 1 : optional_value(w, i);
		if ((word[at] || is_flag(word, "--resume")) && value) claim_resume(claim, value);
	}
}

bool launch_asks_for(const struct launch *l, const char *id) {
	struct launch_claim claim = {0};
	launch_read_claim(&l->args, &claim);
	launch_read_claim(&l->argv, &claim);
	return (!l->fork && l->resume && strcmp(l->resume, id) == 0) || (claim.fresh && strcmp(claim.fresh, id) == 0);
}

bool launch_in_doubt(const struct launch *l, const struct profile *p) {
	struct launch_claim claim = {0};
	if (!l->has_argv) launch_read_claim(&p->command, &claim);
	if (l->resume) claim_resume(&claim, l->resume);
	launch_read_claim(&l->args, &claim);
	launch_read_claim(&l->argv, &claim);
	return claim.open && !claim.forks && !l->fork;
}

char *launch_mark(const struct launch *l, const char *session) {
	return str_printf("%s.%s", l->instance ? l->instance : "none", session);
}

#define NAME_BITS 32 /* of a number; the bits above are those of the instance */

static uint64_t hash_name(const char *text, unsigned bits) {
	uint64_t h = prompt_hash(text, strlen(text));
	h ^= h >> 32;
	return h & ((UINT64_C(1) << bits) - 1);
}

uint64_t launch_number(const char *instance, const char *session) {
	uint64_t name = hash_name(session, NAME_BITS);
	return hash_name(instance, MARK_BITS - NAME_BITS) << NAME_BITS | (name ? name : 1);
}

bool launch_is_number_of(const char *instance, uint64_t number) {
	return number && number >> NAME_BITS == hash_name(instance, MARK_BITS - NAME_BITS);
}

static void put_login(struct env *e, const struct words *w) {
	for (size_t i = 0; i < w->n; i++) {
		bool path = strncmp(w->v[i], "PATH=", 5) == 0;
		if (path && env_value(e, "PATH"))
			e->more_path = w->v[i];
		else if (!is_stripped(w->v[i]))
			env_put(e, w->v[i]);
	}
}

/* Add the same words; the last PATH replaces the others. */
static void put_words(struct env *e, const struct words *w) {
	for (size_t i = 0; i < w->n; i++) {
		if (strncmp(w->v[i], "PATH=", 5) == 0) e->more_path = NULL;
		env_put(e, w->v[i]);
	}
}

static void build_env(struct env *e, const struct launch *l, const struct profile *p, const char *session) {
	if (!l->env_only) {
		for (char **v = environ; *v; v++)
			if (passes(p, *v)) env_put(e, *v);
		put_login(e, login_words(l->login));
		env_default(e, "PATH", "/usr/local/bin:/usr/bin:/bin");
	}
	put_words(e, &p->env);
	put_words(e, &l->env);
	if (!l->env_only) put_mark(e, "PWD", l->cwd);
	if (!*session) return; /* a command of the daemon, or for comparing */
	put_mark(e, PLENUM_CHILD_ENV, session);
	_cleanup_free_ char *mark = launch_mark(l, session);
	put_mark(e, "PLENUM_INSTANCE", mark ? mark : "");
}

/* --- command line ------------------------------------------------------------------------------------------------- */

static bool has_flag(const struct words *w, const char *flag) {
	for (size_t i = 0; i < w->n; i++)
		if (is_flag(w->v[i], flag)) return true;
	return false;
}

/* Return the word without c and -r: -p for -pcr ID. NULL: nothing left, or no memory. */
static char *without_continue(const char *word, size_t n) {
	char *rest = calloc(1, n + 1), *to = rest;
	for (size_t i = 0; rest && i < n; i++)
		if (word[i] != 'c') *to++ = word[i];
	if (rest && rest[1]) return rest;
	free(rest);
	return NULL;
}

/* Skip a flag that a later start must not repeat: --resume=X, --resume X, --continue, --fork-session. *rest: the
 * remaining flags of a word with several, owned by the caller. */
static bool one_time_flag(const struct words *w, size_t *i, char **rest) {
	static const char *const with_value[] = {"--resume", "--session-id", "--resume-session-at", "--from-pr",
											 "--teleport"};
	static const char *const alone[] = {"--continue", "--fork-session"};
	const char *word = w->v[*i];
	bool continues;
	size_t at = read_short(word, &continues);
	if (word[at] || continues) {
		if (word[at] && !word[at + 1] && optional_value(w, *i)) ++*i;
		*rest = without_continue(word, at);
		return true;
	}
	for (size_t k = 0; k < ARRAY_SIZE(alone); k++)
		if (strcmp(word, alone[k]) == 0) return true;
	for (size_t k = 0; k < ARRAY_SIZE(with_value); k++) {
		if (!is_flag(word, with_value[k])) continue;
		if (!word[strlen(with_value[k])] && *i + 1 < w->n && w->v[*i + 1][0] != '-') ++*i;
		return true;
	}
	return false;
}

static bool add_words(struct words *out, const struct words *more, bool later_start) {
	for (size_t i = 0; i < more->n; i++) {
		_cleanup_free_ char *rest = NULL;
		bool taken = later_start && one_time_flag(more, &i, &rest);
		const char *word = taken ? rest : more->v[i];
		if (word && !words_add(out, word)) return false;
	}
	return true;
}

/* Add the required flags (contract 8); a program other than the CLI ignores them. */
static bool add_needed(struct words *out, bool no_asks) {
	static const char *const pairs[][2] = {
		{"--input-format", "stream-json"}, {"--output-format", "stream-json"}, {"--permission-prompt-tool", "stdio"}};
	static const char *const single[] = {"--verbose", "--include-partial-messages", "--replay-user-messages"};
	bool ok = true;
	if (!has_flag(out, "-p") && !has_flag(out, "--print")) ok = words_add(out, "-p");
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
		if (!has_flag(out, pairs[i][0]) && !(no_asks && i == 2))
			ok = ok && words_add(out, pairs[i][0]) && words_add(out, pairs[i][1]);
	for (size_t i = 0; i < ARRAY_SIZE(single); i++)
		if (!has_flag(out, single[i])) ok = ok && words_add(out, single[i]);
	return ok;
}

static char *with_id(const char *word, const char *id) {
	const char *at = strstr(word, "{id}");
	return at ? str_printf("%.*s%s%s", (int)(at - word), word, id, at + 4) : strdup(word);
}

static bool add_with_id(struct words *out, const struct words *more, const char *id) {
	for (size_t i = 0; i < more->n; i++) {
		_cleanup_free_ char *word = with_id(more->v[i], id);
		if (!word || !words_add(out, word)) return false;
	}
	return true;
}

/* Add an id for a new conversation, if the profile has an option for it and the words have none yet. */
static bool add_new_id(struct words *out, const struct profile *p) {
	struct launch_claim claim = {0};
	char id[37];
	launch_read_claim(out, &claim);
	if (claim.open || claim.resume || claim.fresh) return true;
	str_uuid(id);
	return add_with_id(out, &p->session_id_args, id);
}

static bool says_resume(const struct words *w) {
	struct launch_claim claim = {0};
	launch_read_claim(w, &claim);
	return claim.resume != NULL;
}

static bool build_argv(struct words *out, const struct launch *l, const struct profile *p, const char *resume,
					   bool fork) {
	bool later = resume && !(l->resume && strcmp(l->resume, resume) == 0 && fork == l->fork);
	bool ok;
	if (l->has_argv)
		ok = words_add(out, p->command.v[0]) && add_words(out, &l->argv, later) && add_needed(out, l->no_asks);
	else
		ok = add_words(out, &p->command, false);
	ok = ok && add_words(out, &l->args, later);
	if (resume && !says_resume(out)) ok = ok && add_with_id(out, &p->resume_args, resume);
	if (fork && !has_flag(out, "--fork-session")) ok = ok && words_add(out, "--fork-session");
	return ok;
}

/* --- the start ---------------------------------------------------------------------------------------------------- */

static void put_number(struct buf *b, uint64_t n) {
	buf_printf(b, "%llu", (unsigned long long)n);
	buf_put(b, "", 1);
}

static void put_list(struct buf *b, const struct words *w) {
	put_number(b, w->n);
	for (size_t i = 0; i < w->n; i++) errand_put(b, w->v[i]);
}

/* Write all inputs of the environment; the errand builds it, once it has the client environment. */
static void put_request(struct buf *b, const struct launch *l, const struct profile *p, const char *session,
						const struct words *argv) {
	errand_put(b, l->cwd);
	errand_put(b, session);
	errand_put(b, l->instance ? l->instance : "none");
	errand_put(b, p->name ? p->name : "");
	put_number(b, l->env_only);
	put_number(b, (uint64_t)l->umask);
	put_number(b, l->env_only ? 0 : (uint64_t)l->asker);
	put_number(b, l->asker_start);
	put_list(b, argv);
	put_list(b, &p->pass_env);
	put_list(b, &p->env);
	put_list(b, &l->env);
	put_list(b, login_words(l->login));
}

/* A report of the errand: it has the environment, it is in its directory, it calls exec; and once more if exec fails.
 * All have one size: the number of bytes received gives the step. */
struct said {
	int32_t result;
	uint32_t login; /* length of the new client environment that follows */
	struct child_place place;
	char text[CHILD_ERROR_MAX]; /* CHILD_OK: the program, "" if its path is too long; else the cause */
};

/* Frees the request. */
static enum child_result begin(struct buf *request, struct errand_spec *spec, struct errand *e, struct children *owner,
							   void (*done)(void *arg, enum errand_end end), void *arg, char *error) {
	enum child_result r = CHILD_TRANSIENT;
	spec->kind = LAUNCH_ERRAND;
	spec->request = request->data;
	spec->n = request->len;
	spec->step = sizeof(struct said);
	spec->answer_max = (size_t)8 * 1024 * 1024;
	if (request->failed)
		snprintf(error, CHILD_ERROR_MAX, "out of memory");
	else
		r = errand_begin(e, owner, spec, done, arg, error);
	buf_free(request);
	return r;
}

enum child_result launch_begin_command(const struct words *argv, const struct words *env, int64_t limit,
									   struct errand *e, struct child *c, struct children *owner,
									   void (*done)(void *arg, enum errand_end end), void *arg, char *error) {
	static const struct child_spec streams = {.no_pipes = true};
	static const struct profile none;
	static char root[] = "/";
	struct buf request = BUF_INIT(SIZE_MAX / 4);
	struct launch l = {.cwd = root, .env = *env, .env_only = true};
	struct errand_spec spec = {.place = *argv->v[0] == '/' ? argv->v[0] : root, /* a step that may hang */
							   .uid = getuid(),
							   .limit = limit,
							   .streams = &streams,
							   .becomes = c};
	put_request(&request, &l, &none, "", argv);
	return begin(&request, &spec, e, owner, done, arg, error);
}

enum child_result launch_begin(const struct launch *l, const struct profile *p, const char *session, const char *resume,
							   bool fork, int64_t limit, struct errand *e, struct child *c, struct children *owner,
							   void (*done)(void *arg, enum errand_end end), void *arg, char *error) {
	struct words argv = {0};
	struct buf request = BUF_INIT(SIZE_MAX / 4);
	struct child_spec streams = {.nofile = l->nofile, .out_pipe = p->stdout_pipe};
	char asker[32];
	const char *program = strchr(p->command.v[0], '/') ? p->command.v[0] : "PATH";
	snprintf(asker, sizeof asker, "/proc/%d", (int)l->asker);
	struct errand_spec spec = {.place = l->asker ? asker : l->cwd,
							   .then = {l->cwd, program},
							   .uid = l->uid,
							   .limit = limit,
							   .streams = &streams,
							   .becomes = c};
	streams.mark = launch_number(l->instance ? l->instance : "none", session);
	if (build_argv(&argv, l, p, resume, fork) && (resume || l->has_argv || add_new_id(&argv, p)))
		put_request(&request, l, p, session, &argv);
	else
		request.failed = true;
	words_free(&argv);
	return begin(&request, &spec, e, owner, done, arg, error);
}

static bool take_number(const char **at, const char *end, uint64_t *n) {
	const char *text = errand_next(at, end);
	return text && str_u64(text, 0, UINT64_MAX, n);
}

static bool take_list(const char **at, const char *end, struct words *w) {
	uint64_t n;
	const char *word;
	if (!take_number(at, end, &n)) return false;
	while (w->n < n)
		if (!(word = errand_next(at, end)) || !words_add(w, word)) return false;
	return true;
}

/* The content written by put_request(). */
struct job {
	struct launch launch;
	struct profile profile;
	struct words argv, login;
	const char *session;
	struct buf told; /* the new client environment */
};

/* Nothing is freed: the process ends with exec or exit. */
static bool read_request(struct job *j, const char *at, const char *end) {
	struct launch *l = &j->launch;
	uint64_t env_only, asker, mask;
	l->cwd = (char *)(uintptr_t)errand_next(&at, end);
	j->session = errand_next(&at, end);
	l->instance = errand_next(&at, end);
	j->profile.name = (char *)(uintptr_t)errand_next(&at, end);
	if (!take_number(&at, end, &env_only) || !take_number(&at, end, &mask) || !take_number(&at, end, &asker))
		return false;
	l->env_only = env_only;
	l->umask = (int)mask;
	l->asker = (pid_t)asker;
	return take_number(&at, end, &l->asker_start) && take_list(&at, end, &j->argv) &&
		   take_list(&at, end, &j->profile.pass_env) && take_list(&at, end, &j->profile.env) &&
		   take_list(&at, end, &l->env) && take_list(&at, end, &j->login) && j->argv.n;
}

/* Read the client environment of the asker if the same process still runs. Else keep the old one. */
static void renew_login(struct job *j) {
	struct launch *l = &j->launch;
	size_t len = 0;
	l->login = login_copy(&j->login);
	_cleanup_free_ char *env = l->asker ? proc_environ(l->asker, &len) : NULL;
	if (!env || !proc_lives(l->asker, l->asker_start)) return;
	l->login = login_renew(l->login, (struct span){env, len}, &j->profile);
	for (size_t i = 0; i < login_words(l->login)->n; i++) errand_put(&j->told, login_words(l->login)->v[i]);
}

static void on_found(void *arg, const struct child_place *place, const char *file) {
	struct job *j = arg;
	struct said said = {.place = *place, .login = file ? (uint32_t)j->told.len : 0};
	if (file && strlen(file) < sizeof said.text) strcpy(said.text, file);
	errand_say(&said, sizeof said);
	if (said.login) errand_say(j->told.data, said.login);
}

static const char *program_of(const struct job *j, const struct env *e) {
	const char *variable = login_variable_of(j->profile.name), *named = variable ? env_value(e, variable) : NULL;
	return named && *named ? named : j->argv.v[0];
}

static const char *hint_for(const struct job *j) {
	if (!*j->profile.name) return NULL; /* a command of the daemon */
	return strcmp(j->profile.name, "claude") == 0
			   ? "install Claude Code, or write its full path as `command` in [profile claude]; the profile fake is a "
				 "scripted agent to try Plenum with"
			   : "write its full path as `command` in the profile";
}

int launch_errand(void) {
	struct job j = {.told = BUF_INIT(UINT32_MAX / 2)};
	struct env env = {0};
	struct said said = {.result = CHILD_TRANSIENT, .text = "out of memory"};
	size_t n;
	char *request = errand_request(&n); /* lives until the exec, or the end */
	if (request && read_request(&j, request, request + n)) {
		renew_login(&j);
		build_env(&env, &j.launch, &j.profile, j.session);
		if (!env.w.v) env.w.v = calloc(1, sizeof *env.w.v);
		j.argv.v[0] = (char *)(uintptr_t)program_of(&j, &env);
		struct child_spec spec = {.argv = j.argv.v,
								  .envp = env.w.v,
								  .cwd = j.launch.cwd,
								  .more_path = env.more_path,
								  .hint = hint_for(&j),
								  .add_user = !j.launch.env_only && *j.session};
		on_found(&j, &said.place, NULL); /* from here on it uses the directory */
		if (j.launch.umask) umask((mode_t)j.launch.umask - 1);
		if (env.w.v && !env.failed) said.result = (int32_t)child_become(&spec, on_found, &j, said.text);
	}
	errand_say(&said, sizeof said);
	return 127;
}

static struct login *read_login(const char *at, const char *end) {
	struct words w = {0};
	const char *word;
	while ((word = errand_next(&at, end)) != NULL)
		if (!words_add(&w, word)) break;
	struct login *l = login_copy(&w);
	words_free(&w);
	return l;
}

/* Get the newest report, and the client environment of any. */
static bool read_said(const struct buf *answer, struct said *said, struct login **login) {
	const char *at = answer->data, *end = at + answer->len;
	bool any = false;
	while (at && (size_t)(end - at) >= sizeof *said) {
		memcpy(said, at, sizeof *said);
		at += sizeof *said;
		any = true;
		if (said->login > (size_t)(end - at)) break;
		if (said->login && login && !*login) *login = read_login(at, at + said->login);
		at += said->login;
	}
	return any && at == end && (said->result != CHILD_OK || said->place.program || said->place.cwd);
}

enum child_result launch_result(const char *cwd, const struct errand *e, enum errand_end end, struct child_place *place,
								struct login **login, char *error) {
	struct said said;
	*place = (struct child_place){0};
	if (login) *login = NULL;
	if (end == ERRAND_TIMEOUT) {
		snprintf(error, CHILD_ERROR_MAX,
				 "no start in time: directory %s, or the program, does not answer (outside_timeout; is it on a mount "
				 "whose server is gone?)",
				 cwd);
		return CHILD_TIMEOUT;
	}
	if (end == ERRAND_LOST || !read_said(&e->answer, &said, login)) {
		snprintf(error, CHILD_ERROR_MAX, "the start ended before it came to the program");
		return CHILD_TRANSIENT;
	}
	*place = said.place;
	snprintf(error, CHILD_ERROR_MAX, "%.*s", (int)sizeof said.text - 1, said.text);
	return (enum child_result)said.result;
}

void launch_carry(struct carry *c, struct launch *l) {
	carry_name(c, &l->cwd);
	carry_words(c, &l->args);
	carry_words(c, &l->env);
	login_carry(c, &l->login);
	carry_words(c, &l->argv);
	CARRY(c, l->has_argv);
	CARRY(c, l->changes);
	CARRY(c, l->no_asks);
	CARRY(c, l->env_only);
	CARRY(c, l->fork);
	carry_text(c, &l->resume);
	CARRY(c, l->uid);
	CARRY_UPTO(c, l->umask, 01000);
	CARRY(c, l->asker);
	CARRY(c, l->asker_start);
}

/* --- comparing ---------------------------------------------------------------------------------------------------- */

/* Compare in any order: an environment has each name once. */
static bool same_env(const struct env *a, const struct env *b) {
	if (a->failed || b->failed || a->w.n != b->w.n) return false;
	for (size_t i = 0; i < a->w.n; i++) {
		const struct variable *v = env_find(b, a->w.v[i], strcspn(a->w.v[i], "="));
		if (!v || strcmp(a->w.v[i], b->w.v[v->at]) != 0) return false;
	}
	return true;
}

static int mask_of(const struct launch *l) {
	return l->umask ? l->umask - 1 : proc_umask(getpid());
}

bool launch_same(const struct launch *a, const struct launch *b, const struct profile *p, bool path_counts) {
	struct words argv_a = {0}, argv_b = {0};
	struct env env_a = {0}, env_b = {0};
	struct launch here = *a; /* one directory may have two names */
	here.cwd = b->cwd;
	build_env(&env_a, &here, p, "");
	build_env(&env_b, b, p, "");
	const char *path_a = env_a.more_path ? env_a.more_path : "", *path_b = env_b.more_path ? env_b.more_path : "";
	bool same = mask_of(a) == mask_of(b) && (!path_counts || strcmp(path_a, path_b) == 0) &&
				build_argv(&argv_a, a, p, a->resume, a->fork) && build_argv(&argv_b, b, p, b->resume, b->fork) &&
				words_same(&argv_a, &argv_b) && same_env(&env_a, &env_b);
	words_free(&argv_a);
	words_free(&argv_b);
	env_free(&env_a);
	env_free(&env_b);
	return same;
}
