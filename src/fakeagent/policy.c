/* SPDX-License-Identifier: MIT */
#include "fakeagent/policy.h"

static json_t *rules; /* {"allow":[...],"deny":[...],"ask":[...]}, as "Bash(ls:*)" */

void policy_init(void) {
	rules = js_make("{allow:%O,deny:%O,ask:[]}", agent.allowed, agent.disallowed);
	js_replace(&agent.mode, "default");
}

static bool one_of(const char *name, const char *names) {
	const char *at = strstr(names, name);
	return at && (at == names || at[-1] == ' ') && strchr(" ", at[strlen(name)]);
}

const char *policy_set_mode(const char *mode) {
	bool known = mode && one_of(mode, "default acceptEdits bypassPermissions plan dontAsk auto manual");
	if (!mode || (!known && !agent.old)) return "invalid_mode";
	if (strcmp(mode, "bypassPermissions") == 0 && !agent.bypass_allowed) return "bypass_not_launched";
	js_replace(&agent.mode, strcmp(mode, "manual") == 0 ? "default" : mode);
	return NULL;
}

void policy_extend(const char *list, json_t *more) {
	json_array_extend(json_object_get(rules, list), more);
}

/* ---- judging --------------------------------------------------------------------------------------------------- */

static bool is_hit(const char *rule, const char *tool, const json_t *input) {
	size_t n = strcspn(rule, "("), len = strlen(rule);
	bool server = strncmp(rule, "mcp__", 5) == 0 && strncmp(tool, rule, len) == 0 && strncmp(tool + len, "__", 2) == 0;
	if (server || strcmp(rule, "*") == 0) return true;
	if (strlen(tool) != n || memcmp(tool, rule, n) != 0) return false;
	if (!rule[n]) return true;
	const char *path = js_get(input, "file_path"), *text = path ? path : js_get(input, "url"), *want = rule + n + 1;
	if (strcmp(tool, "Bash") == 0) text = js_get(input, "command");
	size_t k = strcspn(want, ")");
	if (!text) return false;
	if (k >= 2 && memcmp(want + k - 2, ":*", 2) == 0) return strncmp(text, want, k - 2) == 0;
	if (k >= 2 && memcmp(want + k - 2, " *", 2) == 0)
		return strncmp(text, want, k - 2) == 0 && strchr(" ", text[k - 2]);
	return (k == 1 && *want == '*') || (strlen(text) == k && memcmp(text, want, k) == 0);
}

static bool is_in(const char *list, const char *tool, const json_t *input) {
	JS_EACH (rule, json_object_get(rules, list))
		if (json_is_string(rule.v) && is_hit(json_string_value(rule.v), tool, input)) return true;
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
	if (strcmp(agent.mode, "bypassPermissions") == 0) return POLICY_ALLOW;
	if (one_of(tool, "Read Glob Grep LS TodoWrite Task Agent")) return POLICY_ALLOW;
	if (strcmp(agent.mode, "acceptEdits") == 0 && changes_files(tool)) return POLICY_ALLOW;
	return strcmp(agent.mode, "dontAsk") == 0 ? POLICY_DENY : POLICY_ASK;
}

/* ---- PermissionUpdate ------------------------------------------------------------------------------------------ */

bool policy_update(const json_t *update) {
	json_t *list = json_object_get(rules, js_get(update, "behavior"));
	if (js_is(update, "type", "setMode")) return !policy_set_mode(js_get(update, "mode"));
	if (!list || !js_is(update, "type", "addRules")) return false;
	JS_EACH (rule, json_object_get(update, "rules")) {
		const char *tool = js_get(rule.v, "toolName"), *content = js_get(rule.v, "ruleContent");
		if (tool) js_add(list, content ? js_printf("%s(%s)", tool, content) : js_string(tool));
	}
	return false;
}

json_t *policy_suggest(const char *tool, const json_t *input) {
	const char *command = strcmp(tool, "Bash") == 0 ? js_get(input, "command") : NULL;
	size_t n = command ? strcspn(command, " ") : 0;
	if (changes_files(tool)) return js_make("[{type:setMode,mode:acceptEdits,destination:session}]");
	return js_make("[{type:addRules,rules:[{toolName:%s,ruleContent:%o}],behavior:allow,destination:localSettings}]",
				   tool, command ? js_printf("%.*s%s", (int)n, command, command[n] ? " *" : "") : NULL);
}
