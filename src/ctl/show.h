/* SPDX-License-Identifier: MIT
 *
 * Print lines of a session for users. Text of the answer streams, output of tools keeps its first lines; every other
 * line is one short line. All text is escaped by text.h.
 */
#pragma once

#include "base/buf.h"
#include "base/macros.h"
#include "ctl/speech.h"

#include <stdbool.h>
#include <stdio.h>

struct show {
	FILE *out;
	bool color;
	bool mid_line;      /* the last output did not end its line */
	bool sign;          /* it was an input prompt, where no answer continues */
	bool wrote;         /* some text of an answer was printed */
	char streamed[128]; /* id of the message that came in pieces: the lines of the whole repeat them */
	bool keeps;         /* keep the output of a tool that is printed in part, for show_more(); then call show_free() */
	char *rest;         /* the part that was not printed */
	size_t rest_len;
};

/* Use colours if out is a terminal, unless NO_COLOR is set or TERM is dumb. */
void show_init(struct show *s, FILE *out);

/* Print only the text of the answer, if this line has some. */
void show_answer(struct show *s, const struct incoming *in);
/* Print everything for an observer. */
void show_line(struct show *s, const struct incoming *in);

/* Return a tool and its task on one line, such as Bash: ls -l. input is the tool's input object. */
char *show_tool(struct span name, struct span input, size_t max);
/* Return only the task. */
char *show_input(struct span input, size_t max);

/* printf(3) on a line of its own; the arguments are escaped. */
void show_note(struct show *s, const char *color, const char *fmt, ...) PRINTF_LIKE(3, 4);
void show_break(struct show *s); /* end an unfinished line */
/* Print lines with an indent; at most max of them (0: all), then how many more there are. */
void show_lines(struct show *s, const char *color, int indent, const char *text, size_t n, size_t max);
/* Print the rest of the last output that was printed in part. False: there is none. */
bool show_more(struct show *s);
void show_free(struct show *s);

#define SHOW_DIM "2"
#define SHOW_BOLD "1"
#define SHOW_RED "31"
#define SHOW_GREEN "32"
#define SHOW_YELLOW "33"
#define SHOW_CYAN "36"
