/* SPDX-License-Identifier: MIT
 *
 * Tables of the objects of an answer: a row for each, a column for each member.
 */
#pragma once

#include "ctl/table.h"

#include <jansson.h>
#include <stddef.h>

enum column_kind {
	COLUMN_WORD,
	COLUMN_PATH,       /* with ~ for the home directory */
	COLUMN_NUMBER,     /* or the size of an array */
	COLUMN_WAITING,    /* of an array of prompts: those that wait, not those of the turn */
	COLUMN_OF,         /* a number, and the total, which the member `none` has */
	COLUMN_SIZE,       /* bytes */
	COLUMN_AGE,        /* ms */
	COLUMN_DOLLARS,    /* a number */
	COLUMN_YES,        /* a bool */
	COLUMN_BACKGROUND, /* as ctl_put_background(), of several members */
};

struct column {
	const char *head, *member;
	enum column_kind kind;
	const char *none; /* in the place of an absent member, of a false one, and of a number that is not above 0 (NULL:
						 the number itself) */
	size_t max;       /* columns of a word; 0: those of a cell */
	int rank;         /* a narrow screen loses the column with the greatest rank first; 0: never */
	char key;         /* sorts by it; 0: none */
};

/* Return the number that a column shows of one object. */
double column_number(const struct column *c, json_t *one);
/* Add the heads and a row for each of the list, at most this many. */
void column_fill(struct table *t, const struct column *columns, json_t *list, size_t most);
/* Print the list as a table below an empty line and its title, cut to the terminal; nothing for an empty list. */
void column_print(json_t *list, const char *title, const struct column *columns, size_t n);
/* Return the elements, which qsort(3) gives to compare() as json_t **, as a sorted array. */
json_t *column_sorted(json_t *list, int (*compare)(const void *left, const void *right));
