/* SPDX-License-Identifier: MIT
 *
 * Earlier input, of this run and of others: a file with mode 0600, one entry a line, which several
 * programs may append to at the same time.
 */
#pragma once

#include <stddef.h>
#include <wchar.h>

struct history {
	wchar_t **entries; /* oldest first */
	size_t n;
	char *path; /* NULL: not kept */
};

#define HISTORY_MAX 2000 /* entries that are kept */

/* Read the file. path is consumed; NULL, or a file that cannot be read: an empty history. */
void history_open(struct history *h, char *path);
void history_free(struct history *h);
/* Add an entry, unless it repeats the newest one, and append it to the file. */
void history_add(struct history *h, const wchar_t *text, size_t n);
/* Return the index of the newest entry before `before` that contains the pattern; `before` if there is none. */
size_t history_find(const struct history *h, size_t before, const wchar_t *pattern);
