/* SPDX-License-Identifier: MIT */
#include "config/inifile.h"

#include "base/buf.h"

#include <ini.h>
#include <stdint.h>
#include <string.h>

#define PIECE 150       /* fits every inih; leaves room for the added space and newline */
#define HIDDEN ';'      /* hidden from inih ... */
#define STAND_IN '\x01' /* ... and its replacement */

struct inifile {
	FILE *stream;
	struct inifile_user *user;
	struct errors *errors;

	/* the current line */
	struct place at;
	char *text; /* with capacity, length, and the length passed to inih */
	size_t cap, len, given;
	bool indented;
	bool piece;   /* the last text passed to inih was a later piece of a long line */
	bool unheard; /* the line has text, and inih has not called the handler for it */

	/* the current member, complete when the next one starts */
	char *name;
	int name_line;
	struct buf value;
	bool skip; /* the line above was an error: ignore its continuation */
};

/* --- Members ------------------------------------------------------------------------------------------------------ */

static void finish_member(struct inifile *f) {
	if (f->name && f->value.failed) errors_add_memory(f->errors);
	if (f->name) f->user->member(f->user, f->name, f->value.data ? f->value.data : "", f->name_line);
	free(f->name);
	f->name = NULL;
}

static bool start_member(struct inifile *f, const char *name, size_t n, const char *value) {
	finish_member(f);
	f->name = strndup(name, n);
	f->name_line = f->at.line;
	f->value.len = 0;
	return (f->name && buf_puts(&f->value, value)) || errors_add_memory(f->errors);
}

/* A line that begins with a space and looks like a key is an error; it is parsed as the key. */
static bool continue_member(struct inifile *f, const char *more) {
	size_t n = strcspn(more, " \t=:");
	const char *after = more + n + strspn(more + n, " \t");
	if (*after != '=' || !f->user->knows(f->user, more, n))
		return buf_putc(&f->value, ' ') && buf_puts(&f->value, more);
	errors_add(f->errors, f->at,
			   "a line that begins with a blank continues the one above: begin \"%.*s\" in the first column", (int)n,
			   more);
	return start_member(f, more, n, after + 1 + strspn(after + 1, " \t"));
}

static int on_member(void *arg, const char *section UNUSED, const char *name, const char *value) {
	struct inifile *f = arg;
	if (f->piece && f->unheard) return true; /* a later piece; the first one was not a member */
	f->unheard = false;
	_cleanup_free_ char *text = strdup(value ? value : "");
	if (!text) return errors_add_memory(f->errors);
	for (char *p = text; (p = strchr(p, STAND_IN));) *p = HIDDEN;
	if (f->indented && f->skip) return true;
	f->skip = false;
	if (f->piece) return buf_puts(&f->value, text);
	return f->indented && f->name ? continue_member(f, text) : start_member(f, name, strlen(name), text);
}

/* --- Lines -------------------------------------------------------------------------------------------------------- */

/* Remove a comment after a value: a ; after a space, outside of quotes. Every other ; is hidden from inih. */
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

/* Classify a line. A section indented below a member continues that member, as in inih. */
static void take_line(struct inifile *f) {
	f->text[strcspn(f->text, "\r\n")] = 0;
	f->indented = *f->text == ' ' || *f->text == '\t';
	char *start = f->text + strspn(f->text, " \t");
	if (f->at.line == 1 && strncmp(start, "\xef\xbb\xbf", 3) == 0) start += 3;
	f->len = f->given = 0;
	f->unheard = *start && !strchr(";#", *start);
	if (*start == '[' && !(f->indented && (f->name || f->skip))) {
		char *end = strchr(start, ']');
		finish_member(f);
		f->skip = f->unheard = false;
		if (!end) errors_add(f->errors, f->at, "a section has no closing bracket: write [NAME]");
		if (end) *end = 0;
		f->user->section(f->user, start + 1, f->at.line);
		memcpy(f->text, "[]", f->len = 2); /* inih then forgets the member above */
	} else if (f->unheard) {
		strip_comment(start);
		f->len = strlen(f->text);
		while (f->len && strchr(" \t", f->text[f->len - 1])) f->len--;
		f->text[f->len] = 0;
	}
}

static bool next_line(struct inifile *f) {
	if (f->unheard && !(f->indented && f->skip)) { /* inih found nothing in the previous line */
		finish_member(f);
		f->skip = true;
		errors_add(f->errors, f->at, "this is neither a section nor a member: write [SECTION] or KEY = VALUE");
	}
	f->unheard = false;
	ssize_t n = getline(&f->text, &f->cap, f->stream);
	if (n < 0) return false;
	f->at.line++;
	if (memchr(f->text, 0, (size_t)n) || memchr(f->text, STAND_IN, (size_t)n))
		return errors_add(f->errors, f->at, "the line holds a control character: this is no text file");
	take_line(f);
	return true;
}

/* Return where a long line may be cut: inih removes spaces at both ends, and comments. */
static size_t cut_at(const struct inifile *f) {
	const char *p = f->text + f->given;
	size_t n = f->len - f->given;
	if (n <= PIECE) return n;
	for (n = PIECE; n > 60; n--)
		if (!strchr(" \t", p[n - 1]) && !strchr(" \t;#[", p[n])) return n;
	return 0;
}

static char *read_piece(char *out, int room, void *arg) {
	struct inifile *f = arg;
	bool later = f->given < f->len;
	if (!later && !next_line(f)) return NULL;
	size_t n = cut_at(f);
	if (room < PIECE + 3 || (!n && f->len)) {
		errors_add(f->errors, f->at, "too many spaces in a row");
		f->unheard = false;
		f->len = f->given;
		n = 0;
	}
	snprintf(out, (size_t)room, "%s%.*s\n", later ? " " : "", (int)n, f->text + f->given);
	f->given += n;
	f->piece = later;
	return out;
}

void inifile_read(FILE *stream, const char *path, struct inifile_user *user, struct errors *errors) {
	struct inifile f = {
		.stream = stream, .user = user, .errors = errors, .at.file = path, .value = BUF_INIT((size_t)1 << 30)};
	ini_parse_stream(read_piece, &f, on_member, &f);
	finish_member(&f);
	free(f.text);
	buf_free(&f.value);
}
