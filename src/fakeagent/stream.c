/* SPDX-License-Identifier: MIT */
#include "fakeagent/stream.h"

#include "base/str.h"
#include "fakeagent/frames.h"
#include "fakeagent/hooks.h"
#include "fakeagent/pump.h"

#include <string.h>

#define PIECES 50 /* a text comes in about so many deltas */
#define PIECE_MIN 8

struct stream {
	struct agent *a;
	struct turn *t;
	struct reply *r;
	char id[40];
	int index;
};

static json_t *usage(void) {
	return js_need(json_pack("{s:i,s:i,s:i,s:i}", "input_tokens", 10, "cache_creation_input_tokens", 0,
							 "cache_read_input_tokens", 0, "output_tokens", 20));
}

static json_t *message(struct stream *s, json_t *content, const char *stop_reason) {
	return js_need(json_pack("{s:s,s:s,s:s,s:s,s:o,s:s?,s:n,s:o}", "model", s->a->model, "id", s->id, "type", "message",
							 "role", "assistant", "content", content, "stop_reason", stop_reason, "stop_sequence",
							 "usage", usage()));
}

static void event(struct stream *s, json_t *e) {
	js_need(e);
	if (!s->a->opt->partial) {
		json_decref(e);
		return;
	}
	json_t *f = js_need(json_pack("{s:s,s:o,s:n,s:s}", "type", "stream_event", "event", e, "parent_tool_use_id",
								  "api_message_id", s->id));
	if (!s->t->named_event) frames_name(s->a, s->t, f, true);
	s->t->named_event = true;
	frames_emit(s->a, f);
}

static void line(struct stream *s, json_t *block, bool aborted) {
	json_t *f = js_need(json_pack("{s:s,s:o,s:n}", "type", "assistant", "message",
								  message(s, js_need(json_pack("[O]", block)), NULL), "parent_tool_use_id"));
	if (aborted) json_object_set_new(f, "aborted", json_true());
	if (!s->t->named_line) frames_name(s->a, s->t, f, true);
	s->t->named_line = true;
	if (!s->a->opt->old) frames_stamp(f);
	frames_emit(s->a, f);
}

static void delta(struct stream *s, const char *type, const char *key, const char *p, size_t n) {
	if (s->a->opt->partial)
		event(s, json_pack("{s:s,s:i,s:{s:s,s:o}}", "type", "content_block_delta", "index", s->index, "delta", "type",
						   type, key, js_text(p, n)));
	if (s->r->slow > 0) pump_sleep(s->a, s->r->slow);
}

static size_t piece_of(const char *p, size_t left, size_t step) {
	size_t n = MIN(left, step);
	while (n < left && (p[n] & 0xC0) == 0x80) n++;
	return n;
}

/* Returns how much was said before the turn was aborted. */
static size_t deltas(struct stream *s, const char *type, const char *key, const char *p, size_t n) {
	size_t step = MAX((size_t)PIECE_MIN, (n + PIECES - 1) / PIECES), at = 0;
	while (at < n && !s->a->abort) {
		size_t k = piece_of(p + at, n - at, step);
		delta(s, type, key, p + at, k);
		at += k;
	}
	return at;
}

static void start(struct stream *s, json_t *block) {
	event(s, json_pack("{s:s,s:i,s:o}", "type", "content_block_start", "index", s->index, "content_block", block));
}

static void stop(struct stream *s) {
	event(s, json_pack("{s:s,s:i}", "type", "content_block_stop", "index", s->index));
}

/* The CLI fires it at each flush of its stream; here a block is one flush. */
static void show(struct stream *s, json_t *text) {
	struct hook_outcome o;
	hooks_run(s->a, "MessageDisplay", NULL,
			  json_pack("{s:s,s:i,s:b,s:O}", "message_id", s->id, "index", s->index, "final", 1, "delta", text), NULL,
			  &o);
	hook_outcome_free(&o);
}

static bool say_text(struct stream *s, json_t *block, const char *key, const char *delta_type) {
	json_t *text = json_object_get(block, key), *empty = js_need(json_copy(block));
	size_t n = json_string_length(text);
	json_object_set_new(empty, key, json_string(""));
	start(s, empty);
	size_t said = deltas(s, delta_type, key, json_string_value(text), n);
	if (said < n) {
		_cleanup_json_ json_t *half = js_need(json_copy(block));
		json_object_set_new(half, key, js_text(json_string_value(text), said));
		line(s, half, true);
		return false;
	}
	if (strcmp(key, "text") == 0) show(s, text);
	line(s, block, false);
	stop(s);
	return true;
}

static bool say_tool(struct stream *s, json_t *block) {
	json_t *empty = js_need(json_copy(block));
	json_object_set_new(empty, "input", json_object());
	start(s, empty);
	_cleanup_free_ char *input = js_dumps(json_object_get(block, "input"));
	delta(s, "input_json_delta", "partial_json", input, strlen(input));
	if (s->a->abort) return false;
	line(s, block, false);
	stop(s);
	return true;
}

static bool say_block(struct stream *s, json_t *block) {
	const char *type = js_get(block, "type");
	if (type && strcmp(type, "text") == 0) return say_text(s, block, "text", "text_delta");
	if (type && strcmp(type, "thinking") == 0) return say_text(s, block, "thinking", "thinking_delta");
	return say_tool(s, block);
}

static void begin(struct stream *s) {
	char hex[25];
	str_random_hex(hex, 24);
	snprintf(s->id, sizeof s->id, "msg_%s", hex);
	if (s->a->opt->partial && !s->t->requested) frames_status(s->a, "requesting", s->t);
	s->t->requested = false;
}

static void end(struct stream *s, const char *stop_reason) {
	event(s, json_pack("{s:s,s:{s:s?,s:n},s:{s:i}}", "type", "message_delta", "delta", "stop_reason", stop_reason,
					   "stop_sequence", "usage", "output_tokens", 20));
	event(s, json_pack("{s:s}", "type", "message_stop"));
}

void stream_close(struct agent *a, struct turn *t) {
	struct stream s = {.a = a, .t = t, .index = t->open_block};
	if (!t->open_message[0]) return;
	memcpy(s.id, t->open_message, sizeof s.id);
	stop(&s);
	end(&s, NULL);
}

bool stream_reply(struct agent *a, struct turn *t, struct reply *r, const char *stop_reason) {
	struct stream s = {.a = a, .t = t, .r = r};
	begin(&s);
	if (r->delay > 0) pump_sleep(a, r->delay);
	if (a->abort) return false;
	memcpy(t->open_message, s.id, sizeof s.id);
	event(&s, json_pack("{s:s,s:o}", "type", "message_start", "message", message(&s, json_array(), NULL)));
	for (; s.index < (int)json_array_size(r->blocks); s.index++) {
		if (!say_block(&s, json_array_get(r->blocks, (size_t)s.index))) {
			t->open_block = s.index;
			return false;
		}
	}
	t->open_message[0] = 0;
	t->stop_reason = stop_reason;
	end(&s, stop_reason);
	pump(a, 0);
	return !a->abort;
}

void stream_error(struct agent *a, struct turn *t, const char *text) {
	char uuid[37];
	js_uuid(uuid);
	struct stream s = {.a = a, .t = t};
	begin(&s);
	snprintf(s.id, sizeof s.id, "%s", uuid);
	json_t *m = message(&s, js_need(json_pack("[{s:s,s:o}]", "type", "text", "text", js_text(text, strlen(text)))),
						"stop_sequence");
	json_object_set_new(m, "model", json_string("<synthetic>"));
	json_t *f = js_need(json_pack("{s:s,s:o,s:n,s:s}", "type", "assistant", "message", m, "parent_tool_use_id", "error",
								  "server_error"));
	if (!t->named_line) frames_name(a, t, f, true);
	t->named_line = true;
	if (!a->opt->old) frames_stamp(f);
	frames_emit(a, f);
}
