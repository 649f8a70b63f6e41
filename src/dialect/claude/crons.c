/* SPDX-License-Identifier: MIT */
#include "dialect/claude/crons.h"

#include "base/macros.h"
#include "wire/lengths.h"
#include "wire/notice.h"
#include "wire/splice.h"
#include "wire/valid.h"

#include <string.h>

#define BLOCKS_MAX 256 /* parsed blocks of one line; the CLI prints one, and lists 50 jobs */
#define SLACK_MS 1000  /* a timer may fire this much too early */

static const char *const tools[] = {"CronCreate", "CronDelete", "CronList", "ScheduleWakeup"};

static bool any(struct span one, const void *unused) {
	(void)one, (void)unused;
	return true;
}

/* --- results ----------------------------------------------------------------------------------------------------- */

static bool take_created(struct timers *t, struct span input, struct span result, int64_t now) {
	struct buf b = BUF_INIT(TIMERS_BYTES);
	struct timer new = {.id = span_member(result, "id"),
						.schedule = span_member(result, "humanSchedule"),
						.prompt = span_member(input, "prompt"),
						.recurring = span_is_true(span_member(result, "recurring"))};
	int64_t age = timers_time(span_member(result, "maxAgeMs"));
	if (!span_is_string(new.id)) return false;
	if (!new.schedule.p) new.schedule = span_member(input, "cron");
	if (!new.recurring) new.due = timers_time(span_member(result, "nextFireAt"));
	if (new.recurring && age) new.until = now + age;
	timers_put(&b, &new);
	bool changed = timers_rewrite(&t->armed, timers_has_id, &new.id, &b);
	buf_free(&b);
	return changed;
}

static bool take_deleted(struct timers *t, struct span result) {
	struct span id = span_member(result, "id");
	bool changed = id.p && timers_rewrite(&t->armed, timers_has_id, &id, NULL);
	return (span_is_true(span_member(result, "endedLoopWakeup")) &&
			timers_rewrite(&t->armed, timers_is_wakeup, NULL, NULL)) ||
		   changed;
}

/* Replace the whole list. The wake-up is in it as a job, under an id that no other line has. */
static bool take_list(struct timers *t, struct span jobs) {
	struct buf b = BUF_INIT(TIMERS_BYTES);
	struct span one, old = timers_find(t->armed, timers_is_wakeup, NULL);
	int64_t wakes_at = old.p ? timers_parse(old).due : 0;
	size_t n = 0;
	if (!span_is_array(jobs)) return false;
	for (size_t at = 0; n < BLOCKS_MAX && span_next(jobs, &at, &one); n++) {
		struct timer job = {.id = span_member(one, "id"),
							.schedule = span_member(one, "humanSchedule"),
							.prompt = span_member(one, "prompt"),
							.recurring = span_is_true(span_member(one, "recurring"))};
		if (!span_is_string(job.id)) continue;
		if (!job.recurring) job.due = timers_time(span_member(one, "nextFireAt"));
		if (job.recurring) job.until = timers_parse(timers_find(t->armed, timers_has_id, &job.id)).until;
		if (job.due && job.due == wakes_at) job.id = job.schedule = SPAN_NONE;
		timers_put(&b, &job);
	}
	bool changed = timers_rewrite(&t->armed, any, NULL, &b);
	buf_free(&b);
	return changed;
}

/* There is at most one wake-up: a new one replaces it. Time 0: none is armed. */
static bool take_wakeup(struct timers *t, struct span input, struct span result) {
	struct buf b = BUF_INIT(TIMERS_BYTES);
	struct timer new = {.prompt = span_member(input, "prompt"),
						.due = timers_time(span_member(result, "scheduledFor"))};
	if (new.due) timers_put(&b, &new);
	bool changed = timers_rewrite(&t->armed, timers_is_wakeup, NULL, &b);
	buf_free(&b);
	return changed;
}

static bool take_result(struct timers *t, struct span call, struct span result, int64_t now) {
	struct span tool = span_member(call, "tool"), input = span_member(call, "input");
	if (!span_is_object(result)) return false;
	if (span_equals(tool, "CronCreate")) return take_created(t, input, result, now);
	if (span_equals(tool, "CronDelete")) return take_deleted(t, result);
	if (span_equals(tool, "CronList")) return take_list(t, span_member(result, "jobs"));
	return take_wakeup(t, input, result);
}

/* --- lines ------------------------------------------------------------------------------------------------------- */

/* A long line is not searched: it was measured, so that its blocks are found faster. */
static bool may_mention_a_tool(struct span line) {
	return line.n >= LENGTHS_FROM || memmem(line.p, line.n, "\"Cron", 5) ||
		   memmem(line.p, line.n, "\"ScheduleWakeup\"", 16);
}

static void take_call(struct timers *t, struct span block) {
	struct span name = span_member(block, "name"), id = span_member(block, "id"), input = span_member(block, "input");
	bool known = false;
	for (size_t i = 0; i < ARRAY_SIZE(tools); i++) known |= span_equals(name, tools[i]);
	if (!known || !timers_short(id, TIMERS_WORD_MAX).p || !valid_span(id)) return;
	struct buf b = BUF_INIT(TIMERS_BYTES);
	buf_puts(&b, "{\"id\":");
	buf_put(&b, id.p, id.n);
	notice_raw(&b, "tool", name);
	buf_puts(&b, ",\"input\":{\"prompt\":");
	struct span prompt = timers_short(span_member(input, "prompt"), TIMERS_PROMPT_MAX);
	if (prompt.p && valid_span(prompt))
		buf_put(&b, prompt.p, prompt.n);
	else
		buf_puts(&b, "null");
	notice_raw(&b, "cron", timers_short(span_member(input, "cron"), TIMERS_WORD_MAX));
	buf_puts(&b, "}}");
	timers_rewrite(&t->calls, timers_has_id, &id, &b);
	buf_free(&b);
}

static void take_calls(struct timers *t, struct span content) {
	struct span block;
	size_t n = 0;
	for (size_t at = 0; n < BLOCKS_MAX && span_next(content, &at, &block); n++)
		if (span_equals(span_member(block, "type"), "tool_use")) take_call(t, block);
}

static bool take_results(struct timers *t, struct span line, struct span content, int64_t now) {
	struct span block;
	bool changed = false;
	size_t n = 0;
	for (size_t at = 0; t->calls && n < BLOCKS_MAX && span_next(content, &at, &block); n++) {
		struct span id = span_member(block, "tool_use_id"), call = timers_find(t->calls, timers_has_id, &id);
		if (!call.p || !span_equals(span_member(block, "type"), "tool_result")) continue;
		if (!span_is_true(span_member(block, "is_error")))
			changed |= take_result(t, call, span_member(line, "tool_use_result"), now);
		timers_rewrite(&t->calls, timers_has_id, &id, NULL);
	}
	return changed;
}

static bool is_fired_wakeup(struct span one, const void *at) {
	int64_t due = *(const int64_t *)at;
	return timers_is_wakeup(one, NULL) && (!due || timers_parse(one).due == due);
}

static bool is_fired_job(struct span one, const void *now) {
	struct timer t = timers_parse(one);
	return !timers_is_wakeup(one, NULL) && !t.recurring && t.due && t.due <= *(const int64_t *)now + SLACK_MS;
}

/* Process the start of a prompt made by a timer. It does not name its job: take a one-shot job with an expired time. */
static bool take_fired(struct timers *t, struct span line, int64_t now) {
	struct span source = span_member(line, "wakeup_source");
	int64_t at = timers_time(span_member(line, "scheduled_for"));
	if (span_equals(source, "loop_wakeup")) return timers_rewrite(&t->armed, is_fired_wakeup, &at, NULL);
	return span_equals(source, "schedule_wakeup") && timers_rewrite(&t->armed, is_fired_job, &now, NULL);
}

bool crons_read(struct timers *t, enum line_kind kind, struct chunk line, const struct envelope *e, int64_t now) {
	struct span body = splice_body(line);
	if (kind == LINE_ASSISTANT && may_mention_a_tool(body)) take_calls(t, span_member(e->message, "content"));
	if (kind == LINE_USER && t->calls) return take_results(t, body, span_member(e->message, "content"), now);
	return kind == LINE_LIFECYCLE && t->armed && take_fired(t, body, now);
}
