/* SPDX-License-Identifier: MIT */
#include "core/shell.h"

#include "core/program.h"

#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 24
#define WRITTEN_MAX 64
/* Bytes searched for the end of a construct: without a bound the time is quadratic in the length of the line. */
#define AHEAD_MAX 2048
#define IS_IN(c, set) ((c) && strchr(set, c))
#define DIGITS "0123456789"
#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define NAME LETTERS DIGITS "_"
#define OPERATORS ";&|\n()<>`"

/* --- Plain ------------------------------------------------------------------------------------------------------- */

/* Outside of quotes only characters without a meaning in any shell (sh, bash, zsh); globs and braces are left out
 * because a file name can be an option. */
#define PLAIN_BYTES LETTERS DIGITS " _-./:,@%+=^~"

static bool is_control(char c) {
	return (unsigned char)c < 0x20 || c == 0x7f;
}

/* p is after the opening quote; move it after the closing one. */
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

/* Findings while a text was read. */
struct flags {
	bool unclosed;    /* unbalanced quotes or brackets */
	bool lost;        /* here-documents and the like: quotes may have another meaning */
	bool commented;   /* a comment was skipped */
	bool interpreted; /* a program runs its input: any word may be a command */
};

/* A here-document: its text begins at the next line. */
struct here {
	char word[256]; /* the word at its end */
	bool quoted, tabs;
};
#define HERES_MAX 8

struct scanner {
	struct shell_commands *out;
	bool no_memory;
	int depth, inner; /* nested texts; lists within this text */
	struct flags flags;
	bool comments; /* # begins a comment */
	bool raw;      /* quotes mean nothing */
	bool again;    /* the text was read before, in another way: only additional commands count */
	struct here heres[HERES_MAX];
	size_t n_heres, endless; /* waiting ones; those without an end */
};

/* The command that is being parsed. */
struct command {
	struct words words;
	struct buf word;
	bool in_word, is_target; /* the word is the file of a redirection */
	bool writes;             /* opened for writing */
	bool computed;           /* a part of the word is unknown and not a number */
	int braces;
};

static void scan_text(struct scanner *s, const char *text);

static const char *const keywords[] = {"if", "then", "else", "elif", "do", "while", "until",
									   "!",  "{",    "}",    "time", "fi", "done",  "esac"};

static const char *const exec_words[] = {"-exec", "-execdir", "-ok", "-okdir"};

static bool is_one_of(const char *word, const char *const *list, size_t n) {
	for (size_t i = 0; i < n; i++)
		if (strcmp(word, list[i]) == 0) return true;
	return false;
}
#define IS_ONE_OF(word, list) is_one_of(word, list, ARRAY_SIZE(list))

static void doubt(struct scanner *s) {
	if (!s->again && !s->raw) s->out->unsure = true;
}

/* NAME=..., NAME+=..., NAME[...]=... */
static bool is_assignment(const char *word) {
	size_t n = strspn(word, NAME);
	if (!n || IS_IN(word[0], DIGITS)) return false;
	if (word[n] == '[' || word[n] == GLOB_UNKNOWN) n = strcspn(word, "+=");
	if (word[n] == '+') n++;
	return word[n] == '=';
}

/* The line is already unsure: the rest changes nothing. */
static bool is_full(const struct scanner *s) {
	return s->out->texts.n >= SHELL_COMMANDS_MAX;
}

static void add_text(struct scanner *s, const char *first, char *const *rest, size_t n) {
	struct buf b = BUF_INIT(SHELL_COMMAND_MAX + 1);
	if (s->out->texts.n + 1 >= SHELL_COMMANDS_MAX) s->out->unsure = true;
	if (is_full(s)) return;
	bool fits = buf_puts(&b, first);
	for (size_t i = 0; i < n && fits; i++) {
		size_t room = SHELL_COMMAND_MAX - MIN(b.len, (size_t)SHELL_COMMAND_MAX);
		fits = strlen(rest[i]) + 1 < room && buf_putc(&b, ' ') && buf_puts(&b, rest[i]);
	}
	if (!b.data || b.len > SHELL_COMMAND_MAX) {
		s->out->unsure = true;
	} else {
		b.failed = false;
		if (!fits) buf_putc(&b, GLOB_UNKNOWN);
		s->no_memory |= !words_add(&s->out->texts, b.data);
	}
	buf_free(&b);
}

/* --- the words of the line
 * ------------------------------------------------------------------------------------------ */

#define HEAD '\x02' /* around a word at which a command begins: its text is among the commands */

/* p is at a $ or a backtick: return the last byte of the replaced text. */
static const char *replaced_end(const char *p) {
	char closing = *p == '`' ? '`' : p[1] == '(' ? ')' : p[1] == '{' ? '}' : 0;
	const char *end = closing ? memchr(p + 1, closing, strnlen(p + 1, AHEAD_MAX)) : NULL;
	if (end) return end;
	if (IS_IN(p[1], LETTERS "_")) return p + strspn(p + 1, NAME);
	return p + (p[1] && !IS_IN(p[1], " \t\n"));
}

/* p is at {: return true for {a,b} or {1..3}. */
static bool is_brace_expansion(const char *p) {
	size_t n = 0;
	while (n < AHEAD_MAX && p[1 + n] && !strchr("{} \t\n:;\"'", p[1 + n])) n++;
	return p[1 + n] == '}' && (memchr(p + 1, ',', n) || memmem(p + 1, n, "..", 2));
}

/* Write the text without quotes; `expand`: also without text that a shell would replace. */
static void say_unquoted(struct buf *b, const char *p, bool expand) {
	bool braces = false;
	buf_putc(b, ' ');
	for (; *p; p++) {
		braces |= *p == '{' && is_brace_expansion(p);
		bool part = IS_IN(*p, "*?$`") || (braces && IS_IN(*p, "{,}"));
		if (expand && part) {
			braces &= *p != '}';
			if (IS_IN(*p, "$`")) p = replaced_end(p);
			buf_putc(b, GLOB_UNKNOWN);
		} else if (!IS_IN(*p, "'\"\\")) {
			buf_putc(b, *p);
		}
	}
}

/* Escapes such as \n stand for other bytes: a word can begin after one. */
static void say_unescaped(struct buf *b, const char *p) {
	buf_putc(b, ' ');
	for (; *p; p++) {
		bool escape = *p == '\\' && p[1];
		buf_putc(b, escape ? ' ' : *p);
		p += escape;
	}
}

/* Add a word in each form in which a program could read it: one may take it for a line of a shell. */
static void say(struct scanner *s, const char *word, bool head) {
	struct buf *b = &s->out->said;
	if (s->raw || s->again) return;
	size_t from = b->len + 1;
	buf_putc(b, head ? HEAD : ' ');
	buf_puts(b, word);
	if (strpbrk(word, "'\"\\$`*?{") && !head) {
		say_unquoted(b, word, false);
		say_unquoted(b, word, true);
		say_unescaped(b, word);
	}
	for (size_t i = from; i < b->len; i++)
		if (is_control(b->data[i]) && b->data[i] != GLOB_UNKNOWN) b->data[i] = ' ';
	buf_putc(b, head ? HEAD : ' ');
	if (b->failed) s->out->unsure = true;
}

/* Match a part with a known beginning and end; a fully unknown part never matches. */
static bool may_be(const char *token, size_t n, const char *name, size_t n_name) {
	const char *first = memchr(token, GLOB_UNKNOWN, n), *last = memrchr(token, GLOB_UNKNOWN, n);
	if (!first) return n == n_name && memcmp(token, name, n) == 0;
	size_t head = (size_t)(first - token), tail = n - (size_t)(last - token) - 1;
	return head + tail && head + tail <= n_name && memcmp(token, name, head) == 0 &&
		   memcmp(last + 1, name + n_name - tail, tail) == 0;
}

bool shell_says(const struct shell_commands *c, const char *name, size_t n, bool heads) {
	static const char part[] = NAME ".+-\x01";
	bool in_head = false;
	for (const char *p = c->said.data ? c->said.data : ""; *p;) {
		size_t len = strspn(p, part);
		if (len && (heads || !in_head)) {
			if (may_be(p, len, name, n)) return true;
			if (len > 2 && *p == '-' && p[1] != '-' && may_be(p + 2, len - 2, name, n)) return true; /* -crm */
		}
		in_head ^= !len && *p == HEAD;
		p += len ? len : 1;
	}
	return false;
}

/* Add the command at words[at], as written and without the directory of its program. */
static void add_command(struct scanner *s, const struct words *words, size_t at) {
	const char *first = words->v[at], *base = program_base(first);
	add_text(s, first, words->v + at + 1, words->n - at - 1);
	if (base != first) add_text(s, base, words->v + at + 1, words->n - at - 1);
}

/* Parse text with unknown parts that are code for the program that runs it. */
static void scan_code(struct scanner *s, const char *text, bool lines) {
	if (lines && strchr(text, GLOB_UNKNOWN)) doubt(s);
	scan_text(s, text);
}

/* Parse arguments that are lines of their own: sh -c, env -S, watch, su -c. eval joins its arguments. */
static void scan_arguments(struct scanner *s, const struct words *words, size_t at, bool lines) {
	struct buf all = BUF_INIT(SHELL_TEXT_MAX);
	for (size_t i = at + 1; i < words->n; i++) {
		const char *word = words->v[i], *equals = strchr(word, '=');
		if (strpbrk(word, lines ? " \t" OPERATORS "'\"\\$*?[{~" : " \t" OPERATORS "'\"\\$")) {
			scan_code(s, word, lines);
			if (*word == '-' && word[1]) scan_text(s, word + 2); /* env -S'rm -rf' */
			if (*word == '-' && equals) scan_text(s, equals + 1);
		}
		buf_puts(&all, words->v[i]);
		buf_putc(&all, ' ');
	}
	if (strcmp(words->v[at], "eval") == 0 && all.data) scan_code(s, all.data, true);
	if (all.failed) doubt(s);
	buf_free(&all);
}

/* Find a file written by this line among the arguments of a program that may run them. */
static void look_for_written(struct scanner *s, const struct words *words, size_t at) {
	for (size_t i = at; i < words->n; i++)
		for (size_t k = 0; k < s->out->written.n; k++)
			if (strcmp(program_base(words->v[i]), s->out->written.v[k]) == 0) doubt(s);
}

static void note_written(struct scanner *s, const char *file) {
	if (s->out->written.n >= WRITTEN_MAX)
		doubt(s);
	else if (strncmp(file, "/dev/", 5) != 0)
		s->no_memory |= !words_add(&s->out->written, program_base(file));
}

/* Return the entry of the program at words[at], where a command may begin. */
static struct program look_at(struct scanner *s, const struct words *words, size_t at) {
	struct program p = program_of(words->v + at, words->n - at);
	if (p.reads) s->flags.interpreted = true;
	if (s->raw || s->again) return p;
	s->out->unsure |= p.unsure;
	if (strcmp(words->v[at], "case") == 0 && s->inner) doubt(s);
	if (strcmp(words->v[at], "read") == 0) s->out->odd_values = true;
	if (strcmp(words->v[at], "let") == 0) s->out->computes = true;
	if (strcmp(words->v[at], "[[") == 0) s->out->computes |= !p.data;
	s->out->others |= !p.data;
	if (strcmp(program_base(words->v[at]), "tee") == 0)
		for (size_t i = at + 1; i < words->n; i++) note_written(s, words->v[i]);
	return p;
}

/* Try each word of a simple command at which a command may begin. */
static void take_command(struct scanner *s, const struct words *words, bool everywhere) {
	bool start = true, wrapped = everywhere, scanned = false, finds = false, looked = s->raw || s->again;
	for (size_t i = 0; i < words->n; i++) {
		const char *word = words->v[i], *name = program_base(word);
		bool skips = IS_ONE_OF(word, keywords) || is_assignment(word);
		if (is_full(s)) return; /* the line is unsure then */
		say(s, word, start && !skips);
		if (start || wrapped) {
			add_command(s, words, i);
			bool program = wrapped || !skips || strcmp(word, "time") == 0;
			struct program p = {0};
			if (program) p = look_at(s, words, i);
			if (program && !p.data && !looked) look_for_written(s, words, i);
			looked |= program && !p.data;
			if (strcmp(name, "case") == 0) s->flags.lost = true;
			if (finds && strstr(word, "{}")) doubt(s);
			finds |= strcmp(name, "find") == 0 || strcmp(name, "fd") == 0;
			if (p.runs && !scanned && !s->raw) scan_arguments(s, words, i, p.lines);
			scanned |= p.runs;
			wrapped |= p.runs;
		}
		start = (start && skips) || (finds && (IS_ONE_OF(word, exec_words) || strcmp(word, "-x") == 0));
	}
}

/* --- Reading ----------------------------------------------------------------------------------------------------- */

static void put(struct scanner *s, struct command *c, char byte) {
	c->in_word = true;
	s->no_memory |= !buf_putc(&c->word, byte);
}

static void clear_word(struct command *c) {
	c->in_word = c->computed = false;
	c->braces = 0;
	c->word.len = 0;
	if (c->word.data) c->word.data[0] = 0;
}

/* Return true for a value that arithmetic could evaluate as more than a number: a[$(command)]. */
static bool is_odd_value(const struct command *c) {
	const char *value = c->word.data ? strchr(c->word.data, '=') : NULL;
	return value && (c->computed || value[1 + strspn(value + 1, NAME "./:,@%+=-\x01")]);
}

/* The value of an assignment and the text of a redirection are also parsed as lines: their use is known only later. */
static void end_word(struct scanner *s, struct command *c) {
	const char *word = c->word.data ? c->word.data : "";
	if (!c->in_word) return;
	if (!c->is_target) {
		s->no_memory |= !words_add(&c->words, word);
	} else {
		say(s, word, false);
		if (c->writes && !s->raw && !s->again) note_written(s, word);
	}
	if (!s->raw && is_assignment(word)) {
		if (!s->again) s->out->odd_values |= is_odd_value(c);
		if (strstr(word, "$(") || strchr(word, '`')) scan_text(s, strchr(word, '=') + 1);
	}
	c->is_target = c->writes = false;
	clear_word(c);
}

static void end_command(struct scanner *s, struct command *c, bool everywhere) {
	end_word(s, c);
	c->is_target = false;
	if (c->words.n) take_command(s, &c->words, everywhere);
	words_free(&c->words);
}

static const char *scan_list(struct scanner *s, const char *p, char closing);

/* $( or <( or >(: p is after the bracket. Shells differ in how they read a here-document that is open here or at the
 * end. */
static const char *scan_inner(struct scanner *s, const char *p) {
	if (s->depth >= DEPTH_MAX) {
		s->out->unsure = s->flags.lost = true;
		return p + strlen(p);
	}
	if (s->n_heres) doubt(s);
	s->depth++;
	s->inner++;
	p = scan_list(s, p, ')');
	s->inner--;
	s->depth--;
	if (s->n_heres) doubt(s);
	return p;
}

/* p is after the opening backtick. */
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

static const char *scan_dollar(struct scanner *s, struct command *c, const char *p);

/* p is after ((: return the position of the closing )), or NULL if it is not arithmetic. Same search as bash. */
static const char *arithmetic_end(struct scanner *s, const char *p) {
	int brackets = 0;
	size_t left = AHEAD_MAX;
	for (; *p && left && (*p != ')' || brackets); p++, left--) brackets += *p == '(' ? 1 : *p == ')' ? -1 : 0;
	if (!left) doubt(s);
	return *p && left && p[1] == ')' ? p : NULL;
}

/* p is after ((. Names in it are evaluated, and their values again. */
static const char *scan_arithmetic(struct scanner *s, const char *p, const char *end) {
	struct command unused = {.word = BUF_INIT(SHELL_TEXT_MAX)};
	s->flags.lost = true;
	while (p < end) {
		if (*p == '$' || *p == '`')
			p = *p == '$' ? scan_dollar(s, &unused, p + 1) : scan_backticks(s, p + 1);
		else if (IS_IN(*p, LETTERS "_'\"\\"))
			s->out->computes = true, p++;
		else
			p++;
	}
	buf_free(&unused.word);
	return end + 2;
}

/* p is after ${. The meaning of quotes in it depends on the context: its text is then also parsed as if it were
 * outside. */
static const char *scan_braces(struct scanner *s, struct command *c, const char *p) {
	const char *end = memchr(p, '}', strnlen(p, AHEAD_MAX));
	size_t n = end ? (size_t)(end - p) : 0, name = strspn(p, NAME "#");
	put(s, c, GLOB_UNKNOWN);
	c->computed = true;
	if (!end || strcspn(p, "'\"\\`") < n) {
		s->flags.lost = true;
		doubt(s);
		return p;
	}
	bool index = p[name] == '[' && !IS_IN(p[name + 1], "@*" DIGITS);
	bool range = p[name] == ':' && !IS_IN(p[name + 1], "-+=?" DIGITS);
	if (*p == '!' || index || range) s->out->computes = true;
	if (memmem(p, n, "@P", 2)) doubt(s);
	_cleanup_free_ char *text = strndup(p, n);
	if (text && name < n) say(s, text, false);
	while (*p && *p != '}') p = *p == '$' ? scan_dollar(s, c, p + 1) : p + 1;
	s->flags.unclosed |= !*p;
	return *p ? p + 1 : p;
}

/* p is after the dollar sign. */
static const char *scan_dollar(struct scanner *s, struct command *c, const char *p) {
	const char *end = *p == '(' && p[1] == '(' ? arithmetic_end(s, p + 2) : NULL;
	if (end) {
		put(s, c, GLOB_UNKNOWN);
		return scan_arithmetic(s, p + 2, end);
	}
	if (*p == '[') s->out->computes = true; /* old syntax of arithmetic */
	if (*p == '{') return scan_braces(s, c, p + 1);
	bool named = IS_IN(*p, NAME "@*#?-$!");
	put(s, c, named || *p == '(' || *p == '[' ? GLOB_UNKNOWN : '$');
	c->computed |= named || *p == '(';
	if (*p == '(') return scan_inner(s, p + 1);
	if (!named) return p;
	return p + (IS_IN(*p, LETTERS "_") ? strspn(p, NAME) : 1);
}

/* Parse a number of up to `most` digits after an escape; 0 if there is none. */
static long escaped_number(const char **p, int base, int most) {
	char digits[9] = {0}, *end;
	memcpy(digits, *p, strnlen(*p, (size_t)most));
	if (!IS_IN(digits[0], DIGITS "abcdefABCDEF")) return 0;
	long value = strtol(digits, &end, base);
	*p += end - digits;
	return value;
}

/* p is after the backslash; return the byte of the escape. */
static char unescape(const char **p) {
	static const char from[] = "abeEfnrtv", to[] = "\a\b\033\033\f\n\r\t\v";
	char c = *(*p)++;
	const char *at = strchr(from, c);
	if (at) return to[at - from];
	if (c == 'c' && **p) return (char)(*(*p)++ & 0x1f);
	long value;
	if (IS_IN(c, "01234567"))
		--*p, value = escaped_number(p, 8, 3);
	else if (IS_IN(c, "xuU"))
		value = escaped_number(p, 16, c == 'x' ? 2 : c == 'u' ? 4 : 8);
	else
		return IS_IN(c, "\\'\"?") ? c : GLOB_UNKNOWN;
	return value > 0 && value < 0x80 ? (char)value : GLOB_UNKNOWN;
}

/* $'...': p is after the opening quote. */
static const char *scan_ansi(struct scanner *s, struct command *c, const char *p) {
	c->in_word = true;
	while (*p && *p != '\'') {
		bool escape = *p == '\\' && p[1];
		char byte = *p++;
		put(s, c, escape ? unescape(&p) : byte);
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
			c->computed = true;
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

/* p is after <<: parse the word at the end of the here-document, without its quotes. */
static void note_here(struct scanner *s, const char *p) {
	struct here h = {.tabs = *p == '-'};
	size_t n = 0;
	char quote = 0;
	p += h.tabs;
	p += strspn(p, " \t");
	for (; *p && (quote || !IS_IN(*p, " \t" OPERATORS)) && n < sizeof h.word - 1; p++) {
		if (*p == '\n' || *p == '`' || (*p == '$' && quote != '\'')) doubt(s);
		if (*p == '\\' && quote != '\'' && p[1]) {
			h.quoted = true;
			h.word[n++] = *++p;
		} else if (IS_IN(*p, "'\"") && (!quote || quote == *p)) {
			h.quoted = true;
			quote = quote ? 0 : *p;
		} else {
			h.word[n++] = *p;
		}
	}
	if (s->n_heres == HERES_MAX || n == sizeof h.word - 1 || !n || quote) doubt(s);
	if (s->n_heres < HERES_MAX) s->heres[s->n_heres++] = h;
}

/* Parse expansions in the text of a here-document. */
static void scan_here(struct scanner *s, const char *p, size_t n) {
	struct command unused = {.word = BUF_INIT(SHELL_TEXT_MAX)};
	_cleanup_free_ char *text = strndup(p, n);
	for (p = text; p && *p;) {
		if (*p == '\\' && p[1] == '\n') doubt(s); /* the end may be split like this */
		if (*p == '$')
			p = scan_dollar(s, &unused, p + 1);
		else if (*p == '`')
			p = scan_backticks(s, p + 1);
		else
			p += *p == '\\' && p[1] ? 2 : 1;
	}
	buf_free(&unused.word);
}

/* p is at the newline before the text: return the newline after it, or NULL if the text does not end. */
static const char *here_end(struct scanner *s, const struct here *h, const char *p) {
	size_t n = strlen(h->word);
	for (const char *line = p; *line; line += strcspn(line, "\n")) {
		const char *start = ++line;
		if (h->tabs) line += strspn(line, "\t");
		if (strncmp(line, h->word, n) == 0 && (!line[n] || line[n] == '\n')) {
			_cleanup_free_ char *text = strndup(p, (size_t)(start - p));
			if (text) say(s, text, false);
			if (text && !h->quoted) scan_here(s, text, strlen(text));
			return line + n;
		}
		if (s->inner && strncmp(line, h->word, n) == 0 && line[n] == ')') doubt(s);
		if (!*line) break;
	}
	return NULL;
}

/* p is at a newline. A document without an end is parsed as commands. */
static const char *skip_heres(struct scanner *s, const char *p) {
	for (size_t i = 0; i < s->n_heres; i++) {
		const char *end = *p && s->heres[i].word[0] && s->endless < HERES_MAX ? here_end(s, &s->heres[i], p) : NULL;
		if (!end) doubt(s), s->endless++;
		if (end) p = end;
	}
	s->n_heres = 0;
	return p;
}

/* < or >: the next word is a file, the number before it a descriptor. */
static const char *scan_redirection(struct scanner *s, struct command *c, const char *p) {
	if (p[1] == '(' && !s->raw) {
		put(s, c, GLOB_UNKNOWN);
		return scan_inner(s, p + 2);
	}
	if (c->in_word && c->word.data && strspn(c->word.data, DIGITS) == c->word.len) clear_word(c);
	end_word(s, c);
	bool writes = *p == '>' || p[1] == '>';
	if (p[0] == '<' && p[1] == '<') s->flags.lost = true;
	if (p[0] == '<' && p[1] == '<' && p[2] != '<') note_here(s, p + 2);
	p++;
	while (IS_IN(*p, "<>&|")) p++;
	bool closes = *p == '-' && p[-1] == '&'; /* >&- is complete: the command follows, even without a space */
	if (closes || (*p == '-' && p[-1] == '<')) p++;
	c->is_target = !closes;
	c->writes = writes;
	return p;
}

/* Return true for a character that a shell may expand, outside of quotes. */
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
		c->computed = true;
		return scan_backticks(s, p + 1);
	}
	bool expanded = is_expanded(c, p);
	c->braces += *p == '{' && expanded;
	expanded |= c->braces && IS_IN(*p, ",}.");
	c->computed |= expanded;
	put(s, c, expanded || *p == '$' ? GLOB_UNKNOWN : *p);
	return p + 1;
}

/* Parse with all quotes removed: every operator separates, at any place. */
static void scan_raw(struct scanner *s, const char *p, bool everywhere) {
	struct command c = {.word = BUF_INIT(SHELL_TEXT_MAX)};
	for (; *p && !is_full(s); p++) {
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

/* Parse commands up to the closing bracket (0: the end); return the position after it. */
static const char *scan_list(struct scanner *s, const char *p, char closing) {
	struct command c = {.word = BUF_INIT(SHELL_TEXT_MAX)};
	int brackets = 0;
	while (*p && !is_full(s) && (*p != closing || brackets)) {
		const char *end = *p == '(' && p[1] == '(' && !c.in_word ? arithmetic_end(s, p + 2) : NULL;
		if (end) {
			p = scan_arithmetic(s, p + 2, end);
		} else if (*p == '#' && !c.in_word && s->comments) {
			s->flags.commented = true;
			p += strcspn(p, "\n");
		} else if (*p == ' ' || *p == '\t') {
			end_word(s, &c);
			p++;
		} else if (*p == '<' || *p == '>' || (*p == '&' && p[1] == '>')) {
			p = scan_redirection(s, &c, p + (*p == '&'));
		} else if (IS_IN(*p, ";&|\n()")) {
			if (*p == '(' && c.in_word && c.word.len && IS_IN(c.word.data[c.word.len - 1], "?*+@!\x01")) doubt(s);
			brackets += *p == '(' ? 1 : *p == ')' && brackets ? -1 : 0;
			end_command(s, &c, false);
			if (*p == '\n' && s->n_heres) p = skip_heres(s, p);
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

/* Join continued lines, as a shell does before parsing. */
static char *joined_lines(const char *text) {
	char *out = malloc(strlen(text) + 1), *to = out;
	for (const char *p = text; out && *p; p++) {
		if (*p == '\\' && p[1] == '\n')
			p++;
		else
			*to++ = *p;
	}
	if (out) *to = 0;
	return out;
}

/* Parse the text again: with the text of comments, with the lines joined, with all quotes removed. */
static void scan_again(struct scanner *s, const char *text) {
	bool twice = s->again; /* not again in each nested text: the time would double with each level */
	s->again = true;
	s->comments = !s->flags.commented;
	_cleanup_free_ char *joined = !twice && strstr(text, "\\\n") ? joined_lines(text) : NULL;
	if (s->flags.commented && !twice) scan_list(s, text, 0);
	s->n_heres = 0;
	if (joined) scan_list(s, joined, 0);
	s->n_heres = 0;
	s->raw = true;
	if (s->flags.unclosed || s->flags.lost || s->flags.interpreted) scan_raw(s, text, s->flags.interpreted);
}

/* Parse one text with its own flags; those of inner texts do not affect the outer one. */
static void scan_text(struct scanner *outer, const char *text) {
	struct scanner s = {.out = outer->out, .depth = outer->depth + 1, .comments = true, .again = outer->again};
	if (s.depth > DEPTH_MAX || is_full(&s)) {
		s.out->unsure = true;
		return;
	}
	scan_list(&s, text, 0);
	if (s.flags.unclosed || s.n_heres) doubt(&s);
	s.n_heres = 0;
	scan_again(&s, text);
	outer->no_memory |= s.no_memory;
}

bool shell_commands(const char *text, struct shell_commands *out) {
	struct scanner s = {.out = out};
	*out = (struct shell_commands){.said = BUF_INIT(4 * SHELL_TEXT_MAX)};
	if (strlen(text) > SHELL_TEXT_MAX) {
		_cleanup_free_ char *head = strndup(text, SHELL_TEXT_MAX);
		out->unsure = true;
		if (!head) return false;
		scan_text(&s, head);
	} else {
		scan_text(&s, text);
	}
	if (out->computes && out->odd_values) out->unsure = true;
	return !s.no_memory;
}

void shell_commands_free(struct shell_commands *c) {
	words_free(&c->texts);
	words_free(&c->written);
	buf_free(&c->said);
}
