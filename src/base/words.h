/* SPDX-License-Identifier: MIT
 *
 * A list of words, such as a command line; NULL-terminated, all owned by the list. {0} is an empty one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct words {
	char **v;
	size_t n;
};

/* False without memory; the list then has what it had. */
bool words_add(struct words *w, const char *word);
bool words_same(const struct words *a, const struct words *b);
/* The first NAME=VALUE with this name of n bytes; -1: there is none. */
ssize_t words_named(const struct words *w, const char *name, size_t n);
void words_free(struct words *w);

/* Appends the words of a command line, split as a shell would (single and double quotes, backslash; no expansion).
 * False: *error is a static sentence that says why, and the list is empty. */
bool words_split(struct words *out, const char *text, const char **error);
