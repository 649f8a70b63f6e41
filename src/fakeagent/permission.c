/* SPDX-License-Identifier: MIT */
#include "fakeagent/permission.h"

#include "fakeagent/out.h"
#include "fakeagent/query.h"

#define ASKS "AskUserQuestion ExitPlanMode" /* always */
#define EDITS "Write Edit NotebookEdit MultiEdit"

static json_t *rules; /* {"allow":[...],"deny":[...],"ask":[...]}, as "Bash(ls:*)" */

void permission_init(void) {
	rules = js_make("{allow:%O,deny:%O,ask:[]}", agent_list("allowedTools"), agent_list("disallowedTools"));
	js_replace(&agent.mode, "default");
}

const char *permission_set_mode(const char *mode) {
	bool known = mode && js_word(mode, "default acceptEdits bypassPermissions plan dontAsk auto manual");
	bool bypass = js_same(agent_flag("permission-mode"), "bypassPermissions");
	if (!mode || (!known && !agent.old)) return "invalid_mode";
	if (js_same(mode, "bypassPermissions") && !bypass && !agent_flag("allow-dangerously-skip-permissions"))
		return "bypass_not_launched";
	js_replace(&agent.mode, strcmp(mode, "manual") == 0 ? "default" : mode);
	return NULL;
}

void permission_extend(const char *list, json_t *more) {
	json_array_extend(json_object_get(rules, list), more);
}

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

/* Decide without asking; *why: the decision_reason_type. */
static const char *judge(const char *tool, const json_t *input, const char **why) {
	*why = "rule";
	if (is_in("deny", tool, input)) return "deny";
	if (is_in("ask", tool, input) || js_word(tool, ASKS)) return "ask";
	if (is_in("allow", tool, input)) return "allow";
	*why = "mode";
	if (strcmp(agent.mode, "bypassPermissions") == 0) return "allow";
	if (js_word(tool, "Read Glob Grep LS TodoWrite Task Agent")) return "allow";
	if (strcmp(agent.mode, "acceptEdits") == 0 && js_word(tool, EDITS)) return "allow";
	return strcmp(agent.mode, "dontAsk") == 0 ? "deny" : "ask";
}

/* A PermissionUpdate: addRules or setMode. */
static void update(const json_t *u) {
	json_t *list = json_object_get(rules, js_get(u, "behavior"));
	if (js_is(u, "type", "setMode") && !permission_set_mode(js_get(u, "mode"))) out_mode();
	if (!list || !js_is(u, "type", "addRules")) return;
	JS_EACH (rule, json_object_get(u, "rules")) {
		const char *tool = js_get(rule.v, "toolName"), *content = js_get(rule.v, "ruleContent");
		if (tool) js_add(list, content ? js_printf("%s(%s)", tool, content) : js_string(tool));
	}
}

/* Make permission_suggestions. */
static json_t *suggest(const char *tool, const json_t *input) {
	const char *command = strcmp(tool, "Bash") == 0 ? js_get(input, "command") : NULL;
	size_t n = command ? strcspn(command, " ") : 0;
	if (js_word(tool, EDITS)) return js_make("[{type:setMode,mode:acceptEdits,destination:session}]");
	return js_make("[{type:addRules,rules:[{toolName:%s,ruleContent:%o}],behavior:allow,destination:localSettings}]",
				   tool, command ? js_printf("%.*s%s", (int)n, command, command[n] ? " *" : "") : NULL);
}

json_t *permission_request(const json_t *use, json_t *input, const char *reason) {
	const char *name = js_get(use, "name"), *text = js_get(input, "description"), *end = NULL;
	bool always = js_word(name, ASKS);
	if (strncmp(name, "mcp__", 5) == 0) end = strstr(name + 5, "__");
	return js_view(use,
				   "{subtype:can_use_tool,tool_name:$name,display_name:$name,input:%O,tool_use_id:$id,description:%z,"
				   "blocked_path:%z,requires_user_interaction:%t,permission_suggestions:%o,decision_reason:%s,"
				   "decision_reason_type:%s,mcp_server:%o}",
				   input, text ? text : js_get(input, "command"), js_get(input, "file_path"), always,
				   always ? NULL : suggest(name, input), reason ? reason : "This tool needs approval",
				   reason ? "hook" : "other",
				   end ? js_make("{name:%o,source:sdk}", js_text(name + 5, (size_t)(end - name) - 5)) : NULL);
}

static json_t *deny(const json_t *use, const char *text) {
	js_add(agent.denials, js_view(use, "{tool_name:$name,tool_use_id:$id,tool_input:$input}"));
	return js_make("{message:%s}", text);
}

static json_t *deny_alone(const json_t *use, const char *type) {
	_cleanup_free_ char *text = str_printf("Permission to use %s has been denied.", js_get(use, "name"));
	json_t *denied = deny(use, text);
	out_frame(js_view(use,
					  "{type:system,subtype:permission_denied,tool_name:$name,tool_use_id:$id,decision_reason_type:%s,"
					  "message:%s}",
					  type, text));
	return denied;
}

/* Return true for members of a wrong type that invalidate an answer; others are ignored. */
static bool is_spoiled(const json_t *answer, bool allow) {
	const json_t *use = json_object_get(answer, "toolUseID"), *interrupt = json_object_get(answer, "interrupt");
	const json_t *input = json_object_get(answer, "updatedInput");
	if (use && !json_is_string(use)) return true;
	return allow ? input && !json_is_object(input) : interrupt && !json_is_boolean(interrupt);
}

/* {"behavior":"allow"|"deny",...} of the client or of a PermissionRequest hook. */
static json_t *take_answer(const json_t *use, json_t *asked, const json_t *answer) {
	json_t *input = json_object_get(answer, "updatedInput"), *denied;
	bool allow = js_is(answer, "behavior", "allow") && (json_is_object(input) || !agent.old);
	bool spoiled = is_spoiled(answer, allow);
	if (!spoiled && allow) {
		JS_EACH (u, json_object_get(answer, "updatedPermissions")) update(u.v);
		return js_make("{input:%O}", input ? input : asked);
	}
	if (spoiled || !js_is(answer, "behavior", "deny") || !js_get(answer, "message"))
		return deny(use, "Tool permission request failed: invalid permission result");
	denied = deny(use, js_get(answer, "message"));
	js_merge(denied, js_view(answer, "{interrupt:$interrupt}"));
	return denied;
}

static json_t *ask_client(const json_t *use, json_t *input, const char *reason) {
	if (!agent.ask_stdio) return deny_alone(use, "mode");
	out_state("requires_action");
	struct query *q = query_send(permission_request(use, input, reason), -1);
	query_wait(q);
	if (agent.aborted != ABORT_SIGNAL) out_state("running");
	const char *error = query_error(q);
	_cleanup_free_ char *text = error ? str_printf("Tool permission request failed: %s", error) : NULL;
	json_t *answer = q->end == QUERY_CLOSED
						 ? js_make("{message:%s}", agent.old ? "Tool permission request failed: Error: Stream closed"
															 : "Tool permission stream closed before response received")
					 : q->end != QUERY_ANSWERED ? json_object()
					 : error                    ? deny(use, text)
												: take_answer(use, input, query_payload(q));
	query_free(q);
	return answer;
}

/* Hooks may answer in place of the client; NULL: they do not. */
static json_t *ask_hooks(const json_t *use, json_t *input) {
	static const char denied[] = "Denied by a PermissionRequest hook";
	const char *name = js_get(use, "name");
	_cleanup_json_ json_t *o = callback_run(
		"PermissionRequest", use, js_make("{tool_input:%O,permission_suggestions:%o}", input, suggest(name, input)));
	json_t *answer = json_object_get(o, "permission");
	if (!json_is_object(answer))
		return js_is(o, "decision", "deny") ? deny(use, js_get(o, "reason") ? js_get(o, "reason") : denied) : NULL;
	if (js_is(answer, "behavior", "deny") && !js_get(answer, "message")) js_put(answer, "message", js_string(denied));
	return take_answer(use, input, answer);
}

json_t *permission_decide(const json_t *use, const json_t *before) {
	const char *name = js_get(use, "name"), *why, *reason = js_get(before, "reason");
	json_t *input = json_object_get(before, "input");
	if (!input) input = json_object_get(use, "input");
	const char *verdict = judge(name, input, &why);
	bool forced = js_is(before, "decision", "ask"), allowed = js_is(before, "decision", "allow");
	allowed |= strcmp(verdict, "allow") == 0 && !js_word(name, ASKS);
	if (strcmp(verdict, "deny") == 0) return deny_alone(use, why);
	if (!forced && allowed) return js_make("{input:%O}", input);
	json_t *answer = ask_hooks(use, input);
	return answer ? answer : ask_client(use, input, !forced ? NULL : reason ? reason : "a hook asks");
}
