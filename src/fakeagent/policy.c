/* SPDX-License-Identifier: MIT */
#include "fakeagent/policy.h"

#include "fakeagent/flags.h"

static json_t *rules; /* {"allow":[...],"deny":[...],"ask":[...]}, as "Bash(ls:*)" */
static char *current;

void policy_init(void) {
	rules = js_make("{allow:%O,deny:%O,ask:[]}", flags()->allowed, flags()->disallowed);
	js_replace(&current, "default");
}

const char *policy_mode(void) {
	return current;
}

static bool one_of(const char *name, const char *names) {
	const char *at = strstr(names, name);
	return at && (at == names || at[-1] == ' ') && strchr(" ", at[strlen(name)]);
}

const char *policy_set_mode(const char *mode) {
	bool known = mode && one_of(mode, "default acceptEdits bypassPermissions plan dontAsk auto manual");
	if (!mode || (!known && !flags()->old)) return "invalid_mode";
	if (strcmp(mode, "bypassPermissions") == 0 && !flags()->bypass_allowed) return "bypass_not_launched";
	js_replace(&current, strcmp(mode, "manual") == 0 ? "default" : mode);
	return NULL;
}

void policy_extend(const char *list, const json_t *more) {
	if (json_is_array(more)) json_array_extend(json_object_get(rules, list), (json_t *)(uintptr_t)more);
}

/* ---- judging --------------------------------------------------------------------------------------------------- */

/* Return the text that the parentheses of a rule match. */
static const char *subject(const char *tool, const json_t *input) {
	if (strcmp(tool, "Bash") == 0) return js_get(input, "command");
	const char *path = js_get(input, "file_path");
	return path ? path : js_get(input, "url");
}

static bool is_hit(const char *rule, const char *tool, const json_t *input) {
	size_t n = strcspn(rule, "("), len = strlen(rule);
	bool server = strncmp(rule, "mcp__", 5) == 0 && strncmp(tool, rule, len) == 0 && strncmp(tool + len, "__", 2) == 0;
	if (server || strcmp(rule, "*") == 0) return true;
	if (strlen(tool) != n || memcmp(tool, rule, n) != 0) return false;
	if (!rule[n]) return true;
	const char *text = subject(tool, input), *want = rule + n + 1;
	size_t k = strcspn(want, ")");
	if (!text) return false;
	if (k >= 2 && memcmp(want + k - 2, ":*", 2) == 0) return strncmp(text, want, k - 2) == 0;
	if (k >= 2 && memcmp(want + k - 2, " *", 2) == 0)
		return strncmp(text, want, k - 2) == 0 && strchr(" ", text[k - 2]);
	return (k == 1 && *want == '*') || (strlen(text) == k && memcmp(text, want, k) == 0);
}

static bool is_in(const char *list, const char *tool, const json_t *input) {
	size_t i;
	json_t *rule;
	json_array_foreach(json_object_get(rules, list), i, rule) {
		const char *text = json_string_value(rule);
		if (text && is_hit(text, tool, input)) return true;
	}
	return false;
}

bool policy_always_asks(const char *tool) {
	return one_of(tool, "AskUserQuestion ExitPlanMode");
}

static bool changes_files(const char *tool) {
	return one_of(tool, "Write Edit NotebookEdit MultiEdit");
}

enum policy policy_judge(const char *tool, const json_t *input, const char **why) {
	*why = "rule";
	if (is_in("deny", tool, input)) return POLICY_DENY;
	if (is_in("ask", tool, input) || policy_always_asks(tool)) return POLICY_ASK;
	if (is_in("allow", tool, input)) return POLICY_ALLOW;
	*why = "mode";
	if (strcmp(current, "bypassPermissions") == 0) return POLICY_ALLOW;
	if (one_of(tool, "Read Glob Grep LS TodoWrite Task Agent")) return POLICY_ALLOW;
	if (strcmp(current, "acceptEdits") == 0 && changes_files(tool)) return POLICY_ALLOW;
	return strcmp(current, "dontAsk") == 0 ? POLICY_DENY : POLICY_ASK;
}

/* ---- PermissionUpdate ------------------------------------------------------------------------------------------ */

bool policy_update(const json_t *update) {
	json_t *list = json_object_get(rules, js_get(update, "behavior")), *rule;
	size_t i;
	if (js_is(update, "type", "setMode")) return !policy_set_mode(js_get(update, "mode"));
	if (!list || !js_is(update, "type", "addRules")) return false;
	json_array_foreach(json_object_get(update, "rules"), i, rule) {
		const char *tool = js_get(rule, "toolName"), *content = js_get(rule, "ruleContent");
		if (tool) json_array_append_new(list, content ? js_printf("%s(%s)", tool, content) : js_make("%s", tool));
	}
	return false;
}

json_t *policy_suggest(const char *tool, const json_t *input) {
	const char *command = js_get(input, "command");
	json_t *content = NULL;
	if (changes_files(tool)) return js_make("[{type:setMode,mode:acceptEdits,destination:session}]");
	if (command && strcmp(tool, "Bash") == 0) {
		size_t n = strcspn(command, " ");
		content = js_printf("%.*s%s", (int)n, command, command[n] ? " *" : "");
	}
	return js_make("[{type:addRules,rules:[{toolName:%s,ruleContent:%o}],behavior:allow,destination:localSettings}]",
				   tool, content);
}
