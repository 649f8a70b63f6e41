/* SPDX-License-Identifier: MIT
 *
 * What is remembered of a line, and that a reader does not look into it. The scan with lengths is compared with the
 * plain one in test_scan.
 */
#include "wire/lengths.h"

#include "base/buf.h"
#include "dialect/envelope.h"
#include "harness.h"
#include "wire/limits.h"
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

#define COPY "{\"o\":%.*s%s%s,\"z\":[7,8]}}"

/* A copy with another id has the same lengths; the id itself has none. An object around the id grows with it. */
START_TEST(a_copy) {
	static const char id[] = "\"no \\\"end\\\" here\"", *const ids[] = {"\"x\"",
																		"\"a far longer one, with [brackets]\""};
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		size_t at = place(line, id);
		_cleanup_free_ char *from = NULL, *copy = NULL;
		static const char behind[] = ",\"k\":{\"x\":12345678}";
		ck_assert_int_gt(asprintf(&copy, COPY, (int)at, line, ids[i], behind), 0);
		ck_assert_int_gt(asprintf(&from, COPY, (int)at, line, id, behind), 0);
		struct lengths *l = measured(from, strlen(from), 5, 64);
		size_t before = found(from, 5);
		struct lengths *c = lengths_of_copy(from + place(from, id), strlen(id),
											(struct chunk){NULL, copy, strlen(copy)});
		lengths_use_also(c);
		ck_assert_uint_eq(found(copy, place(copy, "[[1]")), strlen("[[1],{\"b\":\"a string\"}]"));
		ck_assert_uint_eq(found(copy, place(copy, ids[i])), SIZE_MAX);
		ck_assert_uint_eq(found(copy, place(copy, "{\"x\":1")), strlen("{\"x\":12345678}"));
		ck_assert_uint_eq(found(copy, place(copy, "[7")), strlen("[7,8]"));
		ck_assert_uint_eq(found(from, place(from, "[7")), strlen("[7,8]"));
		ck_assert_uint_eq(found(copy, 5), before - strlen(id) + strlen(ids[i]));
		lengths_free(c);
		ck_assert_uint_eq(found(copy, place(copy, "[7")), SIZE_MAX);
		ck_assert_uint_eq(found(from, place(from, "[7")), strlen("[7,8]"));
		drop(l);
	}
}
END_TEST

/* `before`, an object with so many strings in it, and "}". The caller frees. */
static char *with_strings(const char *before, size_t n) {
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	buf_printf(&b, "%s{\"s\":0", before);
	for (size_t i = 1; i < n; i++) buf_puts(&b, ",\"s\":[\"x\"]");
	buf_puts(&b, "}}");
	return buf_steal(&b, NULL);
}

/* Neither the scanner nor a walk reads it: both would find a member of it. Its neighbours are read. */
START_TEST(a_wide_object_has_no_members) {
	static const char before[] = " {\"type\":\"x\",\"request\":";
	const size_t at = sizeof before - 1;
	for (size_t more = 0; more < 2; more++) {
		_cleanup_free_ char *text = with_strings(before, LIMITS_CHILD_MEMBERS + more);
		struct lengths *l = measured(text, strlen(text), 4096, 1 + 777 * more);
		struct envelope e;
		ck_assert(!lengths_line_is_wide() && !lengths_is_wide(text + 1));
		ck_assert_int_eq(lengths_is_wide(text + at), more);
		ck_assert(scan_envelope(text, strlen(text), &e) && span_equals(e.type, "x"));
		ck_assert_uint_eq(e.request.n, strlen(text) - at - 1);
		ck_assert_int_eq(span_member(e.request, "s").p == NULL, more);
		lengths_use(NULL);
		ck_assert(!lengths_is_wide(text + at) && span_member(e.request, "s").p);
		lengths_free(l);
	}
}
END_TEST

START_TEST(a_wide_line_has_no_members) {
	for (size_t more = 0; more < 2; more++) {
		_cleanup_free_ char *text = with_strings("", LIMITS_CHILD_MEMBERS + more);
		struct span all = {text, strlen(text) - 1};
		struct lengths *l = measured(text, all.n, 4096, 4096);
		struct envelope e;
		ck_assert_int_eq(lengths_line_is_wide(), more);
		ck_assert_int_eq(scan_envelope(text, all.n, &e), !more);
		ck_assert_int_eq(span_member(all, "s").p == NULL, more);
		drop(l);
		ck_assert(!lengths_line_is_wide());
	}
}
END_TEST

START_TEST(a_checked_line_is_read_whole) {
	_cleanup_free_ char *text = with_strings(" {\"request\":", LIMITS_CHILD_MEMBERS + 1);
	struct lengths *l = lengths_new_checked(text, strlen(text), 4096);
	while (!lengths_step(l, 4096)) {}
	lengths_use(l);
	struct span inner = span_member((struct span){text + 1, strlen(text) - 1}, "request");
	ck_assert(!lengths_line_is_wide() && !lengths_is_wide(inner.p) && span_member(inner, "s").p);
	drop(l);
}
END_TEST

RUN_TESTS("lengths", long_values_are_remembered, a_known_value_is_not_read, what_does_not_end, a_copy,
		  a_wide_object_has_no_members, a_wide_line_has_no_members, a_checked_line_is_read_whole)
