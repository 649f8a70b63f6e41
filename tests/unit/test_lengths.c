/* SPDX-License-Identifier: MIT
 *
 * What is remembered of a line, and that a reader does not look into it. The scan with lengths is compared with the
 * plain one in test_scan.
 */
#include "wire/lengths.h"

#include "dialect/envelope.h"
#include "harness.h"
#include "wire/scan.h"

#include <string.h>

static const char line[] = "{\"a\":[[1],{\"b\":\"a string\"}],\"s\":\"no \\\"end\\\" here\",\"n\":1}";

static struct lengths *measured(const char *text, size_t n, size_t least, size_t piece) {
	struct lengths *l = lengths_new(text, n, least);
	ck_assert_ptr_nonnull(l);
	while (!lengths_step(l, piece)) {}
	lengths_use(l);
	return l;
}

static void drop(struct lengths *l) {
	lengths_use(NULL);
	lengths_free(l);
}

static size_t found(const char *text, size_t at) {
	size_t n = 0;
	return lengths_find(text + at, text + strlen(text), &n) ? n : SIZE_MAX;
}

static size_t place(const char *text, const char *of) {
	return (size_t)(strstr(text, of) - text);
}

START_TEST(long_values_are_remembered) {
	for (size_t piece = 1; piece < 80; piece++) {
		struct lengths *l = measured(line, strlen(line), 12, piece);
		ck_assert_uint_eq(found(line, place(line, "[[1]")), strlen("[[1],{\"b\":\"a string\"}]"));
		ck_assert_uint_eq(found(line, place(line, "{\"b\"")), strlen("{\"b\":\"a string\"}"));
		ck_assert_uint_eq(found(line, place(line, "\"no ")), strlen("\"no \\\"end\\\" here\""));
		ck_assert_uint_eq(found(line, place(line, "[1]")), SIZE_MAX); /* too short */
		ck_assert_uint_eq(found(line, 0), SIZE_MAX);                  /* the line's own */
		drop(l);
		ck_assert_uint_eq(found(line, place(line, "[[1]")), SIZE_MAX); /* not in use */
	}
}
END_TEST

START_TEST(a_known_value_is_not_read) {
	char copy[sizeof line];
	struct envelope e;
	memcpy(copy, line, sizeof line);
	struct lengths *l = measured(copy, strlen(copy), 12, 7);
	memset(copy + place(line, "[[1]") + 1, '[', 5);
	ck_assert(scan_envelope(copy, strlen(copy), &e));
	lengths_use(NULL);
	ck_assert(!scan_envelope(copy, strlen(copy), &e));
	lengths_free(l);
}
END_TEST

START_TEST(what_does_not_end) {
	static const char *const texts[] = {"{\"a\":[[[[{},\"x\"", "{\"a\":{\"b\":\"xxx", "{\"a\":[\\\"\\\",\"[",
										"{\"a\":[1]]]"};
	struct envelope e;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct lengths *l = measured(texts[i], strlen(texts[i]), 1, 1 + i);
		ck_assert_uint_eq(found(texts[i], place(texts[i], "{\"a\":") + 5), i < 3 ? 0 : 3);
		ck_assert(!scan_envelope(texts[i], strlen(texts[i]), &e));
		drop(l);
	}
}
END_TEST

/* A copy with another id has the same lengths; the id itself has none. */
START_TEST(a_copy) {
	static const char id[] = "\"no \\\"end\\\" here\"", *const ids[] = {"\"x\"",
																		"\"a far longer one, with [brackets]\""};
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		char copy[200];
		size_t at = place(line, id), with = strlen(ids[i]);
		snprintf(copy, sizeof copy, "%.*s%s%s,\"z\":[7,8]}", (int)at, line, ids[i], ",\"k\":{\"x\":12345678}");
		_cleanup_free_ char *from = NULL;
		ck_assert_int_gt(asprintf(&from, "%.*s%s%s,\"z\":[7,8]}", (int)at, line, id, ",\"k\":{\"x\":12345678}"), 0);
		struct lengths *l = measured(from, strlen(from), 5, 64);
		lengths_use_copy(from + at, strlen(id), with, (struct chunk){NULL, copy, strlen(copy)});
		ck_assert_uint_eq(found(copy, place(copy, "[[1]")), strlen("[[1],{\"b\":\"a string\"}]"));
		ck_assert_uint_eq(found(copy, at), SIZE_MAX);
		ck_assert_uint_eq(found(copy, place(copy, "{\"x\":1")), strlen("{\"x\":12345678}"));
		ck_assert_uint_eq(found(copy, place(copy, "[7")), strlen("[7,8]"));
		ck_assert_uint_eq(found(from, place(from, "[7")), strlen("[7,8]"));
		drop(l);
	}
}
END_TEST

RUN_TESTS("lengths", long_values_are_remembered, a_known_value_is_not_read, what_does_not_end, a_copy)
