/* SPDX-License-Identifier: MIT */
#include "fakeagent/dialogue.h"

#include "base/fd.h"
#include "fakeagent/background.h"
#include "fakeagent/backlog.h"
#include "fakeagent/callback.h"
#include "fakeagent/conversation.h"
#include "fakeagent/model.h"
#include "fakeagent/out.h"
#include "fakeagent/poller.h"
#include "fakeagent/rpc.h"
#include "fakeagent/tool.h"
#include "fakeagent/toolserver.h"

static long turns; /* finished turns */
static bool failed;

struct turn {
	json_t *batch;   /* the user lines */
	json_t *content; /* of the merged prompt */
	json_t *prompt;  /* its text */
	struct tool_moment moment;
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
	json_t *list = js_blocks(one);
	_cleanup_json_ json_t *more = js_blocks(two);
	json_array_extend(list, more);
	json_decref(one);
	return list;
}

static void begin(struct turn *t) {
	*t = (struct turn){.batch = backlog_take(), .out = {.subtype = "success", .started = now_ms(), .index = turns}};
	agent.running = true;
	js_set(&agent.uuids, js_make("[]"));
	js_set(&agent.denials, js_make("[]"));
	JS_EACH (line, t->batch) {
		json_t *content = js_at(line.v, "message.content");
		t->content = t->content ? merge(t->content, content) : json_incref(content);
		if (backlog_is_client_uuid(line.v)) json_array_append(agent.uuids, json_object_get(line.v, "uuid"));
		if (backlog_is_task(line.v)) t->out.origin = json_incref(json_object_get(line.v, "origin"));
	}
	t->prompt = js_content(t->content);
	t->moment = (struct tool_moment){.prompt = json_string_value(t->prompt), .turn = turns + 1};
}

static void lifecycle(const struct turn *t, const char *state) {
	JS_EACH (line, t->batch)
		if (backlog_is_client_uuid(line.v)) out_lifecycle(js_get(line.v, "uuid"), state);
}

/* Of several merged prompts the last one's acknowledgement comes after init and has the merged text; the others come
 * before. */
static void replay(const struct turn *t, bool last) {
	size_t n = json_array_size(t->batch);
	for (size_t i = 0; i + 1 < n && !last; i++) out_replay(json_array_get(t->batch, i), NULL, false);
	if (last && !t->out.origin) out_replay(json_array_get(t->batch, n - 1), t->content, true);
}

static void print_init(void) {
	out_begin(toolserver_tools(), toolserver_list(false));
	speech_begin();
}

/* ---- the model ------------------------------------------------------------------------------------------------- */

/* The model has stopped; a Stop hook may continue the turn. */
static void maybe_stop(struct turn *t) {
	struct callback_outcome o;
	callback_run("Stop", NULL,
				 js_make("{stop_hook_active:%b,last_assistant_message:%O}", t->stop_hook_active, t->out.text), NULL,
				 &o);
	end(t, "success", o.stop ? "stop_hook_prevented" : "completed", false);
	if (!o.stop && o.decision == POLICY_DENY && !agent.aborted) {
		t->over = false;
		t->stop_hook_active = true;
		conversation_add("user", js_printf("Stop hook feedback:\n%s", o.reason ? o.reason : ""), NULL);
	}
	callback_free(&o);
}

static void fail(struct turn *t, const char *error) {
	js_set(&t->out.text, js_printf("API Error: %s", error));
	speech_error(json_string_value(t->out.text));
	end(t, "success", "api_error", true);
	t->out.stop_reason = "stop_sequence";
}

static void take_reply(struct turn *t, const struct speech *s) {
	if (agent.aborted || !speech_print(s, &t->out.stop_reason)) return;
	const json_t *last = json_array_get(s->blocks, json_array_size(s->blocks) - 1);
	conversation_add("assistant", json_incref(s->blocks), agent.uuids);
	js_set(&t->out.text, js_is(last, "type", "text") ? json_incref(json_object_get(last, "text")) : NULL);
	if (!js_has_block(s->blocks, "tool_use")) {
		maybe_stop(t);
		return;
	}
	enum tool_end how = tool_run(s->blocks, &t->moment, &t->out.deferred);
	if (how == TOOL_STOPPED) end(t, "success", "hook_stopped", false);
	if (how != TOOL_DEFERRED) return;
	end(t, "success", "tool_deferred", false);
	t->out.stop_reason = "tool_deferred";
}

static void converse(struct turn *t) {
	long most = agent_flag("max-turns") ? strtol(agent_flag("max-turns"), NULL, 10) : 0;
	while (!t->over && !agent.aborted) {
		struct speech s;
		if (most > 0 && t->out.calls >= most) {
			end(t, "error_max_turns", "max_turns", true);
			t->out.errors = js_make("[%o]", js_printf("Reached maximum number of turns (%ld)", most));
			break;
		}
		t->moment.call = ++t->out.calls;
		model_speak(&s, &t->moment);
		if (s.error && !agent.aborted)
			fail(t, s.error);
		else
			take_reply(t, &s);
		model_forget(&s);
	}
}

/* ---- kinds of turns -------------------------------------------------------------------------------------------- */

/* Faults of a turn run as directives. */
static void misbehave(void) {
	static const struct {
		const char *fault, *directive;
	} each[] = {{"stderr", "stderr"}, {"flood", "lines"}, {"huge", "huge"}};
	for (size_t i = 0; i < ARRAY_SIZE(each); i++) {
		if (!agent_has(each[i].fault)) continue;
		_cleanup_json_ json_t *text = js_printf("@%s %ld@", each[i].directive, agent_fault(each[i].fault));
		model_direct(json_string_value(text));
	}
	if (agent_has("grandchild") && !turns) model_direct("@grandchild@");
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
		conversation_add("user", json_incref(t->content), NULL);
		if (json_array_size(o.context)) conversation_append(o.context);
	}
	callback_free(&o);
	return !blocked;
}

static void abort_turn(struct turn *t) {
	bool tools = js_has_block(conversation_last(), "tool_result");
	if (agent.aborted == ABORT_URGENT) {
		end(t, "success", "aborted_streaming", false);
		return;
	}
	json_t *content = js_make("[{type:text,text:%s}]",
							  tools ? "[Request interrupted by user for tool use]" : "[Request interrupted by user]");
	conversation_add("user", json_incref(content), NULL);
	out_user(content, NULL);
	speech_cut();
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
		out_warning(NULL, json_incref(t->out.text));
		return;
	}
	speech_request(true);
	replay(t, true);
	poller_round(0); /* input written together with the prompt finds the turn running */
	misbehave();
	converse(t);
	if (agent.aborted) abort_turn(t);
}

/* The reset has the old id; init, the acknowledgement and the result have the new one. */
static void run_clear(struct turn *t) {
	_cleanup_json_ json_t *id = js_uuid();
	json_t *f = js_make("{type:conversation_reset,new_conversation_id:%O,trigger:clear}", id);
	out_stamp(f);
	out_frame(f);
	background_changed();
	conversation_reset(json_string_value(id));
	print_init();
	js_set(&t->content, js_string("<command-name>/clear</command-name>\n            "
								  "<command-message>clear</command-message>\n            "
								  "<command-args></command-args>"));
	if (!agent.old) replay(t, true);
	t->out.local_command = "clear";
}

static void finish(struct turn *t) {
	enum abort why = agent.aborted;
	if (!agent_has("no-result")) {
		out_result(&t->out);
		failed = t->out.is_error;
		turns++;
	}
	lifecycle(t, why == ABORT_INTERRUPT || why == ABORT_SIGNAL ? "cancelled" : "completed");
	agent.running = false;
	agent.aborted = ABORT_NONE;
	if (backlog_empty() && why != ABORT_SIGNAL) out_state("idle");
	model_after_turn();
	json_decref(t->batch);
	json_decref(t->content);
	json_decref(t->prompt);
	free(t->moment.tool);
	free(t->moment.output);
	json_decref(t->out.text);
	json_decref(t->out.errors);
	json_decref(t->out.deferred);
	json_decref(t->out.origin);
	if (why == ABORT_SIGNAL) exit(0);
}

void dialogue_run_turn(void) {
	struct turn t;
	begin(&t);
	out_state("running");
	replay(&t, false);
	lifecycle(&t, "started");
	if (json_is_false(json_object_get(json_array_get(t.batch, 0), "shouldQuery"))) {
		print_init();
		replay(&t, true);
		conversation_add("user", json_incref(t.content), NULL);
	} else if (js_same(t.moment.prompt, "/clear") && !agent.rpc) {
		run_clear(&t);
	} else {
		run_prompt(&t);
	}
	finish(&t);
}
