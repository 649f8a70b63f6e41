/* SPDX-License-Identifier: MIT
 *
 * Lines of a session as a person reads them. Text of the answer streams as it comes; everything else is one short line.
 * All of it goes through text.h first.
 */
#pragma once

#include "base/macros.h"
#include "wire/scan.h"

#include <stdbool.h>
#include <stdio.h>

struct show {
	FILE *out;
	bool color;
	bool mid_line;      /* the last thing printed did not end its line */
	bool sign;          /* it was a sign to type behind, and no answer goes on there */
	bool wrote;         /* some text of an answer was printed */
	char streamed[128]; /* id of the message whose text came in pieces: its `assistant` lines repeat it */
};

/* Colour where out is a terminal, unless NO_COLOR is set or TERM is dumb. */
void show_init(struct show *s, FILE *out);

/* The text of the answer, if this line has some; nothing else is printed. */
void show_answer(struct show *s, struct span line, const struct envelope *e);
/* Everything that a watcher wants to see. */
void show_line(struct show *s, struct span line, const struct envelope *e);

/* Whether this result is that of an interrupt: what the CLI calls an error then is what somebody asked for. */
bool show_was_interrupted(struct span line, const struct envelope *e);

/* A tool and what it is asked to do, on one line: Bash: ls -l. input is the tool's input object. */
char *show_tool(struct span name, struct span input, size_t max);
/* Only what it is asked to do. */
char *show_input(struct span input, size_t max);

/* Printf on a line of its own; the arguments are made safe. */
void show_note(struct show *s, const char *color, const char *fmt, ...) PRINTF_LIKE(3, 4);
void show_break(struct show *s); /* ends a line that is not ended */

#define SHOW_DIM "2"
#define SHOW_BOLD "1"
#define SHOW_RED "31"
#define SHOW_YELLOW "33"
#define SHOW_CYAN "36"
