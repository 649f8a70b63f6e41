/* SPDX-License-Identifier: MIT
 *
 * A NULL-terminated list of words, such as an argv; it owns them. {0} is an empty list.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct words {
	char **v;
	size_t n;
};

/* Return false without memory, with the list unchanged. */
bool words_add(struct words *w, const char *word);
bool words_same(const struct words *a, const struct words *b);
/* Return the index of the first NAME=VALUE with this name of n bytes, or -1. */
ssize_t words_named(const struct words *w, const char *name, size_t n);
/* Return true for a word FLAG or FLAG=VALUE. */
bool words_is_flag(const char *word, const char *flag);
bool words_have_flag(const struct words *w, const char *flag);
void words_free(struct words *w);

/* Append the words of a command line, split as by a shell (single and double quotes, backslash; no expansion).
 * False: *error is a static message, and the list is empty. */
bool words_split(struct words *out, const char *text, const char **error);
