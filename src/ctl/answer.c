/* SPDX-License-Identifier: MIT */
#include "ctl/answer.h"

#include "base/macros.h"
#include "ctl/form.h"
#include "ctl/text.h"

/* --- Always ------------------------------------------------------------------------------------------------------- */

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
		struct span list = span_member(proposal, "directories"), one;
		for (size_t at = 0; span_is_array(list) && span_next(list, &at, &one);) {
			_cleanup_free_ char *path = text_dup(one, NULL);
			buf_printf(b, " %s", path ? path : "?");
		}
	} else {
		buf_put(b, proposal.p, proposal.n);
	}
	put_place(b, proposal);
}

/* --- Answers ------------------------------------------------------------------------------------------------------ */

/* These tools ask the user: the answer is in the input, and a rule that allows them would answer in the user's place.
 */
const char *answer_lacks(const struct speech_ask *ask, const struct speech_decision *d) {
	bool question = span_equals(ask->tool, "AskUserQuestion"), plan = span_equals(ask->tool, "ExitPlanMode");
	bool form = ask->kind == SPEECH_ASKS_FORM;
	if (form && d->message) return "the program that asks for these values takes no reason";
	if (form && d->interrupt) return "to decline it does not end the turn (`plenumctl interrupt`)";
	if (form && d->allow && !d->input && form_needs_values(ask))
		return "it asks for values: enter them in `plenumctl chat`, or give them as NAME=VALUE";
	if (d->allow && d->always && (question || plan))
		return "this must be asked each time, it cannot be allowed for always";
	if (d->allow && d->always && !ask->can_remember)
		return "there is no always here: the agent proposes nothing to remember";
	if (ask->only_choices && !form && (d->message || d->input))
		return "this agent takes a choice alone, no reason and no other input";
	if (d->interrupt && !ask->ends_turn) return "a denial does not end the turn of this agent (`plenumctl interrupt`)";
	if (!d->allow || !question) return NULL;
	return d->input ? NULL
					: "this is a question: choose in `plenumctl chat`, or give its input with the `answers` by --input";
}

enum plenum_result answer_post(struct plenum *p, const struct speech *speech, const struct speech_ask *ask,
							   const struct speech_decision *d) {
	struct buf line = BUF_INIT(PLENUM_CLIENT_LINE_MAX);
	bool put = speech->put_answer(&line, ask, d) && !line.failed;
	enum plenum_result r = put ? plenum_send(p, line.data, line.len) : PLENUM_REFUSED;
	buf_free(&line);
	return r;
}
