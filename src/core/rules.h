/* SPDX-License-Identifier: MIT
 *
 * Judges a tool call by a profile's deny_tools, ask_tools and allow_tools: rules as the CLI writes them.
 *
 * Order: deny, then ask, then allow; the first list with a match decides. No match: RULE_NONE, somebody is asked.
 *
 * Rules:
 *   Bash                         every call of that tool
 *   mcp__server                  every tool of that server, as mcp__server__* is; mcp__server__tool is one
 *   Bash(git status)             that command, exactly
 *   Bash(npm run:*)              a command that begins with these words; Bash(npm run *) is the same; any other * in a
 *                                command stands for any text
 *   Read(/path/ **)              (written without the blank) Read, Grep, Glob; the path in the input. * stays within a
 *                                folder, ** does not; // in front is /, ~/ is $HOME/; a pattern that does not begin
 *                                with / is found at any depth and is for deny and ask alone
 *   Edit(/path/ **)              Edit, Write, MultiEdit, NotebookEdit
 *   WebFetch(domain:example.com) the host of the url; *.example.com its subdomains
 *   Task(Explore), Skill(name)   the kind of agent, the skill
 *
 * The two sides are not symmetric, and that is the point. An allow rule must be sure: a Bash pattern never allows a
 * command with anything in it by which a shell could do something else (operators, redirections, expansions, newlines,
 * unbalanced quotes), nor does any pattern allow an input that cannot be decoded or a path with `..`; links in a path
 * are followed and both names must match. A deny or ask rule must not be got around: it is held against every command
 * that can be found in the line (shell.h), with quotes removed; either name of a path is enough; where the input cannot
 * be decoded, a rule with a pattern counts as a match; where a deny rule cannot be decided (`$CMD -rf`), a person is
 * asked. A shell line can hide a command from any such search: deny rules are a fence, not a wall; plenum.conf(5) says
 * so.
 *
 * AskUserQuestion and ExitPlanMode are never allowed by a rule: the answer is the person's choice (CASES C45). A Bash
 * call that asks to leave the sandbox (dangerouslyDisableSandbox) is not either.
 */
#pragma once

#include "base/buf.h"
#include "core/settings.h"
#include "wire/scan.h"

enum rule_verdict { RULE_NONE, RULE_ALLOW, RULE_DENY, RULE_ASK };

/* tool: the request's tool_name, decoded; NULL where it could not be decoded (then the first deny rule denies, the
 * first ask rule asks). input: the request's `input`, a raw JSON span. *rule (may be NULL) is the rule that decided,
 * owned by the profile, or NULL. */
enum rule_verdict rules_judge(const struct profile *p, const char *tool, struct span input, const char **rule);

/* The same by an errand, where links of paths are to be followed: file systems may not answer. */
#define RULES_ERRAND "rules"
int rules_errand(void);
/* Is that needed: does a rule with a path speak of this call? */
bool rules_need_errand(const struct profile *p, const char *tool, struct span input);
/* The directory of its first path, to tell mounts that do not answer; the caller's. */
char *rules_place(const char *tool, struct span input);
void rules_ask(struct buf *request, const struct profile *p, const char *tool, struct span input);
/* The verdict by what it answered. Without an answer no link is followed: what depends on one is uncertain, so that a
 * deny rule has it asked and nothing is allowed by it. */
enum rule_verdict rules_answer(const struct profile *p, const char *tool, struct span input, struct span answer,
							   const char **rule);

/* NULL: the rule is well-formed. Else a static sentence that says what is wrong (for config.c). */
const char *rules_check(const char *rule, bool for_allow);

/* Appends the rules that stand in a line, with blanks or commas between them; false without memory. */
bool rules_split(const char *text, struct words *out);
