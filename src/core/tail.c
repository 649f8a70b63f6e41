/* SPDX-License-Identifier: MIT */
#include "core/tail.h"

#include <string.h>

void tail_init(struct tail *t) {
	*t = (struct tail){.part = BUF_INIT(TAIL_LINE_MAX)};
}

void tail_clear(struct tail *t) {
	for (size_t i = 0; i < t->count; i++) free(t->lines[(t->first + i) % TAIL_LINES]);
	free(t->lines);
	buf_free(&t->part);
	tail_init(t);
}

static void end_line(struct tail *t) {
	char *line = strndup(t->part.data ? t->part.data : "", t->part.len);
	if (!t->lines) t->lines = calloc(TAIL_LINES, sizeof *t->lines);
	if (line && t->lines) {
		if (t->count == TAIL_LINES) {
			free(t->lines[t->first]);
			t->first = (t->first + 1) % TAIL_LINES;
			t->count--;
		}
		t->lines[(t->first + t->count++) % TAIL_LINES] = line;
	} else {
		free(line);
	}
	t->part.len = 0;
	t->part.failed = false;
}

void tail_take(struct tail *t, const char *data, size_t n) {
	while (n) {
		const char *lf = memchr(data, '\n', n);
		size_t len = lf ? (size_t)(lf - data) : n;
		buf_put(&t->part, data, MIN(len, t->part.max - t->part.len));
		if (lf) {
			end_line(t);
			len++;
		}
		data += len;
		n -= len;
	}
}

void tail_end(struct tail *t) {
	if (t->part.len) end_line(t);
	buf_free(&t->part);
}

size_t tail_count(const struct tail *t) {
	return t->count + (t->part.len > 0);
}

const char *tail_line(const struct tail *t, size_t index) {
	return index < t->count ? t->lines[(t->first + index) % TAIL_LINES] : t->part.data;
}

static bool is_blank(const char *line) {
	return !line[strspn(line, " \t\r")];
}

static size_t words_begin(const struct tail *t) {
	size_t first = tail_count(t), lines = 0, bytes = 0;
	for (size_t i = first; i-- && lines < TAIL_WORDS_LINES;) {
		if (is_blank(tail_line(t, i))) continue;
		bytes += strlen(tail_line(t, i));
		if (lines++ && bytes > TAIL_WORDS_MAX) break;
		first = i;
	}
	return first;
}

char *tail_words(const struct tail *t) {
	struct buf b = BUF_INIT((size_t)TAIL_WORDS_LINES * (TAIL_LINE_MAX + 8));
	for (size_t i = words_begin(t); i < tail_count(t); i++)
		if (!is_blank(tail_line(t, i))) buf_printf(&b, "%s%s", b.len ? " / " : "", tail_line(t, i));
	return b.data;
}

void tail_carry(struct carry *c, struct tail *t) {
	size_t n = carry_count(c, t->count);
	if (n > TAIL_LINES) carry_fail(c, "there are too many lines of stderr");
	if (n && !c->saving && !(t->lines = calloc(TAIL_LINES, sizeof *t->lines))) carry_fail(c, "out of memory");
	for (size_t i = 0; i < n && carry_ok(c); i++) {
		carry_name(c, &t->lines[(t->first + i) % TAIL_LINES]);
		if (!c->saving && carry_ok(c)) t->count = i + 1;
	}
	carry_buf(c, &t->part);
}
