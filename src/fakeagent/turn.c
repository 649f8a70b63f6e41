/* SPDX-License-Identifier: MIT */
#include "fakeagent/turn.h"

#include "base/fd.h"
#include "base/str.h"
#include "fakeagent/asks.h"
#include "fakeagent/background.h"
#include "fakeagent/effects.h"
#include "fakeagent/frames.h"
#include "fakeagent/permission.h"
#include "fakeagent/pump.h"
#include "fakeagent/queue.h"
#include "fakeagent/stream.h"
#include "fakeagent/tools.h"

#include <string.h>

void turn_end_with(struct turn *t, const char *subtype, const char *terminal, bool is_error) {
	t->subtype = subtype;
	t->terminal = terminal;
	t->is_error = is_error;
	t->stop = true;
}

static void add_error(struct turn *t, json_t *text) {
	if (!t->errors) t->errors = js_need(json_array());
	json_array_append_new(t->errors, text);
}

static bool is_type(const json_t *block, const char *type) {
	const char *is = js_get(block, "type");
	return is && strcmp(is, type) == 0;
}

/* ---- the prompt ------------------------------------------------------------------------------------------------ */

static json_t *as_blocks(json_t *content) {
	if (json_is_array(content)) return json_incref(content);
	return js_need(json_pack("[{s:s,s:O}]", "type", "text", "text", content));
}

/* Texts are joined by LF; where one has blocks, all become blocks. */
static json_t *merge(json_t *one, json_t *two) {
	if (json_is_string(one) && json_is_string(two)) {
		struct buf b = BUF_INIT(SIZE_MAX / 2);
		buf_put(&b, json_string_value(one), json_string_length(one));
		buf_putc(&b, '\n');
		buf_put(&b, json_string_value(two), json_string_length(two));
		json_t *both = js_text(b.data, b.len);
		buf_free(&b);
		return both;
	}
	json_t *list = json_is_array(one) ? js_need(json_copy(one)) : as_blocks(one), *more = as_blocks(two);
	json_array_extend(list, more);
	json_decref(more);
	return list;
}

static json_t *merged_content(const json_t *batch) {
	json_t *all = NULL, *line;
	size_t i;
	json_array_foreach(batch, i, line) {
		json_t *content = json_object_get(json_object_get(line, "message"), "content");
		if (!all) {
			all = json_incref(content);
			continue;
		}
		json_t *both = merge(all, content);
		json_decref(all);
		all = both;
	}
	return all;
}

static void begin(struct agent *a, struct turn *t) {
	*t = (struct turn){.batch = queue_batch(a), .started = now_ms(), .subtype = "success"};
	t->denials = js_need(json_array());
	t->uuids = js_need(json_array());
	t->after = js_need(json_array());
	size_t i;
	json_t *line;
	json_array_foreach(t->batch, i, line) {
		json_t *uuid = json_object_get(line, "uuid");
		if (uuid && !json_object_get(line, "made")) json_array_append(t->uuids, uuid);
		if (json_object_get(line, "fake_task")) t->origin = json_incref(json_object_get(line, "origin"));
	}
	t->content = merged_content(t->batch);
	t->prompt = js_content_text(t->content);
	a->turn = t;
	a->abort = ABORT_NONE;
}

static void lifecycle(struct agent *a, struct turn *t, const char *state) {
	size_t i;
	json_t *line;
	json_array_foreach(t->batch, i, line) {
		const char *uuid = js_get(line, "uuid");
		if (uuid && !json_object_get(line, "made")) frames_lifecycle(a, uuid, state);
	}
}

/* Of several merged prompts the last one's acknowledgement has the merged text, behind init; the others come before. */
static void replay_first(struct agent *a, struct turn *t) {
	size_t n = json_array_size(t->batch);
	for (size_t i = 0; i + 1 < n; i++) frames_replay(a, json_array_get(t->batch, i), false);
}

static void replay_last(struct agent *a, struct turn *t) {
	if (t->origin && json_object_get(json_array_get(t->batch, 0), "fake_task")) return;
	json_t *line = json_array_get(t->batch, json_array_size(t->batch) - 1);
	_cleanup_json_ json_t *copy = js_need(json_copy(line));
	json_object_set_new(copy, "message", json_pack("{s:s,s:O}", "role", "user", "content", t->content));
	frames_replay(a, copy, true);
}

/* ---- tools ----------------------------------------------------------------------------------------------------- */

static json_t *result_block(const json_t *use, json_t *content, bool failed) {
	return js_need(json_pack("{s:O,s:s,s:o,s:b}", "tool_use_id", json_object_get(use, "id"), "type", "tool_result",
							 "content", content, "is_error", failed));
}

/* Puts one tool_result on stdout and among those that the model will see. */
static void give(struct agent *a, json_t *results, const json_t *use, json_t *content, bool failed, json_t *detail) {
	json_t *block = result_block(use, content, failed);
	json_array_append(results, block);
	frames_user(a, js_need(json_pack("[o]", block)), detail ? json_pack("{s:O}", "tool_use_result", detail) : NULL);
}

static void give_error(struct agent *a, json_t *results, const json_t *use, const char *text) {
	json_t *content = js_text(text, strlen(text));
	_cleanup_json_ json_t *detail = js_printf("Error: %s", text);
	give(a, results, use, content, true, detail);
}

static void give_rejection(struct agent *a, json_t *results, const json_t *use) {
	_cleanup_json_ json_t *detail = js_printf("User rejected tool use");
	give(a, results, use, js_printf("%s", PERMISSION_REJECTED), true, detail);
}

static json_t *event_input(const json_t *use, json_t *input) {
	return js_need(json_pack("{s:O,s:O,s:O}", "tool_name", json_object_get(use, "name"), "tool_input", input,
							 "tool_use_id", json_object_get(use, "id")));
}

static void add_context(json_t *context, const struct hook_outcome *o) {
	json_array_extend(context, o->context);
}

static void stop_by_hook(struct turn *t, const struct hook_outcome *o) {
	if (o->stop) turn_end_with(t, "success", "hook_stopped", false);
}

static void after_tool(struct agent *a, struct turn *t, const json_t *use, json_t *input, struct tool_output *out,
					   json_t *context) {
	struct hook_outcome o;
	json_t *in = event_input(use, input);
	json_object_set(in, out->failed ? "error" : "tool_response", out->content);
	hooks_run(a, out->failed ? "PostToolUseFailure" : "PostToolUse", js_get(use, "name"), in, js_get(use, "id"), &o);
	if (o.output) {
		json_decref(out->content);
		out->content = json_incref(o.output);
	}
	if (o.decision == HOOK_DENY && o.reason) json_array_append_new(context, js_text(o.reason, strlen(o.reason)));
	add_context(context, &o);
	stop_by_hook(t, &o);
	hook_outcome_free(&o);
}

static void remember(struct turn *t, const json_t *use, const struct tool_output *out) {
	free(t->last_tool);
	free(t->last_output);
	t->last_tool = str_dup(js_get(use, "name"));
	t->last_output = js_content_text(out->content);
	t->last_failed = out->failed;
}

static void run_allowed(struct agent *a, struct turn *t, const json_t *use, json_t *input, json_t *results,
						json_t *context) {
	struct tool_output out;
	tools_run(a, js_get(use, "name"), input, js_get(use, "id"), &out);
	if (!out.aborted) after_tool(a, t, use, input, &out, context);
	remember(t, use, &out);
	give(a, results, use, json_incref(out.content), out.failed, out.detail);
	tool_output_free(&out);
}

static void run_decided(struct agent *a, struct turn *t, const json_t *use, struct hook_outcome *before,
						json_t *results, json_t *context) {
	struct permission p;
	permission_decide(a, t, use, before, &p);
	if (p.interrupt && !a->abort) a->abort = ABORT_INTERRUPT;
	if (a->abort || p.aborted)
		give_rejection(a, results, use);
	else if (p.allowed)
		run_allowed(a, t, use, p.input, results, context);
	else
		give_error(a, results, use, p.refusal);
	permission_free(&p);
}

static void defer(struct turn *t, const json_t *use) {
	turn_end_with(t, "success", "tool_deferred", false);
	t->stop_reason = "tool_deferred";
	t->deferred = json_pack("{s:O,s:O,s:O}", "id", json_object_get(use, "id"), "name", json_object_get(use, "name"),
							"input", json_object_get(use, "input"));
}

static void run_tool(struct agent *a, struct turn *t, const json_t *use, json_t *results, json_t *context) {
	struct hook_outcome o;
	const char *name = js_get(use, "name");
	hooks_run(a, "PreToolUse", name, event_input(use, json_object_get(use, "input")), js_get(use, "id"), &o);
	if (o.decision == HOOK_DEFER) {
		defer(t, use);
	} else if (a->abort) {
		give_rejection(a, results, use);
	} else if (o.decision == HOOK_DENY) {
		const char *why = o.reason ? o.reason : "Blocked by hook";
		_cleanup_free_ char *text = a->opt->old ? str_dup(why) : str_printf("PreToolUse:%s hook error: %s", name, why);
		give_error(a, results, use, text);
	} else {
		run_decided(a, t, use, &o, results, context);
	}
	add_context(context, &o);
	if (!t->stop) stop_by_hook(t, &o);
	hook_outcome_free(&o);
}

static void run_tools(struct agent *a, struct turn *t, const json_t *blocks) {
	json_t *results = js_need(json_array()), *context = js_need(json_array()), *use, *text;
	_cleanup_json_ json_t *calls = js_need(json_array());
	size_t i;
	json_array_foreach(blocks, i, use) {
		if (!is_type(use, "tool_use")) continue;
		if (a->abort || t->deferred)
			give_rejection(a, results, use);
		else
			run_tool(a, t, use, results, context);
		json_array_append_new(calls, event_input(use, json_object_get(use, "input")));
	}
	struct hook_outcome o = {0};
	if (!a->abort && !t->stop) {
		hooks_run(a, "PostToolBatch", NULL, json_pack("{s:O}", "tool_calls", calls), NULL, &o);
		add_context(context, &o);
		stop_by_hook(t, &o);
	}
	hook_outcome_free(&o);
	json_array_foreach(context, i, text)
		json_array_append_new(results, json_pack("{s:s,s:O}", "type", "text", "text", text));
	json_decref(context);
	conversation_add(&a->conv, "user", results);
}

/* ---- the model ------------------------------------------------------------------------------------------------- */

static bool wants_tools(const json_t *blocks) {
	size_t i;
	json_t *block;
	json_array_foreach(blocks, i, block) {
		if (is_type(block, "tool_use")) return true;
	}
	return false;
}

static void keep_text(struct turn *t, const json_t *blocks) {
	size_t n = json_array_size(blocks);
	json_t *last = n ? json_array_get(blocks, n - 1) : NULL;
	json_decref(t->text);
	t->text = is_type(last, "text") ? json_incref(json_object_get(last, "text")) : NULL;
}

/* The model has stopped; a Stop hook may send it on. */
static void maybe_stop(struct agent *a, struct turn *t) {
	struct hook_outcome o;
	hooks_run(a, "Stop", NULL,
			  json_pack("{s:b,s:O*}", "stop_hook_active", t->stop_hook_active, "last_assistant_message", t->text), NULL,
			  &o);
	turn_end_with(t, "success", "completed", false);
	if (o.stop) {
		turn_end_with(t, "success", "stop_hook_prevented", false);
	} else if (o.decision == HOOK_DENY && !a->abort) {
		t->stop = false;
		t->stop_hook_active = true;
		conversation_add(&a->conv, "user", js_printf("Stop hook feedback:\n%s", o.reason ? o.reason : ""));
	}
	hook_outcome_free(&o);
}

static void fail(struct agent *a, struct turn *t, const char *error) {
	_cleanup_free_ char *text = str_printf("API Error: %s", error);
	stream_error(a, t, text);
	turn_end_with(t, "success", "api_error", true);
	t->stop_reason = "stop_sequence";
	json_decref(t->text);
	t->text = js_printf("%s", text);
}

static void take_reply(struct agent *a, struct turn *t, struct reply *r) {
	bool tools = wants_tools(r->blocks);
	if (a->abort || !stream_reply(a, t, r, tools ? "tool_use" : "end_turn")) return;
	conversation_add_reply(&a->conv, json_incref(r->blocks), t->uuids);
	keep_text(t, r->blocks);
	if (tools)
		run_tools(a, t, r->blocks);
	else
		maybe_stop(a, t);
}

static void too_many(struct agent *a, struct turn *t) {
	turn_end_with(t, "error_max_turns", "max_turns", true);
	add_error(t, js_printf("Reached maximum number of turns (%ld)", a->opt->max_turns));
}

static void converse(struct agent *a, struct turn *t) {
	while (!t->stop && !a->abort) {
		struct reply r;
		if (a->opt->max_turns > 0 && t->calls >= a->opt->max_turns) {
			too_many(a, t);
			break;
		}
		t->calls++;
		a->calls++;
		a->cost += 0.001;
		model_reply(a, t, &r);
		if (r.error && !a->abort)
			fail(a, t, r.error);
		else
			take_reply(a, t, &r);
		reply_free(&r);
	}
}

/* ---- the whole ------------------------------------------------------------------------------------------------- */

static void misbehave(struct agent *a) {
	const struct faults *f = &a->faults;
	if (f->noise > 0) effects_noise(f->noise);
	if (f->flood > 0) effects_lines(a, f->flood);
	if (f->grandchild && !a->results) effects_grandchild();
	if (f->huge <= 0) return;
	struct buf b = BUF_INIT(SIZE_MAX / 2);
	if (!buf_reserve(&b, (size_t)f->huge)) js_need(NULL);
	memset(b.data, 'h', (size_t)f->huge);
	frames_emit(a, json_pack("{s:s,s:s,s:o}", "type", "system", "subtype", "local_command_output", "content",
							 js_text(b.data, (size_t)f->huge)));
	buf_free(&b);
}

/* False: a hook blocks the prompt. */
static bool submit(struct agent *a, struct turn *t) {
	struct hook_outcome o;
	const char *p = t->prompt ? t->prompt : "";
	hooks_run(a, "UserPromptSubmit", NULL, json_pack("{s:o}", "prompt", js_text(p, strlen(p))), NULL, &o);
	bool blocked = o.decision == HOOK_DENY || o.stop;
	if (blocked) {
		const char *why = o.reason ? o.reason : o.stop_reason ? o.stop_reason : "Blocked by hook";
		t->text = js_printf("UserPromptSubmit operation blocked by hook:\n%s\n\nOriginal prompt: %s", why, p);
	} else {
		conversation_add(&a->conv, "user", json_incref(t->content));
		if (json_array_size(o.context)) conversation_append(&a->conv, o.context);
	}
	hook_outcome_free(&o);
	return !blocked;
}

static void reset(struct agent *a) {
	struct hook_outcome o;
	char id[37];
	js_uuid(id);
	hooks_run(a, "SessionEnd", "clear", json_pack("{s:s}", "reason", "clear"), NULL, &o);
	hook_outcome_free(&o);
	json_t *f = js_need(
		json_pack("{s:s,s:s,s:s}", "type", "conversation_reset", "new_conversation_id", id, "trigger", "clear"));
	frames_stamp(f);
	if (!a->opt->old)
		frames_emit(a, f);
	else
		json_decref(f);
	if (!a->opt->old) background_changed(a);
	conversation_reset(&a->conv);
	hooks_run(a, "SessionStart", "clear", json_pack("{s:s}", "source", "clear"), NULL, &o);
	hook_outcome_free(&o);
}

/* The reset carries the old id; init, the acknowledgement and the result carry the new one. */
static void run_clear(struct agent *a, struct turn *t) {
	reset(a);
	frames_init(a, t);
	json_decref(t->content);
	t->content = js_printf("<command-name>/clear</command-name>\n            <command-message>clear</command-message>\n"
						   "            <command-args></command-args>");
	if (!a->opt->old) replay_last(a, t);
	t->local_command = "clear";
}

static bool was_in_tools(const struct agent *a) {
	json_t *last = conversation_last(&a->conv), *content = json_object_get(last, "content");
	size_t i;
	json_t *block;
	json_array_foreach(content, i, block) {
		if (is_type(block, "tool_result")) return true;
	}
	return false;
}

static void aborted(struct agent *a, struct turn *t) {
	bool tools = was_in_tools(a);
	if (a->abort == ABORT_URGENT) {
		turn_end_with(t, "success", "aborted_streaming", false);
		return;
	}
	const char *text = tools ? "[Request interrupted by user for tool use]" : "[Request interrupted by user]";
	json_t *content = js_need(json_pack("[{s:s,s:s}]", "type", "text", "text", text));
	conversation_add(&a->conv, "user", json_incref(content));
	frames_user(a, content, NULL);
	stream_close(a, t);
	t->stop_reason = tools ? "tool_use" : NULL;
	turn_end_with(t, "error_during_execution", tools ? "aborted_tools" : "aborted_streaming", true);
	add_error(t, js_printf("[ede_diagnostic] result_type=user last_content_type=n/a stop_reason=%s",
						   t->stop_reason ? t->stop_reason : "null"));
}

/* The hooks see the prompt before init is printed, as in the CLI; a blocked prompt is not acknowledged. */
static void run_prompt(struct agent *a, struct turn *t) {
	if (!submit(a, t)) {
		frames_init(a, t);
		frames_informational(a, NULL, "warning", json_incref(t->text));
		return;
	}
	frames_init(a, t);
	t->requested = a->opt->partial;
	if (t->requested) frames_status(a, "requesting", t);
	replay_last(a, t);
	pump(a, 0); /* what was written together with the prompt finds the turn running */
	misbehave(a);
	converse(a, t);
	if (a->abort) aborted(a, t);
}

static void run_silent(struct agent *a, struct turn *t) {
	frames_init(a, t);
	replay_last(a, t);
	conversation_add(&a->conv, "user", json_incref(t->content));
}

static void turn_free(struct turn *t) {
	json_decref(t->batch);
	json_decref(t->uuids);
	json_decref(t->content);
	json_decref(t->origin);
	json_decref(t->denials);
	json_decref(t->after);
	json_decref(t->deferred);
	json_decref(t->errors);
	free(t->prompt);
	json_decref(t->text);
	free(t->last_tool);
	free(t->last_output);
}

static void finish(struct agent *a, struct turn *t) {
	size_t i;
	json_t *job;
	bool cancelled = a->abort == ABORT_INTERRUPT || a->abort == ABORT_SIGNAL;
	if (!a->faults.no_result) frames_result(a, t);
	lifecycle(a, t, cancelled ? "cancelled" : "completed");
	a->turn = NULL;
	a->abort = ABORT_NONE;
	if (!json_array_size(a->queue) && !a->quit) frames_state(a, "idle");
	json_array_foreach(t->after, i, job) background_ask(a, json_incref(job));
	turn_free(t);
}

void turn_run(struct agent *a) {
	struct turn t;
	begin(a, &t);
	frames_state(a, "running");
	replay_first(a, &t);
	lifecycle(a, &t, "started");
	if (json_is_false(json_object_get(json_array_get(t.batch, 0), "shouldQuery")))
		run_silent(a, &t);
	else if (t.prompt && strcmp(t.prompt, "/clear") == 0)
		run_clear(a, &t);
	else
		run_prompt(a, &t);
	finish(a, &t);
}
