/* SPDX-License-Identifier: MIT */
#include "wire/alike.h"

#include "base/macros.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 256
#define NUMBER_MAX 40
#define WORK_MAX ((size_t)8 * 1024 * 1024) /* bytes */
#define EXACT 9007199254740992.0           /* 2^53: below it a double keeps every whole number */

/* How many bytes may still be looked at. */
struct work {
	size_t left;
	int depth;
};

static bool same_string(struct span a, struct span b) {
	size_t n, m;
	if (span_same(a, b)) return true;
	if (!memchr(a.p, '\\', a.n) && !memchr(b.p, '\\', b.n)) return false;
	_cleanup_free_ char *x = span_dup(a, &n), *y = span_dup(b, &m);
	bool lossy = x && memmem(x, n, "\xef\xbf\xbd", 3); /* stands for any lone surrogate */
	return x && y && !lossy && n == m && memcmp(x, y, n) == 0;
}

static bool same_number(struct span a, struct span b) {
	char x[NUMBER_MAX], y[NUMBER_MAX], *x_end, *y_end;
	if (a.n >= sizeof x || b.n >= sizeof y) return false;
	memcpy(x, a.p, a.n);
	memcpy(y, b.p, b.n);
	x[a.n] = y[b.n] = 0;
	double v = strtod(x, &x_end), u = strtod(y, &y_end);
	return a.n && b.n && !*x_end && !*y_end && v == u && fabs(v) < EXACT;
}

static bool value(struct work *w, struct span a, struct span b);

static bool array(struct work *w, struct span a, struct span b) {
	struct span x, y;
	size_t i = 0, k = 0;
	for (;;) {
		bool more = span_next(a, &i, &x);
		if (more != span_next(b, &k, &y)) return false;
		if (!more) return true;
		if (!value(w, x, y)) return false;
	}
}

/* The same keys in the same places, as a program gives them back that keeps the order. */
static bool same_order(struct span a, struct span b, size_t *n_a, size_t *n_b) {
	struct span x, y, ignored;
	size_t i = 0, k = 0;
	bool same = true;
	*n_a = *n_b = 0;
	for (;;) {
		bool more_a = span_next_member(a, &i, &x, &ignored), more_b = span_next_member(b, &k, &y, &ignored);
		if (!more_a && !more_b) return same;
		same = same && more_a && more_b && same_string(x, y);
		*n_a += more_a;
		*n_b += more_b;
	}
}

/* A member of an object. The text of a key with escapes is owned. */
struct member {
	struct span key, value;
	char *text;
	const char *p;
	size_t n;
};

static void free_members(struct member *m, size_t n) {
	for (size_t i = 0; m && i < n; i++) free(m[i].text);
	free(m);
}

/* By key, members of one key in their order. */
static int by_key(const void *a, const void *b) {
	const struct member *x = a, *y = b;
	int order = memcmp(x->p, y->p, x->n < y->n ? x->n : y->n);
	if (order == 0) order = (x->n > y->n) - (x->n < y->n);
	return order ? order : (x->key.p > y->key.p) - (x->key.p < y->key.p);
}

/* The n members of an object, sorted. NULL without memory. */
static struct member *sorted(struct span object, size_t n) {
	struct member *all = calloc(n + 1, sizeof *all);
	size_t at = 0;
	if (!all) return NULL;
	for (size_t i = 0; i < n && span_next_member(object, &at, &all[i].key, &all[i].value); i++) {
		struct member *m = &all[i];
		m->p = m->key.p + 1; /* within its quotes */
		m->n = m->key.n - 2;
		if (!memchr(m->p, '\\', m->n)) continue;
		m->p = m->text = span_dup(m->key, &m->n);
		if (!m->text) {
			free_members(all, n);
			return NULL;
		}
	}
	qsort(all, n, sizeof *all, by_key);
	return all;
}

/* The same members in another order. */
static bool same_members(struct work *w, struct span a, struct span b, size_t n) {
	struct member *x = sorted(a, n), *y = sorted(b, n);
	bool same = x && y;
	for (size_t i = 0; same && i < n; i++) same = same_string(x[i].key, y[i].key) && value(w, x[i].value, y[i].value);
	free_members(x, n);
	free_members(y, n);
	return same;
}

static bool object(struct work *w, struct span a, struct span b) {
	size_t n, m;
	if (!same_order(a, b, &n, &m)) return n == m && same_members(w, a, b, n);
	struct span key, x, y;
	for (size_t i = 0, k = 0; span_next_member(a, &i, &key, &x) && span_next_member(b, &k, &key, &y);)
		if (!value(w, x, y)) return false;
	return true;
}

static bool value(struct work *w, struct span a, struct span b) {
	bool same = false;
	if (!a.n || !b.n || w->depth >= DEPTH_MAX || a.n + b.n > w->left) return false;
	w->left -= a.n + b.n;
	w->depth++;
	if (span_same(a, b))
		same = true;
	else if (*a.p == '{' && *b.p == '{')
		same = object(w, a, b);
	else if (*a.p == '[' && *b.p == '[')
		same = array(w, a, b);
	else if (*a.p == '"' && *b.p == '"')
		same = same_string(a, b);
	else if (strchr("-0123456789", *a.p))
		same = same_number(a, b);
	w->depth--;
	return same;
}

bool alike(struct span a, struct span b) {
	struct work w = {.left = MIN(16 * (a.n + b.n) + 65536, WORK_MAX)};
	return (a.n && span_same(a, b)) || value(&w, a, b);
}
