/* SPDX-License-Identifier: MIT */
#include "core/glob.h"

#include "harness.h"

#include <string.h>

static enum match match(const char *pattern, const char *text, enum glob_style style, char boundary) {
	struct glob g;
	ck_assert(glob_init(&g, pattern, strlen(pattern), style, boundary));
	enum match m = glob_match(&g, text, strlen(text)), again = glob_match(&g, text, strlen(text));
	ck_assert_int_eq(m, again); /* no state of the last text is left */
	glob_free(&g);
	return m;
}

static void is(enum match want, const char *pattern, const char *text, enum glob_style style, char boundary) {
	enum match have = match(pattern, text, style, boundary);
	REQUIRE(have == want, "`%s` and `%s`: %d, not %d", pattern, text, (int)have, (int)want);
}

START_TEST(text) {
	static const struct {
		const char *pattern, *text;
		bool yes;
	} table[] = {
		{"", "", true},         {"", "a", false},        {"*", "", true},         {"*", "a/b c", true},
		{"a", "a", true},       {"a", "", false},        {"a", "ab", false},      {"a*", "a", true},
		{"a*b", "ab", true},    {"a*b", "axxb", true},   {"a*b", "axxbc", false}, {"*a*", "xax", true},
		{"***", "x", true},     {"a?", "a?", true},      {"a?", "ab", false},     {"\\*", "*", true},
		{"\\*", "a", false},    {"\\\\", "\\", true},    {"a\\", "a\\", true},    {"\\a", "a", true},
		{"a\\*b", "a*b", true}, {"a\\*b", "axb", false}, {"[a]", "[a]", true},    {"*\xc3\xa9", "x\xc3\xa9", true},
		{"A", "a", false},
	};
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		is(table[i].yes ? MATCH_YES : MATCH_NO, table[i].pattern, table[i].text, GLOB_TEXT, 0);
}
END_TEST

START_TEST(paths) {
	static const struct {
		const char *pattern, *text;
		bool yes;
	} table[] = {
		{"*", "a", true},          {"*", "", true},
		{"*", "a/b", false},       {"**", "a/b", true},
		{"/a/*", "/a/b", true},    {"/a/*", "/a/b/c", false},
		{"/a/**", "/a/b/c", true}, {"/a/**", "/a/", true},
		{"/a/**", "/a", false},    {"**/x", "x", true},
		{"**/x", "a/x", true},     {"**/x", "a/b/x", true},
		{"**/x", "ax", false},     {"**/x", "a/bx", false},
		{"a/**/x", "a/x", true},   {"a/**/x", "a/b/c/x", true},
		{"a/**/x", "a/bx", false}, {"a/**/x", "ax", false},
		{"?", "a", true},          {"?", "/", false},
		{"?", "", false},          {"a?c", "a/c", false},
		{"\\?", "?", true},        {"\\?", "a", false},
		{"***/x", "a/b/x", true},  {"*.c", "a.c", true},
		{"*.c", "a/b.c", false},   {"**.c", "a/b.c", true},
		{"**/*.c", "b.c", true},   {"**/*.c", "a/b.c", true},
		{"**/", "a/", true},       {"**/", "a", false},
		{"**/**/x", "x", true},    {"**/a/**/b", "a/b", true},
	};
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		is(table[i].yes ? MATCH_YES : MATCH_NO, table[i].pattern, table[i].text, GLOB_PATH, 0);
}
END_TEST

START_TEST(boundaries) {
	is(MATCH_YES, "npm run", "npm run", GLOB_TEXT, ' ');
	is(MATCH_YES, "npm run", "npm run x", GLOB_TEXT, ' ');
	is(MATCH_NO, "npm run", "npm runx", GLOB_TEXT, ' ');
	is(MATCH_NO, "npm run", "npm ru", GLOB_TEXT, ' ');
	is(MATCH_YES, "/a", "/a/b/c", GLOB_PATH, '/');
	is(MATCH_NO, "/a", "/ab", GLOB_PATH, '/');
	is(MATCH_YES, "", " x", GLOB_TEXT, ' ');
}
END_TEST

START_TEST(what_nobody_can_know) {
	is(MATCH_MAYBE, "rm x", "\x01", GLOB_TEXT, 0);
	is(MATCH_MAYBE, "rm x", "rm \x01", GLOB_TEXT, 0);
	is(MATCH_NO, "rm x", "ls \x01", GLOB_TEXT, 0); /* whatever it may be */
	is(MATCH_YES, "rm *", "rm \x01", GLOB_TEXT, 0);
	is(MATCH_YES, "rm", "rm \x01", GLOB_TEXT, ' ');
	is(MATCH_MAYBE, "rm", "rm\x01", GLOB_TEXT, ' ');
	is(MATCH_MAYBE, "a*b", "a\x01", GLOB_TEXT, 0);
	is(MATCH_YES, "a*b",
	   "a\x01"
	   "b",
	   GLOB_TEXT, 0);
}
END_TEST

/* --- against the definition, with backtracking -------------------------------------------------------------------- */

static bool plain(const char *p, const char *t, enum glob_style style, char boundary);

static bool plain_star(const char *p, const char *t, enum glob_style style, char boundary) {
	size_t stars = strspn(p, "*");
	bool any = style == GLOB_TEXT || stars > 1, folders = any && style == GLOB_PATH && p[stars] == '/';
	p += stars + folders;
	for (bool start = true;; start = *t++ == '/') {
		if ((!folders || start) && plain(p, t, style, boundary)) return true;
		if (!*t || (!any && *t == '/')) return false;
	}
}

static bool plain(const char *p, const char *t, enum glob_style style, char boundary) {
	if (!*p) return !*t || (boundary && *t == boundary);
	if (*p == '*') return plain_star(p, t, style, boundary);
	if (*p == '?' && style == GLOB_PATH) return *t && *t != '/' && plain(p + 1, t + 1, style, boundary);
	if (*p == '\\' && p[1]) p++;
	return *p == *t && plain(p + 1, t + 1, style, boundary);
}

static void some(char *out, size_t max, const char *alphabet, uint64_t *seed) {
	size_t n = rng_below(seed, max);
	for (size_t i = 0; i < n; i++) out[i] = alphabet[rng_below(seed, strlen(alphabet))];
	out[n] = 0;
}

START_TEST(does_what_backtracking_does) {
	uint64_t seed = 1;
	size_t yes = 0;
	char pattern[12], t[16];
	const int n_rounds = rounds(60000);
	for (int i = 0; i < n_rounds; i++) {
		some(pattern, sizeof pattern, "aab//***?\\", &seed);
		some(t, sizeof t, "aaab//*?", &seed);
		enum glob_style style = rng_below(&seed, 2) ? GLOB_TEXT : GLOB_PATH;
		char boundary = "\0/a"[rng_below(&seed, 3)];
		enum match want = plain(pattern, t, style, boundary) ? MATCH_YES : MATCH_NO;
		is(want, pattern, t, style, boundary);
		yes += want == MATCH_YES;
	}
	ck_assert_uint_gt(yes, (size_t)n_rounds / 30); /* the test is not vacuous */
}
END_TEST

/* NO: no value of the unknown text matches. YES: every value does. */
START_TEST(unknown_text_is_judged_safely) {
	uint64_t seed = 2;
	char pattern[10], before[6], after[6], inner[6], t[20], full[30];
	const int n_rounds = rounds(15000);
	for (int i = 0; i < n_rounds; i++) {
		char boundary = "\0 "[rng_below(&seed, 2)];
		some(pattern, sizeof pattern, "aab **", &seed);
		some(before, sizeof before, "aab ", &seed);
		some(after, sizeof after, "aab ", &seed);
		snprintf(t, sizeof t, "%s\x01%s", before, after);
		enum match m = match(pattern, t, GLOB_TEXT, boundary);
		for (int k = 0; k < 5; k++) {
			some(inner, sizeof inner, "aab ", &seed);
			snprintf(full, sizeof full, "%s%s%s", before, inner, after);
			bool yes = plain(pattern, full, GLOB_TEXT, boundary);
			REQUIRE(m == MATCH_MAYBE || (m == MATCH_YES) == yes, "`%s` and `%s` for `%s`: %d", pattern, full, t,
					(int)m);
		}
	}
}
END_TEST

/* Backtracking would not end here. */
START_TEST(time_is_bounded) {
	char pattern[402], t[2001];
	for (size_t i = 0; i < 400; i += 2) memcpy(pattern + i, "*a", 2);
	memcpy(pattern + 400, "b", 2);
	memset(t, 'a', 2000);
	t[2000] = 0;
	is(MATCH_NO, pattern, t, GLOB_TEXT, 0);
	is(MATCH_NO, pattern, t, GLOB_PATH, 0);
	t[1999] = 'b';
	is(MATCH_YES, pattern, t, GLOB_TEXT, 0);
}
END_TEST

RUN_TESTS("glob", text, paths, boundaries, what_nobody_can_know, does_what_backtracking_does,
		  unknown_text_is_judged_safely, time_is_bounded)
