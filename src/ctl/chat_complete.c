/* SPDX-License-Identifier: MIT
 *
 * Tab: slash commands at the beginning of the text, names of files behind an @.
 */
#include "base/str.h"
#include "ctl/chat.h"
#include "ctl/text.h"
#include "ctl/wtext.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define LISTED_MAX 100

/* Words that begin with the typed one. */
struct candidates {
	char **v;
	size_t n;
};

static void add(struct candidates *c, char *one) {
	char **grown = one ? realloc(c->v, (c->n + 1) * sizeof *grown) : NULL;
	if (grown) {
		c->v = grown;
		c->v[c->n++] = one;
	} else {
		free(one);
	}
}

static int by_name(const void *a, const void *b) {
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* --- Where they come from ----------------------------------------------------------------------------------------- */

static void add_commands(const struct chat *ch, const char *word, struct candidates *c) {
	static const char *const own[] = {"edit", "more"};
	json_t *one;
	size_t i;
	for (i = 0; i < ARRAY_SIZE(own); i++)
		if (strncmp(own[i], word + 1, strlen(word + 1)) == 0) add(c, str_printf("/%s", own[i]));
	json_array_foreach(ch->commands, i, one) {
		const char *name = json_string_value(one);
		if (name && strncmp(name, word + 1, strlen(word + 1)) == 0) add(c, str_printf("/%s", name));
	}
}

/* The directory of a path that is being typed, where the session works. */
static char *folder_of(const struct chat *ch, const char *path, size_t n) {
	if (*path == '/') return strndup(path, MAX(n, (size_t)1));
	if (strncmp(path, "~/", 2) == 0)
		return str_printf("%s/%.*s", getenv("HOME") ? getenv("HOME") : "", (int)n - 1, path + 1);
	return str_printf("%s/%.*s", ch->cwd ? ch->cwd : ".", (int)n, path);
}

static void add_files(const struct chat *ch, const char *word, struct candidates *c) {
	const char *path = word + 1, *slash = strrchr(path, '/'), *begin = slash ? slash + 1 : path;
	_cleanup_free_ char *folder = folder_of(ch, path, (size_t)(begin - path));
	DIR *dir = folder ? opendir(folder) : NULL;
	struct dirent *entry;
	while (dir && (entry = readdir(dir))) {
		struct stat st;
		const char *name = entry->d_name;
		if (*name == '.' && *begin != '.') continue;
		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strncmp(name, begin, strlen(begin)) != 0) continue;
		bool is_folder = fstatat(dirfd(dir), name, &st, 0) == 0 && S_ISDIR(st.st_mode);
		add(c, str_printf("@%.*s%s%s", (int)(begin - path), path, name, is_folder ? "/" : ""));
	}
	if (dir) closedir(dir);
}

/* --- The word ----------------------------------------------------------------------------------------------------- */

static size_t common(const struct candidates *c) {
	size_t n = strlen(c->v[0]);
	for (size_t i = 1; i < c->n; i++) {
		size_t k = 0;
		while (k < n && c->v[i][k] == c->v[0][k]) k++;
		n = k;
	}
	while (n && (c->v[0][n] & 0xc0) == 0x80) n--; /* whole characters */
	return n;
}

static void replace_or_list(struct chat *ch, const struct candidates *c, const char *word) {
	size_t n = common(c);
	bool whole = c->n == 1 && n && c->v[0][n - 1] != '/';
	_cleanup_free_ char *more = n >= strlen(word) ? str_printf("%.*s%s", (int)(n - strlen(word)),
															   c->v[0] + strlen(word), whole ? " " : "")
												  : NULL;
	_cleanup_wide_ wchar_t *wide = more ? wtext_from(more, strlen(more), NULL) : NULL;
	if (wide && *wide) {
		editor_insert(ch->editor, wide);
		return;
	}
	struct buf b = BUF_INIT(1 << 20);
	for (size_t i = 0; i < c->n && i < LISTED_MAX; i++) buf_printf(&b, "%s%s", i ? "  " : "", c->v[i]);
	show_note(&ch->show, SHOW_DIM, "  %s%s", b.data ? b.data : "", c->n > LISTED_MAX ? "  ..." : "");
	buf_free(&b);
}

void chat_complete(struct chat *ch) {
	const wchar_t *search;
	size_t n, cursor;
	const wchar_t *text = editor_text(ch->editor, &n, &cursor, &search);
	size_t begin = cursor;
	while (begin > 0 && text[begin - 1] != ' ' && text[begin - 1] != '\n' && text[begin - 1] != '\t') begin--;
	_cleanup_free_ char *word = wtext_to(text + begin, cursor - begin, NULL);
	struct candidates c = {0};
	if (word && *word == '/' && begin == 0) add_commands(ch, word, &c);
	if (word && *word == '@') add_files(ch, word, &c);
	if (c.n) {
		qsort(c.v, c.n, sizeof *c.v, by_name);
		replace_or_list(ch, &c, word);
	}
	for (size_t i = 0; i < c.n; i++) free(c.v[i]);
	free(c.v);
}
