/* SPDX-License-Identifier: MIT */
#include "base/words.h"

#include "base/buf.h"

#include <stdint.h>
#include <string.h>

bool words_add(struct words *w, const char *word) {
	char *copy = strdup(word);
	char **v = copy ? realloc(w->v, (w->n + 2) * sizeof *v) : NULL;
	if (!v) {
		free(copy);
		return false;
	}
	w->v = v;
	w->v[w->n++] = copy;
	w->v[w->n] = NULL;
	return true;
}

bool words_same(const struct words *a, const struct words *b) {
	if (a->n != b->n) return false;
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->v[i], b->v[i]) != 0) return false;
	return true;
}

ssize_t words_named(const struct words *w, const char *name, size_t n) {
	for (size_t i = 0; i < w->n; i++)
		if (strncmp(w->v[i], name, n) == 0 && w->v[i][n] == '=') return (ssize_t)i;
	return -1;
}

bool words_is_flag(const char *word, const char *flag) {
	size_t n = strlen(flag);
	return strncmp(word, flag, n) == 0 && (word[n] == 0 || word[n] == '=');
}

bool words_have_flag(const struct words *w, const char *flag) {
	for (size_t i = 0; i < w->n; i++)
		if (words_is_flag(w->v[i], flag)) return true;
	return false;
}

void words_free(struct words *w) {
	for (size_t i = 0; i < w->n; i++) free(w->v[i]);
	free(w->v);
	*w = (struct words){0};
}

/* Parse one quoted or bare part of a word, from *p on; false: *error is the reason. */
static bool split_quoted(const char **p, struct buf *word, const char **error) {
	char quote = *(*p)++;
	for (; **p && **p != quote; ++*p) {
		if (quote == '"' && **p == '\\' && (*p)[1] && strchr("\"\\$`", (*p)[1])) ++*p;
		buf_putc(word, **p);
	}
	if (**p == quote) {
		++*p;
		return true;
	}
	*error = quote == '"' ? "a double quote is not closed: add the missing \", or write \\\" for the character itself"
						  : "a single quote is not closed: add the missing ', or write \\' for the character itself";
	return false;
}

static bool split_word(const char **p, struct buf *word, const char **error) {
	while (**p && !strchr(" \t\r\n", **p)) {
		if (**p == '\'' || **p == '"') {
			if (!split_quoted(p, word, error)) return false;
			continue;
		}
		if (**p == '\\' && !*++*p) {
			*error = "a backslash at the end quotes nothing: write \\\\ for the character itself";
			return false;
		}
		buf_putc(word, *(*p)++);
	}
	return true;
}

bool words_split(struct words *out, const char *text, const char **error) {
	struct buf word = BUF_INIT(SIZE_MAX / 4);
	bool ok = true;
	for (const char *p = text; ok;) {
		while (*p && strchr(" \t\r\n", *p)) p++;
		if (!*p) break;
		word.len = 0;
		ok = buf_puts(&word, "") && split_word(&p, &word, error);
		if (ok && (word.failed || !words_add(out, word.data))) {
			*error = "out of memory";
			ok = false;
		}
	}
	buf_free(&word);
	if (!ok) words_free(out);
	return ok;
}
