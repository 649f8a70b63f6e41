/* SPDX-License-Identifier: MIT */
#include "fakeagent/model.h"

#include "base/str.h"
#include "fakeagent/effects.h"
#include "fakeagent/scenario.h"

#include <string.h>

void reply_free(struct reply *r) {
	json_decref(r->blocks);
	free(r->error);
}

void reply_text(struct reply *r, json_t *text) {
	json_array_append_new(r->blocks, js_need(json_pack("{s:s,s:o}", "type", "text", "text", text)));
}

void reply_tool(struct agent *a, struct reply *r, const char *name, json_t *input) {
	json_t *id = js_printf("toolu_%08lx%04ld", (unsigned long)getpid(), ++a->ids);
	json_array_append_new(
		r->blocks, js_need(json_pack("{s:s,s:o,s:s,s:o}", "type", "tool_use", "id", id, "name", name, "input", input)));
}

void model_directives(struct agent *a, struct turn *t, struct reply *r, const char *text, size_t n) {
	size_t at = 0;
	struct directive d;
	while (directive_next(text, n, &at, &d)) {
		effects_run(a, t, r, &d);
		directive_free(&d);
	}
}

/* After tools: whether each failed, as the loopback model of our tests says it. */
static void say_done(const json_t *content, struct reply *r) {
	_cleanup_json_ json_t *flags = js_need(json_array());
	size_t i;
	json_t *block;
	json_array_foreach(content, i, block) {
		const char *type = js_get(block, "type");
		if (!type || strcmp(type, "tool_result") != 0) continue;
		json_array_append_new(flags, json_boolean(js_true(block, "is_error")));
	}
	_cleanup_free_ char *list = js_dumps(flags);
	reply_text(r, js_printf("tool done: %s", list));
}

static bool has_result(const json_t *content) {
	size_t i;
	json_t *block;
	json_array_foreach(content, i, block) {
		const char *type = js_get(block, "type");
		if (type && strcmp(type, "tool_result") == 0) return true;
	}
	return false;
}

static void say_echo(struct reply *r, const json_t *content) {
	struct buf b = BUF_INIT(SIZE_MAX / 2);
	_cleanup_free_ char *text = js_content_text(content);
	const char *from = text ? text : "";
	size_t n = json_is_string(content) ? json_string_length(content) : strlen(from);
	buf_puts(&b, "echo: ");
	buf_put(&b, json_is_string(content) ? json_string_value(content) : from, n);
	reply_text(r, js_text(b.data, b.len));
	buf_free(&b);
}

void model_reply(struct agent *a, struct turn *t, struct reply *r) {
	*r = (struct reply){.blocks = js_need(json_array())};
	const json_t *content = json_object_get(conversation_last(&a->conv), "content");
	if (a->scenario && scenario_reply(a, t, r)) return;
	if (has_result(content)) {
		say_done(content, r);
		return;
	}
	_cleanup_free_ char *text = js_content_text(content);
	if (text && !a->scenario) model_directives(a, t, r, text, strlen(text));
	if (!json_array_size(r->blocks) && !r->error) say_echo(r, content);
}
