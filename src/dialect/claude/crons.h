/* SPDX-License-Identifier: MIT
 *
 * The timers of Claude Code: jobs of CronCreate and the wake-up of ScheduleWakeup. No line of the CLI lists them: they
 * are parsed from the results of the tools that make, list and delete them, and from the lines printed when a timer
 * fires.
 *
 * Jobs stay after the end of the child: the CLI arms them again when it resumes the conversation. A wake-up is lost
 * then. CLI 2.1.197 does not report when a one-shot job fires: it counts until it is deleted, or missing from a list.
 * Source: measured on 2.1.197 and 2.1.332.
 */
#pragma once

#include "dialect/dialect.h"

/* read_timers of struct dialect. */
bool crons_read(struct timers *t, enum line_kind kind, struct chunk line, const struct envelope *e, int64_t now);
