/* SPDX-License-Identifier: MIT */
#include "wire/wide.h"

#include "harness.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define LONGEST 400
#define LINES 200000

/* The next page is unreadable: reading a byte past the line's end is a fault. */
static char *page, *page_end;

static void setup(void) {
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	page = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(page, MAP_FAILED);
	page_end = page + size;
	ck_assert_int_eq(mprotect(page_end, size, PROT_NONE), 0);
}

static void teardown(void) {
	munmap(page, 2 * (size_t)sysconf(_SC_PAGESIZE));
}

static const char *plain_string(const char *p, const char *end) {
	for (; p < end; p++)
		if (*p == '"')
			return p + 1;
		else if (*p == '\\')
			p++;
	return NULL;
}

/* NULL, past the closing bracket, or p if a backslash is outside of strings before it. */
static const char *plain_container(const char *const start, const char *end) {
	size_t depth = 0;
	for (const char *p = start; p < end; p++)
		if (*p == '\\')
			return start;
		else if (*p == '"') {
			p = plain_string(p + 1, end);
			if (!p) return NULL;
			p--;
		} else if (*p == '{' || *p == '[')
			depth++;
		else if ((*p == '}' || *p == ']') && --depth == 0)
			return p + 1;
	return NULL;
}

/* A random line of n bytes at the end of the page; `bytes` are its most frequent ones. */
static char *line_of(uint64_t *seed, const char *bytes, size_t n) {
	size_t kinds = strlen(bytes), rare = 1 + rng_below(seed, 40);
	char *line = page_end - n;
	for (size_t i = 0; i < n; i++) line[i] = rng_below(seed, rare) ? 'x' : bytes[rng_below(seed, kinds)];
	return line;
}

START_TEST(strings_as_the_plain_loop) {
	uint64_t seed = 11;
	size_t found = 0, lines = (size_t)rounds(LINES);
	for (size_t i = 0; i < lines; i++) {
		size_t n = rng_below(&seed, LONGEST);
		char *p = line_of(&seed, "\"\\\\\\", n);
		const char *want = plain_string(p, page_end), *got = wide_string(p, page_end);
		REQUIRE(got == want, "line %zu: %.*s", i, (int)n, p);
		found += got != NULL;
	}
	ck_assert_uint_gt(found, lines / 10);
	ck_assert_uint_lt(found, lines - lines / 10);
}
END_TEST

START_TEST(containers_as_the_plain_loop) {
	uint64_t seed = 12;
	size_t closed = 0, lines = (size_t)rounds(LINES);
	for (size_t i = 0; i < lines; i++) {
		size_t n = 1 + rng_below(&seed, LONGEST);
		char *p = line_of(&seed, i % 2 ? "{}[]]}\"" : "{}[]\"\"\\", n);
		*p = '{';
		const char *want = plain_container(p, page_end), *got = wide_container(p, page_end);
		/* it may check a whole step, and leave a backslash after the end to the plain loop */
		REQUIRE(got == want || (got == p && memchr(p, '\\', n)), "line %zu: %.*s", i, (int)n, p);
		closed += got && got != p;
	}
	ck_assert_uint_gt(closed, lines / 10);
}
END_TEST

START_TEST(long_inside_of_a_string) {
	char *p = page_end - 4000;
	memset(p, 'x', 4000);
	memcpy(p, "{\"", 2);
	ck_assert_ptr_null(wide_container(p, page_end));
	memcpy(page_end - 2, "\"}", 2);
	ck_assert_ptr_eq(wide_container(p, page_end), page_end);
	ck_assert_ptr_eq(wide_string(p + 2, page_end), page_end - 1);
	memset(p + 2, '}', 3996); /* brackets within the string do not count */
	ck_assert_ptr_eq(wide_container(p, page_end), page_end);
}
END_TEST

START_TEST(backslashes_across_steps) {
	for (size_t before = 40; before < 80; before++)
		for (size_t n = 1; n < 70; n++) {
			char *p = page_end - before - n - 1;
			memset(p, 'x', before);
			memset(p + before, '\\', n);
			page_end[-1] = '"';
			ck_assert_ptr_eq(wide_string(p, page_end), n % 2 ? NULL : page_end);
		}
}
END_TEST

/* A processor without these instructions never calls them. */
#define HERE(test) (wide_here() ? (test) : NULL)

RUN_TESTS_WITH(setup, teardown, "wide", HERE(strings_as_the_plain_loop), HERE(containers_as_the_plain_loop),
			   HERE(long_inside_of_a_string), HERE(backslashes_across_steps))
