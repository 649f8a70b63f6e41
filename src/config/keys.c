/* SPDX-License-Identifier: MIT */
#include "config/keys.h"

#include "base/log.h"
#include "base/paths.h"
#include "base/str.h"
#include "core/rules.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* --- The tables --------------------------------------------------------------------------------------------------- */

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
	{"on_pending", KIND_WORDS, S(on[ALERT_PENDING])},
	{"on_turn_end", KIND_WORDS, S(on[ALERT_TURN_END])},
	{"on_failed", KIND_WORDS, S(on[ALERT_FAILED])},
	{"on_stalled", KIND_WORDS, S(on[ALERT_STALLED])},
	{"notify_interval", KIND_FINITE, S(notify_interval)},
	{"notify_limit", KIND_TIME, S(notify_limit)},
	{"outside_timeout", KIND_FINITE, S(outside_timeout)},
	{"memory_pressure", KIND_YESNO, S(memory_pressure)},
	{"log_commands", KIND_YESNO, S(log_commands)},
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
	{"uid_sessions", KIND_COUNT, S(limits.uid_sessions), 0, 1000000},
	{"uid_clients", KIND_COUNT, S(limits.uid_clients), 0, 1000000},
	{"uid_bytes", KIND_SIZE, S(limits.uid_bytes), 64 * KIB, 64 * GIB},
	{"uid_requests", KIND_COUNT, S(limits.uid_requests), 0, 1000000},
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
	{"stall_after", KIND_TIME, P(stall_after)},
	{"stop_grace", KIND_FINITE, P(stop_grace)},
	{"prompts", KIND_CHOICE, P(prompts_queue), .words = {"pass", "queue"}},
	{"restart", KIND_CHOICE, P(restart_never), .words = {"on-demand", "never"}},
	{"stdout", KIND_CHOICE, P(stdout_pipe), .words = {"socket", "pipe"}},
	{"agent_peers", KIND_CHOICE, P(agent_peers_none), .words = {"own-session", "none"}},
	{"leftovers", KIND_CHOICE, P(leftovers_end), .words = {"keep", "end"}},
	{"warm", KIND_COUNT, P(warm), 0, 64},
	{0},
};

static const struct key *table_of(enum keys_section section) {
	return section == KEYS_DAEMON ? daemon_keys : section == KEYS_LIMITS ? limit_keys : profile_keys;
}

const struct key *keys_find(enum keys_section section, const char *name, size_t n) {
	for (const struct key *k = table_of(section); k->name; k++)
		if (strlen(k->name) == n && memcmp(k->name, name, n) == 0) return k;
	return NULL;
}

void keys_list(enum keys_section section, struct buf *out) {
	for (const struct key *k = table_of(section); k->name; k++) buf_printf(out, "%s%s", out->len ? ", " : "", k->name);
}

/* --- Values ------------------------------------------------------------------------------------------------------ */

/* The current value. */
struct value {
	const struct key *key;
	const char *text;
	struct place at;
	struct errors *errors;
	void *base; /* the struct that has the key */
};
#define wrong(v, ...) errors_add((v)->errors, (v)->at, __VA_ARGS__)

static bool take_text(const struct value *v, char **to, const char *text) {
	char *copy = strdup(text);
	if (!copy) return errors_add_memory(v->errors);
	free(*to);
	*to = copy;
	return true;
}

static char *expand_home(const char *text) {
	_cleanup_free_ char *home = strncmp(text, "~/", 2) == 0 ? path_home() : NULL;
	return home ? str_printf("%s%s", home, text + 1) : strdup(text);
}

static bool set_path(const struct value *v, char **to) {
	_cleanup_free_ char *path = expand_home(v->text);
	if (!path) return errors_add_memory(v->errors);
	if (*path != '/')
		return wrong(v, "%s = %s: write an absolute path, or one that begins with ~/", v->key->name, v->text);
	const char *why = NULL;
	if (v->key->kind == KIND_SOCKET && !path_socket_check(path, &why))
		return wrong(v, "%s = %s: %s", v->key->name, v->text, why);
	return take_text(v, to, path);
}

static bool set_level(const struct value *v, int *to) {
	enum log_level level;
	if (!log_level_parse(v->text, &level))
		return wrong(v, "%s = %s: write error, warn, info or debug", v->key->name, v->text);
	*to = (int)level;
	return true;
}

static bool set_count(const struct value *v, size_t *to) {
	uint64_t n;
	if (!str_u64(v->text, v->key->min, v->key->max, &n))
		return wrong(v, "%s = %s: write a whole number from %ju to %ju", v->key->name, v->text, (uintmax_t)v->key->min,
					 (uintmax_t)v->key->max);
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

static bool set_size(const struct value *v, size_t *to) {
	char min[32], max[32];
	size_t n;
	if (str_size(v->text, &n) && n >= v->key->min && n <= v->key->max) {
		*to = n;
		return true;
	}
	put_size(min, sizeof min, v->key->min);
	put_size(max, sizeof max, v->key->max);
	return wrong(v, "%s = %s: write a size from %s to %s, such as 64K, 16M or 1G", v->key->name, v->text, min, max);
}

static bool set_time(const struct value *v, int64_t *to) {
	bool finite = v->key->kind == KIND_FINITE;
	int64_t ms;
	if (!str_time(v->text, &ms) || (finite && ms == SETTINGS_NEVER))
		return wrong(v, "%s = %s: write a time such as 500ms, 30s, 5min or 2h%s", v->key->name, v->text,
					 finite ? "" : ", or never");
	*to = ms;
	return true;
}

static bool set_choice(const struct value *v, bool *to) {
	const char *no = v->key->words[0], *yes = v->key->words[1];
	if (strcmp(v->text, no) != 0 && strcmp(v->text, yes) != 0)
		return wrong(v, "%s = %s: write %s or %s", v->key->name, v->text, no, yes);
	*to = strcmp(v->text, yes) == 0;
	return true;
}

/* The words of systemd.syntax(7), case-insensitive. */
static bool set_yesno(const struct value *v, bool *to) {
	static const char *const words[][2] = {{"no", "yes"},     {"n", "y"}, {"0", "1"},
										   {"false", "true"}, {"f", "t"}, {"off", "on"}};
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		for (size_t k = 0; k < 2; k++)
			if (strcasecmp(v->text, words[i][k]) == 0) {
				*to = k == 1;
				return true;
			}
	return wrong(v, "%s = %s: write yes or no", v->key->name, v->text);
}

static bool set_dialect(const struct value *v) {
	struct buf names = BUF_INIT(1024);
	const struct dialect *d = dialect_find(v->text);
	if (d) return settings_speak(v->base, d) || errors_add_memory(v->errors);
	dialect_put_names(&names);
	bool good = wrong(v, "dialect = %s: no such dialect (known: %s)", v->text, names.data ? names.data : "claude");
	buf_free(&names);
	return good;
}

/* --- Values that are lists --------------------------------------------------------------------------------------- */

static bool is_env_name(const char *p, size_t n) {
	for (size_t i = 0; i < n; i++) {
		bool letter = (p[i] >= 'A' && p[i] <= 'Z') || (p[i] >= 'a' && p[i] <= 'z') || p[i] == '_';
		if (!letter && !(i && p[i] >= '0' && p[i] <= '9')) return false;
	}
	return n > 0;
}

static bool check_word(const struct value *v, const char *word) {
	enum kind kind = v->key->kind;
	const char *equals = strchr(word, '='), *why = NULL;
	const struct profile *p = v->base; /* only profiles have rules */
	if (kind == KIND_ENV && !(equals && is_env_name(word, (size_t)(equals - word))))
		return wrong(v, "%s: \"%s\" is not NAME=VALUE: quote a value with spaces, as in A=\"b c\"", v->key->name, word);
	if (kind == KIND_NAMES && strcmp(word, "*") != 0 && !is_env_name(word, strlen(word)))
		return wrong(v, "%s: \"%s\" is no name of a variable: write names, or * for all", v->key->name, word);
	if (kind == KIND_RULES || kind == KIND_RULES_ALLOW)
		why = rules_check(p->dialect->tools, word, kind == KIND_RULES_ALLOW);
	return !why || wrong(v, "%s: rule \"%s\": %s", v->key->name, word, why);
}

static bool check_command(const struct value *v, struct words *w) {
	if (!w->n || !*w->v[0]) return wrong(v, "%s is empty: write the program and its arguments", v->key->name);
	char *program = expand_home(w->v[0]);
	if (!program) return errors_add_memory(v->errors);
	free(w->v[0]);
	w->v[0] = program;
	if (*program == '/' || !strchr(program, '/')) return true;
	return wrong(v, "%s: \"%s\" depends on the directory: write an absolute path, or a name that is in PATH",
				 v->key->name, program);
}

static bool check_words(const struct value *v, struct words *w) {
	enum kind kind = v->key->kind;
	if (kind == KIND_COMMAND || (kind == KIND_WORDS && w->n)) return check_command(v, w);
	bool good = kind != KIND_ID_ARGS || !w->n;
	if (kind == KIND_ID_ARGS) {
		for (size_t i = 0; i < w->n; i++) good |= strstr(w->v[i], "{id}") != NULL;
		return good || wrong(v, "%s holds no {id}: write {id} where the conversation id belongs", v->key->name);
	}
	for (size_t i = 0; i < w->n; i++) good &= check_word(v, w->v[i]);
	return good;
}

static bool set_words(const struct value *v, struct words *to) {
	struct words w = {0};
	const char *why = NULL;
	bool rules = v->key->kind == KIND_RULES || v->key->kind == KIND_RULES_ALLOW;
	bool split = rules ? rules_split(v->text, &w) || errors_add_memory(v->errors)
					   : words_split(&w, v->text, &why) || wrong(v, "%s: %s", v->key->name, why);
	if (!split || !check_words(v, &w)) {
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

static bool set_ids(const struct value *v, struct access *a) {
	struct words w = {0};
	const char *why = NULL;
	_cleanup_free_ char *text = strdup(v->text);
	for (char *p = text; p && *p; p++)
		if (*p == ',') *p = ' ';
	if (!text || !words_split(&w, text, &why)) return wrong(v, "%s: %s", v->key->name, why ? why : "out of memory");
	uint32_t *ids = calloc(w.n + 1, sizeof *ids);
	size_t n = w.n;
	bool group = v->key->kind == KIND_GIDS, ok = ids || errors_add_memory(v->errors);
	for (size_t i = 0; ids && i < n; i++)
		if (!find_id(group, w.v[i], &ids[i]))
			ok = wrong(v,
					   group ? "%s: there is no group \"%s\": write names or numbers, separated by spaces"
							 : "%s: there is no user \"%s\": write names or numbers, separated by spaces",
					   v->key->name, w.v[i]);
	words_free(&w);
	if (!ok) {
		free(ids);
		return false;
	}
	uint32_t **to = group ? &a->gids : &a->uids;
	free(*to);
	*to = ids;
	*(group ? &a->n_gids : &a->n_uids) = n;
	return true;
}

static bool set(const struct value *v, void *to) {
	switch (v->key->kind) {
	case KIND_PATH:
	case KIND_SOCKET:
		return set_path(v, to);
	case KIND_NAME:
		return *v->text ? take_text(v, to, v->text)
						: wrong(v, "%s is empty: write the name of a profile", v->key->name);
	case KIND_LEVEL:
		return set_level(v, to);
	case KIND_COUNT:
		return set_count(v, to);
	case KIND_SIZE:
		return set_size(v, to);
	case KIND_TIME:
	case KIND_FINITE:
		return set_time(v, to);
	case KIND_YESNO:
		return set_yesno(v, to);
	case KIND_CHOICE:
		return set_choice(v, to);
	case KIND_DIALECT:
		return set_dialect(v);
	case KIND_UIDS:
	case KIND_GIDS:
		return set_ids(v, to);
	case KIND_WORDS:
	case KIND_COMMAND:
	case KIND_ENV:
	case KIND_NAMES:
	case KIND_ID_ARGS:
	case KIND_RULES_ALLOW:
	case KIND_RULES:
		return set_words(v, to);
	}
	return false;
}

bool keys_set(const struct key *key, void *base, const char *text, struct place at, struct errors *errors) {
	struct value v = {.key = key, .text = text, .at = at, .errors = errors, .base = base};
	return set(&v, (char *)base + key->offset);
}
