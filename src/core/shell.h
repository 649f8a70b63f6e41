/* SPDX-License-Identifier: MIT
 *
 * Finds the commands that a shell command line could run, for permission rules. Both functions err on the safe side:
 *
 * shell_is_plain(): is the line certainly one command with its arguments and nothing else? (for allow rules)
 * shell_commands(): which commands are certainly in it? (for deny and ask rules)
 *
 * The parser knows quotes, operators, redirections, substitutions, arithmetic, here-documents, comments, keywords,
 * assignments, and the programs of program.h (wrappers, scripts in arguments). It does not execute anything. If it
 * could misread a part (here-documents, `case`, quotes inside ${...}, unbalanced quotes), it also parses the text with
 * all quotes removed. Anything not understood completely makes the result `unsure`. Files run by the line are not read,
 * except for text that the line itself writes to them. Sources: bash(1), POSIX.1-2017 XCU 2.
 */
#pragma once

#include "base/buf.h"
#include "core/glob.h"
#include "core/settings.h"
#include "core/values.h"

struct shell_commands {
	struct words texts; /* single-spaced, without quotes; GLOB_UNKNOWN for parts computed by a shell */
	bool unsure;        /* other commands than these may run */
	bool others;        /* one of the programs may run its arguments */
	struct buf said;    /* all words of the line, for shell_says() */

	/* while reading */
	struct words written, runs; /* files written by the line; programs, and arguments that may be programs */
	bool writes_any, sets_path; /* also to unknown names; where programs are searched */
	struct values values;
};

#define SHELL_TEXT_MAX ((size_t)64 * 1024)
#define SHELL_COMMANDS_MAX 512
#define SHELL_COMMAND_MAX 2048 /* longer ones are cut, with a GLOB_UNKNOWN at the end */

/* Return true for one simple command: letters, digits and harmless punctuation, spaces, closed quotes without
 * expansions. */
bool shell_is_plain(const char *text);

/* False without memory. The caller frees out in any case. */
bool shell_commands(const char *text, struct shell_commands *out);
void shell_commands_free(struct shell_commands *c);

/* Return true if the name is a part of the line, or may be one, other than (without `heads`) as a command among the
 * texts. */
bool shell_says(const struct shell_commands *c, const char *name, size_t n, bool heads);
