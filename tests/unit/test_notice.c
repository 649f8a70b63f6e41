/* SPDX-License-Identifier: MIT */
#include "wire/notice.h"

#include "harness.h"

#include <jansson.h>
#include <string.h>

static void is_line(struct buf *b, const char *want) {
	struct chunk c = notice_end(b);
	ck_assert_ptr_null(b->data);
	ck_assert_uint_eq(c.len, strlen(want));
	ck_assert_mem_eq(c.data, want, c.len);
	chunk_drop(&c);
}

START_TEST(members) {
	struct buf b = NOTICE_INIT;
	notice_begin(&b, "attached", NULL);
	is_line(&b, "{\"type\":\"system\",\"subtype\":\"plenum_event\",\"event\":\"attached\"}\n");
	b = (struct buf)NOTICE_INIT;
	notice_begin(&b, "x", "w\"ork");
	notice_text(&b, "a", "b\n");
	notice_text(&b, "none", NULL);
	notice_bytes(&b, "bytes", "1234", 2);
	notice_number(&b, "min", INT64_MIN);
	notice_number(&b, "max", INT64_MAX);
	notice_flag(&b, "yes", true);
	notice_flag(&b, "no", false);
	notice_raw(&b, "raw", (struct span){"[1.0, \"\\ud800\"]", 15});
	notice_raw(&b, "absent", SPAN_NONE);
	is_line(&b,
			"{\"type\":\"system\",\"subtype\":\"plenum_event\",\"event\":\"x\",\"session\":\"w\\\"ork\",\"a\":\"b\\n\","
			"\"none\":null,\"bytes\":\"12\",\"min\":-9223372036854775808,\"max\":9223372036854775807,\"yes\":true,"
			"\"no\":false,\"raw\":[1.0, \"\\ud800\"],\"absent\":null}\n");
}
END_TEST

/* In the child's values only the brackets were checked. */
START_TEST(raw_values_are_json) {
	struct buf b = NOTICE_INIT;
	notice_begin(&b, "x", NULL);
	notice_raw(&b, "a", span_of("pla\x01n"));
	notice_raw(&b, "b", span_of("\"\xff\""));
	notice_raw(&b, "c", span_of("{\"a\" 1}"));
	is_line(&b, "{\"type\":\"system\",\"subtype\":\"plenum_event\",\"event\":\"x\",\"a\":\"pla\\u0001n\","
				"\"b\":\"\\\"\xef\xbf\xbd\\\"\",\"c\":\"{\\\"a\\\" 1}\"}\n");
}
END_TEST

/* A text of any bytes becomes one line of JSON with the same content. */
START_TEST(any_bytes_are_one_line) {
	uint64_t seed = 1;
	char text[64];
	for (int i = 0; i < 5000; i++) {
		size_t n = rng_below(&seed, sizeof text);
		bool ascii = rng_below(&seed, 2);
		for (size_t k = 0; k < n; k++) text[k] = (char)(ascii ? 1 + rng_below(&seed, 127) : rng_below(&seed, 256));
		struct buf b = NOTICE_INIT;
		notice_begin(&b, "stray_output", "s");
		notice_bytes(&b, "text", text, n);
		struct chunk c = notice_end(&b);
		ck_assert_ptr_eq(memchr(c.data, '\n', c.len), c.data + c.len - 1);
		json_t *root = json_loadb(c.data, c.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL),
			   *t = json_object_get(root, "text");
		REQUIRE(t, "%.*s", (int)c.len, c.data);
		if (ascii) ck_assert(json_string_length(t) == n && memcmp(json_string_value(t), text, n) == 0);
		json_decref(root);
		chunk_drop(&c);
	}
}
END_TEST

START_TEST(what_does_not_fit_is_no_chunk) {
	struct buf b = BUF_INIT(100);
	notice_begin(&b, "x", "s");
	for (int i = 0; i < 10; i++) notice_text(&b, "member", "some text");
	struct chunk c = notice_end(&b);
	ck_assert_ptr_null(c.data);
	ck_assert_ptr_null(b.data);
	b = (struct buf)NOTICE_INIT;
	c = notice_chunk(&b); /* empty */
	ck_assert_ptr_null(c.data);
}
END_TEST

RUN_TESTS("notice", members, raw_values_are_json, any_bytes_are_one_line, what_does_not_fit_is_no_chunk)
