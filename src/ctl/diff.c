/* SPDX-License-Identifier: MIT */
#include "ctl/diff.h"

#include "base/macros.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CELLS_MAX ((size_t)4 << 20) /* of the table below; beyond it the middle is one change */

struct line {
	const char *p;
	size_t n;
};

struct lines {
	struct line *v;
	size_t n;
};

struct difference {
	struct lines old, fresh;
	char *signs; /* one for each line of the output */
	size_t n;
};

static bool split(const char *text, size_t len, struct lines *to) {
	const char *end = text + len;
	size_t n = 0;
	for (const char *p = text; p < end; n++) {
		const char *stop = memchr(p, '\n', (size_t)(end - p));
		p = stop ? stop + 1 : end;
	}
	to->v = calloc(n + 1, sizeof *to->v);
	if (!to->v) return false;
	for (const char *p = text; p < end;) {
		const char *stop = memchr(p, '\n', (size_t)(end - p));
		if (!stop) stop = end;
		to->v[to->n++] = (struct line){p, (size_t)(stop - p)};
		p = stop + (stop < end);
	}
	return true;
}

static bool same(const struct line *a, const struct line *b) {
	return a->n == b->n && (a->n == 0 || memcmp(a->p, b->p, a->n) == 0);
}

static void add(struct difference *d, char sign, size_t times) {
	memset(d->signs + d->n, sign, times);
	d->n += times;
}

/* The longest common subsequence of the lines that are left between the common ends: len[i][j] is that of old lines
 * from i on and fresh lines from j on. */
static void add_middle(struct difference *d, size_t from, size_t old_end, size_t fresh_end) {
	size_t rows = old_end - from, columns = fresh_end - from, width = columns + 1;
	const struct line *a = d->old.v + from, *b = d->fresh.v + from;
	uint32_t *len = rows && columns && rows < CELLS_MAX / width ? calloc((rows + 1) * width, sizeof *len) : NULL;
	if (!len) {
		add(d, '-', rows);
		add(d, '+', columns);
		return;
	}
	for (size_t i = rows; i-- > 0;)
		for (size_t j = columns; j-- > 0;)
			len[i * width + j] = same(&a[i], &b[j]) ? len[(i + 1) * width + j + 1] + 1
													: MAX(len[(i + 1) * width + j], len[i * width + j + 1]);
	size_t i = 0, j = 0;
	while (i < rows || j < columns) {
		bool both = i < rows && j < columns && same(&a[i], &b[j]);
		bool old = !both && i < rows && (j == columns || len[(i + 1) * width + j] >= len[i * width + j + 1]);
		add(d, both ? ' ' : old ? '-' : '+', 1);
		i += both || old;
		j += both || !old;
	}
	free(len);
}

static void put_all(const struct difference *d, diff_put put, void *arg) {
	size_t i = 0, j = 0;
	for (size_t at = 0; at < d->n;) {
		size_t run = 0; /* how many lines from here on are unchanged */
		while (at + run < d->n && d->signs[at + run] == ' ') run++;
		size_t head = at ? DIFF_CONTEXT : 0, tail = at + run < d->n ? DIFF_CONTEXT : 0;
		for (size_t k = 0; k < run; k++, i++, j++) {
			if (k < head || k + tail >= run) {
				put(arg, ' ', d->old.v[i].p, d->old.v[i].n);
			} else if (k == head) {
				char left_out[32];
				int n = snprintf(left_out, sizeof left_out, "%zu", run - head - tail);
				put(arg, '@', left_out, (size_t)n);
			}
		}
		at += run;
		for (; at < d->n && d->signs[at] != ' '; at++) {
			bool old = d->signs[at] == '-';
			const struct line *l = old ? &d->old.v[i++] : &d->fresh.v[j++];
			put(arg, d->signs[at], l->p, l->n);
		}
	}
}

void diff_lines(const char *old, size_t old_len, const char *fresh, size_t fresh_len, diff_put put, void *arg) {
	struct difference d = {0};
	bool ok = split(old, old_len, &d.old) && split(fresh, fresh_len, &d.fresh);
	d.signs = ok ? malloc(d.old.n + d.fresh.n + 1) : NULL;
	if (d.signs) {
		size_t from = 0, i = d.old.n, j = d.fresh.n;
		while (from < i && from < j && same(&d.old.v[from], &d.fresh.v[from])) from++;
		while (i > from && j > from && same(&d.old.v[i - 1], &d.fresh.v[j - 1])) i--, j--;
		add(&d, ' ', from);
		add_middle(&d, from, i, j);
		add(&d, ' ', d.old.n - i);
		put_all(&d, put, arg);
	}
	free(d.signs);
	free(d.old.v);
	free(d.fresh.v);
}
