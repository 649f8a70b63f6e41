/* SPDX-License-Identifier: MIT */
#include "core/shell.h"

#include "core/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 24
#define WRITTEN_MAX 64
#define RUNS_MAX 2048
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
	/* Findings while the text was read. */
	bool unclosed;    /* unbalanced quotes or brackets */
	bool lost;        /* here-documents and the like: quotes may have another meaning */
	bool commented;   /* a comment was skipped */
	bool interpreted; /* a program runs its input: any word may be a command */
	/* How it is read. */
	bool comments; /* # begins a comment */
	bool raw;      /* quotes mean nothing */
	bool again;    /* the text was read before, in another way: only additional commands count */
	bool joined;   /* now with its lines joined, as a shell does: all counts */
	struct here heres[HERES_MAX];
	size_t n_heres, endless; /* waiting ones; those without an end */
};

/* The command that is being parsed. */
struct command {
	struct words words;
	struct buf word;
	bool in_word, is_target; /* the word is the file of a redirection */
	bool writes;             /* opened for writing */
	bool quoted;             /* in double quotes */
	int braces;
	char kind;         /* of the word, see values.h */
	struct buf kinds;  /* of the words before */
	struct words refs; /* the variables in all words */
	size_t n_before;   /* of those, before this word */
};
#define COMMAND_INIT                                                                                                   \
	{ .word = BUF_INIT(SHELL_TEXT_MAX), .kinds = BUF_INIT(SHELL_TEXT_MAX) }

static void free_command(struct command *c) {
	buf_free(&c->word);
	buf_free(&c->kinds);
	words_free(&c->words);
	words_free(&c->refs);
}

static void scan_text(struct scanner *s, const char *text);

static const char *const keywords[] = {"if", "then", "else", "elif", "do",   "while",  "until", "!",
									   "{",  "}",    "time", "fi",   "done", "always", "esac"};

static const char *const exec_words[] = {"-exec", "-execdir", "-ok", "-okdir"};

static bool is_one_of(const char *word, const char *const *list, size_t n) {
	for (size_t i = 0; i < n; i++)
		if (strcmp(word, list[i]) == 0) return true;
	return false;
}
#define IS_ONE_OF(word, list) is_one_of(word, list, ARRAY_SIZE(list))

/* Text that is only read in another way adds commands, but no doubts and no values. */
static bool counts(const struct scanner *s) {
	return !s->raw && (!s->again || s->joined);
}

static void doubt(struct scanner *s) {
	if (counts(s)) s->out->unsure = true;
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

/* --- the words of the line --------------------------------------------------------------------------------------- */

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
		/* Escapes such as \n stand for other bytes: a word can begin after one. */
		buf_putc(b, ' ');
		for (const char *p = word; *p; p++) {
			bool escape = *p == '\\' && p[1];
			buf_putc(b, escape ? ' ' : *p);
			p += escape;
		}
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

/* Note the program, and the arguments of one that may run them, for the end of the line: in a loop, a function or the
 * background a file may be written later than the command that runs it. */
static void note_run(struct scanner *s, const struct words *words, size_t at, size_t end) {
	for (size_t i = at; i < end && counts(s) && s->out->runs.n <= RUNS_MAX; i++)
		s->no_memory |= !words_add(&s->out->runs, program_base(words->v[i]));
}

/* Return true if the line may run a file that it writes. */
static bool runs_written(const struct shell_commands *c) {
	if (c->writes_any && c->sets_path) return true;
	for (size_t i = 0; i < c->written.n; i++) {
		if (c->runs.n > RUNS_MAX) return true;
		for (size_t k = 0; k < c->runs.n; k++)
			if (strcmp(c->runs.v[k], c->written.v[i]) == 0) return true;
	}
	return false;
}

static void note_written(struct scanner *s, const char *file) {
	const char *base = program_base(file);
	if (s->raw || s->again) return;
	if (strchr(file, GLOB_UNKNOWN)) s->out->writes_any = true;
	/* A shell reads these at its start. */
	bool startup = strncmp(base, ".bash", 5) == 0 || strncmp(base, ".zsh", 4) == 0 || strcmp(base, ".profile") == 0;
	if (startup || s->out->written.n >= WRITTEN_MAX)
		doubt(s);
	else if (strncmp(file, "/dev/", 5) != 0)
		s->no_memory |= !words_add(&s->out->written, base);
}

/* awk writes to files named by its strings and variables. */
static void note_awk(struct scanner *s, char *const *words, size_t n) {
	bool writes = false;
	for (size_t i = 1; i < n; i++) writes |= strchr(words[i], '>') != NULL;
	for (size_t i = 1; i < n && writes; i++) {
		_cleanup_free_ char *copy = strdup(words[i]);
		char *save;
		for (char *p = copy ? strtok_r(copy, "\"= ", &save) : NULL; p; p = strtok_r(NULL, "\"= ", &save))
			note_written(s, p);
	}
}

static const char *const with_option[] = {"sort", "shuf", "iconv"}; /* -o FILE; they run no file */

/* Note the files that a program writes because of its arguments. */
static void note_outputs(struct scanner *s, char *const *words, size_t n) {
	static const char *const copies[] = {"cp", "install", "mv", "ln"};
	const char *name = program_base(words[0]);
	bool device = false;
	if (strstr(name, "awk")) note_awk(s, words, n);
	for (size_t i = 1; i < n; i++) device |= strstr(words[i], "/dev/") || *words[i] == GLOB_UNKNOWN;
	for (size_t i = 1; i < n; i++) {
		bool find = strncmp(words[i - 1], "-fprint", 7) == 0 || strcmp(words[i - 1], "-fls") == 0;
		bool second = i > 1 && (strcmp(name, "uniq") == 0 || strcmp(name, "xxd") == 0);
		if (strcmp(name, "tee") == 0 || second || find) note_written(s, words[i]);
		if (IS_ONE_OF(name, copies) && device) note_written(s, words[i]);
		if (strcmp(name, "dd") == 0 && strncmp(words[i], "of=", 3) == 0) note_written(s, words[i] + 3);
		if (!IS_ONE_OF(name, with_option)) continue;
		/* sort -o FILE and the like, in all its forms. */
		const char *before = words[i - 1], *word = words[i], *equals = strchr(word, '=');
		const char *letter = *word == '-' && word[1] != '-' ? strchr(word, 'o') : NULL;
		if (letter && letter[1]) note_written(s, letter + 1);
		if (strncmp(word, "--o", 3) == 0 && equals) note_written(s, equals + 1);
		if (*before == '-' && (before[strlen(before) - 1] == 'o' || strncmp(before, "--o", 3) == 0))
			note_written(s, word);
	}
}

/* A function in the place of a program known to run nothing. */
static void look_for_function(struct scanner *s, const char *name) {
	char copy[64], *word[] = {copy, NULL};
	int n = snprintf(copy, sizeof copy, "%s", name);
	if (n >= (int)sizeof copy || strchr(name, GLOB_UNKNOWN) || program_of(word, 1).data) doubt(s);
}

/* Return the entry of the program at words[at], where a command may begin. */
static struct program look_at(struct scanner *s, const struct command *c, size_t at, bool starts) {
	const struct words *words = &c->words;
	struct program p = program_of(words->v + at, words->n - at);
	struct value_words values = {.words = words->v + at, .n = words->n - at, .starts = starts, .runs = p.runs};
	values.refs = c->refs.v, values.n_refs = c->refs.n, values.kinds = c->kinds.data ? c->kinds.data + at : NULL;
	if (p.reads) s->interpreted = true;
	if (counts(s) && !c->kinds.failed) values_command(&s->out->values, &values, p.data);
	if (!counts(s)) return p;
	s->out->unsure |= p.unsure;
	if (strcmp(words->v[at], "case") == 0 && s->inner) doubt(s);
	if (strcmp(words->v[at], "function") == 0 && at + 1 < words->n) look_for_function(s, words->v[at + 1]);
	note_run(s, words, at, at + 1);
	s->out->others |= !p.data;
	note_outputs(s, words->v + at, words->n - at);
	return p;
}

/* Try each word of a simple command at which a command may begin. */
static void take_command(struct scanner *s, const struct command *c, bool everywhere) {
	const struct words *words = &c->words;
	static const char *const builtins[] = {"builtin", "command", "coproc", "time"};
	static const char *const blocks[] = {"always", "else", "elif"};
	bool start = true, builtin = false, wrapped = everywhere, scanned = false, finds = false,
		 looked = s->raw || s->again;
	for (size_t i = 0; i < words->n; i++) {
		const char *word = words->v[i], *name = program_base(word);
		bool skips = IS_ONE_OF(word, keywords) || values_of(word);
		if (is_full(s)) return; /* the line is unsure then */
		say(s, word, start && !skips);
		if (start || wrapped) {
			add_text(s, word, words->v + i + 1, words->n - i - 1);
			if (name != word) add_text(s, name, words->v + i + 1, words->n - i - 1);
			bool program = wrapped || !skips || strcmp(word, "time") == 0;
			struct program p = {0};
			if (program) p = look_at(s, c, i, start || builtin);
			if (program && !p.data && !looked && !IS_ONE_OF(name, with_option)) note_run(s, words, i, words->n);
			looked |= program && !p.data;
			if (strcmp(name, "case") == 0) s->lost = true;
			if (finds && strstr(word, "{}")) doubt(s);
			finds |= strcmp(name, "find") == 0 || strcmp(name, "fd") == 0;
			if (p.runs && !scanned && !s->raw) scan_arguments(s, words, i, p.lines);
			scanned |= p.runs;
			wrapped |= p.runs;
			builtin = IS_ONE_OF(name, builtins);
		}
		/* A command may follow in zsh: if [[ a ]] cmd; { cmd } always { cmd }. */
		bool block = strcmp(word, "}") == 0 && i + 1 < words->n && IS_ONE_OF(words->v[i + 1], blocks);
		start = (start && skips) || strcmp(word, "]]") == 0 || block ||
				(finds && (IS_ONE_OF(word, exec_words) || strcmp(word, "-x") == 0));
	}
}

/* --- Reading ----------------------------------------------------------------------------------------------------- */

static void put(struct scanner *s, struct command *c, char byte) {
	c->in_word = true;
	s->no_memory |= !buf_putc(&c->word, byte);
}

static void clear_word(struct command *c) {
	c->in_word = false;
	c->braces = 0;
	c->kind = 0;
	c->n_before = c->refs.n;
	c->word.len = 0;
	if (c->word.data) c->word.data[0] = 0;
}

/* Take what the word says of values. The value of an assignment is also parsed as a line: its use is known only
 * later. */
static void take_values(struct scanner *s, struct command *c, const char *word) {
	const char *value = values_of(word);
	if (c->kind & WORD_SUBSCRIPT && !value) { /* a pattern for files */
		const char *before = c->words.n ? c->words.v[c->words.n - 1] : NULL;
		bool start = !before || IS_ONE_OF(before, keywords) || values_of(before);
		c->kind |= WORD_GLOB | WORD_SPLITS;
		/* Where an assignment may begin, and with other text, a shell may read it over spaces and operators. */
		if (start || !strchr(word, ']') || word[strspn(word, NAME "-]^!.:*?/\x01")]) doubt(s);
	}
	if (strncmp(word, "BASH_FUNC_", 10) == 0) doubt(s);
	if (strncmp(word, "PATH=", 5) == 0 || strncmp(word, "PATH+", 5) == 0) s->out->sets_path = true;
	if (!value) return;
	size_t n = c->refs.n - c->n_before;
	if (counts(s)) values_assign(&s->out->values, word, c->kind, n ? c->refs.v + c->n_before : NULL, n);
	if (strstr(value, "$(") || strchr(value, '`')) scan_text(s, value);
}

static void end_word(struct scanner *s, struct command *c) {
	const char *word = c->word.data ? c->word.data : "";
	if (!c->in_word) return;
	if (!s->raw) take_values(s, c, word);
	if (!c->is_target) {
		s->no_memory |= !words_add(&c->words, word) || !buf_putc(&c->kinds, (char)(c->kind | WORD_PLAIN));
	} else {
		say(s, word, false);
		if (c->writes) note_written(s, word);
	}
	c->is_target = c->writes = false;
	clear_word(c);
}

static void end_command(struct scanner *s, struct command *c, bool everywhere) {
	end_word(s, c);
	c->is_target = false;
	if (c->words.n) take_command(s, c, everywhere);
	words_free(&c->words);
	words_free(&c->refs);
	c->kinds.len = c->n_before = 0;
}

static const char *scan_list(struct scanner *s, const char *p, char closing);

/* $( or <( or >(: p is after the bracket. Shells differ in how they read a here-document that is open here or at the
 * end. */
static const char *scan_inner(struct scanner *s, const char *p) {
	if (s->depth >= DEPTH_MAX) {
		s->out->unsure = s->lost = true;
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
		s->unclosed = true;
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

/* The word has a value of this variable. */
static void refer(struct scanner *s, struct command *c, const char *name, size_t n) {
	_cleanup_free_ char *copy = IS_IN(*name, LETTERS "_") ? strndup(name, n) : strdup("@");
	c->kind |= WORD_VALUE;
	s->no_memory |= !copy || !words_add(&c->refs, copy);
}

/* The word has text of an unknown source; it is one word in quotes. */
static void put_unknown(struct scanner *s, struct command *c, int kind) {
	put(s, c, GLOB_UNKNOWN);
	if (c->quoted) kind &= ~WORD_SPLITS;
	c->kind |= (char)kind;
}

static const char *scan_computed(struct scanner *s, struct command *c, const char *p) {
	put_unknown(s, c, WORD_TEXT | WORD_SPLITS);
	return scan_backticks(s, p + 1);
}

/* p is after ((. Names in it are evaluated, and their values again. */
static const char *scan_arithmetic(struct scanner *s, const char *p, const char *end) {
	struct command part = COMMAND_INIT;
	s->lost = true;
	while (p < end) {
		if (*p == '$' || *p == '`')
			p = *p == '$' ? scan_dollar(s, &part, p + 1) : scan_computed(s, &part, p);
		else
			put(s, &part, *p++);
	}
	if (counts(s) && part.word.data)
		values_evaluate(&s->out->values, part.word.data, part.kind, part.refs.v, part.refs.n);
	free_command(&part);
	return end + 2;
}

/* The text after the name in ${NAME...}; since: the first variable in it. */
static void take_expansion(struct scanner *s, struct command *c, const char *name, size_t n, const char *text,
						   size_t since) {
	const char *rest = *text == '[' ? text + strcspn(text, "]") : text;
	bool all = *text == '[' && IS_IN(text[1], "@*") && text[2] == ']';
	bool number = *name == '#' && n != 1, indirect = *name == '!';
	bool index = *text == '[' && !all && text[1 + strspn(text + 1, DIGITS)] != ']';
	rest += *rest == ']';
	bool range = *rest == ':' && !IS_IN(rest[1], "-+=?");
	if (number) c->kind &= (char)~WORD_VALUE;
	if (all || *name == '@') c->kind |= WORD_SPLITS;
	if (indirect && !all) c->kind |= WORD_TEXT;
	if (!counts(s)) return;
	if (index || range)
		values_evaluate(&s->out->values, text, c->kind & WORD_TEXT, c->refs.v + since, c->refs.n - since);
	if (indirect && !all) values_evaluate(&s->out->values, name + 1, 0, NULL, 0);
	if (range || !IS_IN(*rest, ":-+=/")) return;
	/* ${NAME:-text}, ${NAME/a/text}: the text may become the value. Parts of other variables are in it as bytes. */
	_cleanup_free_ char *value = strdup(rest + 1 + (*rest == ':'));
	_cleanup_free_ char *copy = IS_IN(*name, LETTERS "_") ? strndup(name, n) : strdup("@");
	for (char *p = value; p && *p; p++)
		if (IS_IN(*p, "$/")) *p = GLOB_UNKNOWN;
	s->no_memory |= !value || !copy;
	if (value && copy) values_set(&s->out->values, copy, value, c->kind, c->refs.v + since, c->refs.n - since);
}

/* p is after ${. The meaning of quotes in it depends on the context: its text is then also parsed as if it were
 * outside. */
static const char *scan_braces(struct scanner *s, struct command *c, const char *p) {
	const char *end = memchr(p, '}', strnlen(p, AHEAD_MAX)), *name = p;
	size_t n = end ? (size_t)(end - p) : 0, n_name = strspn(p + (*p == '!' || *p == '#'), NAME);
	if (n_name)
		n_name += *p == '!' || *p == '#';
	else
		n_name = *p != '}';
	put_unknown(s, c, WORD_SPLITS);
	if (!end || strcspn(p, "'\"\\`") < n) {
		s->lost = true;
		c->kind |= WORD_TEXT;
		doubt(s);
		return p;
	}
	if (memmem(p, n, "@P", 2)) doubt(s);
	_cleanup_free_ char *text = strndup(p, n);
	if (text && n_name < n) say(s, text, false);
	bool indices = *p == '!' && (memmem(p, n, "[@]", 3) || memmem(p, n, "[*]", 3)); /* ${!NAME[@]}: numbers */
	if (!(n_name == 1 && IS_IN(*p, "?#$!")) && !indices) refer(s, c, *p == '!' ? p + 1 : p, n_name - (*p == '!'));
	size_t since = c->refs.n;
	while (*p && *p != '}') p = *p == '$' ? scan_dollar(s, c, p + 1) : p + 1;
	s->unclosed |= !*p;
	_cleanup_free_ char *whole = strndup(name, (size_t)(p - name));
	if (whole) take_expansion(s, c, whole, n_name, whole + MIN(n_name, strlen(whole)), since);
	return *p ? p + 1 : p;
}

/* p is after the dollar sign. */
static const char *scan_dollar(struct scanner *s, struct command *c, const char *p) {
	const char *end = *p == '(' && p[1] == '(' ? arithmetic_end(s, p + 2) : NULL;
	if (end) {
		put(s, c, GLOB_UNKNOWN);
		return scan_arithmetic(s, p + 2, end);
	}
	if (*p == '(') {
		end = scan_inner(s, p + 1);
		bool number = counts(s) && end[-1] == ')' && values_is_number(&s->out->values, p + 1, (size_t)(end - p) - 2);
		put_unknown(s, c, number ? 0 : WORD_TEXT | WORD_SPLITS); /* a number is no risk in arithmetic */
		return end;
	}
	if (*p == '[') doubt(s); /* old syntax of arithmetic */
	if (*p == '{') return scan_braces(s, c, p + 1);
	bool named = IS_IN(*p, NAME "@*#?-$!");
	size_t n = IS_IN(*p, LETTERS "_") ? strspn(p, NAME) : 1;
	put(s, c, named || *p == '[' ? GLOB_UNKNOWN : '$');
	if (!named) return p;
	if (IS_IN(*p, NAME "@*")) refer(s, c, p, n);
	if (IS_IN(*p, NAME "-*") && !c->quoted) c->kind |= WORD_SPLITS;
	if (*p == '@') c->kind |= WORD_SPLITS;
	if (*p == '-') c->kind |= WORD_TEXT;
	return p + n;
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

/* '...', with escapes: $'...'; p is after the opening quote. */
static const char *scan_single(struct scanner *s, struct command *c, const char *p, bool escapes) {
	c->in_word = true;
	while (*p && *p != '\'') {
		bool escape = escapes && *p == '\\' && p[1];
		char byte = *p++;
		put(s, c, escape ? unescape(&p) : byte);
	}
	s->unclosed |= !*p;
	return *p ? p + 1 : p;
}

static const char *scan_double(struct scanner *s, struct command *c, const char *p) {
	c->in_word = c->quoted = true;
	while (*p && *p != '"') {
		if (*p == '\\' && p[1] == '\n') {
			p += 2;
		} else if (*p == '\\' && IS_IN(p[1], "$`\"\\")) {
			put(s, c, p[1]);
			p += 2;
		} else if (*p == '$') {
			p = scan_dollar(s, c, p + 1);
		} else if (*p == '`') {
			p = scan_computed(s, c, p);
		} else {
			put(s, c, *p++);
		}
	}
	c->quoted = false;
	s->unclosed |= !*p;
	return *p ? p + 1 : p;
}

static const char *scan_quote(struct scanner *s, struct command *c, const char *p) {
	if (s->raw) return p + 1;
	if (*p == '\'') return scan_single(s, c, p + 1, false);
	if (*p == '"') return scan_double(s, c, p + 1);
	if (p[1] == '\n') return p + 2;
	if (p[1])
		put(s, c, p[1]);
	else
		s->unclosed = true;
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
	struct command unused = COMMAND_INIT;
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
	free_command(&unused);
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
	if (c->in_word && p[-1] == '}' && strpbrk(c->word.data, "[\x01")) doubt(s); /* {NAME[subscript]}> */
	end_word(s, c);
	bool writes = *p == '>' || p[1] == '>';
	if (p[0] == '<' && p[1] == '<') s->lost = true;
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
	if (*p == '[' && c->word.len == 1 && *c->word.data == '[' && IS_IN(p[1], " \t")) return false; /* [[ */
	if (*p == '{' && p[1] == '}') return false;
	if (*p == '{' || *p == '[') return !alone && !(*p == '[' && p[1] == '[');
	return *p == '*' || *p == '?';
}

static const char *scan_word(struct scanner *s, struct command *c, const char *p) {
	if (*p == '\'' || *p == '"' || *p == '\\') return scan_quote(s, c, p);
	if (*p == '$' && p[1] == '\'' && !s->raw) return scan_single(s, c, p + 2, true);
	if (*p == '$' && p[1] == '"') return p + 1;
	if (*p == '$' && !(s->raw && p[1] == '(')) return scan_dollar(s, c, p + 1);
	if (*p == '`') return scan_computed(s, c, p);
	if (*p == '~' && !c->in_word) c->kind |= WORD_TEXT;
	bool expanded = is_expanded(c, p);
	c->braces += *p == '{' && expanded;
	expanded |= c->braces && IS_IN(*p, ",}.");
	if (*p == '[' && c->word.len && !c->word.data[strspn(c->word.data, NAME)])
		c->kind |= WORD_SUBSCRIPT;
	else if (expanded)
		c->kind |= WORD_SPLITS | (c->braces ? WORD_BRACES : WORD_GLOB);
	put(s, c, expanded || *p == '$' ? GLOB_UNKNOWN : *p);
	return p + 1;
}

/* Parse with all quotes removed: every operator separates, at any place. */
static void scan_raw(struct scanner *s, const char *p, bool everywhere) {
	struct command c = COMMAND_INIT;
	for (; *p && !is_full(s); p++) {
		if (IS_IN(*p, OPERATORS "{}"))
			end_command(s, &c, everywhere);
		else if (*p == ' ' || *p == '\t')
			end_word(s, &c);
		else if (!IS_IN(*p, "'\"\\"))
			put(s, &c, *p == '$' || *p == '*' || *p == '?' ? GLOB_UNKNOWN : *p);
	}
	end_command(s, &c, everywhere);
	free_command(&c);
}

/* NAME=(words): their text is the value, and a subscript [x]= in it is evaluated. */
static void take_array(struct scanner *s, const char *name, size_t n, const char *p) {
	_cleanup_free_ char *text = strndup(p, strcspn(p, ")")), *copy = strndup(name, n);
	struct values *v = &s->out->values;
	s->no_memory |= !text || !copy;
	if (!text || !copy) return;
	if (strchr(text, '[')) values_evaluate(v, text, strpbrk(text, "$`") ? WORD_TEXT : 0, NULL, 0);
	for (char *b = text; *b; b++)
		if (IS_IN(*b, " \t\n")) *b = ',';
	values_set(v, copy, text, 0, NULL, 0);
}

/* p is after a bracket that may follow a word: NAME() defines a function. */
static void take_bracket(struct scanner *s, const struct command *c, const char *p) {
	const char *word = c->in_word ? c->word.data : c->words.n ? c->words.v[c->words.n - 1] : NULL;
	size_t n = word ? strlen(word) : 0;
	bool function = n && p[strspn(p, " \t")] == ')', array = n && c->in_word && word[n - 1] == '=';
	if (function) look_for_function(s, word);
	if (array && counts(s)) take_array(s, word, strspn(word, NAME), p);
	if (c->in_word && !function && !array) doubt(s); /* zsh: FILE(e:command:); extended patterns */
}

/* Parse commands up to the closing bracket (0: the end); return the position after it. */
static const char *scan_list(struct scanner *s, const char *p, char closing) {
	struct command c = COMMAND_INIT;
	int brackets = 0;
	while (*p && !is_full(s) && (*p != closing || brackets)) {
		const char *end = *p == '(' && p[1] == '(' && !c.in_word ? arithmetic_end(s, p + 2) : NULL;
		if (end) {
			p = scan_arithmetic(s, p + 2, end);
		} else if (*p == '#' && !c.in_word && s->comments) {
			s->commented = true;
			p += strcspn(p, "\n");
		} else if (*p == ' ' || *p == '\t') {
			end_word(s, &c);
			p++;
		} else if (*p == '<' || *p == '>' || (*p == '&' && p[1] == '>')) {
			p = scan_redirection(s, &c, p + (*p == '&'));
		} else if (IS_IN(*p, ";&|\n()")) {
			if (*p == '(') take_bracket(s, &c, p + 1);
			brackets += *p == '(' ? 1 : *p == ')' && brackets ? -1 : 0;
			end_command(s, &c, false);
			if (*p == '\n' && s->n_heres) p = skip_heres(s, p);
			p += *p != 0;
		} else {
			p = scan_word(s, &c, p);
		}
	}
	end_command(s, &c, false);
	free_command(&c);
	if (closing && !*p) s->unclosed = true;
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
	s->comments = !s->commented;
	_cleanup_free_ char *joined = !twice && strstr(text, "\\\n") ? joined_lines(text) : NULL;
	if (s->commented && !twice) scan_list(s, text, 0);
	s->n_heres = 0;
	s->joined = true;
	if (joined) scan_list(s, joined, 0);
	s->n_heres = 0;
	s->raw = true;
	if (s->unclosed || s->lost || s->interpreted) scan_raw(s, text, s->interpreted);
}

/* Parse one text with its own findings; those of inner texts do not affect the outer one. */
static void scan_text(struct scanner *outer, const char *text) {
	struct scanner s = {
		.out = outer->out, .depth = outer->depth + 1, .comments = true, .again = outer->again, .joined = outer->joined};
	if (s.depth > DEPTH_MAX || is_full(&s)) {
		s.out->unsure = true;
		return;
	}
	scan_list(&s, text, 0);
	if (s.unclosed || s.n_heres) doubt(&s);
	s.n_heres = 0;
	scan_again(&s, text);
	outer->no_memory |= s.no_memory;
}

bool shell_commands(const char *text, struct shell_commands *out) {
	struct scanner s = {.out = out};
	bool cut = strlen(text) > SHELL_TEXT_MAX;
	_cleanup_free_ char *head = cut ? strndup(text, SHELL_TEXT_MAX) : NULL;
	*out = (struct shell_commands){.said = BUF_INIT(4 * SHELL_TEXT_MAX), .unsure = cut};
	if (cut && !head) return false;
	scan_text(&s, cut ? head : text);
	if (values_are_odd(&out->values) || runs_written(out)) out->unsure = true;
	return !s.no_memory;
}

void shell_commands_free(struct shell_commands *c) {
	words_free(&c->texts);
	words_free(&c->written);
	words_free(&c->runs);
	values_free(&c->values);
	buf_free(&c->said);
}
