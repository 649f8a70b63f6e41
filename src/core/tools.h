/* SPDX-License-Identifier: MIT
 *
 * The tools of the agent CLIs: which of them run programs, read and write files or reach the network, and which member
 * of their input says so. One table for all; docs/tools.md prints it with what was found in the CLIs.
 *
 * A tool with several rows does several things. A tool without a row does none of these, as far as a rule can say.
 * A tool that is not known at all (tools_know()) is a future one: rules.c then asks where its input looks like one of
 * these. Sources: the binaries and the system/init lines of the CLIs 2.1.197 and 2.1.332.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* What the member holds. */
enum tool_subject {
	TOOL_COMMAND, /* a line for a POSIX shell */
	TOOL_FOREIGN, /* a line for another shell */
	TOOL_CODE,    /* a program in some language */
	TOOL_PATH,    /* a file or several; nested lists and objects are looked through */
	TOOL_SEARCH,  /* a path that may be left out, and what lies below it */
	TOOL_URL,
	TOOL_NAME,
};

struct tool_use {
	const char *tool;
	const char *rule; /* whose patterns it obeys, besides those of its own name */
	enum tool_subject subject;
	const char *members[3]; /* the first that is there */
	bool always;            /* the tool does nothing else, and not without it: allow patterns are for these alone */
};

/* The n rows of a tool, side by side; NULL: none. */
const struct tool_use *tools_uses(const char *tool, size_t length, size_t *n);
bool tools_know(const char *tool);
/* How many rows there are, and how many tools without one. */
size_t tools_count(void);
size_t tools_others(void);
