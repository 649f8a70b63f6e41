/* SPDX-License-Identifier: MIT */
#include "fakeagent/scenario.h"

#include "base/str.h"
#include "fakeagent/pump.h"

#include <regex.h>
#include <stdint.h>
#include <string.h>

struct scenario {
	json_t *root;
	json_t *used; /* indexes of the `once` rules that were taken */
};

/* ---- loading --------------------------------------------------------------------------------------------------- */

/* A misspelt member would be a rule that never matches: it is an error. */
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
	bool ok = json_is_object(rule) && (!when || json_is_object(when)) && (!say || json_is_array(say));
	if (!ok) {
		*error = str_printf("scenario: reply %zu: `when` must be an object, `say` an array", i + 1);
		return false;
	}
	return check_members(rule, " when say once error directives slow_ms delay_ms ", error) &&
		   check_members(when, " prompt regex tool output is_error turn call always ", error);
}

static bool check(const json_t *root, char **error) {
	json_t *rule, *rules = json_object_get(root, "replies");
	size_t i;
	if (!check_members(root, " description try model permission_mode permissions faults init initialize tools replies ",
					   error))
		return false;
	if (rules && !json_is_array(rules)) {
		*error = str_printf("scenario: replies is no array");
		return false;
	}
	json_array_foreach(rules, i, rule) {
		if (!check_rule(rule, i, error)) return false;
	}
	return true;
}

struct scenario *scenario_load(const char *path, char **error) {
	json_error_t err;
	json_t *root = json_load_file(path, 0, &err);
	if (!json_is_object(root)) {
		if (root || err.line < 1)
			*error = str_printf("scenario %s: %s", path, root ? "no object" : err.text);
		else
			*error = str_printf("scenario %s:%d: %s", path, err.line, err.text);
		json_decref(root);
		return NULL;
	}
	struct scenario *s = calloc(1, sizeof *s);
	if (!s) js_need(NULL);
	s->root = root;
	s->used = js_need(json_object());
	if (check(root, error)) return s;
	scenario_free(s);
	return NULL;
}

void scenario_free(struct scenario *s) {
	if (!s) return;
	json_decref(s->root);
	json_decref(s->used);
	free(s);
}

void scenario_merge(const struct scenario *s, const char *name, json_t *frame) {
	json_t *more = s ? json_object_get(s->root, name) : NULL;
	if (json_is_object(more)) json_object_update(frame, more);
}

static void extend(json_t *to, const json_t *from) {
	if (json_is_array(from)) json_array_extend(to, (json_t *)(uintptr_t)from);
}

bool scenario_apply(struct agent *a, char **error) {
	json_t *root = a->scenario->root, *rules = json_object_get(root, "permissions"), *fault;
	const char *model = js_get(root, "model"), *mode = js_get(root, "permission_mode");
	size_t i;
	if (model && !a->opt->model) {
		free(a->model);
		a->model = str_dup(model);
	}
	if (mode && !a->opt->mode) a->opt->mode = mode;
	extend(json_object_get(a->rules, "allow"), json_object_get(rules, "allow"));
	extend(json_object_get(a->rules, "deny"), json_object_get(rules, "deny"));
	extend(json_object_get(a->rules, "ask"), json_object_get(rules, "ask"));
	json_array_foreach(json_object_get(root, "faults"), i, fault) {
		const char *text = json_string_value(fault);
		if (text && faults_set(&a->faults, text)) continue;
		*error = str_printf("scenario: no such fault: %s", text ? text : "?");
		return false;
	}
	return true;
}

/* ---- matching -------------------------------------------------------------------------------------------------- */

static bool text_hits(const json_t *want, const char *text, bool regex) {
	const char *w = json_string_value(want);
	regex_t r;
	if (!want) return true;
	if (!w || !text) return false;
	if (!regex) return strstr(text, w) != NULL;
	if (regcomp(&r, w, REG_EXTENDED | REG_NOSUB) != 0) return false;
	bool hit = regexec(&r, text, 0, NULL, 0) == 0;
	regfree(&r);
	return hit;
}

static bool number_is(const json_t *want, long value) {
	return !want || json_integer_value(want) == value;
}

/* `tool`, `output` and `is_error` are about the last tool of this turn: before one has run they do not match, and a
 * rule without them matches only before. */
static bool matches(const struct agent *a, const struct turn *t, const json_t *when) {
	json_t *tool = json_object_get(when, "tool"), *output = json_object_get(when, "output");
	json_t *failed = json_object_get(when, "is_error");
	bool regex = js_true(when, "regex"), about_tool = tool || output || failed, any = js_true(when, "always");
	if (!any && about_tool != (t->last_tool != NULL)) return false;
	if (about_tool && !t->last_tool) return false;
	if (tool && (!json_is_string(tool) || strcmp(json_string_value(tool), t->last_tool) != 0)) return false;
	if (failed && json_is_true(failed) != t->last_failed) return false;
	return text_hits(output, t->last_output, regex) && text_hits(json_object_get(when, "prompt"), t->prompt, regex) &&
		   number_is(json_object_get(when, "turn"), a->results + 1) &&
		   number_is(json_object_get(when, "call"), t->calls);
}

static bool take_once(struct scenario *s, const json_t *rule, size_t i) {
	char key[24];
	if (!js_true(rule, "once")) return true;
	snprintf(key, sizeof key, "%zu", i);
	if (json_object_get(s->used, key)) return false;
	json_object_set_new(s->used, key, json_true());
	return true;
}

static json_t *find_rule(struct agent *a, const struct turn *t) {
	size_t i;
	json_t *rule;
	json_array_foreach(json_object_get(a->scenario->root, "replies"), i, rule) {
		if (matches(a, t, json_object_get(rule, "when")) && take_once(a->scenario, rule, i)) return rule;
	}
	return NULL;
}

/* ---- saying ---------------------------------------------------------------------------------------------------- */

static bool put_variable(struct buf *b, const struct turn *t, const char **p) {
	static const char prompt[] = "${prompt}", output[] = "${output}";
	const char *value = NULL;
	if (strncmp(*p, prompt, sizeof prompt - 1) == 0) {
		value = t->prompt ? t->prompt : "";
		*p += sizeof prompt - 1;
	} else if (strncmp(*p, output, sizeof output - 1) == 0) {
		value = t->last_output ? t->last_output : "";
		*p += sizeof output - 1;
	}
	return value && buf_puts(b, value);
}

static json_t *expand(const struct turn *t, const char *text) {
	struct buf b = BUF_INIT(SIZE_MAX / 2);
	while (*text)
		if (!put_variable(&b, t, &text)) buf_putc(&b, *text++);
	json_t *s = js_text(b.data ? b.data : "", b.len);
	buf_free(&b);
	return s;
}

static json_t *expand_all(const struct turn *t, json_t *value) {
	const char *key;
	json_t *one, *out;
	size_t i;
	if (json_is_string(value)) return expand(t, json_string_value(value));
	if (json_is_array(value)) {
		out = js_need(json_array());
		json_array_foreach(value, i, one) json_array_append_new(out, expand_all(t, one));
		return out;
	}
	if (!json_is_object(value)) return json_incref(value);
	out = js_need(json_object());
	json_object_foreach(value, key, one) json_object_set_new(out, key, expand_all(t, one));
	return out;
}

static void say_one(struct agent *a, struct turn *t, struct reply *r, json_t *what) {
	const char *thought = js_get(what, "thinking"), *text = js_get(what, "text"), *tool = js_get(what, "tool");
	json_t *input = json_object_get(what, "input");
	if (json_is_string(what)) {
		reply_text(r, expand(t, json_string_value(what)));
	} else if (thought) {
		json_array_append_new(r->blocks, json_pack("{s:s,s:o,s:s}", "type", "thinking", "thinking", expand(t, thought),
												   "signature", "fake"));
	} else if (text) {
		reply_text(r, expand(t, text));
	} else if (tool) {
		reply_tool(a, r, tool, input ? expand_all(t, input) : js_need(json_object()));
	}
}

bool scenario_reply(struct agent *a, struct turn *t, struct reply *r) {
	json_t *rule = find_rule(a, t), *one;
	const char *error = js_get(rule, "error"), *directives = js_get(rule, "directives");
	size_t i;
	if (!rule) return false;
	r->slow = json_integer_value(json_object_get(rule, "slow_ms"));
	r->delay = json_integer_value(json_object_get(rule, "delay_ms"));
	if (directives) model_directives(a, t, r, directives, strlen(directives));
	json_array_foreach(json_object_get(rule, "say"), i, one) say_one(a, t, r, one);
	if (error) r->error = str_dup(error);
	if (!json_array_size(r->blocks) && !r->error) reply_text(r, js_printf("(nothing to say)"));
	return true;
}

bool scenario_tool(struct agent *a, const char *name, struct tool_output *o) {
	json_t *canned = json_object_get(json_object_get(a->scenario->root, "tools"), name);
	json_t *output = json_object_get(canned, "output");
	if (!canned) return false;
	int64_t delay = json_integer_value(json_object_get(canned, "delay_ms"));
	if (delay > 0) pump_sleep(a, delay);
	o->aborted = a->abort != ABORT_NONE;
	o->content = output ? json_incref(output) : js_printf("%s", "");
	o->failed = js_true(canned, "is_error");
	return true;
}
