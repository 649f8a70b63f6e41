/* SPDX-License-Identifier: MIT */
#include "fakeagent/permission.h"

#include "base/str.h"
#include "fakeagent/asks.h"
#include "fakeagent/frames.h"
#include "fakeagent/mcp.h"

#include <string.h>

static bool is(const char *a, const char *b) {
	return a && strcmp(a, b) == 0;
}

static bool one_of(const char *name, const char *const *names) {
	for (; *names; names++)
		if (is(name, *names)) return true;
	return false;
}

/* ---- rules and modes ------------------------------------------------------------------------------------------- */

/* What the parentheses of a rule are held against. */
static const char *subject(const char *tool, const json_t *input) {
	if (is(tool, "Bash")) return js_get(input, "command");
	const char *path = js_get(input, "file_path");
	return path ? path : js_get(input, "url");
}

static bool rule_hits(const char *rule, const char *tool, const json_t *input) {
	size_t n = strcspn(rule, "("), len = strlen(rule);
	bool server = strncmp(rule, "mcp__", 5) == 0 && strncmp(tool, rule, len) == 0 && strncmp(tool + len, "__", 2) == 0;
	if (server || is(rule, "*")) return true;
	if (strlen(tool) != n || memcmp(tool, rule, n) != 0) return false;
	if (!rule[n]) return true;
	const char *text = subject(tool, input), *want = rule + n + 1;
	size_t k = strcspn(want, ")");
	if (!text) return false;
	if (k >= 2 && memcmp(want + k - 2, ":*", 2) == 0) return strncmp(text, want, k - 2) == 0;
	if (k >= 2 && memcmp(want + k - 2, " *", 2) == 0)
		return strncmp(text, want, k - 2) == 0 && (!text[k - 2] || text[k - 2] == ' ');
	if (k == 1 && *want == '*') return true;
	return strlen(text) == k && memcmp(text, want, k) == 0;
}

static const char *find_rule(const struct agent *a, const char *list, const char *tool, const json_t *input) {
	size_t i;
	json_t *rule;
	json_array_foreach(json_object_get(a->rules, list), i, rule) {
		const char *text = json_string_value(rule);
		if (text && rule_hits(text, tool, input)) return text;
	}
	return NULL;
}

static bool always_asks(const char *tool) {
	return is(tool, "AskUserQuestion") || is(tool, "ExitPlanMode");
}

static bool changes_files(const char *tool) {
	static const char *const names[] = {"Write", "Edit", "NotebookEdit", "MultiEdit", NULL};
	return one_of(tool, names);
}

static bool is_harmless(const char *tool) {
	static const char *const names[] = {"Read", "Glob", "Grep", "LS", "TodoWrite", "Task", "Agent", NULL};
	return one_of(tool, names);
}

/* What mode and rules say, without hooks. */
static enum hook_decision usual(const struct agent *a, const char *tool, const json_t *input, const char **why) {
	*why = "rule";
	if (find_rule(a, "deny", tool, input)) return HOOK_DENY;
	if (find_rule(a, "ask", tool, input)) return HOOK_ASK;
	if (always_asks(tool)) return HOOK_ASK;
	if (find_rule(a, "allow", tool, input)) return HOOK_ALLOW;
	*why = "mode";
	if (is(a->mode, "bypassPermissions") || is_harmless(tool)) return HOOK_ALLOW;
	if (is(a->mode, "acceptEdits") && changes_files(tool)) return HOOK_ALLOW;
	return is(a->mode, "dontAsk") ? HOOK_DENY : HOOK_ASK;
}

bool permission_mode(struct agent *a, const char *mode, const char **code) {
	static const char *const modes[] = {"default", "acceptEdits", "bypassPermissions", "plan", "dontAsk", "auto", NULL};
	if (is(mode, "manual")) mode = "default";
	*code = "invalid_mode";
	if (!mode || (!one_of(mode, modes) && !a->opt->old)) return false;
	*code = "bypass_not_launched";
	if (is(mode, "bypassPermissions") && !a->opt->bypass_allowed) return false;
	char *copy = str_dup(mode);
	free(a->mode);
	a->mode = copy;
	return true;
}

/* ---- PermissionUpdate ------------------------------------------------------------------------------------------ */

static json_t *rule_text(const json_t *rule) {
	const char *tool = js_get(rule, "toolName"), *content = js_get(rule, "ruleContent");
	if (!tool) return NULL;
	return content ? js_printf("%s(%s)", tool, content) : js_printf("%s", tool);
}

static void drop_rule(json_t *list, const json_t *text) {
	size_t i;
	json_t *rule;
	json_array_foreach(list, i, rule) {
		if (!json_equal(rule, text)) continue;
		json_array_remove(list, i);
		return;
	}
}

static void update_rules(struct agent *a, const char *type, const json_t *update) {
	json_t *list = json_object_get(a->rules, js_get(update, "behavior")), *rule;
	size_t i;
	if (!list) return;
	if (is(type, "replaceRules")) json_array_clear(list);
	json_array_foreach(json_object_get(update, "rules"), i, rule) {
		_cleanup_json_ json_t *text = rule_text(rule);
		if (!text) continue;
		drop_rule(list, text);
		if (!is(type, "removeRules")) json_array_append(list, text);
	}
}

/* PermissionUpdate items; junk is left out. */
static void take_updates(struct agent *a, const json_t *updates) {
	size_t i;
	json_t *update;
	const char *code;
	json_array_foreach(updates, i, update) {
		const char *type = js_get(update, "type");
		if (is(type, "setMode") && permission_mode(a, js_get(update, "mode"), &code)) frames_status(a, NULL, NULL);
		if (is(type, "addRules") || is(type, "replaceRules") || is(type, "removeRules")) update_rules(a, type, update);
	}
}

/* ---- asking ---------------------------------------------------------------------------------------------------- */

static json_t *suggestions(const char *name, const json_t *input) {
	const char *command = js_get(input, "command");
	if (is(name, "Bash") && command) {
		size_t n = strcspn(command, " ");
		json_t *rule = command[n] ? js_printf("%.*s *", (int)n, command) : js_printf("%s", command);
		return js_need(json_pack("[{s:s,s:[{s:s,s:o}],s:s,s:s}]", "type", "addRules", "rules", "toolName", name,
								 "ruleContent", rule, "behavior", "allow", "destination", "localSettings"));
	}
	if (changes_files(name))
		return js_need(
			json_pack("[{s:s,s:s,s:s}]", "type", "setMode", "mode", "acceptEdits", "destination", "session"));
	return js_need(json_pack("[{s:s,s:[{s:s}],s:s,s:s}]", "type", "addRules", "rules", "toolName", name, "behavior",
							 "allow", "destination", "localSettings"));
}

json_t *permission_request(const char *name, json_t *input, const char *tool_use_id, const char *reason) {
	json_t *r = js_need(json_pack("{s:s,s:s,s:s,s:O,s:s}", "subtype", "can_use_tool", "tool_name", name, "display_name",
								  name, "input", input, "tool_use_id", tool_use_id));
	const char *description = js_get(input, "description"), *path = js_get(input, "file_path");
	if (!description) description = js_get(input, "command");
	if (description) json_object_set_new(r, "description", json_string(description));
	if (path) json_object_set_new(r, "blocked_path", json_string(path));
	if (always_asks(name)) {
		json_object_set_new(r, "requires_user_interaction", json_true());
	} else {
		json_object_set_new(r, "permission_suggestions", suggestions(name, input));
	}
	const char *why = reason ? reason : "This tool needs approval";
	json_object_set_new(r, "decision_reason", js_text(why, strlen(why)));
	json_object_set_new(r, "decision_reason_type", json_string(reason ? "hook" : "other"));
	if (strncmp(name, "mcp__", 5) == 0) js_put(r, "mcp_server", mcp_source(name));
	return r;
}

static void refuse(struct permission *p, const char *text) {
	free(p->refusal);
	p->allowed = false;
	p->refusal = str_dup(text);
}

static void count_denial(struct turn *t, const json_t *use) {
	json_array_append_new(t->denials,
						  json_pack("{s:O,s:O,s:O}", "tool_name", json_object_get(use, "name"), "tool_use_id",
									json_object_get(use, "id"), "tool_input", json_object_get(use, "input")));
}

static void take_input(struct permission *p, json_t *input) {
	if (!json_is_object(input)) return;
	json_decref(p->input);
	p->input = json_incref(input);
}

/* Members that spoil an answer where they are of a wrong type; others are passed over. */
static bool is_spoiled(const json_t *answer, bool allow) {
	const json_t *use = json_object_get(answer, "toolUseID"), *interrupt = json_object_get(answer, "interrupt");
	const json_t *input = json_object_get(answer, "updatedInput");
	if (use && !json_is_string(use)) return true;
	return allow ? input && !json_is_object(input) : interrupt && !json_is_boolean(interrupt);
}

/* {"behavior":"allow"|"deny",...} of the client or of a PermissionRequest hook. */
static void take_answer(struct agent *a, struct turn *t, const json_t *use, const json_t *answer,
						struct permission *p) {
	const char *behavior = js_get(answer, "behavior"), *message = js_get(answer, "message");
	json_t *input = json_object_get(answer, "updatedInput");
	bool allow = is(behavior, "allow") && (json_is_object(input) || !a->opt->old);
	bool spoiled = is_spoiled(answer, allow);
	if (allow && !spoiled) {
		p->allowed = true;
		take_input(p, input);
		take_updates(a, json_object_get(answer, "updatedPermissions"));
		return;
	}
	count_denial(t, use);
	if (is(behavior, "deny") && message && !spoiled) {
		refuse(p, message);
		p->interrupt = js_true(answer, "interrupt");
	} else {
		refuse(p, "Tool permission request failed: invalid permission result");
	}
}

static void take_ask(struct agent *a, struct turn *t, const json_t *use, const struct ask *ask, struct permission *p) {
	const char *error = asks_error(ask);
	if (ask->how == ASK_ANSWERED && error) {
		p->refusal = str_printf("Tool permission request failed: %s", error);
		count_denial(t, use);
	} else if (ask->how == ASK_ANSWERED) {
		take_answer(a, t, use, asks_payload(ask), p);
	} else if (ask->how == ASK_CLOSED) {
		refuse(p, a->opt->old ? "Tool permission request failed: Error: Stream closed"
							  : "Tool permission stream closed before response received");
	} else {
		refuse(p, PERMISSION_REJECTED);
		p->aborted = true;
	}
}

static void deny_alone(struct agent *a, struct turn *t, const json_t *use, const char *type, struct permission *p) {
	const char *name = js_get(use, "name");
	_cleanup_free_ char *text = str_printf("Permission to use %s has been denied.", name);
	count_denial(t, use);
	refuse(p, text);
	frames_emit(a, json_pack("{s:s,s:s,s:s,s:O,s:s,s:s}", "type", "system", "subtype", "permission_denied", "tool_name",
							 name, "tool_use_id", json_object_get(use, "id"), "decision_reason_type", type, "message",
							 text));
	struct hook_outcome o;
	hooks_run(a, "PermissionDenied", name,
			  json_pack("{s:s,s:O,s:O,s:s}", "tool_name", name, "tool_input", p->input, "tool_use_id",
						json_object_get(use, "id"), "reason", text),
			  js_get(use, "id"), &o);
	hook_outcome_free(&o);
}

static void ask_client(struct agent *a, struct turn *t, const json_t *use, const char *reason, struct permission *p) {
	if (!a->opt->ask_stdio) {
		deny_alone(a, t, use, "mode", p);
		return;
	}
	frames_state(a, "requires_action");
	struct ask *ask = asks_send(a, permission_request(js_get(use, "name"), p->input, js_get(use, "id"), reason), -1);
	asks_wait(a, ask);
	if (a->abort != ABORT_SIGNAL) frames_state(a, "running");
	take_ask(a, t, use, ask, p);
	asks_free(ask);
}

/* Hooks may answer for the client. */
static bool ask_hooks(struct agent *a, struct turn *t, const json_t *use, struct permission *p) {
	struct hook_outcome o;
	const char *name = js_get(use, "name"), *id = js_get(use, "id");
	hooks_run(a, "PermissionRequest", name,
			  json_pack("{s:s,s:O,s:o}", "tool_name", name, "tool_input", p->input, "permission_suggestions",
						suggestions(name, p->input)),
			  id, &o);
	bool decided = json_is_object(o.permission) || o.decision == HOOK_DENY;
	if (json_is_object(o.permission)) {
		if (is(js_get(o.permission, "behavior"), "deny") && !js_get(o.permission, "message"))
			json_object_set_new(o.permission, "message", json_string("Denied by a PermissionRequest hook"));
		take_answer(a, t, use, o.permission, p);
	} else if (decided) {
		count_denial(t, use);
		refuse(p, o.reason ? o.reason : "Denied by a PermissionRequest hook");
	}
	hook_outcome_free(&o);
	return decided;
}

void permission_decide(struct agent *a, struct turn *t, const json_t *use, struct hook_outcome *before,
					   struct permission *p) {
	const char *name = js_get(use, "name"), *why;
	*p = (struct permission){.input = json_incref(json_object_get(use, "input"))};
	take_input(p, before->input);
	enum hook_decision d = usual(a, name, p->input, &why);
	bool forced = before->decision == HOOK_ASK;
	if (d == HOOK_DENY) {
		deny_alone(a, t, use, why, p);
	} else if (!forced && (before->decision == HOOK_ALLOW || d == HOOK_ALLOW) &&
			   !(always_asks(name) && before->decision != HOOK_ALLOW)) {
		p->allowed = true;
	} else if (!ask_hooks(a, t, use, p)) {
		ask_client(a, t, use, forced ? (before->reason ? before->reason : "a hook asks") : NULL, p);
	}
	if (a->abort && !p->allowed) p->aborted = true;
}

void permission_free(struct permission *p) {
	json_decref(p->input);
	free(p->refusal);
}
