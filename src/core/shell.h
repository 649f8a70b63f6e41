/* SPDX-License-Identifier: MIT
 *
 * What a shell command line could run, for permission rules. Two questions, each answered on its safe side:
 *
 * shell_is_plain(): is this one command with its arguments and nothing else, certainly? (before a rule allows it)
 * shell_commands(): which commands can be found in it, at the least? (before a rule denies one of them)
 *
 * This is no shell. It knows quotes, operators, redirections, substitutions, comments, keywords, assignments, wrappers
 * (sudo, env, xargs, timeout, ...) and scripts in arguments (sh -c, eval); where it could lose its way (here-documents,
 * `case`, quotes inside ${...}, quotes that do not close) it also looks at the text with all quotes taken away. What a
 * program does with its input or a decoded text is out of its sight. Sources: bash(1), POSIX.1-2017 XCU 2.
 */
#pragma once

#include "core/glob.h"
#include "core/settings.h"

struct shell_commands {
	struct words texts; /* words with one blank between them, without quotes; GLOB_UNKNOWN for what a shell computes */
	bool doubtful;      /* there may be more: quotes that do not close, too deep, too long, too many */
};

#define SHELL_TEXT_MAX ((size_t)64 * 1024)
#define SHELL_COMMANDS_MAX 512
#define SHELL_COMMAND_MAX 2048 /* longer ones are cut, with a GLOB_UNKNOWN at the end */

/* One simple command: letters, digits and harmless punctuation, blanks, closed quotes without expansions in them. */
bool shell_is_plain(const char *text);

/* False without memory. The caller frees out in any case. */
bool shell_commands(const char *text, struct shell_commands *out);
void shell_commands_free(struct shell_commands *c);
