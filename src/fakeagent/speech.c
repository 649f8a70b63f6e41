/* SPDX-License-Identifier: MIT */
#include "fakeagent/speech.h"

#include "fakeagent/callback.h"
#include "fakeagent/flags.h"
#include "fakeagent/frames.h"
#include "fakeagent/phase.h"
#include "fakeagent/poller.h"

#define PIECES 50 /* approximate number of deltas of a text */
#define PIECE_MIN 8

void speech_init(struct speech *s) {
	*s = (struct speech){.blocks = js_need(json_array())};
}

void speech_free(struct speech *s) {
	json_decref(s->blocks);
	free(s->error);
}

void speech_text(struct speech *s, json_t *text) {
	json_array_append_new(s->blocks, js_make("{type:text,text:%o}", text));
}

void speech_thought(struct speech *s, json_t *text) {
	json_array_append_new(s->blocks, js_make("{type:thinking,thinking:%o,signature:fake}", text));
}

void speech_tool(struct speech *s, const char *name, json_t *input) {
	json_array_append_new(s->blocks, js_make("{type:tool_use,id:%o,name:%s,input:%o}", js_id("toolu_0"), name, input));
}

/* ---- printing -------------------------------------------------------------------------------------------------- */

static void delta(const struct speech *s, const char *type, const char *key, const char *p, size_t n) {
	frames_delta(type, key, p, n);
	if (s->slow > 0) poller_sleep(s->slow);
}

/* Return the bytes printed before the turn was aborted. */
static size_t deltas(const struct speech *s, const char *type, const char *key, const char *p, size_t n) {
	size_t step = MAX((size_t)PIECE_MIN, (n + PIECES - 1) / PIECES), at = 0;
	if (!flags()->partial && s->slow <= 0) return phase_aborted() ? 0 : n;
	while (at < n && !phase_aborted()) {
		size_t k = MIN(n - at, step);
		while (at + k < n && (p[at + k] & 0xC0) == 0x80) k++;
		delta(s, type, key, p + at, k);
		at += k;
	}
	return at;
}

static bool print_text(const struct speech *s, const json_t *block, int index, const char *key, const char *type) {
	json_t *text = json_object_get(block, key);
	size_t n = json_string_length(text);
	frames_block_start(index, block, key);
	size_t said = deltas(s, type, key, json_string_value(text), n);
	if (said < n) {
		_cleanup_json_ json_t *half = js_need(json_copy((json_t *)(uintptr_t)block));
		js_put(half, key, js_text(json_string_value(text), said));
		frames_block(half, true);
		return false;
	}
	/* The CLI runs it at each flush of its stream; here a block is one flush. */
	if (strcmp(key, "text") == 0)
		callback_notify("MessageDisplay", NULL,
						js_make("{message_id:%s,index:%i,final:true,delta:%O}", frames_message_id(), index, text),
						NULL);
	return true;
}

static bool print_tool(const struct speech *s, const json_t *block, int index) {
	_cleanup_free_ char *input = js_dumps(json_object_get(block, "input"));
	frames_block_start(index, block, "input");
	delta(s, "input_json_delta", "partial_json", input, strlen(input));
	return !phase_aborted();
}

static bool print_block(const struct speech *s, const json_t *block, int index) {
	bool whole = js_is(block, "type", "text")       ? print_text(s, block, index, "text", "text_delta")
				 : js_is(block, "type", "thinking") ? print_text(s, block, index, "thinking", "thinking_delta")
													: print_tool(s, block, index);
	if (!whole) return false;
	frames_block(block, false);
	frames_block_stop();
	return true;
}

bool speech_print(const struct speech *s, const char **stop_reason) {
	size_t i;
	json_t *block;
	frames_request(false);
	if (s->delay > 0) poller_sleep(s->delay);
	if (phase_aborted()) return false;
	frames_open();
	json_array_foreach(s->blocks, i, block) {
		if (!print_block(s, block, (int)i)) return false;
	}
	*stop_reason = js_has_block(s->blocks, "tool_use") ? "tool_use" : "end_turn";
	frames_close(*stop_reason);
	poller_round(0);
	return !phase_aborted();
}
