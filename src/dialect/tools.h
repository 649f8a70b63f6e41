/* SPDX-License-Identifier: MIT
 *
 * The tools of the agent CLIs: which of them run programs, access files or the network, and which member of their input
 * is the subject. One table for all; docs/tools.md prints it with the findings in the CLIs.
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

/* Return the n rows of a tool, adjacent; NULL: none. */
const struct tool_use *tools_uses(const char *tool, size_t length, size_t *n);
bool tools_know(const char *tool);
/* Return the number of rows, and of tools without one. */
size_t tools_count(void);
size_t tools_others(void);
