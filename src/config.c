/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "base/log.h"
#include "base/paths.h"
#include "base/str.h"
#include "core/rules.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <ini.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* inih as the distributions build it has a line buffer of 200 bytes, no line numbers for its handler, and inline
 * comments that know nothing of quotes. The reader below mends all three: it counts lines, hands a long line over in
 * pieces (the later ones as continuation lines, which inih gives to the handler under the same name), and takes
 * comments away itself. */
#define PIECE 150       /* fits every inih; short enough for the blank and the LF that are added */
#define HIDDEN ';'      /* what inih must not see ... */
#define STAND_IN '\x01' /* ... and what stands in its place */
#define SECTION_MAX 48  /* inih cuts longer ones without a word */
#define PROFILE_NAME_MAX 40

enum kind {
	KIND_PATH,
	KIND_SOCKET,
	KIND_NAME,
	KIND_LEVEL,
	KIND_COUNT,
	KIND_SIZE,
	KIND_TIME,   /* `never` is allowed */
	KIND_FINITE, /* a time without `never` */
	KIND_YESNO,
	KIND_WORDS,
	KIND_COMMAND,
	KIND_ENV,
	KIND_NAMES,
	KIND_ID_ARGS,
	KIND_RULES_ALLOW,
	KIND_RULES,
	KIND_UIDS,
	KIND_GIDS,
	KIND_CHOICE, /* first word: false, second: true */
	KIND_DIALECT,
};

struct key {
	const char *name;
	enum kind kind;
	size_t offset;     /* in struct settings or struct profile */
	uint64_t min, max; /* counts, sizes */
	const char *words[2];
};

#define S(member) offsetof(struct settings, member)
#define P(member) offsetof(struct profile, member)
#define KIB ((uint64_t)1024)
#define GIB (KIB * KIB * KIB)

static const struct key daemon_keys[] = {
	{"socket", KIND_SOCKET, S(socket)},
	{"state_dir", KIND_PATH, S(state_dir)},
	{"default_profile", KIND_NAME, S(default_profile)},
	{"log_level", KIND_LEVEL, S(log_level)},
	{"max_sessions", KIND_COUNT, S(max_sessions), 1, 1000000},
	{"max_children", KIND_COUNT, S(max_children), 1, 100000},
	{"max_clients", KIND_COUNT, S(max_clients), 1, 1000000},
	{"allow_uids", KIND_UIDS, S(allow)},
	{"allow_groups", KIND_GIDS, S(allow)},
	{"approve_uids", KIND_UIDS, S(approve)},
	{"approve_groups", KIND_GIDS, S(approve)},
	{"on_pending", KIND_WORDS, S(on_pending)},
	{"memory_pressure", KIND_YESNO, S(memory_pressure)},
	{0},
};

static const struct key limit_keys[] = {
	{"child_line", KIND_SIZE, S(limits.child_line), 4 * KIB, GIB},
	{"client_line", KIND_SIZE, S(limits.client_line), 4 * KIB, GIB},
	{"tape_bytes", KIND_SIZE, S(limits.tape_bytes), 4 * KIB, 64 * GIB},
	{"tape_lines", KIND_COUNT, S(limits.tape_lines), 1, 100000000},
	{"stdin_queue", KIND_SIZE, S(limits.stdin_queue), 4 * KIB, 4 * GIB},
	{"client_lag_soft", KIND_SIZE, S(limits.client_lag_soft), 4 * KIB, 64 * GIB},
	{"client_lag_soft_time", KIND_TIME, S(limits.client_lag_soft_time)},
	{"lag_wait", KIND_FINITE, S(limits.lag_wait)},
	{"max_pending", KIND_COUNT, S(limits.max_pending), 1, 1000000},
	{"max_calls", KIND_COUNT, S(limits.max_calls), 1, 1000000},
	{0},
};

static const struct key profile_keys[] = {
	{"command", KIND_COMMAND, P(command)},
	{"dialect", KIND_DIALECT, P(dialect)},
	{"cwd", KIND_PATH, P(cwd)},
	{"env", KIND_ENV, P(env)},
	{"pass_env", KIND_NAMES, P(pass_env)},
	{"private", KIND_YESNO, P(is_private)},
	{"resume_args", KIND_ID_ARGS, P(resume_args)},
	{"session_id_args", KIND_ID_ARGS, P(session_id_args)},
	{"allow_tools", KIND_RULES_ALLOW, P(allow_tools)},
	{"deny_tools", KIND_RULES, P(deny_tools)},
	{"ask_tools", KIND_RULES, P(ask_tools)},
	{"permission_wait", KIND_TIME, P(permission_wait)},
	{"owner_grace", KIND_TIME, P(owner_grace)},
	{"control_timeout", KIND_TIME, P(control_timeout)},
	{"idle_sleep", KIND_TIME, P(idle_sleep)},
	{"stop_grace", KIND_FINITE, P(stop_grace)},
	{"prompts", KIND_CHOICE, P(prompts_queue), .words = {"pass", "queue"}},
	{"restart", KIND_CHOICE, P(restart_never), .words = {"on-demand", "never"}},
	{"stdout", KIND_CHOICE, P(stdout_pipe), .words = {"socket", "pipe"}},
	{"warm", KIND_COUNT, P(warm), 0, 64},
	{0},
};

enum section { SECTION_NONE, SECTION_DAEMON, SECTION_LIMITS, SECTION_PROFILE };

/* One run of config_load(). */
struct loader {
	struct settings *s;
	char *error; /* CONFIG_ERROR_MAX bytes */
	bool failed;
	int failed_line;
	const char *default_file; /* where default_profile was given */
	int default_line;

	/* the file being read */
	const char *file;
	FILE *stream;
	char *text; /* the line in hand, with capacity and how much of it inih has got */
	size_t cap, len, given;
	bool piece; /* what inih got last was a later piece of a long line */
	int line;
	int *line_of; /* by number of reader calls: the line of the file */
	size_t n_calls, cap_calls;

	/* where in it */
	enum section section;
	size_t profile; /* index */
	char section_name[SECTION_MAX + 1];
	struct words seen; /* "SECTION\nKEY" of this file */

	/* the member in hand, complete when the next one starts */
	const struct key *key;
	int key_line;
	struct buf value;
};

PRINTF_LIKE(3, 4) static bool fail(struct loader *l, int line, const char *fmt, ...) {
	if (l->failed) return false;
	char what[CONFIG_ERROR_MAX];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	struct buf b = BUF_INIT(4 * CONFIG_ERROR_MAX);
	if (line > 0)
		buf_printf(&b, "%s:%d: ", l->file, line);
	else if (l->file)
		buf_printf(&b, "%s: ", l->file);
	str_put_safe(&b, what, strlen(what));
	snprintf(l->error, CONFIG_ERROR_MAX, "%s", b.data ? b.data : "out of memory");
	buf_free(&b);
	l->failed = true;
	l->failed_line = line;
	return false;
}

static bool fail_memory(struct loader *l) {
	return fail(l, 0, "out of memory");
}

/* --- Values ------------------------------------------------------------------------------------------------------ */

static bool take_text(struct loader *l, char **to, const char *text) {
	char *copy = strdup(text);
	if (!copy) return fail_memory(l);
	free(*to);
	*to = copy;
	return true;
}

static char *expand_home(const char *text) {
	_cleanup_free_ char *home = strncmp(text, "~/", 2) == 0 ? path_home() : NULL;
	return home ? str_printf("%s%s", home, text + 1) : strdup(text);
}

static bool set_path(struct loader *l, char **to, const char *value) {
	_cleanup_free_ char *path = expand_home(value);
	if (!path) return fail_memory(l);
	if (*path != '/')
		return fail(l, l->key_line, "%s = %s: write an absolute path, or one that begins with ~/", l->key->name, value);
	const char *why = NULL;
	if (l->key->kind == KIND_SOCKET && !path_socket_check(path, &why))
		return fail(l, l->key_line, "%s = %s: %s", l->key->name, value, why);
	return take_text(l, to, path);
}

static bool set_name(struct loader *l, char **to, const char *value) {
	if (!*value) return fail(l, l->key_line, "%s is empty: write the name of a profile", l->key->name);
	l->default_file = l->file;
	l->default_line = l->key_line;
	return take_text(l, to, value);
}

static bool set_level(struct loader *l, int *to, const char *value) {
	enum log_level level;
	if (!log_level_parse(value, &level))
		return fail(l, l->key_line, "%s = %s: write error, warn, info or debug", l->key->name, value);
	*to = (int)level;
	return true;
}

static bool set_count(struct loader *l, size_t *to, const char *value) {
	uint64_t n;
	if (!str_u64(value, l->key->min, l->key->max, &n))
		return fail(l, l->key_line, "%s = %s: write a whole number from %ju to %ju", l->key->name, value,
					(uintmax_t)l->key->min, (uintmax_t)l->key->max);
	*to = (size_t)n;
	return true;
}

static void put_size(char *out, size_t n, uint64_t size) {
	const char *unit = size % GIB == 0 ? "G" : size % (KIB * KIB) == 0 ? "M" : "K";
	snprintf(out, n, "%ju%s",
			 (uintmax_t)(*unit == 'G'   ? size / GIB
						 : *unit == 'M' ? size / KIB / KIB
										: size / KIB),
			 unit);
}

static bool set_size(struct loader *l, size_t *to, const char *value) {
	char min[32], max[32];
	size_t n;
	if (str_size(value, &n) && n >= l->key->min && n <= l->key->max) {
		*to = n;
		return true;
	}
	put_size(min, sizeof min, l->key->min);
	put_size(max, sizeof max, l->key->max);
	return fail(l, l->key_line, "%s = %s: write a size from %s to %s, such as 64K, 16M or 1G", l->key->name, value, min,
				max);
}

static bool set_time(struct loader *l, int64_t *to, const char *value) {
	bool finite = l->key->kind == KIND_FINITE;
	int64_t ms;
	if (!str_time(value, &ms) || (finite && ms == SETTINGS_NEVER))
		return fail(l, l->key_line, "%s = %s: write a time such as 500ms, 30s, 5min or 2h%s", l->key->name, value,
					finite ? "" : ", or never");
	*to = ms;
	return true;
}

/* words[0] is false, words[1] is true. */
static bool set_choice(struct loader *l, bool *to, const char *value, const char *no, const char *yes) {
	if (strcmp(value, no) != 0 && strcmp(value, yes) != 0)
		return fail(l, l->key_line, "%s = %s: write %s or %s", l->key->name, value, no, yes);
	*to = strcmp(value, yes) == 0;
	return true;
}

static bool set_dialect(struct loader *l, char **to, const char *value) {
	if (strcmp(value, "claude") != 0)
		return fail(l, l->key_line, "dialect = %s: this version speaks one dialect: write claude, or leave the key out",
					value);
	return take_text(l, to, value);
}

/* --- Values that are lists --------------------------------------------------------------------------------------- */

static bool is_env_name(const char *p, size_t n) {
	for (size_t i = 0; i < n; i++) {
		bool letter = (p[i] >= 'A' && p[i] <= 'Z') || (p[i] >= 'a' && p[i] <= 'z') || p[i] == '_';
		if (!letter && !(i && p[i] >= '0' && p[i] <= '9')) return false;
	}
	return n > 0;
}

static bool check_env(struct loader *l, const char *word) {
	const char *equals = strchr(word, '=');
	if (equals && is_env_name(word, (size_t)(equals - word))) return true;
	return fail(l, l->key_line, "%s: \"%s\" is not NAME=VALUE: quote a value that holds blanks, as in A=\"b c\"",
				l->key->name, word);
}

static bool check_name(struct loader *l, const char *word) {
	if (strcmp(word, "*") == 0 || is_env_name(word, strlen(word))) return true;
	return fail(l, l->key_line, "%s: \"%s\" is no name of a variable: write names, or * for all", l->key->name, word);
}

static bool check_rule(struct loader *l, const char *rule) {
	const char *wrong = rules_check(rule, l->key->kind == KIND_RULES_ALLOW);
	return !wrong || fail(l, l->key_line, "%s: rule \"%s\": %s", l->key->name, rule, wrong);
}

static bool check_command(struct loader *l, struct words *w) {
	if (!w->n || !*w->v[0])
		return fail(l, l->key_line, "%s is empty: write the program and its arguments", l->key->name);
	char *program = expand_home(w->v[0]);
	if (!program) return fail_memory(l);
	free(w->v[0]);
	w->v[0] = program;
	if (*program == '/' || !strchr(program, '/')) return true;
	return fail(l, l->key_line, "%s: \"%s\" depends on the folder: write an absolute path, or a name that is in PATH",
				l->key->name, program);
}

static bool check_id_args(struct loader *l, const struct words *w) {
	for (size_t i = 0; i < w->n; i++)
		if (strstr(w->v[i], "{id}")) return true;
	return !w->n ||
		   fail(l, l->key_line, "%s holds no {id}: write {id} where the conversation id belongs", l->key->name);
}

static bool check_words(struct loader *l, struct words *w) {
	enum kind kind = l->key->kind;
	if (kind == KIND_COMMAND || (kind == KIND_WORDS && w->n)) return check_command(l, w);
	if (kind == KIND_ID_ARGS) return check_id_args(l, w);
	for (size_t i = 0; i < w->n; i++) {
		bool ok = kind == KIND_ENV ? check_env(l, w->v[i]) : kind == KIND_NAMES ? check_name(l, w->v[i]) : true;
		if (kind == KIND_RULES || kind == KIND_RULES_ALLOW) ok = check_rule(l, w->v[i]);
		if (!ok) return false;
	}
	return true;
}

static bool split_value(struct loader *l, struct words *w, const char *value) {
	const char *why = NULL;
	if (l->key->kind == KIND_RULES || l->key->kind == KIND_RULES_ALLOW) return rules_split(value, w) || fail_memory(l);
	return words_split(w, value, &why) || fail(l, l->key_line, "%s: %s", l->key->name, why);
}

static bool set_words(struct loader *l, struct words *to, const char *value) {
	struct words w = {0};
	if (!split_value(l, &w, value) || !check_words(l, &w)) {
		words_free(&w);
		return false;
	}
	words_free(to);
	*to = w;
	return true;
}

static bool find_id(bool group, const char *word, uint32_t *id) {
	uint64_t n;
	if (str_u64(word, 0, UINT32_MAX - 1, &n)) {
		*id = (uint32_t)n;
		return true;
	}
	const struct group *g = group ? getgrnam(word) : NULL;
	const struct passwd *pw = group ? NULL : getpwnam(word);
	if (g) *id = g->gr_gid;
	if (pw) *id = pw->pw_uid;
	return g || pw;
}

_Static_assert(sizeof(uid_t) == sizeof(uint32_t) && sizeof(gid_t) == sizeof(uint32_t), "ids are 32 bits");

static bool read_ids(struct loader *l, const struct words *w, uint32_t *ids) {
	bool group = l->key->kind == KIND_GIDS;
	for (size_t i = 0; i < w->n; i++)
		if (!find_id(group, w->v[i], &ids[i]))
			return fail(l, l->key_line, "%s: there is no %s \"%s\": write names or numbers, with blanks between them",
						l->key->name, group ? "group" : "user", w->v[i]);
	return true;
}

static bool set_ids(struct loader *l, struct access *a, const char *value) {
	struct words w = {0};
	const char *why = NULL;
	_cleanup_free_ char *text = strdup(value);
	for (char *p = text; p && *p; p++)
		if (*p == ',') *p = ' ';
	if (!text || !words_split(&w, text, &why))
		return fail(l, l->key_line, "%s: %s", l->key->name, why ? why : "memory");
	uint32_t *ids = calloc(w.n + 1, sizeof *ids);
	bool ok = ids ? read_ids(l, &w, ids) : fail_memory(l);
	size_t n = w.n;
	words_free(&w);
	if (!ok) {
		free(ids);
		return false;
	}
	uint32_t **to = l->key->kind == KIND_GIDS ? &a->gids : &a->uids;
	free(*to);
	*to = ids;
	*(l->key->kind == KIND_GIDS ? &a->n_gids : &a->n_uids) = n;
	return true;
}

static bool set_value(struct loader *l, void *to, const char *value) {
	switch (l->key->kind) {
	case KIND_PATH:
	case KIND_SOCKET:
		return set_path(l, to, value);
	case KIND_NAME:
		return set_name(l, to, value);
	case KIND_LEVEL:
		return set_level(l, to, value);
	case KIND_COUNT:
		return set_count(l, to, value);
	case KIND_SIZE:
		return set_size(l, to, value);
	case KIND_TIME:
	case KIND_FINITE:
		return set_time(l, to, value);
	case KIND_YESNO:
		return set_choice(l, to, value, "no", "yes");
	case KIND_CHOICE:
		return set_choice(l, to, value, l->key->words[0], l->key->words[1]);
	case KIND_DIALECT:
		return set_dialect(l, to, value);
	case KIND_UIDS:
	case KIND_GIDS:
		return set_ids(l, to, value);
	case KIND_WORDS:
	case KIND_COMMAND:
	case KIND_ENV:
	case KIND_NAMES:
	case KIND_ID_ARGS:
	case KIND_RULES_ALLOW:
	case KIND_RULES:
		return set_words(l, to, value);
	}
	return false;
}

/* --- Sections and members ---------------------------------------------------------------------------------------- */

static const struct key *section_keys(enum section section) {
	return section == SECTION_DAEMON ? daemon_keys : section == SECTION_LIMITS ? limit_keys : profile_keys;
}

static const struct key *find_key(const struct key *keys, const char *name, size_t n) {
	for (; keys->name; keys++)
		if (strlen(keys->name) == n && memcmp(keys->name, name, n) == 0) return keys;
	return NULL;
}

/* The member in hand is complete. */
static bool finish_member(struct loader *l) {
	if (!l->key || l->failed) return !l->failed;
	char *base = l->section == SECTION_PROFILE ? (char *)&l->s->profiles[l->profile] : (char *)l->s;
	if (l->value.failed) return fail_memory(l);
	bool ok = set_value(l, base + l->key->offset, l->value.data ? l->value.data : "");
	if (l->key->offset == P(warm) && l->section == SECTION_PROFILE) {
		l->s->profiles[l->profile].warm_file = l->file;
		l->s->profiles[l->profile].warm_line = l->key_line;
	}
	l->key = NULL;
	return ok;
}

static bool check_profile_name(struct loader *l, const char *name) {
	size_t n = strlen(name);
	for (size_t i = 0; i < n; i++)
		if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-", name[i])) n = 0;
	if (n && n <= PROFILE_NAME_MAX) return true;
	return fail(l, l->line, "[profile %s]: write a name of 1 to %d letters, digits, dots, dashes and underscores", name,
				PROFILE_NAME_MAX);
}

static bool enter_profile(struct loader *l, const char *name) {
	if (!check_profile_name(l, name)) return false;
	const struct profile *have = settings_profile(l->s, name);
	if (!have) {
		struct profile *p = settings_add_profile(l->s, name);
		if (!p) return fail_memory(l);
		p->file = l->file;
		p->line = l->line;
		have = p;
	}
	l->profile = (size_t)(have - l->s->profiles);
	l->section = SECTION_PROFILE;
	return true;
}

static bool enter_section(struct loader *l, const char *name) {
	if (!finish_member(l)) return false;
	snprintf(l->section_name, sizeof l->section_name, "%s", name);
	if (strcmp(name, "daemon") == 0)
		l->section = SECTION_DAEMON;
	else if (strcmp(name, "limits") == 0)
		l->section = SECTION_LIMITS;
	else if (strncmp(name, "profile ", 8) == 0)
		return enter_profile(l, name + 8 + strspn(name + 8, " \t"));
	else
		return fail(l, l->line, "there is no section [%s]: write [daemon], [limits] or [profile NAME]", name);
	return true;
}

static bool first_time(struct loader *l, const char *name) {
	_cleanup_free_ char *member = str_printf("%s\n%s", l->section_name, name);
	if (!member) return fail_memory(l);
	for (size_t i = 0; i < l->seen.n; i++)
		if (strcmp(l->seen.v[i], member) == 0)
			return fail(l, l->line, "%s is given twice in [%s] of this file: keep one of the two lines", name,
						l->section_name);
	return words_add(&l->seen, member) || fail_memory(l);
}

/* The names that a section knows, for the message. */
static bool fail_key(struct loader *l, const char *name) {
	char known[CONFIG_ERROR_MAX] = "";
	size_t at = 0;
	for (const struct key *k = section_keys(l->section); k->name && at < sizeof known; k++)
		at += (size_t)snprintf(known + at, sizeof known - at, "%s%s", at ? ", " : "", k->name);
	return fail(l, l->line, "there is no key \"%s\" in [%s]; its keys are: %s", name, l->section_name, known);
}

static bool start_member(struct loader *l, const char *name, const char *value) {
	if (!finish_member(l)) return false;
	if (l->section == SECTION_NONE)
		return fail(l, l->line, "\"%s\" stands before any section: write [daemon], [limits] or [profile NAME] above it",
					name);
	const struct key *key = find_key(section_keys(l->section), name, strlen(name));
	if (!key) return fail_key(l, name);
	if (!first_time(l, name)) return false;
	l->key = key;
	l->key_line = l->line;
	l->value.len = 0;
	buf_puts(&l->value, value);
	return true;
}

/* A line that begins with a blank continues the one above; one that looks like a key of its own is a mistake. */
static bool continue_member(struct loader *l, const char *more) {
	size_t n = strcspn(more, " \t=:");
	const char *after = more + n + strspn(more + n, " \t");
	if (*after == '=' && find_key(section_keys(l->section), more, n))
		return fail(l, l->line,
					"a line that begins with a blank continues the one above: begin \"%.*s\" in the first "
					"column",
					(int)n, more);
	buf_putc(&l->value, ' ');
	buf_puts(&l->value, more);
	return true;
}

static int on_member(void *arg, const char *section UNUSED, const char *name, const char *value) {
	struct loader *l = arg;
	if (l->failed) return 0;
	_cleanup_free_ char *text = strdup(value ? value : "");
	if (!text) return fail_memory(l);
	for (char *p = text; (p = strchr(p, STAND_IN));) *p = HIDDEN;
	if (l->piece && l->key) return buf_puts(&l->value, text) || fail_memory(l);
	bool indented = l->text[0] == ' ' || l->text[0] == '\t';
	if (indented && l->key) return continue_member(l, text);
	return start_member(l, name, text);
}

/* --- The reader -------------------------------------------------------------------------------------------------- */

/* Takes a comment behind a value away: a ; after a blank, outside of quotes. Every other ; is hidden from inih. */
static void strip_comment(char *text) {
	char quote = 0;
	for (char *p = text; *p; p++) {
		if (quote != '\'' && *p == '\\' && p[1] && p[1] != HIDDEN)
			p++;
		else if (quote)
			quote = *p == quote ? 0 : quote;
		else if (*p == '\'' || *p == '"')
			quote = *p;
		else if (*p == HIDDEN && p > text && (p[-1] == ' ' || p[-1] == '\t')) {
			*p = 0;
			return;
		}
		if (*p == HIDDEN) *p = STAND_IN;
	}
}

static bool read_section(struct loader *l, char *start) {
	char *end = strchr(start, ']');
	if (!end) return fail(l, l->line, "a section has no closing bracket: write [NAME]");
	if (end - start - 1 > SECTION_MAX) return fail(l, l->line, "the section's name is too long");
	char name[SECTION_MAX + 1];
	snprintf(name, sizeof name, "%.*s", (int)(end - start - 1), start + 1);
	return enter_section(l, name);
}

/* The next line of the file, ready to be handed out. */
static bool next_line(struct loader *l) {
	ssize_t n = getline(&l->text, &l->cap, l->stream);
	if (n < 0) return false;
	l->line++;
	if (memchr(l->text, 0, (size_t)n) || memchr(l->text, STAND_IN, (size_t)n))
		return fail(l, l->line, "the line holds a control character: this is no text file");
	l->text[strcspn(l->text, "\r\n")] = 0;
	char *start = l->text + strspn(l->text, " \t");
	if (l->line == 1 && strncmp(start, "\xef\xbb\xbf", 3) == 0) start += 3;
	if (*start == '[' && !read_section(l, start)) return false;
	if (*start && !strchr(";#[", *start)) strip_comment(start);
	l->len = strlen(l->text);
	while (l->len && strchr(" \t", l->text[l->len - 1])) l->len--;
	l->text[l->len] = 0;
	l->given = 0;
	return true;
}

/* Where a long line may be cut so that inih, which takes blanks away at both ends, and comments, loses nothing. */
static size_t cut_at(const struct loader *l) {
	const char *p = l->text + l->given;
	size_t n = l->len - l->given;
	if (n <= PIECE) return n;
	for (n = PIECE; n > 60; n--)
		if (!strchr(" \t", p[n - 1]) && !strchr(" \t;#[", p[n])) return n;
	return 0;
}

static bool count_call(struct loader *l) {
	if (l->n_calls == l->cap_calls) {
		size_t cap = l->cap_calls * 2 + 64;
		int *more = realloc(l->line_of, cap * sizeof *more);
		if (!more) return fail_memory(l);
		l->line_of = more;
		l->cap_calls = cap;
	}
	l->line_of[l->n_calls++] = l->line;
	return true;
}

static char *read_piece(char *out, int room, void *arg) {
	struct loader *l = arg;
	bool later = l->text && l->given < l->len;
	if (l->failed || (!later && !next_line(l))) return NULL;
	bool comment = strchr(";#", l->text[strspn(l->text, " \t")]) != NULL;
	if (comment) l->len = 0;
	size_t n = cut_at(l);
	if (room < PIECE + 3 || (!n && l->len)) {
		fail(l, l->line, "the line has too many blanks in a row to be read");
		return NULL;
	}
	snprintf(out, (size_t)room, "%s%.*s\n", later ? " " : "", (int)n, l->text + l->given);
	l->given += n;
	l->piece = later;
	return count_call(l) ? out : NULL;
}

/* --- Files ------------------------------------------------------------------------------------------------------- */

/* Whoever can write the file can run programs as us. */
static bool check_owner(struct loader *l, bool named) {
	struct stat st;
	if (fstat(fileno(l->stream), &st) < 0) return fail(l, 0, "%s", strerror(errno));
	if (S_ISDIR(st.st_mode)) return fail(l, 0, "this is a folder: name a file");
	if (S_ISREG(st.st_mode) && (st.st_mode & S_IWOTH))
		return fail(l, 0, "everybody may write this file, so everybody could run programs through it: chmod o-w");
	if (!named && st.st_uid != 0 && st.st_uid != geteuid())
		return fail(l, 0, "this file belongs to uid %u, neither to root nor to you: chown it", st.st_uid);
	return true;
}

static bool parse_stream(struct loader *l) {
	int rc = ini_parse_stream(read_piece, l, on_member, l);
	if (!l->failed) finish_member(l);
	int line = rc > 0 && (size_t)rc <= l->n_calls ? l->line_of[rc - 1] : 0;
	if (line && (!l->failed || (l->failed_line > line))) {
		l->failed = false;
		fail(l, line, "this is neither a section nor a member: write [SECTION] or KEY = VALUE");
	}
	return !l->failed;
}

static void forget_file(struct loader *l) {
	fclose(l->stream);
	free(l->text);
	free(l->line_of);
	words_free(&l->seen);
	l->text = NULL;
	l->line_of = NULL;
	l->cap = l->len = l->given = l->n_calls = l->cap_calls = 0;
	l->line = 0;
	l->piece = false;
	l->section = SECTION_NONE;
	l->key = NULL;
}

static bool load_file(struct loader *l, const char *path, bool named) {
	FILE *stream = fopen(path, "re");
	if (!stream && errno == ENOENT && !named) return true;
	l->file = path;
	if (!stream) return fail(l, 0, "%s", strerror(errno));
	l->stream = stream;
	bool ok = words_add(&l->s->files, path) || fail_memory(l);
	if (ok) l->file = l->s->files.v[l->s->files.n - 1];
	ok = ok && check_owner(l, named) && parse_stream(l);
	forget_file(l);
	return ok;
}

static int is_dropin(const struct dirent *e) {
	size_t n = strlen(e->d_name);
	return e->d_name[0] != '.' && n > 5 && strcmp(e->d_name + n - 5, ".conf") == 0;
}

static int by_bytes(const struct dirent **a, const struct dirent **b) {
	return strcmp((*a)->d_name, (*b)->d_name);
}

static bool load_dropins(struct loader *l, const char *dir) {
	struct dirent **names = NULL;
	int n = scandir(dir, &names, is_dropin, by_bytes);
	bool ok = true;
	if (n < 0 && errno != ENOENT && errno != ENOTDIR) {
		l->file = dir;
		ok = fail(l, 0, "%s", strerror(errno));
		l->file = NULL;
	}
	for (int i = 0; i < n; i++) {
		_cleanup_free_ char *path = str_printf("%s/%s", dir, names[i]->d_name);
		ok = ok && (path ? load_file(l, path, false) : fail_memory(l));
		free(names[i]);
	}
	free(names);
	return ok;
}

static bool load_folder(struct loader *l, const char *dir, const char *file, bool named) {
	_cleanup_free_ char *path = file ? strdup(file) : str_printf("%s/plenum.conf", dir);
	_cleanup_free_ char *dropins = str_printf("%s/plenum.conf.d", dir);
	if (!path || !dropins) return fail_memory(l);
	return load_file(l, path, named) && load_dropins(l, dropins);
}

static bool load_named(struct loader *l, const char *file) {
	const char *slash = strrchr(file, '/');
	_cleanup_free_ char *dir = slash ? strndup(file, MAX((size_t)(slash - file), (size_t)1)) : strdup(".");
	if (!dir) return fail_memory(l);
	return load_folder(l, dir, file, true);
}

static bool load_usual(struct loader *l) {
	if (!load_folder(l, "/etc/plenum", NULL, false)) return false;
	_cleanup_free_ char *home = path_config_home();
	if (!home) return true;
	_cleanup_free_ char *dir = str_printf("%s/plenum", home);
	return dir ? load_folder(l, dir, NULL, false) : fail_memory(l);
}

/* --- The whole --------------------------------------------------------------------------------------------------- */

static bool check_default(struct loader *l) {
	char known[200] = "";
	size_t at = 0;
	if (!l->s->default_profile || settings_profile(l->s, l->s->default_profile)) return true;
	for (size_t i = 0; i < l->s->n_profiles && at < sizeof known; i++)
		at += (size_t)snprintf(known + at, sizeof known - at, "%s%s", at ? ", " : "", l->s->profiles[i].name);
	l->file = l->default_file;
	return fail(l, l->default_line, "default_profile = %s: there is no [profile %s]; there are: %s",
				l->s->default_profile, l->s->default_profile, known);
}

/* A spare is started before anybody says where. */
static bool check_warm(struct loader *l, const struct profile *p) {
	if (!p->warm || p->cwd) return true;
	l->file = p->warm_file;
	return fail(l, p->warm_line,
				"warm = %zu needs a cwd in [profile %s]: children are started there before anybody asks for one",
				p->warm, p->name);
}

static bool check_whole(struct loader *l) {
	for (size_t i = 0; i < l->s->n_profiles; i++) {
		const struct profile *p = &l->s->profiles[i];
		if (!check_warm(l, p)) return false;
		if (p->command.n) continue;
		l->file = p->file;
		return fail(l, p->line, "[profile %s] has no command: write command = PROGRAM and its arguments", p->name);
	}
	return check_default(l);
}

struct settings *config_load(const char *file, char *error) {
	struct loader l = {.error = error, .value = BUF_INIT((size_t)1 << 30)};
	*error = 0;
	l.s = settings_new();
	bool ok = l.s ? (file ? load_named(&l, file) : load_usual(&l)) : fail_memory(&l);
	ok = ok && check_whole(&l);
	buf_free(&l.value);
	if (ok) return l.s;
	settings_unref(l.s);
	return NULL;
}
