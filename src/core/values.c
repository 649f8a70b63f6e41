/* SPDX-License-Identifier: MIT */
#include "core/values.h"

#include "base/macros.h"
#include "base/str.h"
#include "core/glob.h"
#include "core/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS "0123456789"
#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
#define NAME LETTERS DIGITS
#define NAMES_MAX 512
#define IS_IN(c, set) ((c) && strchr(set, c))

/* --- Names -------------------------------------------------------------------------------------------------------- */

static bool is_in(const char *list, const char *word) {
	char entry[40];
	int n = snprintf(entry, sizeof entry, " %s ", word);
	return n < (int)sizeof entry && !strchr(word, ' ') && strstr(list, entry);
}

static bool has(const struct words *list, const char *name) {
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->v[i], name) == 0) return true;
	return false;
}

static void add(struct values *v, struct words *list, const char *name, size_t n) {
	_cleanup_free_ char *copy = strndup(name, n);
	if (copy && has(list, copy)) return;
	if (list->n >= NAMES_MAX || !copy || !words_add(list, copy)) v->unsure = true;
}

/* Return true for a variable that the shell itself sets to text of the line or of a file. */
static bool is_special(const char *name) {
	return strncmp(name, "BASH", 4) == 0 || strncmp(name, "COMP_", 5) == 0 || strncmp(name, "READLINE", 8) == 0 ||
		   is_in(" _ REPLY MAPFILE OPTARG DIRSTACK PWD OLDPWD FUNCNAME ", name);
}

/* The shell evaluates their values by itself, or runs the file. */
static bool is_evaluated_by_shell(const char *name) {
	return is_in(" PS0 PS1 PS2 PS4 PROMPT_COMMAND BASH_ENV ENV NULLCMD READNULLCMD ", name);
}

static bool is_unknown(const char *word) {
	return strchr(word, GLOB_UNKNOWN) != NULL;
}

const char *values_of(const char *word) {
	const char *p = word + strspn(word, NAME), *closed = NULL;
	if (p == word || IS_IN(*word, DIGITS)) return NULL;
	if (*p == '[' || *p == GLOB_UNKNOWN) {
		for (closed = strchr(p, ']'); closed; closed = strchr(closed + 1, ']'))
			if (closed[1] == '=' || (closed[1] == '+' && closed[2] == '=')) break;
		p = closed ? closed + 1 : p + strcspn(p, "+=");
	}
	p += *p == '+';
	return *p == '=' ? p + 1 : NULL;
}

/* Move *text to the next name and return its length; 0: none. A number, also a hexadecimal one, is no name. */
static size_t next_name(const char **text) {
	while (**text) {
		size_t n = strspn(*text, NAME);
		if (n && !IS_IN(**text, DIGITS)) return n;
		*text += n ? n : 1;
	}
	return 0;
}

/* --- Values ------------------------------------------------------------------------------------------------------- */

/* A brace expansion makes numbers from numbers; {Z..a} makes brackets. */
static bool is_text(const char *value, char kind) {
	if (kind & (WORD_TEXT | WORD_GLOB)) return true;
	return kind & WORD_BRACES && value[strspn(value, DIGITS "-\x01")];
}

static void set_value(struct values *v, const char *name, const char *value, char kind) {
	bool odd = is_text(value, kind) || value[strspn(value, NAME "./:,@%+=-\x01")];
	const char *p = value;
	for (size_t len; !odd && (len = next_name(&p)); p += len) {
		_cleanup_free_ char *other = strndup(p, len);
		odd = !other || is_special(other);
		add(v, &v->lettered, name, strlen(name));
	}
	if (odd) add(v, &v->odd, name, strlen(name));
	if (!is_evaluated_by_shell(name)) return;
	v->unsure |= kind & ~WORD_PLAIN || value[strspn(value, NAME " :+-")];
	v->unsure |= is_in(" BASH_ENV ENV NULLCMD READNULLCMD ", name) && *value;
}

static void set_edges(struct values *v, const char *name, char *const *refs, size_t n_refs) {
	for (size_t i = 0; i < n_refs; i++) {
		_cleanup_free_ char *edge = str_printf("%s=%s", name, refs[i]);
		if (edge)
			add(v, &v->edges, edge, strlen(edge));
		else
			v->unsure = true;
	}
}

void values_set(struct values *v, const char *name, const char *value, char kind, char *const *refs, size_t n_refs) {
	set_value(v, name, value, kind);
	set_edges(v, name, refs, n_refs);
}

void values_assign(struct values *v, const char *word, char kind, char *const *refs, size_t n_refs) {
	size_t n = strspn(word, NAME);
	const char *value = values_of(word);
	_cleanup_free_ char *name = strndup(word, n), *index = strndup(word + n, (size_t)(value - word) - n);
	if (!name || !index) {
		v->unsure = true;
		return;
	}
	if (*index == '[' || *index == GLOB_UNKNOWN) values_evaluate(v, index, kind, refs, n_refs);
	values_set(v, name, value, kind, refs, n_refs);
}

void values_evaluate(struct values *v, const char *text, char kind, char *const *refs, size_t n_refs) {
	v->unsure |= is_text(text, kind & ~WORD_BRACES) || strstr(text, "$(") || strchr(text, '`');
	for (size_t len; (len = next_name(&text)); text += len) {
		if (IS_IN(text[len], "\x01$`")) v->any_evaluated = true; /* a$x is the name of another */
		add(v, &v->evaluated, text, len);
	}
	for (size_t i = 0; i < n_refs; i++) add(v, &v->evaluated, refs[i], strlen(refs[i]));
}

/* --- Commands ---------------------------------------------------------------------------------------------------- */

static bool is_computed(const struct value_words *c, size_t i) {
	return c->kinds[i] & (WORD_VALUE | WORD_TEXT | WORD_GLOB | WORD_BRACES);
}

/* Return true if the word may become several with any text. A pattern or a brace leaves its first letters to each. */
static bool may_split(const struct value_words *c, size_t i) {
	return c->kinds[i] & WORD_SPLITS && c->kinds[i] & (WORD_VALUE | WORD_TEXT);
}

/* Return true if the word may be an option, and it is not visible which. */
static bool may_be_option(const struct value_words *c, size_t i) {
	const char *word = c->words[i] + (*c->words[i] == '-');
	return *word == GLOB_UNKNOWN && is_computed(c, i);
}

static bool has_option(const struct value_words *c) {
	for (size_t i = 1; i < c->n; i++)
		if (may_be_option(c, i)) return true;
	return false;
}

/* Return true if a name of a variable is computed, or may be. */
static bool has_name(const struct value_words *c) {
	for (size_t i = 1; i < c->n; i++) {
		const char *end = c->words[i] + strspn(c->words[i], NAME);
		bool assignment = end != c->words[i] && (*end == '=' || (*end == '+' && end[1] == '='));
		if (!assignment && is_unknown(c->words[i]) && is_computed(c, i)) return true;
	}
	return false;
}

static bool is_comparison(const struct value_words *c, size_t i) {
	return i < c->n && is_in(" = == != < > =~ -nt -ot -ef -eq -ne -lt -le -gt -ge ", c->words[i]);
}

/* A word beside a comparison is an operand, if it stays one word. */
static bool test_has_option(const struct value_words *c) {
	size_t end = c->n - (strcmp(c->words[0], "[") == 0 && c->n > 1);
	for (size_t i = 1; i < end; i++) {
		const char *before = c->words[i - 1]; /* -f FILE and the like: the next word is no operator */
		bool unary = *before == '-' && IS_IN(before[1], LETTERS) && !before[2] && !IS_IN(before[1], "aovR");
		bool operand = is_comparison(c, i + 1) || is_comparison(c, i - 1) || unary;
		if (may_split(c, i) || (may_be_option(c, i) && c->kinds[i] & WORD_SPLITS)) return true;
		if (may_be_option(c, i) && !operand && end > 2) return true;
	}
	return false;
}

/* -exec runs the words after it up to a `;` or `{} +`: two computed words may be these two. */
static bool find_has_option(struct values *v, const struct value_words *c) {
	static const char with_argument[] =
		" -name -iname -path -ipath -wholename -iwholename -regex -iregex -type -newer -mtime -mmin -atime -ctime "
		"-size -maxdepth -mindepth -user -group -perm ";
	bool ends = false, options = false;
	for (size_t i = 1; i < c->n; i++) ends |= is_in(" ; {} ", c->words[i]);
	for (size_t i = 1; i < c->n; i++) {
		const char *before = c->words[i - 1];
		if (strncmp(before, "-exec", 5) == 0 || strncmp(before, "-ok", 3) == 0) break;
		if (is_in(with_argument, before) || !may_be_option(c, i)) continue;
		options |= c->kinds[i] & WORD_SPLITS;
		v->unsure |= ends && i + 1 < c->n && may_be_option(c, i + 1);
	}
	return options;
}

/* Return true if a computed word may be an option of this builtin, or a name that it evaluates. */
static bool evaluates_words(struct values *v, const char *name, const struct value_words *c) {
	if (strcmp(name, "printf") == 0) /* a format alone is not evaluated */
		return c->n > 1 && may_be_option(c, 1) && (c->n > 2 || c->kinds[1] & WORD_SPLITS);
	if (is_in(" test [ ", name)) return test_has_option(c);
	if (is_in(" find gfind ", name)) return find_has_option(v, c);
	for (size_t i = 1; i < c->n && c->runs; i++) /* -n$x may become several words, one of them the program */
		if (may_split(c, i)) return true;
	if (is_in(" read unset export readonly declare typeset local getopts ", name)) return has_name(c);
	return strcmp(name, "wait") == 0 && has_option(c);
}

/* for NAME in VALUES, select NAME in VALUES */
static void take_loop(struct values *v, const struct value_words *c) {
	static char at[] = "@", *const all[] = {at};
	if (c->n < 2) return;
	if (is_unknown(c->words[1])) v->any_odd = true;
	for (size_t i = 3; i < c->n; i++) set_value(v, c->words[1], c->words[i], c->kinds[i]);
	set_edges(v, c->words[1], c->n > 2 ? c->refs : all, c->n > 2 ? c->n_refs : 1);
}

/* read, mapfile, getopts: any word may be a name that gets text. */
static void take_names(struct values *v, const struct value_words *c) {
	for (size_t i = 1; i < c->n; i++) {
		size_t n = strspn(c->words[i], NAME);
		if (n) add(v, &v->odd, c->words[i], n);
		if (is_unknown(c->words[i])) v->any_odd = true;
		if (is_evaluated_by_shell(c->words[i])) v->unsure = true;
	}
}

/* Return true if a name with an unknown part may be that of a builtin that evaluates its words. */
static bool may_be_builtin(const char *word) {
	static const char *const builtins[] = {
		".",       "[",      "[[",     "alias",     "builtin",  "command", "coproc", "declare", "enable", "env",
		"eval",    "exec",   "export", "find",      "for",      "getopts", "hash",   "jobs",    "let",    "local",
		"mapfile", "printf", "read",   "readarray", "readonly", "select",  "set",    "source",  "test",   "trap",
		"typeset", "unset",  "wait",   "xargs",     "bash",     "sh",      "sed",    "awk",     "nice",   "nohup",
		"timeout", "stdbuf", "sudo",   "setsid",    "ionice",   "time"};
	const char *first = strchr(word, GLOB_UNKNOWN), *last = strrchr(word, GLOB_UNKNOWN);
	if (!first || strchr(word, '/')) return false;
	size_t head = (size_t)(first - word), tail = strlen(last + 1);
	for (size_t i = 0; i < ARRAY_SIZE(builtins); i++) {
		size_t n = strlen(builtins[i]);
		if (head + tail <= n && strncmp(word, builtins[i], head) == 0 && strcmp(last + 1, builtins[i] + n - tail) == 0)
			return true;
	}
	return false;
}

void values_command(struct values *v, const struct value_words *c, bool data) {
	const char *name = program_base(c->words[0]);
	bool declares = is_in(" export readonly declare typeset local ", name);
	if (is_in(" for select ", name)) take_loop(v, c);
	if (is_in(" read mapfile readarray getopts ", name)) take_names(v, c);
	for (size_t i = 1; i < c->n && strcmp(name, "[[") == 0; i++) { /* the operands of -eq are arithmetic */
		if (!is_in(" -eq -ne -lt -le -gt -ge ", c->words[i])) continue;
		values_evaluate(v, c->words[i - 1], c->kinds[i - 1], c->refs, c->n_refs);
		if (i + 1 < c->n) values_evaluate(v, c->words[i + 1], c->kinds[i + 1], c->refs, c->n_refs);
	}
	if (c->starts && is_computed(c, 0) && may_be_builtin(c->words[0])) v->unsure = true;
	if (declares && has_name(c)) v->any_odd = true;
	if (is_in(" mapfile readarray jobs ", name) && has_option(c)) v->unsure = true;
	for (size_t i = 1; i < c->n && strcmp(name, "let") == 0; i++)
		values_evaluate(v, c->words[i], c->kinds[i], c->refs, c->n_refs);
	for (size_t i = 1; i < c->n && is_in(" read unset ", name); i++)
		if (strchr(c->words[i], '[')) values_evaluate(v, c->words[i], WORD_PLAIN, NULL, 0);
	/* The arguments of a function, a script or `set` become positional parameters. */
	for (size_t i = 1; i < c->n && !data; i++) set_value(v, "@", c->words[i], c->kinds[i]);
	if (!data) set_edges(v, "@", c->refs, c->n_refs);
	if (!evaluates_words(v, name, c)) return;
	for (size_t i = 1; i < c->n; i++) { /* a literal word is visible; its subscript may still have names */
		const char *word = c->words[i];
		bool text = is_text(word, c->kinds[i]) || (strchr(word, '[') && word[1]);
		v->unsure |= c->runs ? may_split(c, i) && c->kinds[i] & WORD_TEXT : text;
	}
	for (size_t i = 0; i < c->n_refs; i++) add(v, &v->expanded, c->refs[i], strlen(c->refs[i]));
}

/* --- Numbers ----------------------------------------------------------------------------------------------------- */

#define WORDS_MAX 8

/* Return true for a program that prints numbers with these words. */
static bool prints_number(struct values *v, char **words, size_t n) {
	static const char *const exact[] = {"nproc", "id -u", "id -g", "date +%s", "date +%s%N"};
	char line[64] = "";
	for (size_t i = 0, at = 0; i < n && at < sizeof line; i++)
		at += (size_t)snprintf(line + at, sizeof line - at, "%s%s", i ? " " : "", words[i]);
	for (size_t i = 0; i < ARRAY_SIZE(exact); i++)
		if (strcmp(line, exact[i]) == 0) return true;
	if (n > 1 && strcmp(words[0], "wc") == 0 && is_in(" -l -c -w -m ", words[1]))
		return n == 2 || (n == 3 && *words[2] == '<' && words[2][1]) || (n == 4 && strcmp(words[2], "<") == 0);
	if (n == 4 && strcmp(words[0], "stat") == 0 && strcmp(words[1], "-c") == 0 && strcmp(words[2], "%s") == 0)
		return !strpbrk(words[3], "*$-");
	if (n < 2 || strcmp(words[0], "seq") != 0) return false;
	for (size_t i = 1; i < n; i++) {
		const char *word = words[i] + (*words[i] == '$');
		if (word[strspn(word, word == words[i] ? DIGITS : NAME)]) return false;
		if (word != words[i]) values_evaluate(v, word, WORD_PLAIN, NULL, 0);
	}
	return true;
}

/* Only the last program of a pipeline prints, unless another one redirects its output. */
bool values_is_number(struct values *v, const char *text, size_t n) {
	static const char quiet[] = "2>/dev/null";
	char line[512], *words[WORDS_MAX], *save, *found;
	size_t n_words = 0;
	if (n >= sizeof line) return false;
	memcpy(line, text, n);
	line[n] = 0;
	while ((found = strstr(line, quiet))) memset(found, ' ', sizeof quiet - 1);
	if (strpbrk(line, ";&(){}>`#\\\n\t") || strstr(line, "||")) return false;
	char *last = strrchr(line, '|');
	last = last ? last + 1 : line;
	if (strpbrk(last, "'\"*?[")) return false;
	for (char *w = strtok_r(last, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		if (n_words == WORDS_MAX) return false;
		words[n_words++] = w;
	}
	return n_words && prints_number(v, words, n_words);
}

/* --- The answer -------------------------------------------------------------------------------------------------- */

/* Add the variables whose values are parts of those in the list. */
static void close_over(struct values *v, struct words *list) {
	for (size_t i = 0; i < list->n; i++) {
		size_t n = strlen(list->v[i]);
		for (size_t k = 0; k < v->edges.n; k++) {
			const char *edge = v->edges.v[k];
			if (strncmp(edge, list->v[i], n) == 0 && edge[n] == '=') add(v, list, edge + n + 1, strlen(edge + n + 1));
		}
	}
}

static bool has_odd(const struct values *v, const struct words *list) {
	for (size_t i = 0; i < list->n; i++)
		if (has(&v->odd, list->v[i]) || is_special(list->v[i])) return true;
	return false;
}

bool values_are_odd(struct values *v) {
	close_over(v, &v->evaluated);
	close_over(v, &v->expanded);
	if (v->unsure || has_odd(v, &v->evaluated) || has_odd(v, &v->expanded)) return true;
	for (size_t i = 0; i < v->evaluated.n; i++)
		if (has(&v->lettered, v->evaluated.v[i])) return true;
	if (v->any_odd) return v->any_evaluated || v->evaluated.n || v->expanded.n;
	return v->any_evaluated && v->odd.n;
}

void values_free(struct values *v) {
	struct words *const lists[] = {&v->evaluated, &v->expanded, &v->odd, &v->lettered, &v->edges};
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) words_free(lists[i]);
}
