/* SPDX-License-Identifier: MIT */
#include "fakeagent/directive.h"

#include <ctype.h>
#include <string.h>

static const struct word {
	const char *what;
	enum directive_kind kind;
} WORDS[] = {
	{"tool", DIRECTIVE_TOOL},     {"after", DIRECTIVE_AFTER},   {"long", DIRECTIVE_NUMBER},
	{"slow", DIRECTIVE_NUMBER},   {"lines", DIRECTIVE_NUMBER},  {"exit", DIRECTIVE_NUMBER},
	{"stderr", DIRECTIVE_NUMBER}, {"blocks", DIRECTIVE_NUMBER}, {"error", DIRECTIVE_TEXT},
	{"dialog", DIRECTIVE_TEXT},   {"unknown", DIRECTIVE_TEXT},  {"garbage", DIRECTIVE_TEXT},
	{"think", DIRECTIVE_TEXT},    {"text", DIRECTIVE_TEXT},     {"task", DIRECTIVE_AFTER},
	{"elicit", DIRECTIVE_PLAIN},  {"die", DIRECTIVE_PLAIN},     {"env", DIRECTIVE_PLAIN},
	{"cwd", DIRECTIVE_PLAIN},     {"argv", DIRECTIVE_PLAIN},    {"grandchild", DIRECTIVE_PLAIN},
	{"history", DIRECTIVE_PLAIN}, {"pid", DIRECTIVE_PLAIN},
};

struct reader {
	const char *p, *end;
};

static void skip_blanks(struct reader *r) {
	while (r->p < r->end && isspace((unsigned char)*r->p)) r->p++;
}

static bool read_word(struct reader *r, char **word) {
	skip_blanks(r);
	const char *from = r->p;
	while (r->p < r->end && !isspace((unsigned char)*r->p) && *r->p != '@') r->p++;
	if (r->p == from) return false;
	*word = strndup(from, (size_t)(r->p - from));
	return *word != NULL;
}

static bool read_number(struct reader *r, long *number) {
	_cleanup_free_ char *word = NULL;
	if (!read_word(r, &word)) return false;
	char *rest;
	*number = strtol(word, &rest, 10);
	return !*rest;
}

/* The JSON object may hold `@` and `}`: its own end counts. */
static bool read_input(struct reader *r, json_t **input) {
	skip_blanks(r);
	if (r->p < r->end && *r->p == '@') {
		*input = js_need(json_object());
		return true;
	}
	json_error_t err;
	*input = json_loadb(r->p, (size_t)(r->end - r->p), JSON_DISABLE_EOF_CHECK | JSON_ALLOW_NUL, &err);
	if (!*input) return false;
	r->p += err.position;
	return true;
}

static bool read_text(struct reader *r, char **text) {
	skip_blanks(r);
	const char *at = memchr(r->p, '@', (size_t)(r->end - r->p));
	if (!at) return false;
	*text = strndup(r->p, (size_t)(at - r->p));
	r->p = at;
	return *text != NULL;
}

static bool read_end(struct reader *r) {
	skip_blanks(r);
	return r->p < r->end && *r->p++ == '@';
}

static bool read_rest(struct reader *r, struct directive *d) {
	switch (d->kind) {
	case DIRECTIVE_TOOL:
		return read_word(r, &d->name) && read_input(r, &d->input) && read_end(r);
	case DIRECTIVE_AFTER:
		if (!read_number(r, &d->number)) return false;
		if (strcmp(d->what, "task") == 0) return read_text(r, &d->name) && read_end(r);
		return read_word(r, &d->name) && read_input(r, &d->input) && read_end(r);
	case DIRECTIVE_NUMBER:
		return read_number(r, &d->number) && read_end(r);
	case DIRECTIVE_TEXT:
		return read_text(r, &d->name) && read_end(r);
	case DIRECTIVE_PLAIN:
		return read_end(r);
	}
	return false;
}

static bool read_one(struct reader *r, struct directive *d) {
	for (size_t i = 0; i < ARRAY_SIZE(WORDS); i++) {
		size_t n = strlen(WORDS[i].what);
		if ((size_t)(r->end - r->p) <= n || memcmp(r->p, WORDS[i].what, n) != 0 || isalnum((unsigned char)r->p[n]))
			continue;
		*d = (struct directive){.kind = WORDS[i].kind, .what = WORDS[i].what};
		r->p += n;
		return read_rest(r, d);
	}
	return false;
}

bool directive_next(const char *text, size_t n, size_t *at, struct directive *d) {
	while (*at < n) {
		const char *hit = memchr(text + *at, '@', n - *at);
		if (!hit) break;
		*at = (size_t)(hit - text) + 1;
		struct reader r = {text + *at, text + n};
		*d = (struct directive){0};
		if (read_one(&r, d)) {
			*at = (size_t)(r.p - text);
			return true;
		}
		directive_free(d);
	}
	return false;
}

void directive_free(struct directive *d) {
	free(d->name);
	json_decref(d->input);
	*d = (struct directive){0};
}
