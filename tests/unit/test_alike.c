/* SPDX-License-Identifier: MIT */
#include "wire/alike.h"

#include "harness.h"

#include <stdlib.h>
#include <string.h>

static void judged(const char *a, const char *b, bool want) {
	REQUIRE(alike(span_of(a), span_of(b)) == want, "%s, %s", a, b);
	REQUIRE(alike(span_of(b), span_of(a)) == want, "%s, %s", b, a);
}

START_TEST(the_same_in_other_words) {
	judged("{}", "{ }", true);
	judged("{\"a\":1,\"b\":[1,2,{\"c\":null}]}", "{ \"b\" : [ 1, 2, {\"c\":null} ], \"a\":1 }", true);
	judged("{\"a\":\"\\u00e9\\/\"}", "{\"\\u0061\":\"\xc3\xa9/\"}", true);
	judged("1", "1.0", true);
	judged("[1e3,-0.5]", "[1000,-5e-1]", true);
	judged("\"\\ud83d\\ude00\"", "\"\xf0\x9f\x98\x80\"", true);
	judged("[true,false,null]", "[ true, false , null ]", true);
	judged("{\"x\":1,\"x\":2}", "{\"x\":1, \"x\":2}", true);
	judged("{\"a\":1,\"\\u0062\":2,\"c\":3}", "{\"c\":3,\"b\":2,\"\\u0061\":1}", true);
}
END_TEST

START_TEST(something_else) {
	static const char *const pairs[][2] = {
		{"{}", "[]"},
		{"{\"a\":1}", "{}"},
		{"{\"a\":1}", "{\"b\":1}"},
		{"{\"a\":1}", "{\"A\":1}"},
		{"{\"a\":1,\"b\":2}", "{\"b\":1,\"a\":2}"},
		{"[1,2]", "[2,1]"},
		{"[1,2]", "[1,2,3]"},
		{"[]", "[[]]"},
		{"\"1\"", "1"},
		{"null", "\"null\""},
		{"true", "false"},
		{"\"a\"", "\"a \""},
		{"9007199254740993", "9007199254740992"},
		{"12345678901234567890", "12345678901234567000"},
		{"\"\\ud800\"", "\"\\ud801\""},
		{"\"\\ud800\"", "\"\\ufffd\""},
		{"\"\\u0000\"", "\"\""},
		{"\"a\\u0000b\"", "\"a\\u0000c\""},
		/* of duplicates the last one counts; a member of only one side counts */
		{"{\"x\":1,\"x\":1}", "{\"x\":1,\"y\":2}"},
		{"{\"x\":1,\"y\":5,\"y\":5}", "{\"x\":1,\"x\":9,\"y\":5}"},
		{"{\"x\":1,\"y\":5,\"x\":1}", "{\"x\":1,\"x\":9,\"y\":5}"},
		{"{\"x\":2,\"x\":1}", "{\"x\":1,\"x\":2}"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) judged(pairs[i][0], pairs[i][1], false);
	ck_assert(!alike(SPAN_NONE, span_of("{}")) && !alike(SPAN_NONE, SPAN_NONE));
}
END_TEST

/* {"k0":0,...}, forwards or backwards. */
static char *numbered(size_t n, bool backwards) {
	char *out = malloc(n * 24 + 3), *p = out;
	*p++ = '{';
	for (size_t i = 0; i < n; i++) {
		size_t k = backwards ? n - 1 - i : i;
		p += sprintf(p, "%s\"k%zu\":%zu", i ? "," : "", k, k);
	}
	*p++ = '}';
	*p = 0;
	return out;
}

/* The order of many members does not count; very deep texts count as different. */
/* Texts of some MiB have the same value only if they have the same bytes. */
START_TEST(long_texts) {
	size_t n = 5 * 1024 * 1024;
	_cleanup_free_ char *one = malloc(n + 1), *other = malloc(n + 2);
	memset(one, 'x', n);
	one[0] = one[n - 1] = '"';
	one[n] = 0;
	judged(one, one, true);
	snprintf(other, n + 2, " %s", one);
	judged(other, other, true);
	ck_assert(!alike((struct span){one, n}, (struct span){other, n + 1}));
	one[n / 2] = 'y';
	judged(one, other + 1, false);
}
END_TEST

START_TEST(work_has_a_bound) {
	char *forth = numbered(100000, false), *back = numbered(100000, true);
	judged(forth, forth, true);
	judged(forth, back, true);
	free(forth);
	free(back);
	forth = numbered(20, false), back = numbered(20, true);
	judged(forth, back, true);
	free(forth);
	free(back);
	enum { DEEP = 100000 };
	char *deep = malloc(2 * DEEP + 3), *other = malloc(2 * DEEP + 4);
	memset(deep, '[', DEEP);
	memset(deep + DEEP, ']', DEEP);
	deep[2 * DEEP] = 0;
	memset(other, '[', DEEP);
	other[DEEP] = ' ';
	memset(other + DEEP + 1, ']', DEEP);
	other[2 * DEEP + 1] = 0;
	judged(deep, other, false);
	free(deep);
	free(other);
}
END_TEST

RUN_TESTS("alike", the_same_in_other_words, something_else, long_texts, work_has_a_bound)
