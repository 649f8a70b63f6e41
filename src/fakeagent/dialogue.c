/* SPDX-License-Identifier: MIT */
#include "fakeagent/dialogue.h"

#include "base/fd.h"
#include "base/str.h"
#include "fakeagent/background.h"
#include "fakeagent/backlog.h"
#include "fakeagent/callback.h"
#include "fakeagent/conversation.h"
#include "fakeagent/directive.h"
#include "fakeagent/faults.h"
#include "fakeagent/flags.h"
#include "fakeagent/frames.h"
#include "fakeagent/model.h"
#include "fakeagent/phase.h"
#include "fakeagent/poller.h"
#include "fakeagent/rpc.h"
#include "fakeagent/toolcall.h"
#include "fakeagent/toolserver.h"

#include <stdio.h>

static long turns; /* finished turns */
static bool failed;

struct turn {
	json_t *batch;   /* the user lines */
	json_t *content; /* of the merged prompt */
	json_t *prompt;  /* its text */
	struct scenario_moment moment;
	struct outcome out;
	bool over; /* no more calls of the model */
	bool stop_hook_active;
};

bool dialogue_failed(void) {
	return failed;
}

static void end(struct turn *t, const char *subtype, const char *terminal, bool is_error) {
	t->out.subtype = subtype;
	t->out.terminal = terminal;
	t->out.is_error = is_error;
	t->over = true;
}

/* ---- the prompt ------------------------------------------------------------------------------------------------ */

/* Join texts with a newline; blocks and a text become blocks. Takes one. */
static json_t *merge(json_t *one, json_t *two) {
	if (json_is_string(one) && json_is_string(two)) {
		struct buf b = JS_BUF;
		buf_put(&b, json_string_value(one), json_string_length(one));
		buf_putc(&b, '\n');
		buf_put(&b, json_string_value(two), json_string_length(two));
		json_decref(one);
		return js_of(&b);
	}
	json_t *list = json_is_array(one) ? js_need(json_copy(one)) : js_make("[{type:text,text:%O}]", one);
	_cleanup_json_ json_t *more = json_is_array(two) ? json_incref(two) : js_make("[{type:text,text:%O}]", two);
	json_array_extend(list, more);
	json_decref(one);
	return list;
}

static void begin(struct turn *t) {
	size_t i;
	json_t *line;
	*t = (struct turn){.batch = backlog_take(), .out = {.subtype = "success", .started = now_ms(), .index = turns}};
	phase_begin();
	json_array_foreach(t->batch, i, line) {
		json_t *content = json_object_get(json_object_get(line, "message"), "content");
		t->content = t->content ? merge(t->content, content) : json_incref(content);
		if (backlog_is_client_uuid(line)) json_array_append(phase_uuids(), json_object_get(line, "uuid"));
		if (backlog_is_task(line)) t->out.origin = json_incref(json_object_get(line, "origin"));
	}
	t->prompt = js_content(t->content);
	t->moment = (struct scenario_moment){.prompt = json_string_value(t->prompt), .turn = turns + 1};
}

static void lifecycle(const struct turn *t, const char *state) {
	size_t i;
	json_t *line;
	json_array_foreach(t->batch, i, line) {
		if (backlog_is_client_uuid(line)) frames_lifecycle(js_get(line, "uuid"), state);
	}
}

/* Of several merged prompts the last one's acknowledgement comes after init and has the merged text; the others come
 * before. */
static void replay(const struct turn *t, bool last) {
	size_t n = json_array_size(t->batch);
	for (size_t i = 0; i + 1 < n && !last; i++) frames_replay(json_array_get(t->batch, i), NULL, false);
	if (last && !t->out.origin) frames_replay(json_array_get(t->batch, n - 1), t->content, true);
}

static void print_init(void) {
	frames_init(toolserver_tools(), toolserver_list(false));
}

/* ---- the model ------------------------------------------------------------------------------------------------- */

/* The model has stopped; a Stop hook may continue the turn. */
static void maybe_stop(struct turn *t) {
	struct callback_outcome o;
	callback_run("Stop", NULL,
				 js_make("{stop_hook_active:%b,last_assistant_message:%O}", t->stop_hook_active, t->out.text), NULL,
				 &o);
	end(t, "success", o.stop ? "stop_hook_prevented" : "completed", false);
	if (!o.stop && o.decision == POLICY_DENY && !phase_aborted()) {
		t->over = false;
		t->stop_hook_active = true;
		conversation_add("user", js_printf("Stop hook feedback:\n%s", o.reason ? o.reason : ""));
	}
	callback_free(&o);
}

static void fail(struct turn *t, const char *error) {
	_cleanup_free_ char *text = str_printf("API Error: %s", error);
	frames_request(false);
	frames_error(text);
	end(t, "success", "api_error", true);
	t->out.stop_reason = "stop_sequence";
	js_set(&t->out.text, js_make("%s", text));
}

static void take_reply(struct turn *t, const struct speech *s) {
	if (phase_aborted() || !speech_print(s, &t->out.stop_reason)) return;
	const json_t *last = json_array_get(s->blocks, json_array_size(s->blocks) - 1);
	conversation_add_reply(json_incref(s->blocks), phase_uuids());
	js_set(&t->out.text, js_is(last, "type", "text") ? json_incref(json_object_get(last, "text")) : NULL);
	if (!js_has_block(s->blocks, "tool_use")) {
		maybe_stop(t);
		return;
	}
	enum toolcall_end how = toolcall_run(s->blocks, &t->moment, &t->out.deferred);
	if (how == TOOLCALL_STOPPED) end(t, "success", "hook_stopped", false);
	if (how != TOOLCALL_DEFERRED) return;
	end(t, "success", "tool_deferred", false);
	t->out.stop_reason = "tool_deferred";
}

static void converse(struct turn *t) {
	while (!t->over && !phase_aborted()) {
		struct speech s;
		if (flags()->max_turns > 0 && t->out.calls >= flags()->max_turns) {
			end(t, "error_max_turns", "max_turns", true);
			t->out.errors = js_make("[%o]", js_printf("Reached maximum number of turns (%ld)", flags()->max_turns));
			break;
		}
		t->moment.call = ++t->out.calls;
		model_speak(&s, &t->moment);
		if (s.error && !phase_aborted())
			fail(t, s.error);
		else
			take_reply(t, &s);
		speech_free(&s);
	}
}

/* ---- kinds of turns -------------------------------------------------------------------------------------------- */

/* Faults of a turn run as directives. */
static void misbehave(void) {
	static const struct {
		enum fault fault;
		const char *directive;
	} each[] = {{FAULT_stderr, "stderr"}, {FAULT_flood, "lines"}, {FAULT_huge, "huge"}};
	char text[64];
	struct speech s;
	speech_init(&s);
	for (size_t i = 0; i < ARRAY_SIZE(each); i++) {
		if (!faults_has(each[i].fault)) continue;
		int n = snprintf(text, sizeof text, "@%s %ld@", each[i].directive, faults_get(each[i].fault));
		directive_run_all(&s, text, (size_t)n);
	}
	if (faults_has(FAULT_grandchild) && !turns) directive_run_all(&s, "@grandchild@", 12);
	speech_free(&s);
}

/* Return false if a hook blocks the prompt. */
static bool submit(struct turn *t) {
	struct callback_outcome o;
	const char *why = "Blocked by hook";
	callback_run("UserPromptSubmit", NULL, js_make("{prompt:%O}", t->prompt), NULL, &o);
	bool blocked = o.decision == POLICY_DENY || o.stop;
	if (o.stop_reason) why = o.stop_reason;
	if (o.reason) why = o.reason;
	if (blocked) {
		t->out.text = js_printf("UserPromptSubmit operation blocked by hook:\n%s\n\nOriginal prompt: %s", why,
								t->moment.prompt);
	} else {
		conversation_add("user", json_incref(t->content));
		if (json_array_size(o.context)) conversation_append(o.context);
	}
	callback_free(&o);
	return !blocked;
}

static void abort_turn(struct turn *t) {
	bool tools = js_has_block(conversation_last(), "tool_result");
	if (phase_aborted() == PHASE_URGENT) {
		end(t, "success", "aborted_streaming", false);
		return;
	}
	json_t *content = js_make("[{type:text,text:%s}]",
							  tools ? "[Request interrupted by user for tool use]" : "[Request interrupted by user]");
	conversation_add("user", json_incref(content));
	frames_user(content, NULL);
	frames_cut();
	t->out.stop_reason = tools ? "tool_use" : NULL;
	end(t, "error_during_execution", tools ? "aborted_tools" : "aborted_streaming", true);
	t->out.errors = js_make("[%o]", js_printf("[ede_diagnostic] result_type=user last_content_type=n/a stop_reason=%s",
											  tools ? "tool_use" : "null"));
}

/* Hooks run before init is printed, as in the CLI; a blocked prompt is not acknowledged. */
static void run_prompt(struct turn *t) {
	bool accepted = submit(t);
	print_init();
	if (!accepted) {
		frames_warning(NULL, json_incref(t->out.text));
		return;
	}
	frames_request(true);
	replay(t, true);
	poller_round(0); /* input written together with the prompt finds the turn running */
	misbehave();
	converse(t);
	if (phase_aborted()) abort_turn(t);
}

/* The reset has the old id; init, the acknowledgement and the result have the new one. */
static void run_clear(struct turn *t) {
	char id[37];
	js_uuid(id);
	json_t *f = js_make("{type:conversation_reset,new_conversation_id:%s,trigger:clear}", id);
	frames_stamp(f);
	frames_put(f);
	background_changed();
	conversation_reset(id);
	print_init();
	js_set(&t->content, js_make("%s", "<command-name>/clear</command-name>\n            "
									  "<command-message>clear</command-message>\n            "
									  "<command-args></command-args>"));
	if (!flags()->old) replay(t, true);
	t->out.local_command = "clear";
}

static void run_silent(struct turn *t) {
	print_init();
	replay(t, true);
	conversation_add("user", json_incref(t->content));
}

static void finish(struct turn *t) {
	enum phase_abort why = phase_aborted();
	if (!faults_has(FAULT_no_result)) {
		frames_result(&t->out);
		failed = t->out.is_error;
		turns++;
	}
	lifecycle(t, why == PHASE_INTERRUPT || why == PHASE_SIGNAL ? "cancelled" : "completed");
	phase_end();
	if (backlog_empty() && why != PHASE_SIGNAL) frames_state("idle");
	directive_after_turn();
	json_decref(t->batch);
	json_decref(t->content);
	json_decref(t->prompt);
	free(t->moment.tool);
	free(t->moment.output);
	json_decref(t->out.text);
	json_decref(t->out.errors);
	json_decref(t->out.deferred);
	json_decref(t->out.origin);
	if (why == PHASE_SIGNAL) exit(0);
}

void dialogue_run_turn(void) {
	struct turn t;
	begin(&t);
	frames_state("running");
	replay(&t, false);
	lifecycle(&t, "started");
	if (json_is_false(json_object_get(json_array_get(t.batch, 0), "shouldQuery")))
		run_silent(&t);
	else if (js_same(t.moment.prompt, "/clear") && !rpc_spoken())
		run_clear(&t);
	else
		run_prompt(&t);
	finish(&t);
}
