/* SPDX-License-Identifier: MIT */
#include "core/rules.h"

#include "base/buf.h"
#include "base/str.h"

#include <string.h>

/* A rule in its two parts, both views into it. */
struct rule {
	const char *tool;
	size_t n_tool;
	const char *pattern; /* NULL: none */
	size_t n_pattern;
};

enum match { MATCH_NO, MATCH_MAYBE, MATCH_YES };
enum side { SIDE_ALLOW, SIDE_DENY };

static bool is_tool_name(const char *p, size_t n) {
	for (size_t i = 0; i < n; i++) {
		bool letter = (p[i] >= 'A' && p[i] <= 'Z') || (p[i] >= 'a' && p[i] <= 'z') || (p[i] >= '0' && p[i] <= '9');
		bool star = p[i] == '*' && i == n - 1 && (n == 1 || (n > 5 && memcmp(p, "mcp__", 5) == 0));
		if (!letter && !star && p[i] != '_' && p[i] != '-' && p[i] != '.') return false;
	}
	return n > 0;
}

static bool parse_rule(const char *text, struct rule *r) {
	size_t n = strlen(text);
	const char *open = strchr(text, '(');
	*r = (struct rule){.tool = text, .n_tool = open ? (size_t)(open - text) : n};
	if (!is_tool_name(r->tool, r->n_tool)) return false;
	if (!open) return true;
	if (text[n - 1] != ')') return false;
	r->pattern = open + 1;
	r->n_pattern = n - r->n_tool - 2;
	return true;
}

static bool names(const struct rule *r, const char *tool) {
	if (r->tool[r->n_tool - 1] == '*') return strncmp(r->tool, tool, r->n_tool - 1) == 0;
	if (strncmp(r->tool, tool, r->n_tool) != 0) return false;
	const char *rest = tool + r->n_tool;
	if (!*rest) return true;
	/* mcp__server is every tool of the server */
	bool server = r->n_tool > 5 && memcmp(r->tool, "mcp__", 5) == 0 && !memmem(r->tool + 5, r->n_tool - 5, "__", 2);
	return server && strncmp(rest, "__", 2) == 0;
}

/* First form: a rule with a pattern is never sure to match. */
static enum match judge_rule(const char *text, const char *tool, struct span input, enum side side) {
	struct rule r;
	(void)input;
	(void)side;
	if (!parse_rule(text, &r) || !names(&r, tool)) return MATCH_NO;
	return r.pattern ? MATCH_MAYBE : MATCH_YES;
}

static const char *first_match(const struct words *rules, const char *tool, struct span input, enum side side,
							   enum match *match) {
	const char *maybe = NULL;
	*match = MATCH_NO;
	for (size_t i = 0; i < rules->n; i++) {
		enum match m = tool ? judge_rule(rules->v[i], tool, input, side) : side == SIDE_DENY ? MATCH_YES : MATCH_NO;
		if (m == MATCH_YES) {
			*match = MATCH_YES;
			return rules->v[i];
		}
		if (m == MATCH_MAYBE && !maybe) maybe = rules->v[i];
	}
	if (maybe) *match = MATCH_MAYBE;
	return maybe;
}

static bool is_persons_choice(const char *tool) {
	return strcmp(tool, "AskUserQuestion") == 0 || strcmp(tool, "ExitPlanMode") == 0;
}

enum rule_verdict rules_judge(const struct profile *p, const char *tool, struct span input, const char **rule) {
	const char *unused, *by;
	enum match match;
	if (!rule) rule = &unused;
	*rule = by = first_match(&p->deny_tools, tool, input, SIDE_DENY, &match);
	if (match == MATCH_YES) return RULE_DENY;
	const char *ask = first_match(&p->ask_tools, tool, input, SIDE_DENY, &match);
	if (by || ask) {
		*rule = by ? by : ask;
		return RULE_ASK;
	}
	if (!tool || is_persons_choice(tool)) return RULE_NONE;
	by = first_match(&p->allow_tools, tool, input, SIDE_ALLOW, &match);
	*rule = match == MATCH_YES ? by : NULL;
	return match == MATCH_YES ? RULE_ALLOW : RULE_NONE;
}

const char *rules_check(const char *rule, bool for_allow) {
	struct rule r;
	(void)for_allow;
	if (parse_rule(rule, &r)) return NULL;
	return "write a tool's name, such as Bash or mcp__server, or TOOL(PATTERN), such as Bash(npm run:*)";
}
