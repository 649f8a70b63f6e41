/* SPDX-License-Identifier: MIT */
#include "core/launch.h"

#include "base/hash.h"
#include "base/names.h"
#include "base/str.h"
#include "core/prompts.h"
#include "io/mark.h"
#include "io/proc.h"
#include "plenum/protocol.h"

#include <stdio.h>
#include <string.h>

extern char **environ;

/* Variables of systemd and of a daemon around this one: they are wrong for the child. */
static const char *const stripped[] = {
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
	NULL,
};

/* An element of the list may end with * for any text. */
static bool is_one_of(const char *variable, size_t n, const char *const *list) {
	for (; *list; list++) {
		size_t len = strlen(*list);
		bool prefix = (*list)[len - 1] == '*';
		if (prefix ? n >= len - 1 && strncmp(variable, *list, len - 1) == 0
				   : n == len && strncmp(variable, *list, n) == 0)
			return true;
	}
	return false;
}

/* Return true if this variable is removed from every child's environment (plenumd(8), ENVIRONMENT): also the markers of
 * an agent session around the daemon, of any dialect. */
static bool is_stripped(const char *variable) {
	size_t n = strcspn(variable, "=");
	for (size_t i = 0; dialect_list[i]; i++)
		if (dialect_list[i]->stripped && is_one_of(variable, n, dialect_list[i]->stripped)) return true;
	return is_one_of(variable, n, stripped);
}

void launch_move(struct launch *l, char *cwd) {
	bool fits = cwd && *cwd == '/';
	free(fits ? l->cwd : cwd);
	if (!fits) return;
	l->cwd = cwd;
	l->changes++;
}

void launch_resume(struct launch *l, char *id) {
	free(l->resume);
	l->resume = id;
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

static bool copy_words(struct words *to, const struct words *from) {
	for (size_t i = 0; i < from->n; i++)
		if (!words_add(to, from->v[i])) return false;
	return true;
}

bool launch_copy(struct launch *to, const struct launch *from) {
	*to = (struct launch){.asker = from->asker,
						  .asker_start = from->asker_start,
						  .has_argv = from->has_argv,
						  .no_asks = from->no_asks,
						  .env_only = from->env_only,
						  .uid = from->uid,
						  .umask = from->umask};
	if (from->login) to->login = login_ref(from->login);
	to->cwd = strdup(from->cwd);
	return to->cwd && copy_words(&to->args, &from->args) && copy_words(&to->env, &from->env) &&
		   copy_words(&to->argv, &from->argv);
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

/* Without branches, so that it takes little time for long words. */
static size_t length_of(const struct words *w) {
	size_t all = 0;
	for (size_t i = 0; i < w->n; i++) {
		const unsigned char *p = (const unsigned char *)w->v[i];
		size_t n = strlen(w->v[i]), more = strlen("\"\",");
		for (size_t k = 0; k < n; k++)
			more += (size_t)((p[k] == '"') | (p[k] == '\\')) +
					(size_t)((p[k] < 0x20) | (p[k] == 0x7f)) * strlen("u0000");
		all += n + more;
	}
	return all;
}

size_t launch_length(const struct launch *l) {
	return length_of(&l->args) + length_of(&l->env) + length_of(&l->argv);
}

/* --- more from a later client ------------------------------------------------------------------------------------- */

static void replace(struct words *old, struct words *new) {
	words_free(old);
	*old = *new;
	*new = (struct words){0};
}

/* Collect the words, or only the names of NAME=VALUE. */
static bool collect(struct names *set, const struct words *w, bool whole) {
	for (size_t i = 0; i < w->n; i++)
		if (!names_add(set, w->v[i], whole ? strlen(w->v[i]) : strcspn(w->v[i], "="))) return false;
	return true;
}

bool launch_has_env(const struct launch *l, const struct words *env) {
	struct names had = {0};
	bool all = collect(&had, &l->env, true);
	for (size_t i = 0; all && i < env->n; i++) all = names_have(&had, env->v[i], strlen(env->v[i]));
	names_free(&had);
	return all;
}

bool launch_bring(struct launch *l, struct launch_more *more) {
	if (more->has_env && !more->env_only) { /* complete it by the variables of the old one that it does not have */
		struct names set = {0};
		bool ok = collect(&set, &more->env, false);
		for (size_t i = 0; ok && i < l->env.n; i++)
			ok = names_have(&set, l->env.v[i], strcspn(l->env.v[i], "=")) || words_add(&more->env, l->env.v[i]);
		names_free(&set);
		if (!ok || more->env.n > LIMITS_WORDS) return false;
	}
	if (more->has_env) replace(&l->env, &more->env);
	if (more->has_args || more->has_argv) replace(&l->args, &more->args); /* argv is a whole command line */
	if (more->has_argv) replace(&l->argv, &more->argv);
	l->env_only |= more->env_only;
	l->has_argv |= more->has_argv;
	l->length = launch_length(l);
	l->changes++;
	return true;
}

/* --- which conversation ------------------------------------------------------------------------------------------- */

bool launch_asks_for(const struct launch *l, const struct dialect *d, const char *id) {
	struct dialect_claim claim = {0};
	dialect_read_claim(d, &l->args, &claim);
	dialect_read_claim(d, &l->argv, &claim);
	bool resumes = (l->resume && strcmp(l->resume, id) == 0) ||
				   (claim.resume && !claim.forks && strcmp(claim.resume, id) == 0); /* brought later */
	return (resumes && !l->fork) || (claim.fresh && strcmp(claim.fresh, id) == 0);
}

bool launch_in_doubt(const struct launch *l, const struct profile *p) {
	const struct dialect *d = p->dialect;
	struct dialect_claim claim = {0};
	if (!l->has_argv) dialect_read_claim(d, &p->command, &claim);
	if (l->resume && d->read_resume) d->read_resume(l->resume, &claim);
	dialect_read_claim(d, &l->args, &claim);
	dialect_read_claim(d, &l->argv, &claim);
	return claim.open && !claim.forks && !l->fork;
}

#define NAME_BITS 32 /* of a number; the bits above are those of the instance */

static uint64_t hash_name(const char *text, unsigned bits) {
	uint64_t h = hash_text(text, strlen(text));
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
	if (!env_value(e, "PATH")) env_put(e, "PATH=/usr/local/bin:/usr/bin:/bin");
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
	}
	put_words(e, &p->env);
	put_words(e, &l->env);
	if (!l->env_only) put_mark(e, "PWD", l->cwd);
	if (!*session) return; /* a command of the daemon, or for comparing */
	put_mark(e, PLENUM_CHILD_ENV, session);
	_cleanup_free_ char *mark = str_printf("%s.%s", l->instance ? l->instance : "none", session);
	put_mark(e, "PLENUM_INSTANCE", mark ? mark : "");
}

/* --- command line ------------------------------------------------------------------------------------------------- */

static bool add_words(struct words *out, const struct dialect *d, const struct words *more, bool later_start) {
	for (size_t i = 0; i < more->n; i++) {
		_cleanup_free_ char *rest = NULL;
		bool taken = later_start && d->skips_word && d->skips_word(more, &i, &rest);
		const char *word = taken ? rest : more->v[i];
		if (word && !words_add(out, word)) return false;
	}
	return true;
}

static bool add_with_id(struct words *out, const struct words *more, const char *id) {
	for (size_t i = 0; i < more->n; i++) {
		const char *from = more->v[i], *at = strstr(from, "{id}");
		_cleanup_free_ char *word = at ? str_printf("%.*s%s%s", (int)(at - from), from, id, at + 4) : strdup(from);
		if (!word || !words_add(out, word)) return false;
	}
	return true;
}

/* Add an id for a new conversation, if the profile has an option for it and the words have none yet. */
static bool add_new_id(struct words *out, const struct profile *p) {
	const struct dialect *d = p->dialect;
	struct dialect_claim claim = {0};
	char id[37];
	dialect_read_claim(d, out, &claim);
	if (claim.open || claim.resume || claim.fresh) return true;
	str_uuid(id);
	return add_with_id(out, &p->session_id_args, id);
}

static bool build_argv(struct words *out, const struct launch *l, const struct profile *p, const char *resume,
					   bool fork) {
	bool later = resume && !(l->resume && strcmp(l->resume, resume) == 0 && fork == l->fork);
	const struct dialect *d = p->dialect;
	bool ok;
	if (l->has_argv)
		ok = words_add(out, p->command.v[0]) && add_words(out, d, &l->argv, later) &&
			 (!d->add_flags || d->add_flags(out, l->no_asks));
	else
		ok = add_words(out, d, &p->command, false);
	ok = ok && add_words(out, d, &l->args, later);
	struct dialect_claim claim = {0};
	if (resume) dialect_read_claim(d, out, &claim);
	if (resume && !claim.resume) ok = ok && add_with_id(out, &p->resume_args, resume);
	if (fork && d->fork_flag && !words_have_flag(out, d->fork_flag)) ok = ok && words_add(out, d->fork_flag);
	return ok;
}

bool launch_put_command(struct words *out, const struct launch *l, const struct profile *p) {
	return build_argv(out, l, p, NULL, false);
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
	struct error note; /* CHILD_OK: the program, "" if its path is too long; else the cause */
};

/* Frees the request. */
static enum child_result begin(struct buf *request, struct errand_spec *spec, struct errand *e, struct children *owner,
							   void (*done)(void *arg, enum errand_end end), void *arg, struct error *error) {
	enum child_result r = CHILD_TRANSIENT;
	spec->kind = LAUNCH_ERRAND;
	spec->request = request->data;
	spec->n = request->len;
	spec->step = sizeof(struct said);
	spec->answer_max = (size_t)8 * 1024 * 1024;
	if (request->failed)
		error_set(error, "out of memory");
	else
		r = errand_begin(e, owner, spec, done, arg, error);
	buf_free(request);
	return r;
}

enum child_result launch_begin_command(const struct words *argv, const struct words *env, int64_t limit,
									   struct errand *e, struct child *c, struct children *owner,
									   void (*done)(void *arg, enum errand_end end), void *arg, struct error *error) {
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
							   void (*done)(void *arg, enum errand_end end), void *arg, struct error *error) {
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
	if (file && strlen(file) < sizeof said.note.text) strcpy(said.note.text, file);
	errand_say(&said, sizeof said);
	if (said.login) errand_say(j->told.data, said.login);
}

static const char *hint_for(const struct job *j, const char *named) {
	if (!*j->profile.name) return NULL; /* a command of the daemon */
	if (named) return "PLENUM_CLAUDE names it: correct or unset this variable";
	return strcmp(j->profile.name, "claude") == 0
			   ? "install Claude Code, or write its full path as `command` in [profile claude]; the profile fake is a "
				 "scripted agent to try Plenum with"
			   : "write its full path as `command` in the profile";
}

int launch_errand(void) {
	struct job j = {.told = BUF_INIT(UINT32_MAX / 2)};
	struct env env = {0};
	struct said said = {.result = CHILD_TRANSIENT, .note = {"out of memory"}};
	size_t n;
	char *request = errand_request(&n); /* lives until the exec, or the end */
	if (request && read_request(&j, request, request + n)) {
		renew_login(&j);
		build_env(&env, &j.launch, &j.profile, j.session);
		if (!env.w.v) env.w.v = calloc(1, sizeof *env.w.v);
		const char *variable = login_variable_of(j.profile.name), *named = variable ? env_value(&env, variable) : NULL;
		if (named && !*named) named = NULL;
		if (named) j.argv.v[0] = (char *)(uintptr_t)named;
		struct child_spec spec = {.argv = j.argv.v,
								  .envp = env.w.v,
								  .cwd = j.launch.cwd,
								  .more_path = env.more_path,
								  .hint = hint_for(&j, named),
								  .add_user = !j.launch.env_only && *j.session};
		on_found(&j, &said.place, NULL); /* from here on it uses the directory */
		if (j.launch.umask) umask((mode_t)j.launch.umask - 1);
		if (env.w.v && !env.failed) said.result = (int32_t)child_become(&spec, on_found, &j, &said.note);
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

/* Without a report it still reads the environment of the asker. */
static void explain_timeout(const struct launch *l, const struct errand *e, struct error *error) {
	if (l && l->asker && e->answer.len < sizeof(struct said))
		error_set(error,
				  "no start in time: process %d, which asked for it, does not show its environment (outside_timeout; "
				  "does it hang?)",
				  (int)l->asker);
	else
		error_set(error,
				  "no start in time: directory %s, or the program, does not answer (outside_timeout; is it on a mount "
				  "whose server is gone?)",
				  l ? l->cwd : "/");
}

enum child_result launch_result(const struct launch *l, const struct errand *e, enum errand_end end,
								struct child_place *place, struct login **login, struct error *error) {
	struct said said;
	*place = (struct child_place){0};
	if (login) *login = NULL;
	if (end == ERRAND_TIMEOUT) {
		explain_timeout(l, e, error);
		return CHILD_TIMEOUT;
	}
	if (end == ERRAND_LOST || !read_said(&e->answer, &said, login)) {
		error_set(error, "the start ended before it came to the program");
		return CHILD_TRANSIENT;
	}
	*place = said.place;
	error_set(error, "%.*s", (int)sizeof said.note.text - 1, said.note.text);
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
