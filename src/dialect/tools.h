/* SPDX-License-Identifier: MIT
 *
 * The tools of an agent CLI: which of them run programs, access files or the network, and which member of their input
 * is the subject. Each dialect has a table; docs/tools.md prints that of Claude Code with the findings in the CLIs.
 *
 * A tool with several rows has several uses. A tool without a row has none that a rule can match. An unknown tool
 * (tools_know() is false) may be a future one: rules.c then asks if its input looks like one of these. Sources: the
 * binaries and the system/init lines of the CLIs 2.1.197 and 2.1.332.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The content of the member. */
enum tool_subject {
	TOOL_COMMAND, /* a line for a POSIX shell */
	TOOL_FOREIGN, /* a line for another shell */
	TOOL_CODE,    /* a program in any language */
	TOOL_PATH,    /* one or several files; also in nested lists and objects */
	TOOL_SEARCH,  /* an optional path, and everything below it */
	TOOL_URL,
	TOOL_NAME,
};

struct tool_use {
	const char *tool;
	const char *rule; /* the tool name in rules that also match it */
	enum tool_subject subject;
	const char *members[3]; /* the first one present is used */
	bool always;            /* the tool has no other use, and always this one: allow patterns need it */
};

/* A family of tools: a rule with this name may also be meant for an unknown tool with such a subject. */
struct tool_family {
	const char *rule;
	enum tool_subject subject; /* TOOL_CODE, TOOL_PATH or TOOL_URL */
};

/* What rules know of the tools of a dialect. All of it is static. */
struct dialect_tools {
	const struct tool_use *uses;
	size_t n_uses;
	const char *const *others; /* tools without a use */
	size_t n_others;
	const struct tool_family *families;
	size_t n_families;
	const char *const *choices; /* tools whose answer is the person's choice; ends with NULL */
	const char *unboxed;        /* the member of an input, true, that asks to leave the sandbox */
	const char *glob;           /* the TOOL_SEARCH whose `pattern` can lead elsewhere */
	/* Error texts for rules: no tool of this name has patterns; a pattern for TOOL_URL without a domain. */
	const char *no_pattern, *no_domain;
};

/* Each takes t NULL: no tool is known. */
/* Return the n rows of a tool, adjacent; NULL: none. */
const struct tool_use *tools_uses(const struct dialect_tools *t, const char *tool, size_t length, size_t *n);
bool tools_know(const struct dialect_tools *t, const char *tool);
bool tools_choose(const struct dialect_tools *t, const char *tool); /* the answer is the person's choice */
