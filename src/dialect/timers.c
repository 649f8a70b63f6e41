/* SPDX-License-Identifier: MIT */
#include "dialect/timers.h"

#include "wire/notice.h"
#include "wire/valid.h"

#include <stdlib.h>
#include <string.h>

/* --- lists as JSON text --------------------------------------------------------------------------------------------
 */

/* Remove the elements for which drops() is true, and append `more`. Return true if the list has changed. */
bool timers_rewrite(char **list, bool (*drops)(struct span one, const void *arg), const void *arg,
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
	if (changed && !b.failed && valid_span((struct span){b.data, b.len})) {
		free(*list);
		*list = b.len > 2 ? buf_steal(&b, NULL) : NULL;
	} else {
		changed = false;
	}
	buf_free(&b);
	return changed;
}

struct span timers_short(struct span value, size_t max) {
	return span_is_string(value) && value.n <= max ? value : SPAN_NONE;
}

/* Return a time of the CLI, which may have a fraction; 0: none. */
int64_t timers_time(struct span value) {
	char text[40];
	if (!value.p || value.n >= sizeof text || value.n == 0) return 0;
	memcpy(text, value.p, value.n);
	text[value.n] = 0;
	double ms = strtod(text, NULL);
	return ms > 0 && ms < 1e15 ? (int64_t)ms : 0;
}

struct timer timers_parse(struct span one) {
	return (struct timer){.id = span_member(one, "id"),
						  .recurring = span_is_true(span_member(one, "recurring")),
						  .due = timers_time(span_member(one, "due_ms")),
						  .until = timers_time(span_member(one, "until_ms"))};
}

void timers_put(struct buf *b, const struct timer *t) {
	struct span id = timers_short(t->id, TIMERS_WORD_MAX);
	buf_puts(b, b->len ? ",{\"id\":" : "{\"id\":");
	if (id.p)
		buf_put(b, id.p, id.n);
	else
		buf_puts(b, "null");
	notice_raw(b, "schedule", timers_short(t->schedule, TIMERS_WORD_MAX));
	notice_raw(b, "prompt", timers_short(t->prompt, TIMERS_PROMPT_MAX));
	notice_flag(b, "recurring", t->recurring);
	notice_number(b, "due_ms", t->due);
	notice_number(b, "until_ms", t->until);
	buf_putc(b, '}');
}

bool timers_has_id(struct span one, const void *id) {
	return span_same(span_member(one, "id"), *(const struct span *)id);
}

bool timers_is_wakeup(struct span one, const void *unused) {
	(void)unused;
	return !span_is_string(span_member(one, "id"));
}

struct span timers_find(const char *list, bool (*matches)(struct span one, const void *arg), const void *arg) {
	struct span one;
	for (size_t at = 0; span_next(span_of(list), &at, &one);)
		if (matches(one, arg)) return one;
	return SPAN_NONE;
}

/* --- its life -------------------------------------------------------------------------------------------------------
 */

static bool is_over(struct span one, const void *arg) {
	struct timer t = timers_parse(one);
	int64_t now = *(const int64_t *)arg;
	return t.recurring ? t.until && now > t.until : t.due && now > t.due + TIMERS_LATE_MS;
}

size_t timers_count(struct timers *t, int64_t now) {
	struct span one;
	size_t n = 0;
	if (!t->armed) return 0;
	timers_rewrite(&t->armed, is_over, &now, NULL);
	for (size_t at = 0; span_next(span_of(t->armed), &at, &one);) n++;
	return n;
}

bool timers_child_gone(struct timers *t) {
	free(t->calls);
	t->calls = NULL;
	return timers_rewrite(&t->armed, timers_is_wakeup, NULL, NULL);
}

char *timers_text(const struct timers *t) {
	struct buf b = BUF_INIT(TIMERS_BYTES);
	struct span one;
	if (!t->armed) return NULL;
	for (size_t at = 0; span_next(span_of(t->armed), &at, &one);) {
		struct timer bare = timers_parse(one);
		timers_put(&b, &bare);
	}
	char *text = NULL;
	timers_rewrite(&text, NULL, NULL, &b);
	buf_free(&b);
	return text;
}

static bool is_list(struct span list) {
	return span_is_array(list) && list.n <= TIMERS_BYTES && valid_span(list);
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

bool timers_are_sound(const struct timers *t) {
	return (!t->armed || is_list(span_of(t->armed))) && (!t->calls || is_list(span_of(t->calls)));
}
