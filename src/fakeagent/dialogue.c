/* SPDX-License-Identifier: MIT */
#include "fakeagent/dialogue.h"

#include "fakeagent/background.h"
#include "fakeagent/backlog.h"
#include "fakeagent/callback.h"
#include "fakeagent/conversation.h"
#include "fakeagent/model.h"
#include "fakeagent/out.h"
#include "fakeagent/speech.h"
#include "fakeagent/tool.h"
#include "fakeagent/toolserver.h"

static long turns; /* finished turns */

struct turn {
	json_t *batch;   /* the user lines */
	json_t *content; /* of the merged prompt */
	json_t *moment;  /* see model.h */
	json_t *result;  /* members of the result */
	int calls;       /* of the model */
	int64_t started;
	bool over; /* no more calls of the model */
	bool stop_hook_active;
};

static void end(struct turn *t, const char *subtype, const char *terminal, bool is_error) {
	js_merge(t->result, js_make("{subtype:%s,terminal_reason:%s,is_error:%b}", subtype, terminal, is_error));
	t->over = true;
}

/* Join texts with a newline; blocks and a text become blocks. Takes one. */
static json_t *merge(json_t *one, json_t *two) {
	bool texts = json_is_string(one) && json_is_string(two);
	json_t *both = texts ? js_printf("%s\n%s", json_string_value(one), json_string_value(two)) : js_blocks(one);
	_cleanup_json_ json_t *more = js_blocks(two);
	json_array_extend(both, more);
	json_decref(one);
	return both;
}

static void begin(struct turn *t) {
	*t = (struct turn){.batch = backlog_take(), .started = now_ms()};
	t->result = js_make("{subtype:success,is_error:false,stop_reason:null}");
	agent.running = true;
	js_set(&agent.uuids, js_make("[]"));
	js_set(&agent.denials, js_make("[]"));
	JS_EACH (line, t->batch) {
		json_t *content = js_at(line.v, "message.content");
		t->content = t->content ? merge(t->content, content) : json_incref(content);
		if (!js_true(line.v, "fake_uuid")) json_array_append(agent.uuids, json_object_get(line.v, "uuid"));
		if (js_true(line.v, "fake_task")) js_merge(t->result, js_view(line.v, "{origin:$origin}"));
	}
	t->moment = js_make("{prompt:%o,turn:%I,call:0}", js_content(t->content), (json_int_t)turns + 1);
}

/* Of several merged prompts the last one's acknowledgement comes after init and has the merged text; the others come
 * before. */
static void replay(const struct turn *t, bool last) {
	size_t n = json_array_size(t->batch);
	for (size_t i = 0; i + 1 < n && !last; i++) out_replay(json_array_get(t->batch, i), NULL);
	if (last && !json_object_get(t->result, "origin")) out_replay(json_array_get(t->batch, n - 1), t->content);
}

static void print_init(void) {
	out_begin(toolserver_tools(), toolserver_list(false));
}

/* The model has stopped; a Stop hook may continue the turn. */
static void maybe_stop(struct turn *t) {
	_cleanup_json_ json_t *o = callback_run(
		"Stop", NULL, js_view(t->result, "{stop_hook_active:%b,last_assistant_message:$result}", t->stop_hook_active));
	const char *reason = js_get(o, "reason");
	end(t, "success", js_true(o, "stop") ? "stop_hook_prevented" : "completed", false);
	if (js_true(o, "stop") || !js_is(o, "decision", "deny") || agent.aborted) return;
	t->over = false;
	t->stop_hook_active = true;
	conversation_add("user", js_printf("Stop hook feedback:\n%s", reason ? reason : ""), NULL);
}

static void take_reply(struct turn *t, const json_t *reply) {
	json_t *blocks = json_object_get(reply, "blocks");
	const json_t *last = json_array_get(blocks, json_array_size(blocks) - 1);
	const char *stop_reason = speech_print(reply);
	if (stop_reason) js_put(t->result, "stop_reason", js_string(stop_reason));
	if (!stop_reason) return;
	conversation_add("assistant", json_incref(blocks), agent.uuids);
	json_object_del(t->result, "result");
	if (js_is(last, "type", "text")) js_merge(t->result, js_view(last, "{result:$text}"));
	if (!js_has_block(blocks, "tool_use")) {
		maybe_stop(t);
		return;
	}
	_cleanup_json_ json_t *how = tool_run(blocks, t->moment);
	if (json_object_get(how, "deferred")) {
		end(t, "success", "tool_deferred", false);
		js_merge(t->result, js_view(how, "{stop_reason:tool_deferred,deferred_tool_use:$deferred}"));
	} else if (js_true(how, "stopped")) {
		end(t, "success", "hook_stopped", false);
	}
}

static void converse(struct turn *t) {
	const char *limit = agent_flag("max-turns"), *error;
	long most = limit ? strtol(limit, NULL, 10) : 0;
	while (!t->over && !agent.aborted) {
		if (most > 0 && t->calls >= most) {
			end(t, "error_max_turns", "max_turns", true);
			js_merge(t->result, js_make("{errors:[%o]}", js_printf("Reached maximum number of turns (%ld)", most)));
			break;
		}
		js_put(t->moment, "call", json_integer(++t->calls));
		_cleanup_json_ json_t *reply = model_speak(t->moment);
		if ((error = js_get(reply, "error")) && !agent.aborted) {
			end(t, "success", "api_error", true);
			js_merge(t->result, js_make("{stop_reason:stop_sequence,result:%o}", js_printf("API Error: %s", error)));
			speech_error(js_get(t->result, "result"));
		} else if (!agent.aborted) {
			take_reply(t, reply);
		}
	}
}

/* Faults of a turn run as directives. */
static void misbehave(void) {
	static const char *const each[][2] = {{"stderr", "stderr"}, {"flood", "lines"}, {"huge", "huge"}};
	for (size_t i = 0; i < ARRAY_SIZE(each); i++) {
		if (!agent_has(each[i][0])) continue;
		_cleanup_json_ json_t *text = js_printf("@%s %ld@", each[i][1], agent_fault(each[i][0]));
		model_direct(json_string_value(text));
	}
	if (agent_has("grandchild") && !turns) model_direct("@grandchild@");
}

/* Return false if a hook blocks the prompt. */
static bool submit(struct turn *t) {
	_cleanup_json_ json_t *o = callback_run("UserPromptSubmit", NULL, js_view(t->moment, "{prompt:$prompt}"));
	const char *why = js_get(o, "reason") ? js_get(o, "reason") : js_get(o, "stop_reason");
	json_t *context = json_object_get(o, "context");
	if (js_is(o, "decision", "deny") || js_true(o, "stop")) {
		js_put(t->result, "result",
			   js_printf("UserPromptSubmit operation blocked by hook:\n%s\n\nOriginal prompt: %s",
						 why ? why : "Blocked by hook", js_get(t->moment, "prompt")));
		return false;
	}
	json_t *content = json_array_size(context) ? js_blocks(t->content) : json_incref(t->content);
	JS_EACH (text, context) js_add(content, js_make("{type:text,text:%O}", text.v));
	conversation_add("user", content, NULL);
	return true;
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
	end(t, "error_during_execution", tools ? "aborted_tools" : "aborted_streaming", true);
	js_merge(t->result, js_make("{stop_reason:%s,errors:[%o]}", tools ? "tool_use" : NULL,
								js_printf("[ede_diagnostic] result_type=user last_content_type=n/a stop_reason=%s",
										  tools ? "tool_use" : "null")));
}

/* Hooks run before init is printed, as in the CLI; a blocked prompt is not acknowledged. */
static void run_prompt(struct turn *t) {
	bool accepted = submit(t);
	print_init();
	if (!accepted) {
		out_warning(NULL, js_view(t->result, "$result"));
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
	out_emit("{type:conversation_reset,new_conversation_id:%O,trigger:clear,timestamp:%n}", id);
	background_changed();
	conversation_reset(json_string_value(id));
	print_init();
	js_set(&t->content, js_string("<command-name>/clear</command-name>\n            "
								  "<command-message>clear</command-message>\n            "
								  "<command-args></command-args>"));
	if (!agent.old) replay(t, true);
	js_put(t->result, "local_command", js_string("clear"));
}

static void finish(struct turn *t) {
	enum abort why = agent.aborted;
	bool cancelled = why == ABORT_INTERRUPT || why == ABORT_SIGNAL;
	if (!agent_has("no-result")) {
		agent.failed = js_true(t->result, "is_error");
		out_result(t->result, t->started, t->calls, turns++);
	}
	JS_EACH (uuid, agent.uuids) out_lifecycle(json_string_value(uuid.v), cancelled ? "cancelled" : "completed");
	agent.running = false;
	agent.aborted = ABORT_NONE;
	if (backlog_empty() && why != ABORT_SIGNAL) out_state("idle");
	model_after_turn();
	json_decref(t->batch);
	json_decref(t->content);
	json_decref(t->moment);
	json_decref(t->result);
	if (why == ABORT_SIGNAL) exit(0);
}

void dialogue_run_turn(void) {
	struct turn t;
	begin(&t);
	out_state("running");
	replay(&t, false);
	JS_EACH (uuid, agent.uuids) out_lifecycle(json_string_value(uuid.v), "started");
	if (json_is_false(json_object_get(json_array_get(t.batch, 0), "shouldQuery"))) {
		print_init();
		replay(&t, true);
		conversation_add("user", json_incref(t.content), NULL);
	} else if (js_is(t.moment, "prompt", "/clear") && !agent.rpc) {
		run_clear(&t);
	} else {
		run_prompt(&t);
	}
	finish(&t);
}
