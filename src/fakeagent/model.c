/* SPDX-License-Identifier: MIT */
#include "fakeagent/model.h"

#include "base/str.h"
#include "fakeagent/conversation.h"
#include "fakeagent/directive.h"

static void play(struct speech *s, const json_t *rule, const struct scenario_moment *m) {
	const char *directives = js_get(rule, "directives");
	_cleanup_json_ json_t *say = scenario_say(rule, m);
	json_t *one;
	size_t i;
	s->slow = json_integer_value(json_object_get(rule, "slow_ms"));
	s->delay = json_integer_value(json_object_get(rule, "delay_ms"));
	if (directives) directive_run_all(s, directives, strlen(directives));
	json_array_foreach(say, i, one) {
		json_t *thought = json_object_get(one, "thinking"), *input = json_object_get(one, "input");
		json_t *text = json_is_string(one) ? one : json_object_get(one, "text");
		if (json_is_string(thought))
			speech_thought(s, json_incref(thought));
		else if (json_is_string(text))
			speech_text(s, json_incref(text));
		else if (js_get(one, "tool"))
			speech_tool(s, js_get(one, "tool"), input ? json_incref(input) : json_object());
	}
	if (js_get(rule, "error")) js_replace(&s->error, js_get(rule, "error"));
	if (!json_array_size(s->blocks) && !s->error) speech_text(s, js_make("%s", "(nothing to say)"));
}

/* After tools: say whether each failed, like the loopback model of the tests. */
static void say_done(struct speech *s, const json_t *content) {
	_cleanup_json_ json_t *flags = js_need(json_array());
	size_t i;
	json_t *block;
	json_array_foreach(content, i, block) {
		if (js_is(block, "type", "tool_result")) json_array_append_new(flags, json_boolean(js_true(block, "is_error")));
	}
	_cleanup_free_ char *list = js_dumps(flags);
	speech_text(s, js_printf("tool done: %s", list));
}

void model_speak(struct speech *s, const struct scenario_moment *m) {
	const json_t *content = conversation_last(), *rule = scenario_rule(m);
	speech_init(s);
	if (rule) {
		play(s, rule, m);
		return;
	}
	if (js_has_block(content, "tool_result")) {
		say_done(s, content);
		return;
	}
	_cleanup_json_ json_t *text = js_content(content);
	const char *p = json_string_value(text);
	size_t n = json_string_length(text);
	if (!scenario_loaded()) directive_run_all(s, p, n);
	if (json_array_size(s->blocks) || s->error) return;
	struct buf b = JS_BUF;
	buf_puts(&b, "echo: ");
	buf_put(&b, p, n);
	speech_text(s, js_of(&b));
}
