/* SPDX-License-Identifier: MIT */
#include "fakeagent/scenario.h"

#include "base/str.h"
#include "fakeagent/conversation.h"
#include "fakeagent/faults.h"
#include "fakeagent/flags.h"
#include "fakeagent/policy.h"

#include <stdio.h>

static json_t *root;
static json_t *used; /* `once` rules already used */

/* ---- loading --------------------------------------------------------------------------------------------------- */

/* A misspelt member would be a rule that never matches, so it is an error. */
static bool check_members(const json_t *obj, const char *known, char **error) {
	const char *name;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)obj, name, value) {
		_cleanup_free_ char *word = str_printf(" %s ", name);
		if (strstr(known, word)) continue;
		*error = str_printf("scenario: unknown member: %s", name);
		return false;
	}
	return true;
}

static bool check_rule(const json_t *rule, size_t i, char **error) {
	json_t *when = json_object_get(rule, "when"), *say = json_object_get(rule, "say");
	if (!json_is_object(rule) || (when && !json_is_object(when)) || (say && !json_is_array(say))) {
		*error = str_printf("scenario: reply %zu: `when` must be an object, `say` an array", i + 1);
		return false;
	}
	return check_members(rule, " when say once error directives slow_ms delay_ms ", error) &&
		   check_members(when, " prompt regex tool output is_error turn call always ", error);
}

static bool check(char **error) {
	json_t *rule, *rules = json_object_get(root, "replies"), *fault;
	const char *known = " description try model permission_mode permissions faults init initialize tools replies ";
	size_t i;
	if (!check_members(root, known, error)) return false;
	if (rules && !json_is_array(rules)) *error = str_printf("scenario: replies is no array");
	json_array_foreach(rules, i, rule) {
		if (!check_rule(rule, i, error)) return false;
	}
	json_array_foreach(json_object_get(root, "faults"), i, fault) {
		const char *text = json_string_value(fault);
		if (!text || !faults_set(text)) *error = str_printf("scenario: no such fault: %s", text ? text : "?");
	}
	return !*error;
}

bool scenario_load(const char *path, char **error) {
	static const char *const lists[] = {"allow", "deny", "ask"};
	json_error_t err;
	root = json_load_file(path, 0, &err);
	used = js_need(json_object());
	if (root && !json_is_object(root))
		*error = str_printf("scenario %s: no object", path);
	else if (!root && err.line < 1)
		*error = str_printf("scenario %s: %s", path, err.text);
	else if (!root)
		*error = str_printf("scenario %s:%d: %s", path, err.line, err.text);
	if (*error || !check(error)) return false;
	if (!flags()->model) conversation_set_model(js_get(root, "model"));
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		policy_extend(lists[i], json_object_get(json_object_get(root, "permissions"), lists[i]));
	return true;
}

bool scenario_loaded(void) {
	return root;
}

const char *scenario_mode(void) {
	return js_get(root, "permission_mode");
}

void scenario_merge(const char *name, json_t *frame) {
	json_object_update(frame, json_object_get(root, name));
}

const json_t *scenario_tool(const char *name) {
	return json_object_get(json_object_get(root, "tools"), name);
}

/* ---- matching -------------------------------------------------------------------------------------------------- */

static bool text_hits(const json_t *when, const char *key, const char *text) {
	const char *want = js_get(when, key);
	if (!json_object_get(when, key)) return true;
	if (!want || !text) return false;
	return js_true(when, "regex") ? js_matches(want, text) : strstr(text, want) != NULL;
}

static bool number_is(const json_t *when, const char *key, long value) {
	const json_t *want = json_object_get(when, key);
	return !want || json_integer_value(want) == value;
}

/* `tool`, `output` and `is_error` concern the last tool of this turn. Rules with them do not match before one has run;
 * rules without them match only before. */
static bool matches(const json_t *when, const struct scenario_moment *m) {
	const json_t *failed = json_object_get(when, "is_error"), *tool = json_object_get(when, "tool");
	bool about_tool = tool || failed || json_object_get(when, "output");
	if (about_tool ? !m->tool : m->tool && !js_true(when, "always")) return false;
	if (tool && !js_is(when, "tool", m->tool)) return false;
	if (failed && json_is_true(failed) != m->failed) return false;
	return text_hits(when, "output", m->output) && text_hits(when, "prompt", m->prompt) &&
		   number_is(when, "turn", m->turn) && number_is(when, "call", m->call);
}

static bool is_left(const json_t *rule, size_t i) {
	char key[24];
	if (!js_true(rule, "once")) return true;
	snprintf(key, sizeof key, "%zu", i);
	if (json_object_get(used, key)) return false;
	json_object_set_new(used, key, json_true());
	return true;
}

const json_t *scenario_rule(const struct scenario_moment *m) {
	size_t i;
	json_t *rule;
	json_array_foreach(json_object_get(root, "replies"), i, rule) {
		if (matches(json_object_get(rule, "when"), m) && is_left(rule, i)) return rule;
	}
	return NULL;
}

/* ---- saying ---------------------------------------------------------------------------------------------------- */

static json_t *expand_text(const char *text, const struct scenario_moment *m) {
	static const char prompt[] = "${prompt}", output[] = "${output}";
	struct buf b = JS_BUF;
	while (*text) {
		if (strncmp(text, prompt, sizeof prompt - 1) == 0) {
			buf_puts(&b, m->prompt);
			text += sizeof prompt - 1;
		} else if (strncmp(text, output, sizeof output - 1) == 0) {
			buf_puts(&b, m->output ? m->output : "");
			text += sizeof output - 1;
		} else {
			buf_putc(&b, *text++);
		}
	}
	return js_of(&b);
}

static json_t *expand(json_t *value, const struct scenario_moment *m) { /* NOLINT(misc-no-recursion): depth of a file */
	const char *key;
	json_t *one, *all;
	size_t i;
	if (json_is_string(value)) return expand_text(json_string_value(value), m);
	if (json_is_array(value)) {
		all = js_need(json_array());
		json_array_foreach(value, i, one) json_array_append_new(all, expand(one, m));
		return all;
	}
	if (!json_is_object(value)) return json_incref(value);
	all = js_need(json_object());
	json_object_foreach(value, key, one) json_object_set_new(all, key, expand(one, m));
	return all;
}

json_t *scenario_say(const json_t *rule, const struct scenario_moment *m) {
	json_t *say = json_object_get(rule, "say");
	return say ? expand(say, m) : js_need(json_array());
}
