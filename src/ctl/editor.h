/* SPDX-License-Identifier: MIT
 *
 * The line editor of a terminal: libedit for keys and text (so ~/.editrc counts), and around it what libedit 3.1 does
 * not have: pasted text as one, several lines, search in the history with any letters. It draws nothing: see screen.h.
 * The terminal is in raw mode from editor_open() to editor_close().
 */
#pragma once

#include "ctl/history.h"

#include <stdbool.h>
#include <stddef.h>
#include <wchar.h>

struct editor;

enum editor_event {
	EDITOR_IDLE,     /* no key is there */
	EDITOR_KEY,      /* the text may have changed */
	EDITOR_LINE,     /* Enter: take it by editor_take() */
	EDITOR_END,      /* Ctrl-D on an empty line */
	EDITOR_REDRAW,   /* Ctrl-L */
	EDITOR_COMPLETE, /* Tab */
	EDITOR_EXTERN,   /* Ctrl-X Ctrl-E: the text is wanted in $EDITOR */
};

/* wait: called in the middle of a key's sequence, until more input is there; false: the program ends. history stays
 * the caller's. NULL: no memory, or no terminal. */
struct editor *editor_open(bool (*wait)(void *arg), void *arg, struct history *history);
void editor_close(struct editor *e); /* NULL is allowed */

bool editor_read(struct editor *e);              /* the terminal is readable; false: it has ended */
enum editor_event editor_next(struct editor *e); /* process one key */
/* Return true within a key's sequence, inside wait(): then the text must not be replaced. */
bool editor_is_inside(const struct editor *e);

/* The text as it is to be shown; valid until the next call. *search: the pattern of a running search, else NULL. */
const wchar_t *editor_text(struct editor *e, size_t *n, size_t *cursor, const wchar_t **search);
/* Drop the text and all keys typed so far. */
void editor_flush(struct editor *e);
/* Replace the text. */
void editor_set(struct editor *e, const wchar_t *text, size_t n, size_t cursor);
void editor_insert(struct editor *e, const wchar_t *text);
/* Return the text of EDITOR_LINE and begin a new one; the caller frees. */
wchar_t *editor_take(struct editor *e, size_t *n);

/* The terminal's mode before, for another program or for a stop; and back. */
void editor_pause(struct editor *e);
void editor_resume(struct editor *e);
