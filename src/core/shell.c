/* SPDX-License-Identifier: MIT */
#include "core/shell.h"

#include "base/buf.h"

#include <string.h>

#define DEPTH_MAX 24
#define IS_IN(c, set) ((c) && strchr(set, c))
#define DIGITS "0123456789"
#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define NAME LETTERS DIGITS "_"
#define OPERATORS ";&|\n()<>`"

/* --- Plain ------------------------------------------------------------------------------------------------------- */

/* Outside of quotes only what no shell (sh, bash, zsh) gives a meaning to; globs and braces are left out because a file
 * name can be an option. */
#define PLAIN_BYTES LETTERS DIGITS " _-./:,@%+=^~"

static bool is_control(char c) {
	return (unsigned char)c < 0x20 || c == 0x7f;
}

/* p stands behind the opening quote; moves behind the closing one. */
static bool skip_plain_quoted(const char **p, char quote) {
	for (; **p != quote; ++*p) {
		if (is_control(**p)) return false; /* the end, too */
		if (quote == '\'') continue;
		if (**p == '$' || **p == '`') return false;
		if (**p == '\\' && is_control(*++*p)) return false;
	}
	++*p;
	return true;
}

bool shell_is_plain(const char *text) {
	if (strlen(text) > SHELL_TEXT_MAX) return false;
	for (const char *p = text; *p;) {
		char c = *p++;
		if (c == '\'' || c == '"') {
			if (!skip_plain_quoted(&p, c)) return false;
		} else if (!strchr(PLAIN_BYTES, c)) {
			return false;
		}
	}
	return true;
}

/* --- Collecting commands ----------------------------------------------------------------------------------------- */

/* What one text showed while it was read. */
struct flags {
	bool unclosed;    /* quotes or brackets do not close */
	bool lost;        /* here-documents and the like: quotes may mean something else than we think */
	bool commented;   /* a comment was skipped */
	bool interpreted; /* a program that runs what it reads: words anywhere may be commands */
};

struct scanner {
	struct shell_commands *out;
	bool no_memory;
	int depth;
	struct flags flags;
	bool comments; /* # begins a comment */
	bool raw;      /* quotes mean nothing */
	char here[64]; /* the word that ends the here-document whose text begins at the next line; "": none */
};

/* The command that is being read. */
struct command {
	struct words words;
	struct buf word;
	bool in_word, is_target; /* the word is a redirection's file */
};

static void scan_text(struct scanner *s, const char *text);

static const char *const keywords[] = {"if", "then", "else", "elif", "do", "while", "until",
									   "!",  "{",    "}",    "time", "fi", "done",  "esac"};

/* Programs that run the program named in their arguments; which argument that is, is not worked out. */
static const char *const wrappers[] = {"sudo",        "doas",
									   "env",         "command",
									   "builtin",     "exec",
									   "nohup",       "nice",
									   "ionice",      "time",
									   "timeout",     "stdbuf",
									   "setsid",      "xargs",
									   "watch",       "strace",
									   "ltrace",      "chroot",
									   "su",          "runuser",
									   "flock",       "parallel",
									   "unshare",     "nsenter",
									   "chrt",        "taskset",
									   "busybox",     "ssh",
									   "script",      "coproc",
									   "function",    "trap",
									   "eval",        "sh",
									   "bash",        "dash",
									   "zsh",         "ksh",
									   "ash",         "fish",
									   "systemd-run", "pkexec",
									   "gdb",         "setpriv",
									   "prlimit",     "cgexec",
									   "firejail",    "bwrap",
									   "docker",      "podman",
									   "npx",         "caffeinate",
									   "unbuffer",    "toybox",
									   "entr",        "dbus-run-session",
									   "xvfb-run",    "fakeroot",
									   "proot",       "noglob",
									   "nocorrect",   "start-stop-daemon"};

/* Programs that run text from their input or their arguments. */
static const char *const interpreters[] = {
	"sh",      "bash", "dash", "zsh",  "ksh", "ash", "fish", "eval", "source", ".",  "xargs", "parallel", "python",
	"python3", "perl", "ruby", "node", "php", "lua", "awk",  "gawk", "mawk",   "at", "batch", "crontab"};

static const char *const exec_words[] = {"-exec", "-execdir", "-ok", "-okdir"};

static bool is_one_of(const char *word, const char *const *list, size_t n) {
	for (size_t i = 0; i < n; i++)
		if (strcmp(word, list[i]) == 0) return true;
	return false;
}
#define IS_ONE_OF(word, list) is_one_of(word, list, ARRAY_SIZE(list))

static const char *base_name(const char *word) {
	const char *slash = strrchr(word, '/');
	return slash && slash[1] ? slash + 1 : word;
}

/* NAME=..., NAME+=..., NAME[...]=... */
static bool is_assignment(const char *word) {
	size_t n = strspn(word, NAME);
	if (!n || IS_IN(word[0], DIGITS)) return false;
	if (word[n] == '[' || word[n] == GLOB_UNKNOWN) n = strcspn(word, "+=");
	if (word[n] == '+') n++;
	return word[n] == '=';
}

static void add_text(struct scanner *s, const char *first, char *const *rest, size_t n) {
	struct buf b = BUF_INIT(SHELL_COMMAND_MAX + 1);
	if (s->out->texts.n >= SHELL_COMMANDS_MAX) {
		s->out->doubtful = true;
		return;
	}
	bool fits = buf_puts(&b, first);
	for (size_t i = 0; i < n && fits; i++) {
		size_t room = SHELL_COMMAND_MAX - MIN(b.len, (size_t)SHELL_COMMAND_MAX);
		fits = strlen(rest[i]) + 1 < room && buf_putc(&b, ' ') && buf_puts(&b, rest[i]);
	}
	if (!b.data || b.len > SHELL_COMMAND_MAX) {
		s->out->doubtful = true;
	} else {
		b.failed = false;
		if (!fits) buf_putc(&b, GLOB_UNKNOWN);
		s->no_memory |= !words_add(&s->out->texts, b.data);
	}
	buf_free(&b);
}

/* The command that begins with words[at], as it is written and without the folder of its program. */
static void add_command(struct scanner *s, const struct words *words, size_t at) {
	const char *first = words->v[at], *base = base_name(first);
	add_text(s, first, words->v + at + 1, words->n - at - 1);
	if (base != first) add_text(s, base, words->v + at + 1, words->n - at - 1);
}

/* Arguments that are lines of their own: sh -c, env -S, watch, su -c. eval joins its arguments. */
static void scan_arguments(struct scanner *s, const struct words *words, size_t at) {
	struct buf all = BUF_INIT(SHELL_TEXT_MAX);
	for (size_t i = at + 1; i < words->n; i++) {
		const char *word = words->v[i], *equals = strchr(word, '=');
		if (strpbrk(word, " \t" OPERATORS "'\"\\$")) {
			scan_text(s, word);
			if (*word == '-' && word[1]) scan_text(s, word + 2); /* env -S'rm -rf' */
			if (*word == '-' && equals) scan_text(s, equals + 1);
		}
		buf_puts(&all, words->v[i]);
		buf_putc(&all, ' ');
	}
	if (strcmp(words->v[at], "eval") == 0 && all.data) scan_text(s, all.data);
	if (all.failed) s->out->doubtful = true;
	buf_free(&all);
}

/* Every place of a simple command at which a command may begin. */
static void take_command(struct scanner *s, const struct words *words, bool everywhere) {
	bool start = true, wrapped = everywhere, scanned = false, finds = false;
	for (size_t i = 0; i < words->n; i++) {
		const char *word = words->v[i], *name = base_name(word);
		if (start || wrapped) {
			add_command(s, words, i);
			if (IS_ONE_OF(name, interpreters) || strncmp(name, "python", 6) == 0) s->flags.interpreted = true;
			if (strcmp(name, "case") == 0) s->flags.lost = true;
			finds |= strcmp(name, "find") == 0 || strcmp(name, "fd") == 0;
			bool wraps = IS_ONE_OF(name, wrappers);
			if (wraps && !scanned && !s->raw) scan_arguments(s, words, i);
			scanned |= wraps;
			wrapped |= wraps;
		}
		start = (start && (IS_ONE_OF(word, keywords) || is_assignment(word))) ||
				(finds && (IS_ONE_OF(word, exec_words) || strcmp(word, "-x") == 0));
		if (!start && !wrapped && !finds) return;
	}
}

/* --- Reading ----------------------------------------------------------------------------------------------------- */

static void put(struct scanner *s, struct command *c, char byte) {
	c->in_word = true;
	s->no_memory |= !buf_putc(&c->word, byte);
}

static void end_word(struct scanner *s, struct command *c) {
	if (c->in_word && !c->is_target) s->no_memory |= !words_add(&c->words, c->word.data ? c->word.data : "");
	if (c->in_word) c->is_target = false;
	c->in_word = false;
	c->word.len = 0;
	if (c->word.data) c->word.data[0] = 0;
}

static void end_command(struct scanner *s, struct command *c, bool everywhere) {
	end_word(s, c);
	c->is_target = false;
	if (c->words.n) take_command(s, &c->words, everywhere);
	words_free(&c->words);
}

static const char *scan_list(struct scanner *s, const char *p, char closing);

/* $( or <( or >(: p stands behind the bracket. */
static const char *scan_inner(struct scanner *s, const char *p) {
	if (s->depth >= DEPTH_MAX) {
		s->out->doubtful = s->flags.lost = true;
		return p + strlen(p);
	}
	s->depth++;
	p = scan_list(s, p, ')');
	s->depth--;
	return p;
}

/* p stands behind the opening backtick. */
static const char *scan_backticks(struct scanner *s, const char *p) {
	struct buf b = BUF_INIT(SHELL_TEXT_MAX);
	for (; *p && *p != '`'; p++) {
		if (*p == '\\' && IS_IN(p[1], "`\\$\"")) p++;
		buf_putc(&b, *p);
	}
	if (*p)
		p++;
	else
		s->flags.unclosed = true;
	if (b.data) scan_text(s, b.data);
	buf_free(&b);
	return p;
}

/* What stands in ${...} is read on as if it were text; that goes wrong where there are quotes in it. */
static const char *scan_dollar(struct scanner *s, struct command *c, const char *p) {
	if (*p == '(') {
		put(s, c, GLOB_UNKNOWN);
		return scan_inner(s, p + 1);
	}
	if (*p == '{') {
		size_t n = strcspn(p, "}");
		s->flags.lost |= memchr(p, '\'', n) || memchr(p, '"', n) || memchr(p, '\\', n) || memchr(p, '`', n);
		put(s, c, GLOB_UNKNOWN);
		return p + 1;
	}
	put(s, c, IS_IN(*p, NAME "@*#?-$!") ? GLOB_UNKNOWN : '$');
	return p;
}

/* $'...': p stands behind the opening quote. Escapes are not decoded. */
static const char *scan_ansi(struct scanner *s, struct command *c, const char *p) {
	c->in_word = true;
	for (; *p && *p != '\''; p++) {
		bool escape = *p == '\\' && p[1];
		put(s, c, escape ? GLOB_UNKNOWN : *p);
		p += escape;
	}
	s->flags.unclosed |= !*p;
	return *p ? p + 1 : p;
}

static const char *scan_single(struct scanner *s, struct command *c, const char *p) {
	c->in_word = true;
	for (; *p && *p != '\''; p++) put(s, c, *p);
	s->flags.unclosed |= !*p;
	return *p ? p + 1 : p;
}

static const char *scan_double(struct scanner *s, struct command *c, const char *p) {
	c->in_word = true;
	while (*p && *p != '"') {
		if (*p == '\\' && p[1] == '\n') {
			p += 2;
		} else if (*p == '\\' && IS_IN(p[1], "$`\"\\")) {
			put(s, c, p[1]);
			p += 2;
		} else if (*p == '$') {
			p = scan_dollar(s, c, p + 1);
		} else if (*p == '`') {
			put(s, c, GLOB_UNKNOWN);
			p = scan_backticks(s, p + 1);
		} else {
			put(s, c, *p++);
		}
	}
	s->flags.unclosed |= !*p;
	return *p ? p + 1 : p;
}

static const char *scan_quote(struct scanner *s, struct command *c, const char *p) {
	if (s->raw) return p + 1;
	if (*p == '\'') return scan_single(s, c, p + 1);
	if (*p == '"') return scan_double(s, c, p + 1);
	if (p[1] == '\n') return p + 2;
	if (p[1])
		put(s, c, p[1]);
	else
		s->flags.unclosed = true;
	return p[1] ? p + 2 : p + 1;
}

/* p stands behind <<: the word that ends the here-document, without its quotes. */
static void note_here(struct scanner *s, const char *p) {
	size_t n = 0;
	p += *p == '-';
	p += strspn(p, " \t");
	for (; *p && !IS_IN(*p, " \t" OPERATORS) && n < sizeof s->here - 1; p++)
		if (!IS_IN(*p, "'\"\\")) s->here[n++] = *p;
	s->here[n] = 0;
}

/* p stands on the line end before a here-document: the line end behind it. A document that does not end is read as
 * commands. What a shell expands in it is left to the reading without quotes, which `lost` brings about. */
static const char *skip_here(struct scanner *s, const char *p) {
	size_t n = strlen(s->here);
	for (const char *line = p; n && *line; line += strcspn(line, "\n")) {
		line++;
		line += strspn(line, "\t");
		if (strncmp(line, s->here, n) == 0 && (!line[n] || line[n] == '\n')) {
			p = line + n;
			break;
		}
		if (!*line) break;
	}
	s->here[0] = 0;
	return p;
}

/* < or >: the next word is a file, the number before it a descriptor. */
static const char *scan_redirection(struct scanner *s, struct command *c, const char *p) {
	if (p[1] == '(' && !s->raw) {
		put(s, c, GLOB_UNKNOWN);
		return scan_inner(s, p + 2);
	}
	if (c->in_word && c->word.data && strspn(c->word.data, DIGITS) == c->word.len) {
		c->in_word = false;
		c->word.len = 0;
		c->word.data[0] = 0;
	}
	end_word(s, c);
	if (p[0] == '<' && p[1] == '<') s->flags.lost = true;
	if (p[0] == '<' && p[1] == '<' && p[2] != '<') note_here(s, p + 2);
	p++;
	while (IS_IN(*p, "<>&|")) p++;
	bool closes = *p == '-' && p[-1] == '&'; /* >&- is whole: what follows is the command, even without a blank */
	if (closes || (*p == '-' && p[-1] == '<')) p++;
	c->is_target = !closes;
	return p;
}

/* A character that a shell may expand, outside of quotes. */
static bool is_expanded(const struct command *c, const char *p) {
	bool alone = !c->in_word && (!p[1] || IS_IN(p[1], " \t\n;[") || p[1] == '}');
	if (*p == '{' || *p == '[') return !alone && !(*p == '[' && p[1] == '[');
	return *p == '*' || *p == '?';
}

static const char *scan_word(struct scanner *s, struct command *c, const char *p) {
	if (*p == '\'' || *p == '"' || *p == '\\') return scan_quote(s, c, p);
	if (*p == '$' && p[1] == '\'' && !s->raw) return scan_ansi(s, c, p + 2);
	if (*p == '$' && p[1] == '"') return p + 1;
	if (*p == '$' && !(s->raw && p[1] == '(')) return scan_dollar(s, c, p + 1);
	if (*p == '`') {
		put(s, c, GLOB_UNKNOWN);
		return scan_backticks(s, p + 1);
	}
	put(s, c, is_expanded(c, p) || *p == '$' ? GLOB_UNKNOWN : *p);
	return p + 1;
}

/* With all quotes taken away: every operator separates, wherever it stands. */
static void scan_raw(struct scanner *s, const char *p, bool everywhere) {
	struct command c = {.word = BUF_INIT(SHELL_TEXT_MAX)};
	for (; *p; p++) {
		if (IS_IN(*p, OPERATORS "{}"))
			end_command(s, &c, everywhere);
		else if (*p == ' ' || *p == '\t')
			end_word(s, &c);
		else if (!IS_IN(*p, "'\"\\"))
			put(s, &c, *p == '$' || *p == '*' || *p == '?' ? GLOB_UNKNOWN : *p);
	}
	end_command(s, &c, everywhere);
	buf_free(&c.word);
}

/* Reads commands up to the closing bracket (0: the end); returns where it stands behind it. */
static const char *scan_list(struct scanner *s, const char *p, char closing) {
	struct command c = {.word = BUF_INIT(SHELL_TEXT_MAX)};
	int brackets = 0;
	while (*p && (*p != closing || brackets)) {
		if (*p == '#' && !c.in_word && s->comments) {
			s->flags.commented = true;
			p += strcspn(p, "\n");
		} else if (*p == ' ' || *p == '\t') {
			end_word(s, &c);
			p++;
		} else if (*p == '<' || *p == '>' || (*p == '&' && p[1] == '>')) {
			p = scan_redirection(s, &c, p + (*p == '&'));
		} else if (IS_IN(*p, ";&|\n()")) {
			brackets += *p == '(' ? 1 : *p == ')' && brackets ? -1 : 0;
			end_command(s, &c, false);
			if (*p == '\n' && s->here[0]) p = skip_here(s, p);
			p += *p != 0;
		} else {
			p = scan_word(s, &c, p);
		}
	}
	end_command(s, &c, false);
	buf_free(&c.word);
	if (closing && !*p) s->flags.unclosed = true;
	return *p ? p + 1 : p;
}

/* One text with its own flags; those of inner texts do not concern the outer one. */
static void scan_text(struct scanner *outer, const char *text) {
	struct scanner s = {.out = outer->out, .depth = outer->depth + 1, .comments = true};
	if (s.depth > DEPTH_MAX || s.out->texts.n >= SHELL_COMMANDS_MAX) {
		s.out->doubtful = true;
		return;
	}
	scan_list(&s, text, 0);
	if (s.flags.commented) {
		s.comments = false;
		s.here[0] = 0;
		scan_list(&s, text, 0);
	}
	s.raw = true;
	if (s.flags.unclosed) s.out->doubtful = true;
	if (s.flags.unclosed || s.flags.lost || s.flags.interpreted) scan_raw(&s, text, s.flags.interpreted);
	outer->no_memory |= s.no_memory;
}

bool shell_commands(const char *text, struct shell_commands *out) {
	struct scanner s = {.out = out};
	*out = (struct shell_commands){0};
	if (strlen(text) > SHELL_TEXT_MAX) {
		_cleanup_free_ char *head = strndup(text, SHELL_TEXT_MAX);
		out->doubtful = true;
		if (!head) return false;
		scan_text(&s, head);
	} else {
		scan_text(&s, text);
	}
	return !s.no_memory;
}

void shell_commands_free(struct shell_commands *c) {
	words_free(&c->texts);
}
