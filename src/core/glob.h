/* SPDX-License-Identifier: MIT
 *
 * Patterns with stars, matched in time proportional to length(pattern) * length(text) for any input: a set of positions
 * instead of backtracking. A text may contain GLOB_UNKNOWN, which stands for any text not known yet; therefore there
 * are three results.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define GLOB_UNKNOWN '\x01'

enum match { MATCH_NO, MATCH_MAYBE, MATCH_YES };

enum glob_style {
	GLOB_TEXT, /* * any text; \* a star */
	GLOB_PATH, /* * any text without /, ** any text, **'/' any directories or none, ? one character except / */
};

struct glob {
	unsigned char *tokens;
	size_t n;
	char boundary;    /* a match may end before this character; 0: only at the end of the text */
	bool *now, *next; /* n + 1 positions each */
};

/* False without memory. */
bool glob_init(struct glob *g, const char *pattern, size_t n, enum glob_style style, char boundary);
void glob_free(struct glob *g);
/* Uses memory of g: not const. */
enum match glob_match(struct glob *g, const char *text, size_t n);
