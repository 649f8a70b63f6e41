/* SPDX-License-Identifier: MIT */
#include "ctl/answer.h"

#include <string.h>

int answer_send(struct plenum *p, const char *id, json_t *body) {
	_cleanup_json_ json_t *line = json_pack("{s:s,s:{s:s,s:s,s:o}}", "type", "control_response", "response", "subtype",
											"success", "request_id", id, "response", body);
	_cleanup_free_ char *text = line ? json_dumps(line, JSON_COMPACT) : NULL;
	if (!text) {
		ctl_say("the answer is not valid UTF-8");
		return CTL_USAGE;
	}
	enum plenum_result r = plenum_send(p, text, strlen(text));
	return r == PLENUM_OK ? CTL_OK : ctl_failed(p, r);
}

/* The permissions that the child proposes for "always"; without proposals, the tool for this session. */
static json_t *remember(struct span request) {
	struct span suggestions = span_member(request, "permission_suggestions");
	json_t *list = span_is_array(suggestions) ? json_loadb(suggestions.p, suggestions.n, JSON_ALLOW_NUL, NULL) : NULL;
	if (json_array_size(list)) return list;
	json_decref(list);
	_cleanup_free_ char *tool = span_dup(span_member(request, "tool_name"), NULL);
	return json_pack("[{s:s,s:[{s:s}],s:s,s:s}]", "type", "addRules", "rules", "toolName", tool ? tool : "", "behavior",
					 "allow", "destination", "session");
}

/* These tools ask the user: the answer is in the input, and a rule that allows them would answer in the user's place.
 */
const char *answer_lacks(struct span request, const struct decision *d) {
	struct span tool = span_member(request, "tool_name");
	bool question = span_equals(tool, "AskUserQuestion"), plan = span_equals(tool, "ExitPlanMode");
	if (!d->allow || !(question || plan)) return NULL;
	if (d->always) return "this must be asked each time, it cannot be allowed for always";
	return !question || d->input
			   ? NULL
			   : "this is a question: choose in `plenumctl chat`, or give its input with the `answers` by --input";
}

/* Each kind of request wants a body of its own (protocol-facts 4.2). NULL: none that we know. */
json_t *answer_body(struct span request, const struct decision *d) {
	struct span kind = span_member(request, "subtype");
	if (span_equals(kind, "elicitation")) return json_pack("{s:s}", "action", d->allow ? "accept" : "decline");
	if (span_equals(kind, "request_user_dialog")) return d->allow ? NULL : json_pack("{s:s}", "behavior", "cancelled");
	if (!span_equals(kind, "can_use_tool")) return NULL;
	if (!d->allow) {
		json_t *body = json_pack("{s:s,s:s}", "behavior", "deny", "message", d->message);
		if (d->interrupt) json_object_set_new(body, "interrupt", json_true());
		return body;
	}
	json_t *body = json_pack("{s:s}", "behavior", "allow");
	if (d->input) json_object_set(body, "updatedInput", d->input);
	if (d->always) json_object_set_new(body, "updatedPermissions", remember(request));
	return body;
}
