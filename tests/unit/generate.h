/* SPDX-License-Identifier: MIT
 *
 * Random lines of JSON, readable for us and for jansson: keys that routing reads in random places, escapes, spaces,
 * nesting. No lone surrogates, no huge numbers, no \u0000 (jansson refuses those).
 */
#pragma once

#include "base/buf.h"
#include "harness.h"

#include <string.h>

static const char *const gen_keys[] = {
	"type",
	"subtype",
	"request_id",
	"uuid",
	"session_id",
	"request",
	"response",
	"message",
	"isReplay",
	"is_error",
	"user_message_uuid",
	"user_message_uuids",
	"role",
	"content",
	"a",
	"long_key_that_nobody_reads_at_all_and_more",
	"typ",
	"types",
	"",
	"t\\\"ype",
	"tool",
	"parent_tool_use_id",
	"requests",
	"k\\u00e9y",
};

static inline void gen_blanks(struct buf *b, uint64_t *seed) {
	while (rng_below(seed, 8) == 0) buf_putc(b, " \t\r "[rng_below(seed, 4)]);
}

static inline void gen_string(struct buf *b, uint64_t *seed) {
	static const char *const pieces[] = {"a",
										 "hello ",
										 "\\\"",
										 "\\\\",
										 "\\n",
										 "\\u00e9",
										 "\xc3\xa9",
										 "{",
										 "}",
										 "[",
										 "]",
										 ",",
										 ":",
										 "\\/",
										 "\\ud83d\\ude00",
										 "\xf0\x9f\x98\x80",
										 "\xe2\x80\xa8",
										 "\\\\\\\"",
										 "0123456789abcdef"};
	size_t n = rng_below(seed, 4) ? rng_below(seed, 6) : rng_below(seed, 60);
	buf_putc(b, '"');
	while (n--) buf_puts(b, pieces[rng_below(seed, ARRAY_SIZE(pieces))]);
	buf_putc(b, '"');
}

static inline void gen_scalar(struct buf *b, uint64_t *seed) {
	static const char *const words[] = {"true", "false",   "null", "0",        "-1",  "12345",
										"1.5",  "-0.25e2", "1e3",  "\"user\"", "\"\""};
	if (rng_below(seed, 2))
		gen_string(b, seed);
	else
		buf_puts(b, words[rng_below(seed, ARRAY_SIZE(words))]);
}

static inline void gen_object(struct buf *b, uint64_t *seed, int depth);

static inline void gen_array(struct buf *b, uint64_t *seed, int depth);

static inline void gen_value(struct buf *b, uint64_t *seed, int depth) {
	size_t kind = depth ? rng_below(seed, 5) : 4;
	if (kind == 0)
		gen_array(b, seed, depth - 1);
	else if (kind == 1 || kind == 2)
		gen_object(b, seed, depth - 1);
	else
		gen_scalar(b, seed);
}

static inline void gen_array(struct buf *b, uint64_t *seed, int depth) {
	size_t n = rng_below(seed, 4);
	buf_putc(b, '[');
	gen_blanks(b, seed);
	for (size_t i = 0; i < n; i++) {
		if (i) buf_putc(b, ',');
		gen_blanks(b, seed);
		gen_value(b, seed, depth);
		gen_blanks(b, seed);
	}
	buf_putc(b, ']');
}

/* Keys may repeat: the last one counts. */
static inline void gen_object(struct buf *b, uint64_t *seed, int depth) {
	size_t n = rng_below(seed, 7);
	buf_putc(b, '{');
	gen_blanks(b, seed);
	for (size_t i = 0; i < n; i++) {
		if (i) buf_putc(b, ',');
		gen_blanks(b, seed);
		buf_printf(b, "\"%s\"", gen_keys[rng_below(seed, ARRAY_SIZE(gen_keys))]);
		gen_blanks(b, seed);
		buf_putc(b, ':');
		gen_blanks(b, seed);
		gen_value(b, seed, depth);
		gen_blanks(b, seed);
	}
	buf_putc(b, '}');
}

/* Return a line in a buffer of exactly its size, so that a sanitizer detects a read past the end. The caller frees. */
static inline char *gen_line(uint64_t *seed, size_t *n) {
	struct buf b = BUF_INIT(1 << 20);
	if (rng_below(seed, 2)) {
		buf_puts(&b, "{\"type\":\"");
		buf_puts(&b, rng_below(seed, 2) ? "user\"," : "x\\\"y\",\"u\":");
		if (b.data[b.len - 1] == ':') buf_puts(&b, "1,");
		buf_puts(&b, "\"request\":");
		gen_value(&b, seed, 4);
		buf_putc(&b, '}');
	} else {
		gen_blanks(&b, seed);
		gen_object(&b, seed, 4);
		gen_blanks(&b, seed);
	}
	REQUIRE(!b.failed, "no memory");
	char *line = malloc(b.len);
	REQUIRE(line, "no memory");
	memcpy(line, b.data, b.len);
	*n = b.len;
	buf_free(&b);
	return line;
}
