/* SPDX-License-Identifier: MIT */
#include "wire/disown.h"

#include "plenum/protocol.h"

/* --- a line in progress ------------------------------------------------------------------------------------------- */

struct disown disown_begin(struct chunk line) {
	return (struct disown){BUF_INIT(SIZE_MAX / 4), line.data, line};
}

struct span disown_object(const struct disown *d) {
	struct chunk line = d->line;
	const char *brace = line.len ? memchr(line.data, '{', line.len) : NULL;
	return brace ? (struct span){brace, line.len - (size_t)(brace - line.data)} : SPAN_NONE;
}

void disown_rename(struct disown *d, struct span string) {
	const char *inside = string.p + 1;
	buf_put(&d->b, d->from, (size_t)(inside - d->from));
	buf_puts(&d->b, PLENUM_CHILD_PREFIX);
	d->from = inside;
}

struct chunk disown_finish(struct disown *d) {
	struct chunk out = CHUNK_NONE, line = d->line;
	if (d->from == line.data) return chunk_ref(line);
	buf_put(&d->b, d->from, (size_t)(line.data + line.len - d->from));
	if (!d->b.failed) out = chunk_copy(d->b.data, d->b.len);
	buf_free(&d->b);
	return out;
}

/* --- the control frame -------------------------------------------------------------------------------------------- */

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

static void rename_subtypes(struct disown *d, struct span object) {
	struct span key, value;
	for (size_t at = 0; span_next_member(object, &at, &key, &value);)
		if (is_subtype(key) && is_name(value)) disown_rename(d, value);
}

static void rename_keys(struct disown *d, struct span object) {
	struct span key, value;
	for (size_t at = 0; span_next_member(object, &at, &key, &value);)
		if (span_spells(key, "plenum", true)) disown_rename(d, key);
}

struct chunk disown_line(struct chunk line) {
	struct disown d = disown_begin(line);
	struct span key, value;
	for (size_t at = 0; span_next_member(disown_object(&d), &at, &key, &value);) {
		if (is_name(key)) disown_rename(&d, key);
		if (is_subtype(key) && is_name(value)) disown_rename(&d, value);
		if (is_request(key)) rename_subtypes(&d, value);
	}
	return disown_finish(&d);
}

static void rename_in_response(struct disown *d, struct span response, bool initialize) {
	struct span key, value;
	bool failed = !span_equals(span_member(response, "subtype"), "success");
	for (size_t at = 0; span_next_member(response, &at, &key, &value);) {
		if (failed && span_spells(key, "code", true)) disown_rename(d, key);
		if (initialize && span_spells(key, "response", true)) rename_keys(d, value);
	}
}

struct chunk disown_answer(struct chunk line, bool initialize) {
	struct disown d = disown_begin(line);
	struct span key, value;
	for (size_t at = 0; span_next_member(disown_object(&d), &at, &key, &value);)
		if (span_spells(key, "response", true)) rename_in_response(&d, value, initialize);
	return disown_finish(&d);
}
