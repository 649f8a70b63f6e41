/* SPDX-License-Identifier: MIT */
#include "dialect/claude/argv.h"

#include "base/macros.h"

#include <stdlib.h>
#include <string.h>

void argv_read_resume(const char *id, struct dialect_claim *claim) {
	/* 8-4-4-4-12 hexadecimal digits; the CLI takes anything else as a title or a file. */
	size_t n = strspn(id, "0123456789abcdefABCDEF-");
	bool plain = n == 36 && id[n] == 0 && id[8] == '-' && id[13] == '-' && id[18] == '-' && id[23] == '-';
	claim->resume = id;
	claim->open |= !plain;
}

/* Return the optional value of a flag in the next word. */
static const char *optional_value(const struct words *w, size_t i) {
	const char *next = i + 1 < w->n ? w->v[i + 1] : NULL;
	return next && *next != '-' ? next : NULL;
}

/* Parse short flags in one word like the CLI: -pc, -pr ID, -prID. The first flag with a value takes the rest of the
 * word. Return the index of -r, or of the end of the flags; *continues: -c is before it. */
static size_t read_short(const char *word, bool *continues) {
	*continues = false;
	if (word[0] != '-' || word[1] == '-' || !word[1]) return strlen(word);
	size_t n = strcspn(word, "rndw");
	*continues = memchr(word, 'c', n) != NULL;
	return word[n] == 'r' ? n : strlen(word);
}

void argv_read_claim(const struct words *w, struct dialect_claim *claim) {
	static const char *const unnamed[] = {"--continue", "--from-pr", "--teleport"};
	for (size_t i = 0; i < w->n && strcmp(w->v[i], "--") != 0; i++) {
		const char *word = w->v[i], *eq = strchr(word, '='), *value = eq ? eq + 1 : optional_value(w, i);
		bool continues;
		size_t at = read_short(word, &continues);
		claim->forks |= strcmp(word, "--fork-session") == 0;
		claim->open |= continues;
		for (size_t k = 0; k < ARRAY_SIZE(unnamed); k++) claim->open |= words_is_flag(word, unnamed[k]);
		if (words_is_flag(word, "--session-id") && value) claim->fresh = value;
		if (word[at]) value = word[at + 1] ? word + at + 1 : optional_value(w, i);
		if ((word[at] || words_is_flag(word, "--resume")) && value) argv_read_resume(value, claim);
	}
}

/* Return the word without c and -r: -p for -pcr ID. NULL: nothing left, or no memory. */
static char *without_continue(const char *word, size_t n) {
	char *rest = calloc(1, n + 1), *to = rest;
	for (size_t i = 0; rest && i < n; i++)
		if (word[i] != 'c') *to++ = word[i];
	if (rest && rest[1]) return rest;
	free(rest);
	return NULL;
}

/* Skip a flag that a later start must not repeat: --resume=X, --resume X, --continue, --fork-session. *rest: the
 * remaining flags of a word with several, owned by the caller. */
bool argv_skips_word(const struct words *w, size_t *i, char **rest) {
	static const char *const with_value[] = {"--resume", "--session-id", "--resume-session-at", "--from-pr",
											 "--teleport"};
	static const char *const alone[] = {"--continue", "--fork-session"};
	const char *word = w->v[*i];
	bool continues;
	size_t at = read_short(word, &continues);
	if (word[at] || continues) {
		if (word[at] && !word[at + 1] && optional_value(w, *i)) ++*i;
		*rest = without_continue(word, at);
		return true;
	}
	for (size_t k = 0; k < ARRAY_SIZE(alone); k++)
		if (strcmp(word, alone[k]) == 0) return true;
	for (size_t k = 0; k < ARRAY_SIZE(with_value); k++) {
		if (!words_is_flag(word, with_value[k])) continue;
		if (!word[strlen(with_value[k])] && *i + 1 < w->n && w->v[*i + 1][0] != '-') ++*i;
		return true;
	}
	return false;
}

/* Add the required flags (contract 8); a program other than the CLI ignores them. */
bool argv_add_flags(struct words *out, bool no_asks) {
	static const char *const pairs[][2] = {
		{"--input-format", "stream-json"}, {"--output-format", "stream-json"}, {"--permission-prompt-tool", "stdio"}};
	static const char *const single[] = {"--verbose", "--include-partial-messages", "--replay-user-messages"};
	bool ok = true;
	if (!words_have_flag(out, "-p") && !words_have_flag(out, "--print")) ok = words_add(out, "-p");
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
		if (!words_have_flag(out, pairs[i][0]) && !(no_asks && i == 2))
			ok = ok && words_add(out, pairs[i][0]) && words_add(out, pairs[i][1]);
	for (size_t i = 0; i < ARRAY_SIZE(single); i++)
		if (!words_have_flag(out, single[i])) ok = ok && words_add(out, single[i]);
	return ok;
}
