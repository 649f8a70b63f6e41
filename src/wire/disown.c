/* SPDX-License-Identifier: MIT */
#include "wire/disown.h"

#include "base/buf.h"
#include "plenum/protocol.h"

/* A line in progress: the copied part, and the start of the rest. */
struct copy {
	struct buf b;
	const char *from;
};

static bool is_name(struct span s) {
	return span_spells(s, PLENUM_VERB_PREFIX, false);
}

static bool is_subtype(struct span key) {
	return span_spells(key, "subtype", true);
}

static bool is_request(struct span key) {
	return span_spells(key, "request", true);
}

bool disown_is_key(struct span key) {
	return is_name(key) || is_subtype(key) || is_request(key);
}

bool disown_is_value(struct span value) {
	return is_name(value);
}

/* Strings come in the order of the line. */
static void rename_string(struct copy *c, struct span string) {
	const char *inside = string.p + 1;
	buf_put(&c->b, c->from, (size_t)(inside - c->from));
	buf_puts(&c->b, PLENUM_CHILD_PREFIX);
	c->from = inside;
}

static void rename_subtypes(struct copy *c, struct span object) {
	struct span key, value;
	for (size_t at = 0; span_next_member(object, &at, &key, &value);)
		if (is_subtype(key) && is_name(value)) rename_string(c, value);
}

static void rename_keys(struct copy *c, struct span object, const char *name) {
	struct span key, value;
	for (size_t at = 0; span_next_member(object, &at, &key, &value);)
		if (span_spells(key, name, true)) rename_string(c, key);
}

/* The line itself where nothing in it was renamed. */
static struct chunk finish(struct copy *c, struct chunk line) {
	struct chunk out = CHUNK_NONE;
	if (c->from == line.data) return chunk_ref(line);
	buf_put(&c->b, c->from, (size_t)(line.data + line.len - c->from));
	if (!c->b.failed) out = chunk_copy(c->b.data, c->b.len);
	buf_free(&c->b);
	return out;
}

static struct span object_of(struct chunk line) {
	const char *brace = line.len ? memchr(line.data, '{', line.len) : NULL;
	return brace ? (struct span){brace, line.len - (size_t)(brace - line.data)} : SPAN_NONE;
}

static struct copy begin(struct chunk line) {
	return (struct copy){BUF_INIT(SIZE_MAX / 4), line.data};
}

struct chunk disown_line(struct chunk line) {
	struct copy c = begin(line);
	struct span key, value;
	for (size_t at = 0; span_next_member(object_of(line), &at, &key, &value);) {
		if (is_name(key)) rename_string(&c, key);
		if (is_subtype(key) && is_name(value)) rename_string(&c, value);
		if (is_request(key)) rename_subtypes(&c, value);
	}
	return finish(&c, line);
}

static void rename_in_response(struct copy *c, struct span response, bool initialize) {
	struct span key, value;
	bool failed = !span_equals(span_member(response, "subtype"), "success");
	for (size_t at = 0; span_next_member(response, &at, &key, &value);) {
		if (failed && span_spells(key, "code", true)) rename_string(c, key);
		if (initialize && span_spells(key, "response", true)) rename_keys(c, value, "plenum");
	}
}

struct chunk disown_answer(struct chunk line, bool initialize) {
	struct copy c = begin(line);
	struct span key, value;
	for (size_t at = 0; span_next_member(object_of(line), &at, &key, &value);)
		if (span_spells(key, "response", true)) rename_in_response(&c, value, initialize);
	return finish(&c, line);
}
