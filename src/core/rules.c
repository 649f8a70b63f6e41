/* SPDX-License-Identifier: MIT */
#include "core/rules.h"

#include "base/buf.h"
#include "base/paths.h"
#include "base/str.h"
#include "core/glob.h"
#include "core/program.h"
#include "core/shell.h"
#include "io/errand.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sysexits.h>

enum side { SIDE_ALLOW, SIDE_DENY }; /* ask rules are matched like deny rules */

/* The two parts of a rule, views into it. */
struct rule {
	const char *tool;
	size_t n_tool;
	const char *pattern; /* NULL: none */
	size_t n_pattern;
};

/* One row of the tool's table (tools.h) with the value from the call's input. */
struct use {
	const struct tool_use *row;
	struct words values; /* the member for patterns, decoded; of a path all texts in it */
	bool absent;         /* not in the input */
	struct shell_commands commands;
};
#define USES_MAX 8 /* more than the rows of any tool */

/* A call, parsed once. */
struct call {
	const struct dialect_tools *tools;
	const char *name;
	struct span input;
	struct use uses[USES_MAX];
	size_t n_uses;  /* 0: no pattern applies to this tool */
	bool known;     /* the tool is in the table */
	bool undecoded; /* the input cannot be read with certainty */
	bool unboxed;   /* asks to leave the sandbox */
	bool no_memory;
	bool blind; /* links are not followed: results that depend on them are uncertain */
};

/* --- Rules -------------------------------------------------------------------------------------------------------- */

static bool is_mcp(const char *p, size_t n) {
	return n > 5 && memcmp(p, "mcp__", 5) == 0;
}

static bool parse_rule(const char *text, struct rule *r) {
	const char *open = strchr(text, '(');
	size_t length = strlen(text), n = open ? (size_t)(open - text) : length;
	*r = (struct rule){.tool = text, .n_tool = n};
	for (size_t i = 0; i < n; i++) {
		bool star = text[i] == '*' && i == n - 1 && (n == 1 || is_mcp(text, n));
		if (!isalnum((unsigned char)text[i]) && !star && !strchr("_-.", text[i])) return false;
	}
	if (!open || !n) return n > 0;
	r->pattern = open + 1;
	r->n_pattern = length - n - 2;
	return text[length - 1] == ')' && open[1] != ')';
}

static bool names(const struct rule *r, const char *tool) {
	return strlen(tool) == r->n_tool && memcmp(r->tool, tool, r->n_tool) == 0;
}

/* Return true for the same family: Task and Agent are two names of one tool. */
static bool names_family(const struct dialect_tools *t, const struct rule *r, const struct tool_use *row) {
	size_t n;
	const struct tool_use *named = tools_uses(t, r->tool, r->n_tool, &n);
	return names(r, row->rule) ||
		   (named && row->subject == TOOL_NAME && named->subject == TOOL_NAME && strcmp(named->rule, row->rule) == 0);
}

/* Return true if the rule names this tool. */
static bool names_tool(const struct rule *r, const char *tool) {
	if (names(r, tool)) return true;
	if (r->tool[r->n_tool - 1] == '*') return strncmp(r->tool, tool, r->n_tool - 1) == 0;
	bool server = is_mcp(r->tool, r->n_tool) && !memmem(r->tool + 5, r->n_tool - 5, "__", 2);
	return server && strncmp(r->tool, tool, r->n_tool) == 0 && strncmp(tool + r->n_tool, "__", 2) == 0;
}

static bool has_control(const char *p) {
	for (; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f) return true;
	return false;
}

static bool is_rooted(const char *p, size_t n) {
	return n && (*p == '/' || (n > 1 && memcmp(p, "~/", 2) == 0) || (n > 2 && memcmp(p, "**/", 3) == 0));
}

static bool is_path(const struct tool_use *use) {
	return use->subject == TOOL_PATH || use->subject == TOOL_SEARCH;
}

const char *rules_check(const struct dialect_tools *t, const char *rule, bool for_allow) {
	struct rule r;
	if (has_control(rule) || !parse_rule(rule, &r))
		return "write a tool's name, such as Bash or mcp__server, or TOOL(PATTERN), such as Bash(npm run:*)";
	if (!r.pattern) return NULL;
	size_t n;
	const struct tool_use *use = tools_uses(t, r.tool, r.n_tool, &n);
	if (is_mcp(r.tool, r.n_tool) || r.tool[0] == '*')
		return "rules for MCP tools have no pattern: leave the brackets out";
	if (for_allow && !(use && use->always))
		return t ? t->no_pattern : "no tool is known that has patterns: leave the brackets out";
	if (use && is_path(use) && for_allow && !is_rooted(r.pattern, r.n_pattern))
		return "begin the path with /, ~/ or **/: no directory is known that it could be relative to";
	if (use && n == 1 && use->subject == TOOL_URL && (r.n_pattern < 8 || memcmp(r.pattern, "domain:", 7) != 0))
		return t->no_domain;
	return NULL;
}

/* --- The call ---------------------------------------------------------------------------------------------------- */

static bool is_read(const struct call *c, struct span key) {
	for (size_t i = 0; i < c->n_uses; i++)
		for (size_t k = 0; k < 3 && c->uses[i].row->members[k]; k++)
			if (span_equals(key, c->uses[i].row->members[k])) return true;
	return false;
}

/* Return false for a key with escapes or a repeated key: another parser could read it differently. */
static bool is_certain(const struct call *c) {
	struct span key, value, other;
	size_t at = 0;
	while (span_next_member(c->input, &at, &key, &value)) {
		if (memchr(key.p, '\\', key.n)) return false;
		size_t behind = at;
		while (is_read(c, key) && span_next_member(c->input, &behind, &other, &value))
			if (span_same(key, other)) return false;
	}
	return true;
}

#define NESTED_MAX 4

/* Collect the texts of a value, also those in lists and objects; false: one cannot be read. */
static bool read_texts(struct words *out, struct span value, int depth) {
	struct span key, inner;
	size_t at = 0;
	bool ok = true;
	if (span_is_string(value)) {
		_cleanup_free_ char *text = span_dup(value, NULL);
		return text && words_add(out, text);
	}
	if (depth >= NESTED_MAX) return false;
	if (span_is_array(value))
		while (ok && span_next(value, &at, &inner)) ok = read_texts(out, inner, depth + 1);
	else if (span_is_object(value))
		while (ok && span_next_member(value, &at, &key, &inner)) ok = read_texts(out, inner, depth + 1);
	else
		return depth > 0;
	return ok;
}

static void read_call(struct call *c, const struct profile *p, const char *name, struct span input) {
	const struct dialect_tools *t = p->dialect ? p->dialect->tools : NULL;
	size_t n;
	const struct tool_use *rows = tools_uses(t, name, strlen(name), &n);
	*c = (struct call){.tools = t, .name = name, .input = input, .n_uses = MIN(n, (size_t)USES_MAX)};
	c->known = tools_know(t, name);
	for (size_t i = 0; i < c->n_uses; i++) c->uses[i].row = &rows[i];
	c->undecoded = !span_is_object(input) || !is_certain(c);
	c->unboxed = t && span_is_true(span_member(input, t->unboxed));
	for (size_t i = 0; i < c->n_uses; i++) {
		struct use *u = &c->uses[i];
		struct span value = SPAN_NONE;
		for (size_t k = 0; k < 3 && u->row->members[k] && !value.p; k++) value = span_member(input, u->row->members[k]);
		u->absent = !value.p;
		bool nested = !u->row->always && (is_path(u->row) || u->row->subject == TOOL_URL);
		c->undecoded |= value.p && (!(nested || span_is_string(value)) || !read_texts(&u->values, value, 0));
		if (u->row->subject == TOOL_COMMAND && u->values.n)
			c->no_memory |= !shell_commands(u->values.v[0], &u->commands);
	}
}

static void free_call(struct call *c) {
	for (size_t i = 0; i < c->n_uses; i++) {
		words_free(&c->uses[i].values);
		shell_commands_free(&c->uses[i].commands);
	}
}

/* --- Commands ---------------------------------------------------------------------------------------------------- */

/* Write one space between words; remove quotes if the texts have none. */
static char *tidy_pattern(const char *p, size_t n, bool keep_quotes) {
	char *out = malloc(n + 1);
	size_t len = 0;
	for (size_t i = 0; out && i < n; i++) {
		if (p[i] == ' ' && (!len || out[len - 1] == ' ')) continue;
		if (!keep_quotes && (p[i] == '\'' || p[i] == '"')) continue;
		out[len++] = p[i];
	}
	while (out && len && out[len - 1] == ' ') len--;
	if (out) out[len] = 0;
	return out;
}

/* PREFIX:* and PREFIX * match the words of PREFIX and any words after them. */
static bool command_glob(struct glob *g, const char *p, size_t n, bool keep_quotes) {
	_cleanup_free_ char *pattern = tidy_pattern(p, n, keep_quotes);
	if (!pattern) return false;
	n = strlen(pattern);
	bool prefix = n >= 2 && (strcmp(pattern + n - 2, ":*") == 0 || strcmp(pattern + n - 2, " *") == 0);
	if (strcmp(pattern, ":*") == 0) return glob_init(g, "*", 1, GLOB_TEXT, 0);
	return glob_init(g, pattern, prefix ? n - 2 : n, GLOB_TEXT, prefix ? ' ' : 0);
}

static enum match match_text(const struct rule *r, const char *text, bool keep_quotes) {
	struct glob g;
	while (*text == ' ') text++;
	size_t n = strlen(text);
	while (n && text[n - 1] == ' ') n--;
	if (!command_glob(&g, r->pattern, r->n_pattern, keep_quotes)) return MATCH_MAYBE;
	enum match m = glob_match(&g, text, n);
	glob_free(&g);
	return m;
}

/* Split the words of a pattern before its first star. */
static bool fixed_words(struct words *out, const char *pattern) {
	_cleanup_free_ char *fixed = strndup(pattern, strcspn(pattern, "*\\"));
	size_t n = fixed ? strlen(fixed) : 0;
	if (!fixed) return false;
	bool cut = pattern[n] && n && fixed[n - 1] != ' ' && fixed[n - 1] != ':';
	if (n && fixed[n - 1] == ':') fixed[n - 1] = 0;
	for (char *save, *word = strtok_r(fixed, " ", &save); word; word = strtok_r(NULL, " ", &save))
		if (!words_add(out, word)) return false;
	if (cut && out->n > 1) free(out->v[--out->n]), out->v[out->n] = NULL; /* half a word proves nothing */
	return !cut || out->n > 1;
}

static bool in_name(char c) {
	return isalnum((unsigned char)c) || c == '_';
}

/* Return the whole word at or after p, not within a longer one. */
static const char *find_word(const char *text, const char *p, const char *word) {
	size_t n = strlen(word);
	while ((p = strstr(p, word)) && ((p > text && in_name(p[-1]) && in_name(*word)) || in_name(p[n]))) p++;
	return p;
}

/* Return true if the program is the rule's and its words are among the arguments, but in other places: git -C x
 * push. */
static bool is_spread(const struct words *want, const char *text) {
	const char *base = program_base(want->v[0]), *p = text + strlen(base);
	bool in_place = true;
	if (want->n < 2 || strncmp(text, base, (size_t)(p - text)) != 0 || (*p && *p != ' ')) return false;
	for (size_t i = 1; i < want->n; i++) {
		const char *found = find_word(text, p, want->v[i]);
		if (!found) return false;
		in_place = in_place && found == p + 1;
		p = found + strlen(want->v[i]);
	}
	return !in_place || (*p && *p != ' ');
}

/* Return true if the line could run a command of the pattern without its being among the found commands. The name must
 * then be in the line, at a place where a program could take it for a command. */
static bool may_hide(const char *pattern, const struct shell_commands *commands) {
	_cleanup_(words_free) struct words want = {0};
	if (!fixed_words(&want, pattern) || !want.n) return commands->others;
	for (size_t i = 0; i < commands->texts.n; i++)
		if (is_spread(&want, commands->texts.v[i])) return true;
	const char *name = program_base(want.v[0]);
	_cleanup_free_ char *joined = want.n > 1 ? str_printf("%s-%s", name, want.v[1]) : NULL; /* git-push */
	if (joined && shell_says(commands, joined, strlen(joined), true)) return true;
	if (!commands->others || !shell_says(commands, name, strlen(name), name != want.v[0])) return false;
	for (size_t i = 1; i < want.n; i++)
		if (!shell_says(commands, want.v[i], strlen(want.v[i]), true)) return false;
	return true;
}

static enum match find_command(const struct rule *r, const struct shell_commands *commands) {
	struct glob g;
	enum match best = commands->unsure ? MATCH_MAYBE : MATCH_NO;
	_cleanup_free_ char *pattern = tidy_pattern(r->pattern, r->n_pattern, false);
	if (!pattern || !command_glob(&g, r->pattern, r->n_pattern, false)) return MATCH_MAYBE;
	for (size_t i = 0; i < commands->texts.n && best != MATCH_YES; i++) {
		enum match m = glob_match(&g, commands->texts.v[i], strlen(commands->texts.v[i]));
		best = MAX(best, m);
	}
	glob_free(&g);
	if (best == MATCH_NO && may_hide(pattern, commands)) best = MATCH_MAYBE;
	return best;
}

/* --- Paths ------------------------------------------------------------------------------------------------------- */

/* Remove //, . and ..; a relative path stays relative, and .. above its start is left out. */
static char *tidy_path(const char *path) {
	char *out = malloc(strlen(path) + 2);
	size_t len = 0;
	if (!out) return NULL;
	for (const char *p = path; *p;) {
		p += strspn(p, "/");
		size_t n = strcspn(p, "/");
		if (n == 2 && memcmp(p, "..", 2) == 0) {
			while (len && out[--len] != '/') {}
		} else if (n && !(n == 1 && *p == '.')) {
			out[len++] = '/';
			memcpy(out + len, p, n);
			len += n;
		}
		p += n;
	}
	if (!len) out[len++] = '/';
	out[len] = 0;
	return out;
}

/* Resolve all links in the longest existing part and append the rest. NULL: unknown. */
static char *real_path(const char *tidy) {
	_cleanup_free_ char *head = strdup(tidy);
	for (size_t n = head ? strlen(head) : 0; head;) {
		_cleanup_free_ char *real = realpath(head, NULL);
		if (real) return str_printf("%s%s", strcmp(real, "/") == 0 && tidy[n] ? "" : real, tidy + n);
		if (errno != ENOENT || n <= 1) return NULL;
		while (n > 1 && head[n - 1] != '/') n--;
		if (n > 1) n--;
		head[n] = 0;
		if (n == 1 && tidy[1]) return strdup(tidy);
	}
	return NULL;
}

/* Make the pattern absolute: // is /, ~/ the home directory, anything else matches at any depth. */
static char *absolute_pattern(const char *p, size_t n) {
	_cleanup_free_ char *home = n > 1 && memcmp(p, "~/", 2) == 0 ? path_home() : NULL;
	if (n > 1 && memcmp(p, "//", 2) == 0) return strndup(p + 1, n - 1);
	if (home) return str_printf("%s%.*s", home, (int)(n - 1), p + 1);
	if (n && *p == '/') return strndup(p, n);
	if (n > 1 && memcmp(p, "./", 2) == 0) p += 2, n -= 2;
	return str_printf("/%s%.*s", n > 2 && memcmp(p, "**/", 3) == 0 ? "" : "**/", (int)n, p);
}

/* Return the length of the directories before the first wildcard, with the slash. */
static size_t fixed_part(const char *pattern) {
	size_t n = strcspn(pattern, "*?\\");
	if (!pattern[n]) return n;
	while (n && pattern[n - 1] != '/') n--;
	return n;
}

/* Resolve the links in the fixed part of the pattern; NULL: unknown. */
static char *real_pattern(const char *pattern) {
	size_t n = fixed_part(pattern);
	_cleanup_free_ char *fixed = strndup(pattern, n), *tidy = fixed ? tidy_path(fixed) : NULL;
	_cleanup_free_ char *real = tidy ? real_path(tidy) : NULL;
	if (!real) return NULL;
	bool slash = n && pattern[n - 1] == '/' && real[strlen(real) - 1] != '/';
	return str_printf("%s%s%s", real, slash ? "/" : "", pattern + n);
}

static enum match match_path_pattern(const char *pattern, const char *path, enum side side) {
	struct glob g;
	size_t n = strlen(pattern);
	if (n > 3 && strcmp(pattern + n - 3, "/**") == 0 && strlen(path) == n - 3 && memcmp(pattern, path, n - 3) == 0)
		return MATCH_YES; /* the directory itself */
	while (n > 1 && pattern[n - 1] == '/') n--;
	if (!glob_init(&g, pattern, n, GLOB_PATH, side == SIDE_DENY ? '/' : 0)) return MATCH_MAYBE;
	enum match m = glob_match(&g, path, strlen(path));
	glob_free(&g);
	return m;
}

/* The two spellings of a rule's path. */
struct paths {
	char *written, *real;
	bool blind; /* links are not followed */
};

static void paths_free(struct paths *p) {
	free(p->written);
	free(p->real);
}

static enum match match_one_path(const struct paths *pattern, const char *path, enum side side) {
	enum match m = match_path_pattern(pattern->written, path, side);
	if (m != MATCH_YES && pattern->real) m = MAX(m, match_path_pattern(pattern->real, path, side));
	return m;
}

/* Both names of the path must match. */
static enum match allow_path(const struct paths *pattern, const char *path) {
	_cleanup_free_ char *tidy = tidy_path(path), *real = tidy && !pattern->blind ? real_path(tidy) : NULL;
	size_t n = strlen(path);
	if (!real || has_control(path)) return MATCH_NO;
	bool slash = n > 1 && path[n - 1] == '/' && strncmp(path, tidy, n - 1) == 0 && !tidy[n - 1];
	if (strcmp(path, tidy) != 0 && !slash) return MATCH_NO;
	bool both = match_one_path(pattern, tidy, SIDE_ALLOW) == MATCH_YES &&
				match_one_path(pattern, real, SIDE_ALLOW) == MATCH_YES;
	return both ? MATCH_YES : MATCH_NO;
}

/* Return true for a search that starts above a denied path and could descend into it. */
static bool is_above(const struct paths *pattern, const char *path) {
	size_t n = strlen(path);
	const char *names[] = {pattern->written, pattern->real};
	for (size_t i = 0; i < 2; i++)
		if (names[i] && strncmp(names[i], path, n) == 0 && (path[n - 1] == '/' || names[i][n] == '/')) return true;
	return false;
}

static enum match deny_path(const struct paths *pattern, const char *path, bool rooted, enum tool_subject subject) {
	_cleanup_free_ char *tidy = tidy_path(path),
						*real = tidy && *path == '/' && !pattern->blind ? real_path(tidy) : NULL;
	if (!tidy) return MATCH_MAYBE;
	if (match_one_path(pattern, tidy, SIDE_DENY) == MATCH_YES) return MATCH_YES;
	if (*path != '/') return rooted || strstr(path, "..") ? MATCH_MAYBE : MATCH_NO;
	if (!real || match_one_path(pattern, real, SIDE_DENY) == MATCH_YES) return real ? MATCH_YES : MATCH_MAYBE;
	bool search = subject == TOOL_SEARCH && (!rooted || is_above(pattern, tidy) || is_above(pattern, real));
	return search ? MATCH_MAYBE : MATCH_NO;
}

/* The pattern of Glob can lead elsewhere: its fixed part is a path, too. */
static enum match match_search_pattern(const struct paths *pattern, const struct call *c, enum side side, bool rooted) {
	struct span member = span_member(c->input, "pattern");
	_cleanup_free_ char *text = span_dup(member, NULL);
	if (strcmp(c->name, c->tools->glob) != 0) return side == SIDE_ALLOW ? MATCH_YES : MATCH_NO;
	if (!text) return side == SIDE_ALLOW ? MATCH_NO : MATCH_MAYBE;
	bool leads = *text == '/' || *text == '~' || strstr(text, "..") || strpbrk(text, "{\\");
	if (side == SIDE_ALLOW) return leads ? MATCH_NO : MATCH_YES;
	if (!leads) return MATCH_NO;
	text[fixed_part(text)] = 0;
	return *text == '/' ? deny_path(pattern, text, rooted, TOOL_SEARCH) : MATCH_MAYBE;
}

static enum match match_path(const struct rule *r, const struct call *c, const struct use *u, enum side side) {
	bool rooted = is_rooted(r->pattern, r->n_pattern), search = u->row->subject == TOOL_SEARCH;
	_cleanup_(paths_free) struct paths pattern = {absolute_pattern(r->pattern, r->n_pattern), NULL, c->blind};
	if (pattern.written && !c->blind) pattern.real = real_pattern(pattern.written);
	if (!pattern.written) return side == SIDE_ALLOW ? MATCH_NO : MATCH_MAYBE;
	enum match inner = search ? match_search_pattern(&pattern, c, side, rooted) : MATCH_NO;
	if (side == SIDE_ALLOW) {
		if (!rooted || u->values.n != 1 || (search && inner != MATCH_YES)) return MATCH_NO;
		return allow_path(&pattern, u->values.v[0]);
	}
	enum match m = u->absent ? MATCH_MAYBE : MATCH_NO;
	for (size_t i = 0; i < u->values.n; i++) {
		enum match one = deny_path(&pattern, u->values.v[i], *r->pattern != '*' && rooted, u->row->subject);
		m = MAX(m, one);
	}
	return MAX(m, inner);
}

/* --- Hosts ------------------------------------------------------------------------------------------------------- */

/* Find the host of a URL like a browser: backslashes are slashes, tabs and newlines are ignored, a user before it is
 * skipped. *certain: it has the plain spelling. NULL: no host, or it is encoded. */
static char *find_host(const char *url, bool *certain) {
	_cleanup_free_ char *tidy = malloc(strlen(url) + 1);
	size_t n = 0;
	*certain = strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0;
	for (const char *p = url; tidy && *p; p++) {
		if ((unsigned char)*p <= 0x20 || *p == '\\') *certain = false;
		if (!strchr("\t\r\n", *p)) tidy[n++] = *p == '\\' ? '/' : (char)tolower((unsigned char)*p);
	}
	if (!tidy) return NULL;
	tidy[n] = 0;
	char *start = tidy;
	while (*start && (unsigned char)*start <= 0x20) start++;
	size_t scheme = strspn(start, "abcdefghijklmnopqrstuvwxyz0123456789+.-");
	if (start[scheme] != ':') return NULL;
	start += scheme + 1;
	start += strspn(start, "/");
	start[strcspn(start, "/?#")] = 0;
	char *at = strrchr(start, '@');
	if (at) *certain = false;
	start = at ? at + 1 : start;
	if (*start != '[') start[strcspn(start, ":")] = 0;
	for (n = strlen(start); n && start[n - 1] == '.'; n--) start[n - 1] = 0;
	bool plain = *start && strspn(start, "abcdefghijklmnopqrstuvwxyz0123456789.-") == strlen(start);
	return plain ? strdup(start) : NULL;
}

static enum match match_host(const struct rule *r, const struct use *u, enum side side) {
	bool certain;
	_cleanup_free_ char *host = find_host(u->values.v[0], &certain);
	if (!host || (side == SIDE_ALLOW && !certain)) return side == SIDE_ALLOW ? MATCH_NO : MATCH_MAYBE;
	if (r->n_pattern < 8 || memcmp(r->pattern, "domain:", 7) != 0) return MATCH_NO;
	_cleanup_free_ char *want = strndup(r->pattern + 7, r->n_pattern - 7);
	for (char *p = want; p && *p; p++) *p = (char)tolower((unsigned char)*p);
	if (!want) return side == SIDE_ALLOW ? MATCH_NO : MATCH_MAYBE;
	size_t n = strlen(host), n_want = strlen(want);
	if (strncmp(want, "*.", 2) != 0) return strcmp(host, want) == 0 ? MATCH_YES : MATCH_NO;
	return n > n_want - 1 && strcmp(host + n - (n_want - 1), want + 1) == 0 ? MATCH_YES : MATCH_NO;
}

/* --- Judging ----------------------------------------------------------------------------------------------------- */

/* For a tool without patterns of its own: match any string member, only for deny and ask. */
static enum match match_members(const struct rule *r, const struct call *c) {
	struct span key, value;
	size_t at = 0;
	enum match best = MATCH_NO;
	while (span_next_member(c->input, &at, &key, &value)) {
		if (!span_is_string(value)) continue;
		_cleanup_free_ char *text = span_dup(value, NULL);
		best = MAX(best, text ? match_text(r, text, true) : MATCH_YES);
	}
	return best;
}

static enum match match_pattern(const struct rule *r, const struct call *c, const struct use *u, enum side side) {
	bool needed = u->row->always && u->row->subject != TOOL_SEARCH;
	if (c->undecoded || c->no_memory || (needed && u->absent)) return side == SIDE_ALLOW ? MATCH_NO : MATCH_YES;
	if (u->absent && !(u->row->always && u->row->subject == TOOL_SEARCH)) return MATCH_NO;
	const char *first = u->values.v ? u->values.v[0] : NULL;
	bool whole;
	switch (u->row->subject) {
	case TOOL_COMMAND:
		if (side == SIDE_ALLOW) return shell_is_plain(first) ? match_text(r, first, true) : MATCH_NO;
		whole = strlen(first) <= SHELL_TEXT_MAX && match_text(r, first, true) == MATCH_YES;
		return whole ? MATCH_YES : find_command(r, &u->commands);
	case TOOL_FOREIGN:
		return match_text(r, first, true) == MATCH_YES ? MATCH_YES : MATCH_MAYBE;
	case TOOL_CODE:
		return MATCH_MAYBE;
	case TOOL_PATH:
	case TOOL_SEARCH:
		return match_path(r, c, u, side);
	case TOOL_URL:
		return u->values.n ? match_host(r, u, side) : MATCH_NO;
	case TOOL_NAME:
		return match_text(r, first, true);
	}
	return MATCH_NO;
}

/* Match the tool's own name, or that of its family. An allow rule without a pattern matches only the tool itself; one
 * with a pattern matches tools that do nothing else. */
static enum match judge_use(const struct rule *r, const struct call *c, const struct use *u, enum side side) {
	bool family = names_family(c->tools, r, u->row) && (side == SIDE_DENY || (r->pattern && u->row->always));
	if (!family && !(r->pattern && names(r, c->name))) return MATCH_NO;
	if (side == SIDE_ALLOW && !u->row->always) return MATCH_NO;
	if (r->pattern) return match_pattern(r, c, u, side);
	if (u->absent && !u->row->always) return MATCH_NO;
	return u->row->subject == TOOL_CODE ? MATCH_MAYBE : MATCH_YES;
}

static bool key_has(struct span key, const char *word) {
	for (size_t i = 0; i + strlen(word) <= key.n; i++)
		if (strncasecmp(key.p + i, word, strlen(word)) == 0) return true;
	return false;
}

/* Guess the subject of a member of an unknown tool; false: none that rules have. */
static bool guess(struct span key, const struct tool_family *family, struct tool_use *row) {
	static const char *const commands[] = {"command", "cmd", "code", "script", "shell", "argv", "exec"};
	static const char *const paths[] = {"path", "file", "dir", "directory"};
	*row = (struct tool_use){.tool = "", .rule = family->rule, .subject = family->subject};
	if (family->subject == TOOL_CODE) {
		for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
			if (key_has(key, commands[i])) return true;
		return false;
	}
	if (family->subject == TOOL_URL) return key_has(key, "url");
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		if (key_has(key, paths[i])) return true;
	return false;
}

/* An unknown tool and a rule for a family of tools: ask if the tool looks like a member of it. */
static enum match judge_unknown(const struct rule *r, const struct call *c) {
	const struct tool_family *families = c->tools ? c->tools->families : NULL;
	size_t n = c->tools ? c->tools->n_families : 0;
	struct span key, value;
	enum match best = MATCH_NO;
	for (size_t i = 0; i < n; i++) {
		if (!names(r, families[i].rule)) continue;
		if (c->undecoded) return MATCH_MAYBE;
		for (size_t at = 0; span_next_member(c->input, &at, &key, &value);) {
			struct tool_use row;
			struct use u = {.row = &row};
			if (!guess(key, &families[i], &row)) continue;
			bool ok = read_texts(&u.values, value, 0);
			enum match m = !ok || !r->pattern ? MATCH_MAYBE : match_pattern(r, c, &u, SIDE_DENY);
			best = MAX(best, m);
			words_free(&u.values);
		}
	}
	return MIN(best, MATCH_MAYBE);
}

static enum match judge_rule(const char *text, const struct call *c, enum side side) {
	struct rule r;
	enum match best = MATCH_NO;
	if (!parse_rule(text, &r)) return side == SIDE_ALLOW ? MATCH_NO : MATCH_MAYBE;
	bool named = names_tool(&r, c->name);
	if (named && !r.pattern) return MATCH_YES;
	for (size_t i = 0; i < c->n_uses && best != MATCH_YES; i++) {
		enum match m = judge_use(&r, c, &c->uses[i], side);
		best = MAX(best, m);
	}
	if (side == SIDE_ALLOW || c->n_uses) return best;
	if (named) return c->undecoded ? MATCH_YES : match_members(&r, c);
	return c->known || is_mcp(c->name, strlen(c->name)) ? MATCH_NO : judge_unknown(&r, c);
}

/* Return the first matching rule, else the first that might match. */
static const char *first_match(const struct words *rules, const struct call *c, enum side side, enum match *best) {
	const char *by = NULL;
	*best = MATCH_NO;
	for (size_t i = 0; i < rules->n && *best != MATCH_YES; i++) {
		enum match m = judge_rule(rules->v[i], c, side);
		if (m <= *best) continue;
		*best = m;
		by = rules->v[i];
	}
	return by;
}

static enum rule_verdict judge(const struct profile *p, const struct call *c, const char **rule) {
	enum match match;
	const char *deny = first_match(&p->deny_tools, c, SIDE_DENY, &match);
	*rule = deny;
	if (match == MATCH_YES) return RULE_DENY;
	const char *ask = first_match(&p->ask_tools, c, SIDE_DENY, &match);
	*rule = deny ? deny : ask;
	if (*rule) return RULE_ASK;
	if (tools_choose(c->tools, c->name) || c->unboxed || c->undecoded) return RULE_NONE;
	const char *allow = first_match(&p->allow_tools, c, SIDE_ALLOW, &match);
	if (match != MATCH_YES) return RULE_NONE;
	*rule = allow;
	return RULE_ALLOW;
}

static enum rule_verdict judge_call(const struct profile *p, const char *tool, struct span input, bool blind,
									const char **rule) {
	const char *unused;
	struct call c;
	if (!rule) rule = &unused;
	*rule = NULL;
	if (!tool) { /* it cannot be decoded: it could be any tool */
		const struct words *w = p->deny_tools.n ? &p->deny_tools : &p->ask_tools;
		*rule = w->n ? w->v[0] : NULL;
		return p->deny_tools.n ? RULE_DENY : w->n ? RULE_ASK : RULE_NONE;
	}
	if (!p->deny_tools.n && !p->ask_tools.n && !p->allow_tools.n) return RULE_NONE;
	read_call(&c, p, tool, input);
	c.blind = blind;
	enum rule_verdict verdict = judge(p, &c, rule);
	free_call(&c);
	return verdict;
}

enum rule_verdict rules_judge(const struct profile *p, const char *tool, struct span input, const char **rule) {
	return judge_call(p, tool, input, false, rule);
}

/* --- Lists -------------------------------------------------------------------------------------------------------- */

/* Rules have spaces within their parentheses: Bash(git status) is one word here. A comma between rules is allowed. */
static const char *rule_end(const char *p) {
	int depth = 0;
	for (; *p; p++) {
		if (*p == '\\' && p[1])
			p++;
		else if (*p == '(')
			depth++;
		else if (*p == ')' && depth)
			depth--;
		else if (!depth && strchr(" \t,", *p))
			break;
	}
	return p;
}

bool rules_split(const char *text, struct words *out) {
	for (const char *p = text;;) {
		while (*p && strchr(" \t,", *p)) p++;
		if (!*p) return true;
		const char *end = rule_end(p);
		size_t n = (size_t)(end - p);
		bool quoted = n > 2 && p[0] == '"' && p[n - 1] == '"'; /* like a word of other lists */
		_cleanup_free_ char *rule = quoted ? strndup(p + 1, n - 2) : strndup(p, n);
		if (!rule || !words_add(out, rule)) return false;
		p = end;
	}
}

/* --- by an errand ------------------------------------------------------------------------------------------------- */

/* Return true for rules with a pattern for paths, of any tool that may have paths. */
static bool may_match_path(const char *text, const struct call *c) {
	struct rule r;
	if (!parse_rule(text, &r) || !r.pattern) return false;
	for (size_t i = 0; i < c->n_uses; i++)
		if (is_path(c->uses[i].row) && (names_family(c->tools, &r, c->uses[i].row) || names(&r, c->name))) return true;
	bool family = false;
	for (size_t i = 0; c->tools && i < c->tools->n_families; i++)
		family |= c->tools->families[i].subject == TOOL_PATH && names(&r, c->tools->families[i].rule);
	return !c->n_uses && family;
}

bool rules_need_errand(const struct profile *p, const char *tool, struct span input) {
	const struct words *lists[] = {&p->deny_tools, &p->ask_tools, &p->allow_tools};
	struct call c;
	bool needed = false;
	if (!tool || (!p->deny_tools.n && !p->ask_tools.n && !p->allow_tools.n)) return false;
	read_call(&c, p, tool, input);
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		for (size_t k = 0; k < lists[i]->n && !needed; k++) needed = may_match_path(lists[i]->v[k], &c);
	free_call(&c);
	return needed;
}

char *rules_place(const struct profile *p, const char *tool, struct span input) {
	struct call c;
	char *place = NULL;
	read_call(&c, p, tool, input);
	for (size_t i = 0; i < c.n_uses && !place; i++)
		if (is_path(c.uses[i].row) && c.uses[i].values.n && *c.uses[i].values.v[0] == '/')
			place = strdup(c.uses[i].values.v[0]);
	free_call(&c);
	char *last = place ? strrchr(place, '/') : NULL;
	if (last && last != place) *last = 0;
	return place;
}

void rules_ask(struct buf *request, const struct profile *p, const char *tool, struct span input) {
	const struct words *lists[] = {&p->deny_tools, &p->ask_tools, &p->allow_tools};
	errand_put(request, tool);
	errand_put(request, p->dialect->name);
	buf_put(request, input.p ? input.p : "", input.n);
	buf_put(request, "", 1);
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		for (size_t k = 0; k < lists[i]->n; k++) errand_put(request, lists[i]->v[k]);
		errand_put(request, "");
	}
}

static bool read_list(struct words *list, const char **at, const char *end) {
	const char *rule;
	while ((rule = errand_next(at, end)) && *rule)
		if (!words_add(list, rule)) return false;
	return rule != NULL;
}

/* The answer is the verdict's digit and the rule. */
int rules_errand(void) {
	struct profile p = {0};
	size_t n;
	const char *rule = NULL;
	char *request = errand_request(&n);
	const char *at = request, *end = request ? request + n : NULL;
	const char *tool = errand_next(&at, end), *dialect = errand_next(&at, end), *input = errand_next(&at, end);
	p.dialect = dialect ? dialect_find(dialect) : NULL;
	if (!input || !p.dialect || !read_list(&p.deny_tools, &at, end) || !read_list(&p.ask_tools, &at, end) ||
		!read_list(&p.allow_tools, &at, end))
		return EX_USAGE;
	struct span span = {*input ? input : NULL, strlen(input)};
	char verdict = (char)('0' + (int)rules_judge(&p, tool, span, &rule));
	errand_say(&verdict, 1);
	if (rule) errand_say(rule, strlen(rule));
	return EX_OK;
}

enum rule_verdict rules_answer(const struct profile *p, const char *tool, struct span input, struct span answer,
							   const char **rule) {
	const struct words *lists[] = {&p->deny_tools, &p->ask_tools, &p->allow_tools};
	const char *unused;
	if (!rule) rule = &unused;
	if (!answer.n || *answer.p < '0' || *answer.p > '0' + (char)RULE_ASK) return judge_call(p, tool, input, true, rule);
	struct span text = {answer.p + 1, answer.n - 1};
	*rule = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		for (size_t k = 0; k < lists[i]->n && !*rule; k++)
			if (span_same(span_of(lists[i]->v[k]), text)) *rule = lists[i]->v[k];
	return (enum rule_verdict)(*answer.p - '0');
}
