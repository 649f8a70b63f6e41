/* SPDX-License-Identifier: MIT
 *
 * What a shell command line could run, for permission rules. Two questions, each answered on its safe side:
 *
 * shell_is_plain(): is this one command with its arguments and nothing else, certainly? (before a rule allows it)
 * shell_commands(): which commands can be found in it, at the least? (before a rule denies one of them)
 *
 * This is no shell. It knows quotes, operators, redirections, substitutions, arithmetic, here-documents, comments,
 * keywords, assignments, and of programs what program.h says of them (wrappers, scripts in arguments). Where it could
 * lose its way (here-documents, `case`, quotes inside ${...}, quotes that do not close) it also looks at the text with
 * all quotes taken away. Everything that it does not understand completely makes the answer `unsure`. What a file holds
 * that the line runs is out of its sight, unless the line itself writes that file. Sources: bash(1), POSIX.1-2017
 * XCU 2.
 */
#pragma once

#include "base/buf.h"
#include "core/glob.h"
#include "core/settings.h"

struct shell_commands {
	struct words texts; /* words with one space between them, without quotes; GLOB_UNKNOWN for what a shell computes */
	bool unsure;        /* other commands than these may run */
	bool others;        /* a program is among them that may run what its arguments name */
	struct buf said;    /* all words of the line, for shell_says() */

	/* while reading */
	struct words written;      /* files that the line writes */
	bool computes, odd_values; /* arithmetic with names; values that are no numbers */
};

#define SHELL_TEXT_MAX ((size_t)64 * 1024)
#define SHELL_COMMANDS_MAX 512
#define SHELL_COMMAND_MAX 2048 /* longer ones are cut, with a GLOB_UNKNOWN at the end */

/* One simple command: letters, digits and harmless punctuation, spaces, closed quotes without expansions in them. */
bool shell_is_plain(const char *text);

/* False without memory. The caller frees out in any case. */
bool shell_commands(const char *text, struct shell_commands *out);
void shell_commands_free(struct shell_commands *c);

/* Whether the name is a part of the line, or may be one, other than (without `heads`) as a command among the texts. */
bool shell_says(const struct shell_commands *c, const char *name, size_t n, bool heads);
