/* SPDX-License-Identifier: MIT
 *
 * The lower end of a terminal: below everything printed so far a status line, and the text that is being typed.
 * Output goes above both. Needs a terminal with the control sequences of ECMA-48, not the
 * alternate screen, so that everything stays in the scrollback.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stdio.h>
#include <wchar.h>

/* The end of the screen. */
struct view {
	const char *status; /* one line, escaped; NULL: none */
	const char *prompt; /* escaped */
	const wchar_t *text;
	size_t n, cursor;
};

struct screen {
	FILE *out;         /* for everything that is printed above */
	struct buf fresh;  /* printed, and not on the screen yet */
	struct buf tail;   /* the last row of an unfinished line */
	struct buf drawn;  /* the end as it is on the screen */
	size_t above;      /* rows from its top to the cursor */
	struct buf widths; /* size_t: their columns, without that of the tail */
	size_t columns, rows;
	bool held; /* another program has the terminal */
};

bool screen_open(struct screen *s);
/* Remove the end, print the rest. */
void screen_close(struct screen *s);
/* Ask the terminal for its size; it has wrapped its rows anew. */
void screen_measure(struct screen *s);
/* Print the new output, and draw the end below it. */
void screen_update(struct screen *s, const struct view *v);
/* Remove the end, until the next update. */
void screen_erase(struct screen *s);
/* Clear all of the screen: Ctrl-L. */
void screen_clear(struct screen *s);
