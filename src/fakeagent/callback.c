/* SPDX-License-Identifier: MIT */
#include "fakeagent/callback.h"

#include "fakeagent/conversation.h"
#include "fakeagent/out.h"
#include "fakeagent/query.h"

static json_t *table;

/* A matcher of only these characters is a list of names, any other is a regular expression. */
static bool is_matched(const char *matcher, const char *value) {
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_- ,|";
	if (!matcher || !*matcher || strcmp(matcher, "*") == 0 || !value) return true;
	if (matcher[strspn(matcher, plain)]) return js_matches(matcher, value);
	for (size_t k; *matcher; matcher += k) {
		matcher += strspn(matcher, " ,|");
		size_t n = k = strcspn(matcher, ",|");
		while (n && matcher[n - 1] == ' ') n--;
		if (n == strlen(value) && memcmp(matcher, value, n) == 0) return true;
	}
	return false;
}

static void ask_all(const json_t *entries, const char *event, const char *match, json_t *input, const char *id,
					struct list *asked) {
	JS_EACH (entry, entries) {
		double s = json_number_value(json_object_get(entry.v, "timeout"));
		if (s <= 0) s = strcmp(event, "UserPromptSubmit") == 0 ? 30 : 600;
		if (!is_matched(js_get(entry.v, "matcher"), match)) continue;
		JS_EACH (callback, json_object_get(entry.v, "hookCallbackIds")) {
			struct query *q = query_send(
				js_make("{subtype:hook_callback,callback_id:%O,input:%O,tool_use_id:%s}", callback.v, input, id),
				(int64_t)(s * 1000));
			q->arg = json_incref(entry.v);
			list_add_tail(asked, &q->mark);
		}
	}
}

static void decide(json_t *o, const char *what, const char *reason) {
	static const char order[] = "allow ask defer deny";
	const char *before = js_get(o, "decision");
	if (!before || strstr(order, what) > strstr(order, before))
		js_merge(o, js_make("{decision:%s,reason:%s}", what, reason));
}

static void fail(json_t *o, const struct query *q, const char *why) {
	if (js_is(q->arg, "onFailure", "block"))
		decide(o, "deny", why);
	else
		out_warning("hook_callback_failed", js_printf("A hook callback failed: %s", why));
}

static void read_output(json_t *o, const struct query *q, const char *event, const json_t *out) {
	const json_t *s = json_object_get(out, "hookSpecificOutput");
	const char *decision = js_get(s, "permissionDecision");
	if (js_is(out, "decision", "block")) decide(o, "deny", js_get(out, "reason"));
	if (js_is(out, "decision", "approve")) decide(o, "allow", js_get(out, "reason"));
	if (json_is_false(json_object_get(out, "continue")))
		js_merge(o, js_view(out, "{stop:true,stop_reason:$stopReason}"));
	if (!json_is_object(s)) return;
	if (!js_is(s, "hookEventName", event)) {
		fail(o, q, "unknown hookEventName");
		return;
	}
	if (decision && js_word(decision, "allow ask defer deny"))
		decide(o, decision, js_get(s, "permissionDecisionReason"));
	if (json_is_object(json_object_get(s, "updatedInput"))) js_merge(o, js_view(s, "{input:$updatedInput}"));
	if (js_get(s, "additionalContext"))
		json_array_append(json_object_get(o, "context"), json_object_get(s, "additionalContext"));
	if (!json_object_get(o, "permission")) js_merge(o, js_view(s, "{permission:$decision}"));
}

static void read_answer(json_t *o, const struct query *q, const char *event) {
	static const char *const why[] = {
		[QUERY_CANCELLED] = "the turn was interrupted",
		[QUERY_TIMEOUT] = "the hook callback did not answer in time",
		[QUERY_CLOSED] = "the stream to the host is closed",
		[QUERY_REPLACED] =
			"The SDK host reconnected before its hook answered, so this tool call was not executed. No one "
			"denied it; retry the same tool call.",
	};
	json_t *payload = query_payload(q);
	bool must = js_word(event, "PreToolUse UserPromptSubmit PermissionRequest"); /* fail closed without an answer */
	if (q->end != QUERY_ANSWERED) {
		if (must) decide(o, "deny", why[q->end]);
	} else if (query_error(q)) {
		fail(o, q, query_error(q));
	} else if (payload && !json_is_object(payload)) {
		fail(o, q, "the answer is no object");
	} else {
		read_output(o, q, event, payload);
	}
}

json_t *callback_run(const char *event, const json_t *use, json_t *extra) {
	struct list asked = LIST_SELF(asked);
	struct query *q;
	json_t *o = js_make("{context:[]}");
	_cleanup_json_ json_t *entries = json_incref(json_object_get(table, event)), *more = extra, *made = js_uuid();
	if (!json_array_size(entries)) return o;
	_cleanup_json_ json_t *input = js_view(use,
										   "{session_id:%s,transcript_path:%o,cwd:%w,permission_mode:%s,"
										   "hook_event_name:%s,tool_name:$name,tool_input:$input}",
										   agent.id, conversation_path(), agent.mode, event);
	json_object_update(input, more);
	ask_all(entries, event, js_get(use, "name"), input, use ? js_get(use, "id") : json_string_value(made), &asked);
	while ((q = LIST_TOP(&asked, struct query, mark))) {
		list_del(&q->mark);
		query_wait(q);
		read_answer(o, q, event);
		query_free(q);
	}
	return o;
}

static bool is_valid(const json_t *entry) {
	json_t *matcher = json_object_get(entry, "matcher"), *ids = json_object_get(entry, "hookCallbackIds");
	if ((matcher && !json_is_string(matcher) && !json_is_null(matcher)) || !json_is_array(ids)) return false;
	JS_EACH (id, ids)
		if (!json_is_string(id.v)) return false;
	return true;
}

bool callback_replace(json_t *hooks) {
	const char *event;
	json_t *entries;
	if (!json_is_object(hooks)) return false;
	json_object_foreach(hooks, event, entries) {
		if (!json_is_array(entries)) return false;
		JS_EACH (entry, entries)
			if (!is_valid(entry.v)) return false;
	}
	js_set(&table, json_incref(hooks));
	query_end_all("hook_callback", QUERY_REPLACED);
	return true;
}
