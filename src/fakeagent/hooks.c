/* SPDX-License-Identifier: MIT */
#include "fakeagent/hooks.h"

#include "base/str.h"
#include "fakeagent/asks.h"
#include "fakeagent/frames.h"

#include <ctype.h>
#include <limits.h>
#include <regex.h>
#include <string.h>

#define DEFAULT_TIMEOUT 600
#define PROMPT_TIMEOUT 30

/* ---- matching -------------------------------------------------------------------------------------------------- */

static bool is_list(const char *matcher) {
	for (; *matcher; matcher++)
		if (!isalnum((unsigned char)*matcher) && !strchr("_- ,|", *matcher)) return false;
	return true;
}

static bool in_list(const char *list, const char *value) {
	size_t n = strlen(value);
	while (*list) {
		list += strspn(list, " ,|");
		size_t k = strcspn(list, ",|"), used = k;
		while (k && list[k - 1] == ' ') k--;
		if (k == n && memcmp(list, value, n) == 0) return true;
		list += used;
	}
	return false;
}

static bool regex_hits(const char *pattern, const char *value) {
	regex_t r;
	if (regcomp(&r, pattern, REG_EXTENDED | REG_NOSUB) != 0) return false;
	bool hit = regexec(&r, value, 0, NULL, 0) == 0;
	regfree(&r);
	return hit;
}

static bool is_matched(const char *matcher, const char *value) {
	if (!matcher || !*matcher || strcmp(matcher, "*") == 0 || !value) return true;
	return is_list(matcher) ? in_list(matcher, value) : regex_hits(matcher, value);
}

/* ---- asking ---------------------------------------------------------------------------------------------------- */

static json_t *base_input(struct agent *a, const char *event, json_t *extra) {
	char cwd[PATH_MAX];
	json_t *in = js_need(json_pack("{s:s,s:o,s:s,s:s,s:s}", "session_id", a->conv.id, "transcript_path",
								   js_printf("%s/%s.jsonl", a->conv.dir ? a->conv.dir : "", a->conv.id), "cwd",
								   getcwd(cwd, sizeof cwd) ? cwd : "/", "permission_mode", a->mode, "hook_event_name",
								   event));
	json_object_update(in, extra);
	return in;
}

static int64_t timeout_of(const json_t *entry, const char *event) {
	json_t *t = json_object_get(entry, "timeout");
	double s = strcmp(event, "UserPromptSubmit") == 0 ? PROMPT_TIMEOUT : DEFAULT_TIMEOUT;
	if (json_is_number(t) && json_number_value(t) > 0) s = json_number_value(t);
	return (int64_t)(s * 1000);
}

static void ask_entry(struct agent *a, const char *event, const json_t *entry, json_t *input, const char *id,
					  struct list *asked) {
	size_t i;
	json_t *callback;
	json_array_foreach(json_object_get(entry, "hookCallbackIds"), i, callback) {
		struct ask *ask = asks_send(a,
									json_pack("{s:s,s:O,s:O,s:s}", "subtype", "hook_callback", "callback_id", callback,
											  "input", input, "tool_use_id", id),
									timeout_of(entry, event));
		asks_mark(ask, asked, entry);
	}
}

static void ask_all(struct agent *a, const char *event, const char *match, json_t *input, const char *id,
					struct list *asked) {
	size_t i;
	json_t *entry;
	json_array_foreach(json_object_get(a->hooks, event), i, entry) {
		if (is_matched(js_get(entry, "matcher"), match)) ask_entry(a, event, entry, input, id, asked);
	}
}

/* ---- combining ------------------------------------------------------------------------------------------------- */

static void decide(struct hook_outcome *o, enum hook_decision d, const char *reason) {
	if (d <= o->decision) return;
	o->decision = d;
	free(o->reason);
	o->reason = str_dup(reason);
}

static void failed(struct agent *a, struct hook_outcome *o, const struct ask *ask, const char *why) {
	const char *on = js_get(ask->entry, "onFailure");
	if (on && strcmp(on, "block") == 0) {
		decide(o, HOOK_DENY, why);
		return;
	}
	frames_informational(a, "hook_callback_failed", "warning", js_printf("A hook callback failed: %s", why));
}

static void read_specific(struct agent *a, struct hook_outcome *o, const struct ask *ask, const char *event,
						  const json_t *s) {
	const char *name = js_get(s, "hookEventName"), *say = js_get(s, "permissionDecision");
	const char *reason = js_get(s, "permissionDecisionReason");
	json_t *input = json_object_get(s, "updatedInput"), *context = json_object_get(s, "additionalContext");
	if (!json_is_object(s)) return;
	if (!name || strcmp(name, event) != 0) {
		failed(a, o, ask, "unknown hookEventName");
		return;
	}
	if (say && strcmp(say, "deny") == 0) decide(o, HOOK_DENY, reason);
	if (say && strcmp(say, "ask") == 0) decide(o, HOOK_ASK, reason);
	if (say && strcmp(say, "defer") == 0) decide(o, HOOK_DEFER, reason);
	if (say && strcmp(say, "allow") == 0) decide(o, HOOK_ALLOW, reason);
	if (json_is_object(input)) {
		json_decref(o->input);
		o->input = json_incref(input);
	}
	if (json_is_string(context)) json_array_append(o->context, context);
	if (!o->permission) o->permission = json_incref(json_object_get(s, "decision"));
	json_t *output = json_object_get(s, "updatedToolOutput");
	if (!output) output = json_object_get(s, "updatedMCPToolOutput");
	if (output && !o->output) o->output = json_incref(output);
}

static void read_output(struct agent *a, struct hook_outcome *o, const struct ask *ask, const char *event,
						const json_t *out) {
	const char *decision = js_get(out, "decision"), *reason = js_get(out, "reason");
	if (js_true(out, "async")) return;
	if (decision && strcmp(decision, "block") == 0) decide(o, HOOK_DENY, reason);
	if (decision && strcmp(decision, "approve") == 0) decide(o, HOOK_ALLOW, reason);
	if (json_is_false(json_object_get(out, "continue"))) {
		o->stop = true;
		free(o->stop_reason);
		o->stop_reason = str_dup(js_get(out, "stopReason"));
	}
	read_specific(a, o, ask, event, json_object_get(out, "hookSpecificOutput"));
}

/* Events whose silence must not let anything through. */
static bool is_guard(const char *event) {
	return strcmp(event, "PreToolUse") == 0 || strcmp(event, "UserPromptSubmit") == 0 ||
		   strcmp(event, "PermissionRequest") == 0;
}

static void read_ask(struct agent *a, struct hook_outcome *o, const struct ask *ask, const char *event) {
	static const char *const why[] = {
		[ASK_CANCELLED] = "the turn was interrupted",
		[ASK_TIMEOUT] = "the hook callback did not answer in time",
		[ASK_CLOSED] = "the stream to the host is closed",
		[ASK_REPLACED] =
			"The SDK host reconnected before its hook answered, so this tool call was not executed. No one "
			"denied it; retry the same tool call.",
	};
	json_t *payload = asks_payload(ask);
	if (ask->how != ASK_ANSWERED) {
		if (is_guard(event)) decide(o, HOOK_DENY, why[ask->how]);
	} else if (asks_error(ask)) {
		failed(a, o, ask, asks_error(ask));
	} else if (payload && !json_is_object(payload)) {
		failed(a, o, ask, "the answer is no object");
	} else {
		read_output(a, o, ask, event, payload);
	}
}

void hooks_run(struct agent *a, const char *event, const char *match, json_t *extra, const char *tool_use_id,
			   struct hook_outcome *o) {
	char made[37];
	*o = (struct hook_outcome){.context = js_need(json_array())};
	if (!json_array_size(json_object_get(a->hooks, event))) {
		json_decref(extra);
		return;
	}
	js_uuid(made);
	_cleanup_json_ json_t *input = base_input(a, event, extra);
	json_decref(extra);
	struct list asked = LIST_SELF(asked);
	ask_all(a, event, match, input, tool_use_id ? tool_use_id : made, &asked);
	struct ask *ask;
	while ((ask = asks_take_marked(&asked))) {
		asks_wait(a, ask);
		o->asked++;
		read_ask(a, o, ask, event);
		asks_free(ask);
	}
}

void hook_outcome_free(struct hook_outcome *o) {
	free(o->reason);
	free(o->stop_reason);
	json_decref(o->input);
	json_decref(o->permission);
	json_decref(o->output);
	json_decref(o->context);
	*o = (struct hook_outcome){0};
}

/* ---- the table ------------------------------------------------------------------------------------------------- */

static bool entry_valid(const json_t *entry) {
	json_t *matcher = json_object_get(entry, "matcher"), *ids = json_object_get(entry, "hookCallbackIds"), *id;
	size_t i;
	if (matcher && !json_is_string(matcher) && !json_is_null(matcher)) return false;
	if (!json_is_array(ids)) return false;
	json_array_foreach(ids, i, id) {
		if (!json_is_string(id)) return false;
	}
	return true;
}

bool hooks_valid(const json_t *table) {
	const char *event;
	json_t *entries, *entry;
	size_t i;
	if (!json_is_object(table)) return false;
	json_object_foreach((json_t *)(uintptr_t)table, event, entries) {
		if (!json_is_array(entries)) return false;
		json_array_foreach(entries, i, entry) {
			if (!entry_valid(entry)) return false;
		}
	}
	return true;
}

void hooks_replace(struct agent *a, json_t *table) {
	json_decref(a->hooks);
	a->hooks = json_incref(table);
	asks_settle_kind(a, "hook_callback", ASK_REPLACED);
}
