/* SPDX-License-Identifier: MIT */
#include "fakeagent/permission.h"

#include "base/str.h"
#include "fakeagent/frames.h"
#include "fakeagent/query.h"
#include "fakeagent/toolserver.h"

json_t *permission_request(const char *name, json_t *input, const char *tool_use_id, const char *reason) {
	const char *description = js_get(input, "description");
	bool always = policy_always_asks(name);
	if (!description) description = js_get(input, "command");
	return js_make("{subtype:can_use_tool,tool_name:%s,display_name:%s,input:%O,tool_use_id:%s,description:%z,"
				   "blocked_path:%z,requires_user_interaction:%o,permission_suggestions:%o,decision_reason:%s,"
				   "decision_reason_type:%s,mcp_server:%o}",
				   name, name, input, tool_use_id, description, js_get(input, "file_path"), always ? json_true() : NULL,
				   always ? NULL : policy_suggest(name, input), reason ? reason : "This tool needs approval",
				   reason ? "hook" : "other", toolserver_source(name));
}

static void refuse(struct permission *p, const char *text) {
	p->allowed = false;
	js_replace(&p->refusal, text);
}

static void deny(struct permission *p, const json_t *use, const char *text) {
	js_add(agent.denials, js_make("{tool_name:%O,tool_use_id:%O,tool_input:%O}", json_object_get(use, "name"),
								  json_object_get(use, "id"), json_object_get(use, "input")));
	refuse(p, text);
}

/* Members that invalidate an answer by a wrong type; others are ignored. */
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
		JS_EACH (update, json_object_get(answer, "updatedPermissions"))
			if (policy_update(update.v)) frames_mode();
	} else if (js_is(answer, "behavior", "deny") && message && !spoiled) {
		deny(p, use, message);
		p->interrupt = js_true(answer, "interrupt");
	} else {
		deny(p, use, "Tool permission request failed: invalid permission result");
	}
}

static void deny_alone(struct permission *p, const json_t *use, const char *type) {
	const char *name = js_get(use, "name");
	json_t *id = json_object_get(use, "id");
	_cleanup_free_ char *text = str_printf("Permission to use %s has been denied.", name);
	deny(p, use, text);
	frames_emit(
		"{type:system,subtype:permission_denied,tool_name:%s,tool_use_id:%O,decision_reason_type:%s,message:%s}", name,
		id, type, text);
}

static void ask_client(struct permission *p, const json_t *use, const char *reason) {
	if (!agent.ask_stdio) {
		deny_alone(p, use, "mode");
		return;
	}
	frames_state("requires_action");
	struct query *q = query_send(permission_request(js_get(use, "name"), p->input, js_get(use, "id"), reason), -1);
	query_wait(q);
	if (agent.aborted != ABORT_SIGNAL) frames_state("running");
	const char *error = query_error(q);
	if (q->end == QUERY_ANSWERED && error) {
		_cleanup_free_ char *text = str_printf("Tool permission request failed: %s", error);
		deny(p, use, text);
	} else if (q->end == QUERY_ANSWERED) {
		take_answer(p, use, query_payload(q));
	} else if (q->end == QUERY_CLOSED) {
		refuse(p, agent.old ? "Tool permission request failed: Error: Stream closed"
							: "Tool permission stream closed before response received");
	} else {
		refuse(p, PERMISSION_REJECTED);
		p->aborted = true;
	}
	query_free(q);
}

/* Hooks may answer in place of the client. */
static bool ask_hooks(struct permission *p, const json_t *use) {
	static const char denied[] = "Denied by a PermissionRequest hook";
	struct callback_outcome o;
	const char *name = js_get(use, "name");
	callback_run("PermissionRequest", name,
				 js_make("{tool_name:%s,tool_input:%O,permission_suggestions:%o}", name, p->input,
						 policy_suggest(name, p->input)),
				 js_get(use, "id"), &o);
	bool answered = json_is_object(o.permission), decided = answered || o.decision == POLICY_DENY;
	if (answered) {
		if (js_is(o.permission, "behavior", "deny") && !js_get(o.permission, "message"))
			js_put_text(o.permission, "message", denied);
		take_answer(p, use, o.permission);
	} else if (decided) {
		deny(p, use, o.reason ? o.reason : denied);
	}
	callback_free(&o);
	return decided;
}

void permission_decide(const json_t *use, const struct callback_outcome *before, struct permission *p) {
	const char *name = js_get(use, "name"), *why;
	*p = (struct permission){.input = json_incref(json_object_get(use, "input"))};
	if (json_is_object(before->input)) js_set(&p->input, json_incref(before->input));
	enum policy verdict = policy_judge(name, p->input, &why);
	bool forced = before->decision == POLICY_ASK, allowed = before->decision == POLICY_ALLOW;
	if (verdict == POLICY_DENY)
		deny_alone(p, use, why);
	else if (!forced && (allowed || (verdict == POLICY_ALLOW && !policy_always_asks(name))))
		p->allowed = true;
	else if (!ask_hooks(p, use))
		ask_client(p, use, !forced ? NULL : before->reason ? before->reason : "a hook asks");
	if (agent.aborted && !p->allowed) p->aborted = true;
}

void permission_free(struct permission *p) {
	json_decref(p->input);
	free(p->refusal);
}
