/* SPDX-License-Identifier: MIT */
#include "core/glob.h"

#include <stdlib.h>
#include <string.h>

/* Tokens of wildcards. In a pattern these bytes are wildcards; rules_check() refuses control characters. */
enum { STAR_TEXT = 2, STAR_NAME, STAR_FOLDERS, ONE };

static size_t token(const char *p, size_t n, enum glob_style style, unsigned char *t) {
	*t = (unsigned char)*p;
	if (*p == '\\' && n > 1) {
		*t = (unsigned char)p[1];
		return 2;
	}
	if (*p == '?' && style == GLOB_PATH) *t = ONE;
	if (*p != '*') return 1;
	*t = style == GLOB_TEXT ? STAR_TEXT : STAR_NAME;
	size_t stars = 1;
	while (stars < n && p[stars] == '*') stars++;
	if (style == GLOB_TEXT || stars == 1) return stars;
	bool whole = stars < n && p[stars] == '/';
	*t = whole ? STAR_FOLDERS : STAR_TEXT;
	return stars + whole;
}

bool glob_init(struct glob *g, const char *pattern, size_t n, enum glob_style style, char boundary) {
	*g = (struct glob){
		.tokens = malloc(n + 1),
		.boundary = boundary,
		.now = calloc(n + 1, sizeof(bool)),
		.next = calloc(n + 1, sizeof(bool)),
	};
	if (!g->tokens || !g->now || !g->next) {
		glob_free(g);
		return false;
	}
	for (size_t i = 0; i < n;) i += token(pattern + i, n - i, style, &g->tokens[g->n++]);
	return true;
}

void glob_free(struct glob *g) {
	free(g->tokens);
	free(g->now);
	free(g->next);
	*g = (struct glob){0};
}

/* Add the position and all positions reachable from it without a character. */
static void arrive(const struct glob *g, bool *set, size_t at) {
	for (; !set[at]; at++) {
		set[at] = true;
		if (at == g->n || g->tokens[at] < STAR_TEXT || g->tokens[at] > STAR_FOLDERS) return;
	}
}

static void step(struct glob *g, size_t at, char c) {
	switch (g->tokens[at]) {
	case STAR_NAME:
		if (c == '/') return;
		arrive(g, g->next, at + 1);
		g->next[at] = true;
		return;
	case STAR_TEXT:
		arrive(g, g->next, at + 1);
		g->next[at] = true;
		return;
	case STAR_FOLDERS: /* continues only at the start of a name */
		if (c == '/') arrive(g, g->next, at + 1);
		g->next[at] = true;
		return;
	case ONE:
		if (c != '/') arrive(g, g->next, at + 1);
		return;
	default:
		if (g->tokens[at] == (unsigned char)c) arrive(g, g->next, at + 1);
	}
}

/* Consume one character; return false if no position is left. */
static bool advance(struct glob *g, char c) {
	bool any = false;
	memset(g->next, 0, (g->n + 1) * sizeof(bool));
	for (size_t i = 0; i < g->n; i++)
		if (g->now[i]) step(g, i, c);
	bool *swap = g->now;
	g->now = g->next;
	g->next = swap;
	for (size_t i = 0; i <= g->n && !any; i++) any = g->now[i];
	return any;
}

/* Positions are visited in ascending order and reached only from lower ones, so a STAR_FOLDERS that has consumed part
 * of a name (set without its successor) does not stop arrive() from continuing after it. */
enum match glob_match(struct glob *g, const char *text, size_t n) {
	enum match answer = MATCH_NO;
	memset(g->now, 0, (g->n + 1) * sizeof(bool));
	arrive(g, g->now, 0);
	for (size_t i = 0; i < n; i++) {
		if (g->boundary && text[i] == g->boundary && g->now[g->n]) return MATCH_YES;
		if (text[i] == GLOB_UNKNOWN) answer = MATCH_MAYBE;
		if (!advance(g, text[i])) return answer;
	}
	return g->now[g->n] ? MATCH_YES : answer;
}
