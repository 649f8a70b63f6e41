/* SPDX-License-Identifier: MIT */
#include "core/timers.h"

#include "base/macros.h"
#include "wire/lengths.h"
#include "wire/notice.h"
#include "wire/splice.h"
#include "wire/valid.h"

#include <stdlib.h>
#include <string.h>

#define WORD_MAX 256   /* an id, a schedule */
#define PROMPT_MAX 400 /* longer ones are not shown */
#define BLOCKS_MAX 256 /* parsed blocks of one line; the CLI prints one, and lists 50 jobs */
#define SLACK_MS 1000  /* a timer may fire this much too early */

static const char *const tools[] = {"CronCreate", "CronDelete", "CronList", "ScheduleWakeup"};

/* --- lists as JSON text --------------------------------------------------------------------------------------------
 */

static bool is_valid(struct span json) {
	const char *error;
	size_t at;
	return valid_json(json.p, json.n, &error, &at);
}

/* Remove the elements for which drops() is true, and append `more`. Return true if the list has changed. */
static bool rewrite(char **list, bool (*drops)(struct span one, const void *arg), const void *arg,
					const struct buf *more) {
	struct buf b = BUF_INIT(TIMERS_BYTES);
	struct span one;
	bool changed = false;
	buf_putc(&b, '[');
	for (size_t at = 0; span_next(span_of(*list), &at, &one);) {
		bool drop = drops && drops(one, arg);
		changed |= drop;
		if (drop) continue;
		if (b.len > 1) buf_putc(&b, ',');
		buf_put(&b, one.p, one.n);
	}
	if (more && more->len && !more->failed && b.len + more->len + 2 <= TIMERS_BYTES) {
		if (b.len > 1) buf_putc(&b, ',');
		buf_put(&b, more->data, more->len);
		changed = true;
	}
	buf_putc(&b, ']');
	if (changed && !b.failed && is_valid((struct span){b.data, b.len})) {
		free(*list);
		*list = b.len > 2 ? buf_steal(&b, NULL) : NULL;
	} else {
		changed = false;
	}
	buf_free(&b);
	return changed;
}

static struct span text_of(struct span value, size_t max) {
	return span_is_string(value) && value.n <= max ? value : SPAN_NONE;
}

/* Return a time of the CLI, which may have a fraction; 0: none. */
static int64_t time_of(struct span value) {
	char text[40];
	if (!value.p || value.n >= sizeof text || value.n == 0) return 0;
	memcpy(text, value.p, value.n);
	text[value.n] = 0;
	double ms = strtod(text, NULL);
	return ms > 0 && ms < 1e15 ? (int64_t)ms : 0;
}

struct timer {
	struct span id, schedule, prompt;
	bool recurring;
	int64_t due, until;
};

static struct timer read_timer(struct span one) {
	return (struct timer){.id = span_member(one, "id"),
						  .recurring = span_is_true(span_member(one, "recurring")),
						  .due = time_of(span_member(one, "due_ms")),
						  .until = time_of(span_member(one, "until_ms"))};
}

static void put_timer(struct buf *b, const struct timer *t) {
	struct span id = text_of(t->id, WORD_MAX);
	buf_puts(b, b->len ? ",{\"id\":" : "{\"id\":");
	if (id.p)
		buf_put(b, id.p, id.n);
	else
		buf_puts(b, "null");
	notice_raw(b, "schedule", text_of(t->schedule, WORD_MAX));
	notice_raw(b, "prompt", text_of(t->prompt, PROMPT_MAX));
	notice_flag(b, "recurring", t->recurring);
	notice_number(b, "due_ms", t->due);
	notice_number(b, "until_ms", t->until);
	buf_putc(b, '}');
}

static bool has_id(struct span one, const void *id) {
	return span_same(span_member(one, "id"), *(const struct span *)id);
}

static bool is_wakeup(struct span one, const void *unused) {
	(void)unused;
	return !span_is_string(span_member(one, "id"));
}

static bool any(struct span one, const void *unused) {
	(void)one, (void)unused;
	return true;
}

static struct span find(const char *list, bool (*matches)(struct span one, const void *arg), const void *arg) {
	struct span one;
	for (size_t at = 0; span_next(span_of(list), &at, &one);)
		if (matches(one, arg)) return one;
	return SPAN_NONE;
}

/* --- results
 * -------------------------------------------------------------------------------------------------------- */

static bool take_created(struct timers *t, struct span input, struct span result, int64_t now) {
	struct buf b = BUF_INIT(TIMERS_BYTES);
	struct timer new = {.id = span_member(result, "id"),
						.schedule = span_member(result, "humanSchedule"),
						.prompt = span_member(input, "prompt"),
						.recurring = span_is_true(span_member(result, "recurring"))};
	int64_t age = time_of(span_member(result, "maxAgeMs"));
	if (!span_is_string(new.id)) return false;
	if (!new.schedule.p) new.schedule = span_member(input, "cron");
	if (!new.recurring) new.due = time_of(span_member(result, "nextFireAt"));
	if (new.recurring && age) new.until = now + age;
	put_timer(&b, &new);
	bool changed = rewrite(&t->armed, has_id, &new.id, &b);
	buf_free(&b);
	return changed;
}

static bool take_deleted(struct timers *t, struct span result) {
	struct span id = span_member(result, "id");
	bool changed = id.p && rewrite(&t->armed, has_id, &id, NULL);
	return (span_is_true(span_member(result, "endedLoopWakeup")) && rewrite(&t->armed, is_wakeup, NULL, NULL)) ||
		   changed;
}

/* Replace the whole list. The wake-up is in it as a job, under an id that no other line has. */
static bool take_list(struct timers *t, struct span jobs) {
	struct buf b = BUF_INIT(TIMERS_BYTES);
	struct span one, old = find(t->armed, is_wakeup, NULL);
	int64_t wakes_at = old.p ? read_timer(old).due : 0;
	size_t n = 0;
	if (!span_is_array(jobs)) return false;
	for (size_t at = 0; n < BLOCKS_MAX && span_next(jobs, &at, &one); n++) {
		struct timer job = {.id = span_member(one, "id"),
							.schedule = span_member(one, "humanSchedule"),
							.prompt = span_member(one, "prompt"),
							.recurring = span_is_true(span_member(one, "recurring"))};
		if (!span_is_string(job.id)) continue;
		if (!job.recurring) job.due = time_of(span_member(one, "nextFireAt"));
		if (job.recurring) job.until = read_timer(find(t->armed, has_id, &job.id)).until;
		if (job.due && job.due == wakes_at) job.id = job.schedule = SPAN_NONE;
		put_timer(&b, &job);
	}
	bool changed = rewrite(&t->armed, any, NULL, &b);
	buf_free(&b);
	return changed;
}

/* There is at most one wake-up: a new one replaces it. Time 0: none is armed. */
static bool take_wakeup(struct timers *t, struct span input, struct span result) {
	struct buf b = BUF_INIT(TIMERS_BYTES);
	struct timer new = {.prompt = span_member(input, "prompt"), .due = time_of(span_member(result, "scheduledFor"))};
	if (new.due) put_timer(&b, &new);
	bool changed = rewrite(&t->armed, is_wakeup, NULL, &b);
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

/* --- lines ----------------------------------------------------------------------------------------------------------
 */

/* A long line is not searched: it was measured, so that its blocks are found faster. */
static bool may_mention_a_tool(struct span line) {
	return line.n >= LENGTHS_FROM || memmem(line.p, line.n, "\"Cron", 5) ||
		   memmem(line.p, line.n, "\"ScheduleWakeup\"", 16);
}

static void take_call(struct timers *t, struct span block) {
	struct span name = span_member(block, "name"), id = span_member(block, "id"), input = span_member(block, "input");
	bool known = false;
	for (size_t i = 0; i < ARRAY_SIZE(tools); i++) known |= span_equals(name, tools[i]);
	if (!known || !text_of(id, WORD_MAX).p || !is_valid(id)) return;
	struct buf b = BUF_INIT(TIMERS_BYTES);
	buf_puts(&b, "{\"id\":");
	buf_put(&b, id.p, id.n);
	notice_raw(&b, "tool", name);
	buf_puts(&b, ",\"input\":{\"prompt\":");
	struct span prompt = text_of(span_member(input, "prompt"), PROMPT_MAX);
	if (prompt.p && is_valid(prompt))
		buf_put(&b, prompt.p, prompt.n);
	else
		buf_puts(&b, "null");
	notice_raw(&b, "cron", text_of(span_member(input, "cron"), WORD_MAX));
	buf_puts(&b, "}}");
	rewrite(&t->calls, has_id, &id, &b);
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
		struct span id = span_member(block, "tool_use_id"), call = find(t->calls, has_id, &id);
		if (!call.p || !span_equals(span_member(block, "type"), "tool_result")) continue;
		if (!span_is_true(span_member(block, "is_error")))
			changed |= take_result(t, call, span_member(line, "tool_use_result"), now);
		rewrite(&t->calls, has_id, &id, NULL);
	}
	return changed;
}

static bool is_fired_wakeup(struct span one, const void *at) {
	int64_t due = *(const int64_t *)at;
	return is_wakeup(one, NULL) && (!due || read_timer(one).due == due);
}

static bool is_fired_job(struct span one, const void *now) {
	struct timer t = read_timer(one);
	return !is_wakeup(one, NULL) && !t.recurring && t.due && t.due <= *(const int64_t *)now + SLACK_MS;
}

/* Process the start of a prompt made by a timer. It does not name its job: take a one-shot job with an expired time. */
static bool take_fired(struct timers *t, struct span line, int64_t now) {
	struct span source = span_member(line, "wakeup_source");
	int64_t at = time_of(span_member(line, "scheduled_for"));
	if (span_equals(source, "loop_wakeup")) return rewrite(&t->armed, is_fired_wakeup, &at, NULL);
	return span_equals(source, "schedule_wakeup") && rewrite(&t->armed, is_fired_job, &now, NULL);
}

bool timers_line(struct timers *t, enum line_kind kind, struct chunk line, const struct envelope *e, int64_t now) {
	struct span body = splice_body(line);
	if (kind == LINE_ASSISTANT && may_mention_a_tool(body)) take_calls(t, span_member(e->message, "content"));
	if (kind == LINE_USER && t->calls) return take_results(t, body, span_member(e->message, "content"), now);
	return kind == LINE_LIFECYCLE && t->armed && take_fired(t, body, now);
}

/* --- its life -------------------------------------------------------------------------------------------------------
 */

static bool is_over(struct span one, const void *arg) {
	struct timer t = read_timer(one);
	int64_t now = *(const int64_t *)arg;
	return t.recurring ? t.until && now > t.until : t.due && now > t.due + TIMERS_LATE_MS;
}

size_t timers_count(struct timers *t, int64_t now) {
	struct span one;
	size_t n = 0;
	if (!t->armed) return 0;
	rewrite(&t->armed, is_over, &now, NULL);
	for (size_t at = 0; span_next(span_of(t->armed), &at, &one);) n++;
	return n;
}

bool timers_child_gone(struct timers *t) {
	free(t->calls);
	t->calls = NULL;
	return rewrite(&t->armed, is_wakeup, NULL, NULL);
}

char *timers_text(const struct timers *t) {
	struct buf b = BUF_INIT(TIMERS_BYTES);
	struct span one;
	if (!t->armed) return NULL;
	for (size_t at = 0; span_next(span_of(t->armed), &at, &one);) {
		struct timer bare = read_timer(one);
		put_timer(&b, &bare);
	}
	char *text = NULL;
	rewrite(&text, NULL, NULL, &b);
	buf_free(&b);
	return text;
}

static bool is_list(struct span list) {
	return span_is_array(list) && list.n <= TIMERS_BYTES && is_valid(list);
}

void timers_restore(struct timers *t, const char *text) {
	timers_free(t);
	if (is_list(span_of(text))) t->armed = strdup(text);
}

void timers_free(struct timers *t) {
	free(t->armed);
	free(t->calls);
	*t = (struct timers){0};
}

void timers_carry(struct carry *c, struct timers *t) {
	carry_mark(c, "timers");
	carry_text(c, &t->armed);
	carry_text(c, &t->calls);
	if ((t->armed && !is_list(span_of(t->armed))) || (t->calls && !is_list(span_of(t->calls))))
		carry_fail(c, "a list of timers is no list");
}
