/* SPDX-License-Identifier: MIT
 *
 * Directives in a prompt, `@name arguments@`: what makes the scripted model do something. plenum-fakeagent(1) has the
 * list. Names that are not known stay ordinary text.
 */
#pragma once

#include "fakeagent/json.h"

enum directive_kind {
	DIRECTIVE_TOOL,   /* name, input */
	DIRECTIVE_AFTER,  /* number (ms), name, input */
	DIRECTIVE_NUMBER, /* long slow lines exit stderr blocks: number */
	DIRECTIVE_TEXT,   /* error dialog unknown garbage think task text: name is the argument */
	DIRECTIVE_PLAIN,  /* elicit die env cwd argv grandchild history */
};

struct directive {
	enum directive_kind kind;
	const char *what; /* "tool", "long", ...: static */
	char *name;
	json_t *input;
	long number;
};

/* Reads the next directive in text[*at..n) and moves *at behind it. False: there is no more. The caller frees it. */
bool directive_next(const char *text, size_t n, size_t *at, struct directive *d);
void directive_free(struct directive *d);
