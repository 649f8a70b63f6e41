/* SPDX-License-Identifier: MIT */
#include "fakeagent/permission.h"

#include "base/str.h"
#include "fakeagent/out.h"
#include "fakeagent/query.h"

#define ASKS "AskUserQuestion ExitPlanMode" /* always */
#define EDITS "Write Edit NotebookEdit MultiEdit"

static json_t *rules; /* {"allow":[...],"deny":[...],"ask":[...]}, as "Bash(ls:*)" */

/* ---- mode and rules -------------------------------------------------------------------------------------------- */

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
static enum policy judge(const char *tool, const json_t *input, const char **why) {
	*why = "rule";
	if (is_in("deny", tool, input)) return POLICY_DENY;
	if (is_in("ask", tool, input) || js_word(tool, ASKS)) return POLICY_ASK;
	if (is_in("allow", tool, input)) return POLICY_ALLOW;
	*why = "mode";
	if (strcmp(agent.mode, "bypassPermissions") == 0) return POLICY_ALLOW;
	if (js_word(tool, "Read Glob Grep LS TodoWrite Task Agent")) return POLICY_ALLOW;
	if (strcmp(agent.mode, "acceptEdits") == 0 && js_word(tool, EDITS)) return POLICY_ALLOW;
	return strcmp(agent.mode, "dontAsk") == 0 ? POLICY_DENY : POLICY_ASK;
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

/* ---- one tool -------------------------------------------------------------------------------------------------- */

static void deny(struct permission *p, const json_t *use, const char *text) {
	js_add(agent.denials, js_view(use, "{tool_name:$name,tool_use_id:$id,tool_input:$input}"));
	js_replace(&p->refusal, text);
}

/* Return true for members of a wrong type that invalidate an answer; others are ignored. */
static bool is_spoiled(const json_t *answer, bool allow) {
	const json_t *use = json_object_get(answer, "toolUseID"), *interrupt = json_object_get(answer, "interrupt");
	const json_t *input = json_object_get(answer, "updatedInput");
	if (use && !json_is_string(use)) return true;
	return allow ? input && !json_is_object(input) : interrupt && !json_is_boolean(interrupt);
}

/* {"behavior":"allow"|"deny",...} of the client or of a PermissionRequest hook. */
static void take_answer(struct permission *p, const json_t *use, const json_t *answer) {
	const char *message = js_get(answer, "message");
	json_t *input = json_object_get(answer, "updatedInput");
	bool allow = js_is(answer, "behavior", "allow") && (json_is_object(input) || !agent.old);
	bool spoiled = is_spoiled(answer, allow);
	if (allow && !spoiled) {
		p->allowed = true;
		if (input) js_set(&p->input, json_incref(input));
		JS_EACH (u, json_object_get(answer, "updatedPermissions")) update(u.v);
	} else if (js_is(answer, "behavior", "deny") && message && !spoiled) {
		deny(p, use, message);
		p->interrupt = js_true(answer, "interrupt");
	} else {
		deny(p, use, "Tool permission request failed: invalid permission result");
	}
}

static void deny_alone(struct permission *p, const json_t *use, const char *type) {
	_cleanup_free_ char *text = str_printf("Permission to use %s has been denied.", js_get(use, "name"));
	deny(p, use, text);
	out_frame(js_view(use,
					  "{type:system,subtype:permission_denied,tool_name:$name,tool_use_id:$id,decision_reason_type:%s,"
					  "message:%s}",
					  type, text));
}

static void ask_client(struct permission *p, const json_t *use, const char *reason) {
	if (!agent.ask_stdio) {
		deny_alone(p, use, "mode");
		return;
	}
	out_state("requires_action");
	struct query *q = query_send(permission_request(use, p->input, reason), -1);
	query_wait(q);
	if (agent.aborted != ABORT_SIGNAL) out_state("running");
	const char *error = query_error(q);
	if (q->end == QUERY_ANSWERED && error) {
		_cleanup_free_ char *text = str_printf("Tool permission request failed: %s", error);
		deny(p, use, text);
	} else if (q->end == QUERY_ANSWERED) {
		take_answer(p, use, query_payload(q));
	} else if (q->end == QUERY_CLOSED) {
		js_replace(&p->refusal, agent.old ? "Tool permission request failed: Error: Stream closed"
										  : "Tool permission stream closed before response received");
	} else {
		p->aborted = true;
	}
	query_free(q);
}

/* Hooks may answer in place of the client. */
static bool ask_hooks(struct permission *p, const json_t *use) {
	static const char denied[] = "Denied by a PermissionRequest hook";
	struct callback_outcome o;
	const char *name = js_get(use, "name");
	callback_run(
		"PermissionRequest", name,
		js_make("{tool_name:%s,tool_input:%O,permission_suggestions:%o}", name, p->input, suggest(name, p->input)),
		js_get(use, "id"), &o);
	bool answered = json_is_object(o.permission), decided = answered || o.decision == POLICY_DENY;
	if (answered) {
		if (js_is(o.permission, "behavior", "deny") && !js_get(o.permission, "message"))
			js_put(o.permission, "message", js_string(denied));
		take_answer(p, use, o.permission);
	} else if (decided) {
		deny(p, use, o.reason ? o.reason : denied);
	}
	callback_free(&o);
	return decided;
}

void permission_decide(const json_t *use, const struct callback_outcome *before, struct permission *p) {
	const char *name = js_get(use, "name"), *why;
	json_t *input = json_is_object(before->input) ? before->input : json_object_get(use, "input");
	*p = (struct permission){.input = json_incref(input)};
	enum policy verdict = judge(name, p->input, &why);
	bool forced = before->decision == POLICY_ASK, allowed = before->decision == POLICY_ALLOW;
	if (verdict == POLICY_DENY)
		deny_alone(p, use, why);
	else if (!forced && (allowed || (verdict == POLICY_ALLOW && !js_word(name, ASKS))))
		p->allowed = true;
	else if (!ask_hooks(p, use))
		ask_client(p, use, !forced ? NULL : before->reason ? before->reason : "a hook asks");
	if (agent.aborted && !p->allowed) p->aborted = true;
}

void permission_free(struct permission *p) {
	json_decref(p->input);
	free(p->refusal);
}
