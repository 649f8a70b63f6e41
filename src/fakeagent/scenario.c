/* SPDX-License-Identifier: MIT */
#include "fakeagent/scenario.h"

#include "base/str.h"
#include "fakeagent/conversation.h"
#include "fakeagent/policy.h"

static json_t *root;

/* ---- loading --------------------------------------------------------------------------------------------------- */

/* A misspelt member would be a rule that never matches, so it is an error. */
static bool check_members(json_t *obj, const char *known, char **error) {
	const char *name;
	json_t *value;
	json_object_foreach(obj, name, value) {
		_cleanup_free_ char *word = str_printf(" %s ", name);
		if (strstr(known, word)) continue;
		*error = str_printf("scenario: unknown member: %s", name);
		return false;
	}
	return true;
}

static bool check(char **error) {
	json_t *rules = json_object_get(root, "replies");
	const char *known = " description try model permission_mode permissions faults init initialize tools replies ";
	if (!check_members(root, known, error)) return false;
	if (rules && !json_is_array(rules)) *error = str_printf("scenario: replies is no array");
	JS_EACH (rule, rules) {
		json_t *when = json_object_get(rule.v, "when"), *say = json_object_get(rule.v, "say");
		if (!json_is_object(rule.v) || (when && !json_is_object(when)) || (say && !json_is_array(say)))
			*error = str_printf("scenario: reply %zu: `when` must be an object, `say` an array", rule.i + 1);
		if (*error || !check_members(rule.v, " when say once error directives slow_ms delay_ms ", error) ||
			!check_members(when, " prompt regex tool output is_error turn call always ", error))
			return false;
	}
	JS_EACH (fault, json_object_get(root, "faults")) {
		const char *text = json_string_value(fault.v);
		if (!text || !agent_set_fault(text)) *error = str_printf("scenario: no such fault: %s", text ? text : "?");
	}
	return !*error;
}

bool scenario_load(const char *path, char **error) {
	static const char *const lists[] = {"allow", "deny", "ask"};
	json_error_t err;
	root = json_load_file(path, 0, &err);
	if (root && !json_is_object(root))
		*error = str_printf("scenario %s: no object", path);
	else if (!root && err.line < 1)
		*error = str_printf("scenario %s: %s", path, err.text);
	else if (!root)
		*error = str_printf("scenario %s:%d: %s", path, err.line, err.text);
	if (*error || !check(error)) return false;
	if (!agent.wanted_model) conversation_set_model(js_get(root, "model"));
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		policy_extend(lists[i], json_object_get(json_object_get(root, "permissions"), lists[i]));
	return true;
}

json_t *scenario_get(const char *name) {
	return json_object_get(root, name);
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

json_t *scenario_rule(const struct scenario_moment *m) {
	JS_EACH (rule, json_object_get(root, "replies")) {
		if (js_true(rule.v, "used") || !matches(json_object_get(rule.v, "when"), m)) continue;
		if (js_true(rule.v, "once")) js_put(rule.v, "used", json_true());
		return rule.v;
	}
	return NULL;
}

/* ---- saying ---------------------------------------------------------------------------------------------------- */

static json_t *expand_text(const char *text, const struct scenario_moment *m) {
	struct buf b = JS_BUF;
	while (*text) {
		size_t n = strcspn(text, "$");
		bool prompt = strncmp(text, "${prompt}", 9) == 0, output = strncmp(text, "${output}", 9) == 0;
		if (prompt || output)
			buf_puts(&b, prompt ? m->prompt : m->output ? m->output : "");
		else
			buf_put(&b, text, MAX(n, (size_t)1));
		text += prompt || output ? 9 : MAX(n, (size_t)1);
	}
	return js_of(&b);
}

json_t *scenario_expand(json_t *value,
						const struct scenario_moment *m) { /* NOLINT(misc-no-recursion): depth of a file */
	const char *key;
	json_t *one, *all;
	if (json_is_string(value)) return expand_text(json_string_value(value), m);
	if (json_is_array(value)) {
		all = js_make("[]");
		JS_EACH (item, value) js_add(all, scenario_expand(item.v, m));
		return all;
	}
	if (!json_is_object(value)) return json_incref(value);
	all = js_make("{}");
	json_object_foreach(value, key, one) js_put(all, key, scenario_expand(one, m));
	return all;
}
