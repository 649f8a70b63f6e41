/* SPDX-License-Identifier: MIT
 *
 * What a program does with its arguments: the knowledge about single programs that the reader of shell lines (shell.h)
 * needs. A program that is not in the tables may run what its arguments name; the reader then looks for the denied name
 * in them. So a table entry never is what stops an evasion: it makes the answer more exact, in one direction (`runs`:
 * its arguments are commands, a rule can deny instead of ask) or the other (`data`: they are not, nobody is asked).
 * Only `data` must be right: a program that can run anything its arguments or options name does not belong there.
 *
 * Sources: bash(1) and the manual pages of the programs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct program {
	bool data;   /* runs no other program, whatever its arguments are */
	bool runs;   /* runs a program named in its arguments, at any position */
	bool lines;  /* an argument may be a whole line for a shell */
	bool reads;  /* runs text from its input or its arguments: any word of the line may be a command */
	bool unsure; /* what it runs cannot be told from its arguments */
};

/* words[0] is the program, with or without its folder; the words are free of quotes and hold GLOB_UNKNOWN (glob.h) for
 * what a shell computes. */
struct program program_of(char *const *words, size_t n);

/* The name without the folder, within the word. */
const char *program_base(const char *word);
