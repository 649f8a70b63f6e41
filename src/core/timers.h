/* SPDX-License-Identifier: MIT
 *
 * The armed timers of a session's child: jobs of CronCreate and the wake-up of ScheduleWakeup, which start turns later.
 * No line of the CLI lists them: they are parsed from the results of the tools that make, list and delete them, and
 * from the lines printed when a timer fires.
 *
 * Jobs stay after the end of the child: the CLI arms them again when it resumes the conversation. A wake-up is lost
 * then. CLI 2.1.197 does not report when a one-shot job fires: it counts until it is deleted, or missing from a list.
 *
 * Times are CLOCK_REALTIME in ms, as in the CLI. Timers above the limits are dropped. Source: measured on 2.1.197 and
 * 2.1.332.
 */
#pragma once

#include "core/carry.h"
#include "dialect/dialect.h"

#define TIMERS_BYTES ((size_t)64 * 1024) /* of each text; the CLI takes 50 jobs */
#define TIMERS_LATE_MS 600000            /* a timer not fired this long after its time never fires */

struct timers {
	char *
		armed; /* JSON array of {id, schedule, prompt, recurring, due_ms, until_ms}; id null: the wake-up; NULL: none */
	char *calls; /* JSON array of {id, tool, input}: calls of those tools without a result yet; NULL: none */
};

/* Process a line of the child. Return true if `armed` has changed. */
bool timers_line(struct timers *t, enum line_kind kind, struct chunk line, const struct envelope *e, int64_t now);
/* Drop expired ones. Return the number left. */
size_t timers_count(struct timers *t, int64_t now);
bool timers_child_gone(struct timers *t); /* returns like timers_line() */
/* Return the armed ones without text from an agent, for the table on disk, and back. NULL: none, or no memory. */
char *timers_text(const struct timers *t);
void timers_restore(struct timers *t, const char *text);
void timers_free(struct timers *t);
void timers_carry(struct carry *c, struct timers *t);
