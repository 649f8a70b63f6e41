/* SPDX-License-Identifier: MIT */
#include "dialect/claude/turn.h"

#define OTHERS_MAX 256 /* blocks between two of tools; the CLI prints one block, or a few */

static int64_t count_of(struct span value) {
	int64_t n;
	return span_int(value, &n) && n >= 0 ? n : TURN_UNKNOWN;
}

static bool begins(struct span text, const char *with) {
	struct span content = span_content(text);
	size_t n = strlen(with);
	return content.p && content.n >= n && memcmp(content.p, with, n) == 0;
}

static bool was_cut(struct span result) {
	static const char aborted[] = "aborted_";
	struct span why = span_content(span_member(result, "terminal_reason"));
	if (why.p) return why.n >= sizeof aborted - 1 && memcmp(why.p, aborted, sizeof aborted - 1) == 0;
	return span_equals(span_member(result, "subtype"), "error_during_execution");
}

struct turn_result turn_read_result(struct span line) {
	struct span key, value, subtype = SPAN_NONE, is_error = SPAN_NONE, usage = SPAN_NONE, errors = SPAN_NONE;
	struct turn_result r = {.ms = TURN_UNKNOWN, .nano_usd = TURN_UNKNOWN};
	for (size_t at = 0; span_next_member(line, &at, &key, &value);) {
		if (span_equals(key, "subtype")) subtype = value;
		if (span_equals(key, "is_error")) is_error = value;
		if (span_equals(key, "duration_ms")) r.ms = count_of(value);
		if (span_equals(key, "total_cost_usd")) r.nano_usd = dialect_turn_nano_usd(value);
		if (span_equals(key, "usage")) usage = value;
		if (span_equals(key, "result")) r.text = value;
		if (span_equals(key, "errors")) errors = value;
	}
	r.outcome = was_cut(line)                                         ? TURN_INTERRUPTED
				: begins(subtype, "error_max_")                       ? TURN_LIMIT
				: begins(subtype, "error_") || span_is_true(is_error) ? TURN_ERROR
																	  : TURN_SUCCESS;
	r.input = count_of(span_member(usage, "input_tokens"));
	r.output = count_of(span_member(usage, "output_tokens"));
	r.cache_read = count_of(span_member(usage, "cache_read_input_tokens"));
	r.cache_write = count_of(span_member(usage, "cache_creation_input_tokens"));
	if (!r.text.p) r.text = span_element(errors, 0);
	return r;
}

bool turn_next_tool(struct span *message, size_t *at, struct span *id, struct span *name) {
	struct span block;
	if (!*at) *message = span_member(*message, "content"); /* once: it may have very many */
	for (size_t others = 0; others < OTHERS_MAX && span_next(*message, at, &block); others++) {
		struct span type = span_member(block, "type");
		bool call = span_equals(type, "tool_use");
		if (!call && !span_equals(type, "tool_result")) continue;
		*id = span_member(block, call ? "id" : "tool_use_id");
		*name = call ? span_member(block, "name") : SPAN_NONE;
		if (span_is_string(*id) && (!call || span_is_string(*name))) return true;
	}
	return false;
}
