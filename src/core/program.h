/* SPDX-License-Identifier: MIT
 *
 * How programs use their arguments, for the parser of shell lines (shell.h). A program without an entry may run its
 * arguments; the parser then searches them for the denied name. An entry thus never prevents an evasion. It makes the
 * result more exact: `runs`: its arguments are commands, and a rule can deny instead of ask; `data`: they are not, and
 * no approver is asked. Only `data` must be right: a program that can run anything named in its arguments or options
 * must not have it.
 *
 * Sources: bash(1) and the manual pages of the programs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct program {
	bool data;   /* runs no other program, with any arguments */
	bool runs;   /* runs a program named in its arguments, at any position */
	bool lines;  /* an argument may be a whole line for a shell */
	bool reads;  /* runs text from its input or its arguments: any word of the line may be a command */
	bool unsure; /* the programs run are not visible in its arguments */
};

/* words[0] is the program, with or without its directory; the words have no quotes, and GLOB_UNKNOWN (glob.h) in place
 * of parts computed by a shell. */
struct program program_of(char *const *words, size_t n);

/* Return the name without the directory, within the word. */
const char *program_base(const char *word);
