/* SPDX-License-Identifier: MIT */
#include "fakeagent/callback.h"

#include "fakeagent/conversation.h"
#include "fakeagent/out.h"
#include "fakeagent/query.h"

static json_t *table;

/* ---- asking ---------------------------------------------------------------------------------------------------- */

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

static int64_t timeout_of(const json_t *entry, const char *event) {
	json_t *t = json_object_get(entry, "timeout");
	double s = strcmp(event, "UserPromptSubmit") == 0 ? 30 : 600;
	if (json_is_number(t) && json_number_value(t) > 0) s = json_number_value(t);
	return (int64_t)(s * 1000);
}

static void ask_all(const json_t *entries, const char *event, const char *match, json_t *input, const char *id,
					struct list *asked) {
	JS_EACH (entry, entries) {
		if (!is_matched(js_get(entry.v, "matcher"), match)) continue;
		JS_EACH (callback, json_object_get(entry.v, "hookCallbackIds")) {
			struct query *q = query_send(
				js_make("{subtype:hook_callback,callback_id:%O,input:%O,tool_use_id:%s}", callback.v, input, id),
				timeout_of(entry.v, event));
			q->entry = entry.v;
			list_add_tail(asked, &q->mark);
		}
	}
}

/* ---- combining ------------------------------------------------------------------------------------------------- */

static void decide(struct callback_outcome *o, enum policy d, const char *reason) {
	if (d <= o->decision) return;
	o->decision = d;
	js_replace(&o->reason, reason);
}

static void fail(struct callback_outcome *o, const struct query *q, const char *why) {
	if (js_is(q->entry, "onFailure", "block"))
		decide(o, POLICY_DENY, why);
	else
		out_warning("hook_callback_failed", js_printf("A hook callback failed: %s", why));
}

static void read_specific(struct callback_outcome *o, const struct query *q, const char *event, const json_t *s) {
	static const char *const names[] = {"", "allow", "ask", "defer", "deny"};
	const char *reason = js_get(s, "permissionDecisionReason");
	json_t *input = json_object_get(s, "updatedInput"), *context = json_object_get(s, "additionalContext");
	if (!json_is_object(s)) return;
	if (!js_is(s, "hookEventName", event)) {
		fail(o, q, "unknown hookEventName");
		return;
	}
	for (enum policy d = POLICY_ALLOW; d <= POLICY_DENY; d++)
		if (js_is(s, "permissionDecision", names[d])) decide(o, d, reason);
	if (json_is_object(input)) js_set(&o->input, json_incref(input));
	if (json_is_string(context)) json_array_append(o->context, context);
	if (!o->permission) o->permission = json_incref(json_object_get(s, "decision"));
}

static void read_output(struct callback_outcome *o, const struct query *q, const char *event, const json_t *out) {
	if (js_is(out, "decision", "block")) decide(o, POLICY_DENY, js_get(out, "reason"));
	if (js_is(out, "decision", "approve")) decide(o, POLICY_ALLOW, js_get(out, "reason"));
	if (json_is_false(json_object_get(out, "continue"))) {
		o->stop = true;
		js_replace(&o->stop_reason, js_get(out, "stopReason"));
	}
	read_specific(o, q, event, json_object_get(out, "hookSpecificOutput"));
}

static void read_answer(struct callback_outcome *o, const struct query *q, const char *event) {
	static const char *const why[] = {
		[QUERY_CANCELLED] = "the turn was interrupted",
		[QUERY_TIMEOUT] = "the hook callback did not answer in time",
		[QUERY_CLOSED] = "the stream to the host is closed",
		[QUERY_REPLACED] =
			"The SDK host reconnected before its hook answered, so this tool call was not executed. No one "
			"denied it; retry the same tool call.",
	};
	/* Events that must fail closed without an answer. */
	bool guard = js_same(event, "PreToolUse") || js_same(event, "UserPromptSubmit") ||
				 js_same(event, "PermissionRequest");
	json_t *payload = query_payload(q);
	if (q->end != QUERY_ANSWERED) {
		if (guard) decide(o, POLICY_DENY, why[q->end]);
	} else if (query_error(q)) {
		fail(o, q, query_error(q));
	} else if (payload && !json_is_object(payload)) {
		fail(o, q, "the answer is no object");
	} else {
		read_output(o, q, event, payload);
	}
}

void callback_run(const char *event, const char *match, json_t *extra, const char *tool_use_id,
				  struct callback_outcome *o) {
	struct list asked = LIST_SELF(asked);
	struct query *q;
	_cleanup_json_ json_t *entries = json_incref(json_object_get(table, event)), *more = extra, *input = NULL,
						  *made = js_uuid();
	*o = (struct callback_outcome){.context = js_make("[]")};
	if (!json_array_size(entries)) return;
	input = js_make("{session_id:%s,transcript_path:%o,cwd:%w,permission_mode:%s,hook_event_name:%s}", agent.id,
					conversation_path(), agent.mode, event);
	json_object_update(input, more);
	ask_all(entries, event, match, input, tool_use_id ? tool_use_id : json_string_value(made), &asked);
	while ((q = LIST_TOP(&asked, struct query, mark))) {
		list_del(&q->mark);
		query_wait(q);
		read_answer(o, q, event);
		query_free(q);
	}
}

void callback_free(struct callback_outcome *o) {
	free(o->reason);
	free(o->stop_reason);
	json_decref(o->input);
	json_decref(o->permission);
	json_decref(o->context);
}

void callback_notify(const char *event, const char *match, json_t *extra, const char *tool_use_id) {
	struct callback_outcome o;
	callback_run(event, match, extra, tool_use_id, &o);
	callback_free(&o);
}

/* ---- the table ------------------------------------------------------------------------------------------------- */

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
	query_end_hooks();
	return true;
}
