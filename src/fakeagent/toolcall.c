/* SPDX-License-Identifier: MIT */
#include "fakeagent/toolcall.h"

#include "fakeagent/conversation.h"
#include "fakeagent/flags.h"
#include "fakeagent/frames.h"
#include "fakeagent/permission.h"
#include "fakeagent/phase.h"
#include "fakeagent/toolbox.h"

struct batch {
	json_t *results; /* for the model */
	json_t *context; /* texts of hooks, after the results */
	struct scenario_moment *moment;
	bool stopped;
	json_t *deferred;
};

/* Print one tool_result and add it to those for the model. */
static void give(struct batch *b, const json_t *use, json_t *content, bool failed, json_t *detail) {
	json_t *block = js_make("{tool_use_id:%O,type:tool_result,content:%o,is_error:%b}", json_object_get(use, "id"),
							content, failed);
	json_array_append(b->results, block);
	frames_user(js_make("[%o]", block), detail);
}

static void reject(struct batch *b, const json_t *use) {
	give(b, use, js_make("%s", PERMISSION_REJECTED), true, js_make("User rejected tool use"));
}

static void refuse(struct batch *b, const json_t *use, json_t *text) {
	give(b, use, text, true, js_printf("Error: %s", json_string_value(text)));
}

static json_t *event_input(const json_t *use, json_t *input) {
	return js_make("{tool_name:%O,tool_input:%O,tool_use_id:%O}", json_object_get(use, "name"), input,
				   json_object_get(use, "id"));
}

static void end_hooks(struct batch *b, struct callback_outcome *o) {
	json_array_extend(b->context, o->context);
	b->stopped |= o->stop;
	callback_free(o);
}

static void run_allowed(struct batch *b, const json_t *use, json_t *input) {
	struct tool_output out;
	struct callback_outcome o;
	const char *name = js_get(use, "name"), *id = js_get(use, "id");
	toolbox_run(name, input, id, &out);
	if (!out.aborted && !out.failed) {
		json_t *in = event_input(use, input);
		json_object_set(in, "tool_response", out.content);
		callback_run("PostToolUse", name, in, id, &o);
		if (o.decision == POLICY_DENY && o.reason) json_array_append_new(b->context, js_make("%s", o.reason));
		end_hooks(b, &o);
	}
	_cleanup_json_ json_t *text = js_content(out.content);
	js_replace(&b->moment->tool, name);
	js_replace(&b->moment->output, json_string_value(text));
	b->moment->failed = out.failed;
	give(b, use, json_incref(out.content), out.failed, json_incref(out.detail));
	toolbox_free(&out);
}

static void run_decided(struct batch *b, const json_t *use, const struct callback_outcome *before) {
	struct permission p;
	permission_decide(use, before, &p);
	if (p.interrupt) phase_abort(PHASE_INTERRUPT);
	if (phase_aborted() || p.aborted)
		reject(b, use);
	else if (p.allowed)
		run_allowed(b, use, p.input);
	else
		refuse(b, use, js_make("%s", p.refusal));
	permission_free(&p);
}

static void run_one(struct batch *b, const json_t *use) {
	struct callback_outcome o;
	const char *name = js_get(use, "name");
	json_t *input = json_object_get(use, "input");
	callback_run("PreToolUse", name, event_input(use, input), js_get(use, "id"), &o);
	const char *why = o.reason ? o.reason : "Blocked by hook";
	if (o.decision == POLICY_DEFER)
		b->deferred = js_make("{id:%O,name:%s,input:%O}", json_object_get(use, "id"), name, input);
	else if (phase_aborted())
		reject(b, use);
	else if (o.decision == POLICY_DENY)
		refuse(b, use, flags()->old ? js_make("%s", why) : js_printf("PreToolUse:%s hook error: %s", name, why));
	else
		run_decided(b, use, &o);
	end_hooks(b, &o);
}

enum toolcall_end toolcall_run(const json_t *blocks, struct scenario_moment *m, json_t **deferred) {
	struct batch b = {.results = js_need(json_array()), .context = js_need(json_array()), .moment = m};
	json_t *use, *text;
	size_t i;
	json_array_foreach(blocks, i, use) {
		if (!js_is(use, "type", "tool_use")) continue;
		if (phase_aborted() || b.deferred)
			reject(&b, use);
		else
			run_one(&b, use);
	}
	json_array_foreach(b.context, i, text) json_array_append_new(b.results, js_make("{type:text,text:%O}", text));
	json_decref(b.context);
	conversation_add("user", b.results);
	*deferred = b.deferred;
	return b.deferred ? TOOLCALL_DEFERRED : b.stopped ? TOOLCALL_STOPPED : TOOLCALL_DONE;
}
