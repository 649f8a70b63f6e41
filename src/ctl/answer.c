/* SPDX-License-Identifier: MIT */
#include "ctl/answer.h"

#include "ctl/text.h"

#include <string.h>

enum plenum_result answer_post(struct plenum *p, const char *id, json_t *body) {
	_cleanup_json_ json_t *line = json_pack("{s:s,s:{s:s,s:s,s:o}}", "type", "control_response", "response", "subtype",
											"success", "request_id", id, "response", body);
	_cleanup_free_ char *text = line ? json_dumps(line, JSON_COMPACT) : NULL;
	return text ? plenum_send(p, text, strlen(text)) : PLENUM_REFUSED;
}

int answer_send(struct plenum *p, const char *id, json_t *body) {
	enum plenum_result r = answer_post(p, id, body);
	if (r == PLENUM_OK) return CTL_OK;
	if (r != PLENUM_REFUSED) return ctl_failed(p, r);
	ctl_say("the answer is not valid UTF-8");
	return CTL_USAGE;
}

/* --- Always ------------------------------------------------------------------------------------------------------- */

static struct span proposals(struct span request) {
	struct span list = span_member(request, "permission_suggestions");
	bool suppressed = span_is_true(span_member(request, "suppress_always_allow_rule"));
	return span_is_array(list) && !suppressed ? list : SPAN_NONE;
}

bool answer_can_remember(struct span request) {
	return span_is_object(span_element(proposals(request), 0));
}

static json_t *remember(struct span request) {
	struct span list = proposals(request);
	return list.p ? json_loadb(list.p, list.n, JSON_ALLOW_NUL, NULL) : NULL;
}

/* Where a proposal is remembered, in words. Source: docs/protocol-facts.md 4.2, `destination`. */
static void put_place(struct buf *b, struct span proposal) {
	static const struct {
		const char *name, *words;
	} places[] = {
		{"session", "until the agent's process ends"},
		{"localSettings", "in this project for you (.claude/settings.local.json)"},
		{"projectSettings", "in this project for all its users (.claude/settings.json)"},
		{"userSettings", "in all your projects (~/.claude/settings.json)"},
		{"cliArg", "as if given on the agent's command line"},
	};
	struct span place = span_member(proposal, "destination");
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (span_equals(place, places[i].name)) {
			buf_printf(b, ", %s", places[i].words);
			return;
		}
	_cleanup_free_ char *other = text_dup(place, NULL);
	if (other) buf_printf(b, ", in %s", other);
}

static void put_rules(struct buf *b, struct span proposal) {
	struct span rules = span_member(proposal, "rules"), rule;
	size_t at = 0;
	while (span_is_array(rules) && span_next(rules, &at, &rule)) {
		_cleanup_free_ char *tool = text_dup(span_member(rule, "toolName"), NULL);
		_cleanup_free_ char *content = text_dup(span_member(rule, "ruleContent"), NULL);
		buf_printf(b, " %s%s%s%s", tool ? tool : "?", content ? "(" : "", content ? content : "", content ? ")" : "");
	}
}

static void put_directories(struct buf *b, struct span proposal) {
	struct span list = span_member(proposal, "directories"), one;
	size_t at = 0;
	while (span_is_array(list) && span_next(list, &at, &one)) {
		_cleanup_free_ char *path = text_dup(one, NULL);
		buf_printf(b, " %s", path ? path : "?");
	}
}

void answer_put_remembered(struct buf *b, struct span proposal) {
	struct span type = span_member(proposal, "type");
	_cleanup_free_ char *behavior = text_dup(span_member(proposal, "behavior"), NULL);
	_cleanup_free_ char *mode = text_dup(span_member(proposal, "mode"), NULL);
	if (span_equals(type, "addRules")) {
		buf_printf(b, "%s", behavior ? behavior : "?");
		put_rules(b, proposal);
	} else if (span_equals(type, "replaceRules")) {
		buf_printf(b, "replace all rules of %s by", behavior ? behavior : "?");
		put_rules(b, proposal);
	} else if (span_equals(type, "removeRules")) {
		buf_printf(b, "remove the rule to %s", behavior ? behavior : "?");
		put_rules(b, proposal);
	} else if (span_equals(type, "setMode")) {
		buf_printf(b, "permission mode %s", mode ? mode : "?");
	} else if (span_equals(type, "addDirectories") || span_equals(type, "removeDirectories")) {
		buf_puts(b, span_equals(type, "addDirectories") ? "work in" : "no longer work in");
		put_directories(b, proposal);
	} else {
		buf_put(b, proposal.p, proposal.n);
	}
	put_place(b, proposal);
}

/* --- Bodies ------------------------------------------------------------------------------------------------------- */

/* These tools ask the user: the answer is in the input, and a rule that allows them would answer in the user's place.
 */
const char *answer_lacks(struct span request, const struct decision *d) {
	struct span tool = span_member(request, "tool_name");
	bool question = span_equals(tool, "AskUserQuestion"), plan = span_equals(tool, "ExitPlanMode");
	if (d->allow && d->always && (question || plan))
		return "this must be asked each time, it cannot be allowed for always";
	if (d->allow && d->always && !answer_can_remember(request))
		return "there is no always here: the agent proposes nothing to remember";
	if (!d->allow || !question) return NULL;
	return d->input ? NULL
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
