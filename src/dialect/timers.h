/* SPDX-License-Identifier: MIT
 *
 * The armed timers of a session's child, which start turns later: what a dialect has read about them. Those with an id
 * stay after the end of the child; a wake-up, without an id, is lost then.
 *
 * Lists are JSON texts of valid elements. Times are CLOCK_REALTIME in ms, as in the CLI. Timers above the limits are
 * dropped.
 */
#pragma once

#include "base/buf.h"
#include "wire/scan.h"

#define TIMERS_BYTES ((size_t)64 * 1024) /* of each text; the CLI takes 50 jobs */
#define TIMERS_LATE_MS 600000            /* a timer not fired this long after its time never fires */
#define TIMERS_WORD_MAX 256              /* an id, a schedule */
#define TIMERS_PROMPT_MAX 400            /* longer ones are not shown */

struct timers {
	char *armed; /* array of {id, schedule, prompt, recurring, due_ms, until_ms}; id null: the wake-up; NULL: none */
	char *calls; /* array of {id, tool, input}: calls of the tools that change it, without a result yet; NULL: none */
};

/* Drop expired ones. Return the number left. */
size_t timers_count(struct timers *t, int64_t now);
bool timers_child_gone(struct timers *t); /* true: `armed` has changed */
/* Return the armed ones without text from an agent, for the table on disk, and back. NULL: none, or no memory. */
char *timers_text(const struct timers *t);
void timers_restore(struct timers *t, const char *text);
void timers_free(struct timers *t);
bool timers_are_sound(const struct timers *t); /* both lists are ones that timers_rewrite() could have made */

/* --- for dialects --- */

struct timer {
	struct span id, schedule, prompt; /* strings, or absent */
	bool recurring;
	int64_t due, until; /* 0: none */
};

struct timer timers_parse(struct span one); /* an element of `armed`: its id and times */
/* Append it as an element, behind a comma if it is not the first. Too long texts become null. */
void timers_put(struct buf *b, const struct timer *t);
/* Remove the elements for which drops() is true (NULL: none), and append `more` (may be NULL). Return true if the list
 * has changed. */
bool timers_rewrite(char **list, bool (*drops)(struct span one, const void *arg), const void *arg,
					const struct buf *more);
/* Return the first element that matches, or SPAN_NONE. */
struct span timers_find(const char *list, bool (*matches)(struct span one, const void *arg), const void *arg);
bool timers_has_id(struct span one, const void *id); /* id: a span */
bool timers_is_wakeup(struct span one, const void *unused);
struct span timers_short(struct span value, size_t max); /* the value if it is a string of at most max bytes */
int64_t timers_time(struct span value);                  /* a time, which may have a fraction; 0: none */
