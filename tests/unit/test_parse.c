/* SPDX-License-Identifier: MIT */
#include "wire/parse.h"

#include "base/buf.h"
#include "harness.h"

#include <malloc.h>
#include <stdlib.h>
#include <sys/resource.h>

/* The address sanitizer needs more address space than any limit leaves. */
#if defined(__SANITIZE_ADDRESS__)
#define IS_SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define IS_SANITIZED true
#endif
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED false
#endif

/* --- texts for jansson -------------------------------------------------------------------------------------------- */

static size_t now, peak;

static void *count(size_t n) {
	void *p = malloc(n);
	now += malloc_usable_size(p) + sizeof(size_t);
	if (now > peak) peak = now;
	return p;
}

static void uncount(void *p) {
	if (p) now -= malloc_usable_size(p) + sizeof(size_t);
	free(p);
}

struct shape {
	const char *begin, *one, *end;
};

/* Each way to use much memory for few bytes. %x: the number of the element. */
static const struct shape shapes[] = {
	{"[", "{},", "1]"},
	{"[", "[],", "1]"},
	{"[", "1,", "1]"},
	{"[", "1.5,", "1]"},
	{"[", "\"\",", "1]"},
	{"[", "{\"a\":1},", "1]"},
	{"[", "{\"a\":{}},", "1]"},
	{"[", "{\"a\":1,\"b\":2,\"c\":3,\"d\":4,\"e\":5,\"f\":6,\"g\":7,\"h\":8,\"i\":9},", "1]"},
	{"[", "[1,1,1,1,1,1,1,1,1],", "1]"},
	{"{", "\"%x\":1,", "\"z\":1}"},
	{"{", "\"%x\":{},", "\"z\":1}"},
	{"{", "\"%x\":[],", "\"z\":1}"},
	{"[\"", "a", "\"]"},
	{"[\"", "\\u0041", "\"]"},
	{"{\"", "a", "\":1}"},
};

static void build(struct buf *b, const struct shape *s, size_t n) {
	buf_puts(b, s->begin);
	for (size_t i = 0; i < n; i++) {
		const char *at = strstr(s->one, "%x");
		if (at)
			buf_printf(b, "%.*s%zx%s", (int)(at - s->one), s->one, i, at + 2);
		else
			buf_puts(b, s->one);
	}
	buf_puts(b, s->end);
	ck_assert(!b->failed);
}

START_TEST(jansson_never_needs_more_than_is_looked_for) {
	const size_t sizes[] = {0, 1, 9, 1000, 16385, 131073}; /* just above where arrays, tables and buffers double */
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(sizes); k++) {
			struct buf b = BUF_INIT((size_t)64 * 1024 * 1024);
			json_error_t error;
			build(&b, &shapes[i], sizes[k]);
			json_set_alloc_funcs(count, uncount);
			now = peak = 0;
			json_t *value = json_loadb(b.data, b.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
			REQUIRE(value, "%s: %s", shapes[i].one, error.text);
			json_decref(value);
			REQUIRE(now == 0, "%zu", now);
			REQUIRE(peak <= parse_needs(b.data, b.len), "%zu times %s: %zu of %zu", sizes[k], shapes[i].one, peak,
					parse_needs(b.data, b.len));
			json_set_alloc_funcs(malloc, free);
			buf_free(&b);
		}
	}
}
END_TEST

/* --- without memory ----------------------------------------------------------------------------------------------- */

START_TEST(a_text_that_there_is_no_memory_for_is_refused) {
	struct buf b = BUF_INIT((size_t)64 * 1024 * 1024);
	struct parse_error error;
	build(&b, &shapes[0], 1000000);
	struct rlimit before, low = {(rlim_t)100 * 1024 * 1024, RLIM_INFINITY};
	ck_assert_int_eq(getrlimit(RLIMIT_AS, &before), 0);
	low.rlim_max = before.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &low), 0);
	json_t *large = parse_json(b.data, b.len, 0, &error);
	bool no_memory = error.no_memory;
	struct parse_error none;
	json_t *small = parse_json("{\"a\":1}", 7, 0, &none);
	setrlimit(RLIMIT_AS, &before);
	ck_assert_ptr_null(large);
	ck_assert(no_memory);
	ck_assert_str_eq(error.text, "out of memory");
	ck_assert_ptr_nonnull(small);
	ck_assert(!none.no_memory);
	json_decref(small);
	large = parse_json(b.data, b.len, 0, &error); /* the shortage was temporary */
	ck_assert_uint_eq(json_array_size(large), 1000001);
	json_decref(large);
	buf_free(&b);
}
END_TEST

START_TEST(a_wrong_text_is_no_want_of_memory) {
	struct parse_error error;
	ck_assert_ptr_null(parse_json("{\"a\":1,\"a\":2}", 13, JSON_REJECT_DUPLICATES, &error));
	ck_assert(!error.no_memory);
	ck_assert_ptr_nonnull(strstr(error.text, "duplicate"));
}
END_TEST

RUN_TESTS("parse", jansson_never_needs_more_than_is_looked_for,
		  IS_SANITIZED ? NULL : NOT_IN_VALGRIND(a_text_that_there_is_no_memory_for_is_refused),
		  a_wrong_text_is_no_want_of_memory)
