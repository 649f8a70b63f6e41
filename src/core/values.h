/* SPDX-License-Identifier: MIT
 *
 * Which values of variables may a shell line evaluate a second time? Arithmetic evaluates the value of each name in it,
 * and a subscript in a value runs commands: x='a[$(cmd)]'; echo $((x)). The builtins that take names of variables do
 * the same (printf -v, test -v, read, unset), and any of their words may be such an option if it is computed.
 *
 * A value is a number, has names (`lettered`), or has other bytes (`odd`: it may have a subscript). It may have parts
 * from other variables (`edges`). Arithmetic is safe with numbers, a computed word of such a builtin with any value
 * that is not odd. The shell also sets variables to text: $_, BASH_REMATCH, REPLY. Sources: bash(1), sections
 * ARITHMETIC EVALUATION, Shell Variables and SHELL BUILTIN COMMANDS.
 */
#pragma once

#include "base/words.h"

#include <stdbool.h>
#include <stddef.h>

/* How a word of a line was made. */
enum {
	WORD_PLAIN = 1,      /* set in each word, for strings of these bytes */
	WORD_SPLITS = 2,     /* it may become several words, or none */
	WORD_VALUE = 4,      /* with values of variables: the names are in `refs` */
	WORD_TEXT = 8,       /* with other unknown text: the output of a command */
	WORD_GLOB = 64,      /* with a pattern for names of files */
	WORD_BRACES = 16,    /* with a brace expansion */
	WORD_SUBSCRIPT = 32, /* NAME[ outside of quotes */
};

/* A command. refs: the names of the variables in its words; "@" for all positional parameters. */
struct value_words {
	char *const *words, *const *refs;
	const char *kinds; /* one a word */
	size_t n, n_refs;
	bool runs;   /* runs a program named in its arguments */
	bool starts; /* a command certainly begins here: not in the arguments of a wrapper */
};

struct values {
	struct words evaluated, expanded; /* names whose values must be numbers; must not be odd */
	struct words odd, lettered;
	struct words edges;          /* NAME=OTHER */
	bool any_odd, any_evaluated; /* the name is not known */
	bool unsure;                 /* text is evaluated that is not known, or no memory */
};

/* Return the value of NAME=..., NAME+=..., NAME[...]=...; NULL: the word is no assignment. */
const char *values_of(const char *word);

/* The variable may get this value. */
void values_set(struct values *v, const char *name, const char *value, char kind, char *const *refs, size_t n_refs);
/* A word of the form above. */
void values_assign(struct values *v, const char *word, char kind, char *const *refs, size_t n_refs);
/* The text of an arithmetic expression. */
void values_evaluate(struct values *v, const char *text, char kind, char *const *refs, size_t n_refs);
/* A command of the line; data: it does not run its arguments. */
void values_command(struct values *v, const struct value_words *c, bool data);
/* Return true if $(text) is certainly a number. */
bool values_is_number(struct values *v, const char *text, size_t n);

/* Return true if more than numbers may be evaluated. */
bool values_are_odd(struct values *v);
void values_free(struct values *v);
