/* SPDX-License-Identifier: MIT
 *
 * Judges a tool call by a profile's deny_tools, ask_tools and allow_tools: rules in the syntax of the CLI.
 *
 * Order: deny, then ask, then allow; the first list with a match decides. No match: RULE_NONE, an approver
 * is asked.
 *
 * Rules:
 *   Bash                         every call of that tool
 *   mcp__server                  every tool of that server, like mcp__server__*; mcp__server__tool is one tool
 *   Bash(git status)             that command, exactly
 *   Bash(npm run:*)              a command that begins with these words; Bash(npm run *) is the same; any other * in a
 *                                command stands for any text
 *   Read(/path/ **)              (written without the space) Read, Grep, Glob; the path in the input. * stays within a
 *                                directory, ** does not; // at the start is /, ~/ is $HOME/; any other pattern
 *                                without a leading / matches at any depth, and only in deny and ask rules
 *   Edit(/path/ **)              Edit, Write, MultiEdit, NotebookEdit
 *   WebFetch(domain:example.com) the host of the url; *.example.com its subdomains
 *   Task(Explore), Skill(name)   the kind of agent, the skill
 *
 * Allow and deny are deliberately not symmetric. An allow rule must be certain: a Bash pattern never allows a command
 * with syntax that could make a shell run something else (operators, redirections, expansions, newlines, unbalanced
 * quotes), and no pattern allows an input that cannot be decoded or a path with `..`; links in a path are followed and
 * both names must match. A deny or ask rule must not be evaded: it is matched against every command found in the line
 * (shell.h), with quotes removed; either name of a path is enough; if the input cannot be decoded, a rule with a
 * pattern matches; if a deny rule is undecided (`$CMD -rf`), an approver is asked. A shell line can hide a command from
 * any such search, so deny rules are no security boundary; plenum.conf(5) says so.
 *
 * No rule allows AskUserQuestion and ExitPlanMode: the answer is the person's choice (cases C45). No rule allows a Bash
 * call that asks to leave the sandbox (dangerouslyDisableSandbox).
 */
#pragma once

#include "base/buf.h"
#include "core/settings.h"
#include "wire/scan.h"

enum rule_verdict { RULE_NONE, RULE_ALLOW, RULE_DENY, RULE_ASK };

/* tool: the request's tool_name, decoded; NULL if it cannot be decoded (then the first deny rule denies, the first ask
 * rule asks). input: the request's `input`, a raw JSON span. *rule (may be NULL) is the deciding rule, owned by the
 * profile, or NULL. */
enum rule_verdict rules_judge(const struct profile *p, const char *tool, struct span input, const char **rule);

/* The same by an errand, for rules that need links of paths resolved: file systems may block. */
#define RULES_ERRAND "rules"
int rules_errand(void);
/* Return true if an errand is needed: a rule with a path may match this call. */
bool rules_need_errand(const struct profile *p, const char *tool, struct span input);
/* Return the directory of the first path, to recognize blocked mounts; the caller frees. */
char *rules_place(const struct profile *p, const char *tool, struct span input);
void rules_ask(struct buf *request, const struct profile *p, const char *tool, struct span input);
/* Return the verdict from the errand's answer. Without an answer no link is followed, and the result is uncertain: a
 * deny rule then asks, and an allow rule allows nothing. */
enum rule_verdict rules_answer(const struct profile *p, const char *tool, struct span input, struct span answer,
							   const char **rule);

/* Return NULL for a well-formed rule, else a static sentence with the error (for config.c). */
const char *rules_check(const struct dialect_tools *t, const char *rule, bool for_allow);

/* Append the rules of a line, separated by spaces or commas; false without memory. */
bool rules_split(const char *text, struct words *out);
