/* SPDX-License-Identifier: MIT */
#include "wire/alike.h"

#include "base/macros.h"

#include <math.h>
#include <string.h>

#define DEPTH_MAX 256
#define NUMBER_MAX 40
#define EXACT 9007199254740992.0 /* 2^53: below it a double keeps every whole number */

/* How many bytes may still be looked at. */
struct work {
	size_t left;
	int depth;
};

static bool take(struct work *w, size_t n) {
	if (n > w->left) return false;
	w->left -= n;
	return true;
}

static bool same_string(struct span a, struct span b) {
	size_t n, m;
	if (span_same(a, b)) return true;
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

static bool in_order(struct work *w, struct span a, struct span b) {
	struct span key, x, y;
	for (size_t i = 0, k = 0; span_next_member(a, &i, &key, &x) && span_next_member(b, &k, &key, &y);)
		if (!value(w, x, y)) return false;
	return true;
}

/* The last one of duplicates counts. */
static struct span find(struct work *w, struct span object, struct span key) {
	struct span other, member, found = SPAN_NONE;
	if (!take(w, object.n)) return SPAN_NONE;
	for (size_t at = 0; span_next_member(object, &at, &other, &member);)
		if (same_string(other, key)) found = member;
	return found;
}

static bool is_within(struct work *w, struct span a, struct span b) {
	struct span key, x;
	for (size_t at = 0; span_next_member(a, &at, &key, &x);) {
		struct span y = find(w, b, key);
		if (!y.p || !value(w, x, y)) return false;
	}
	return true;
}

static bool has_keys_of(struct work *w, struct span a, struct span b) {
	struct span key, member;
	for (size_t at = 0; span_next_member(b, &at, &key, &member);)
		if (!find(w, a, key).p) return false;
	return true;
}

static bool object(struct work *w, struct span a, struct span b) {
	size_t n, m;
	if (same_order(a, b, &n, &m)) return in_order(w, a, b);
	return n == m && is_within(w, a, b) && has_keys_of(w, a, b);
}

static bool value(struct work *w, struct span a, struct span b) {
	bool same = false;
	if (!a.n || !b.n || w->depth >= DEPTH_MAX || !take(w, a.n + b.n)) return false;
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
	struct work w = {.left = 64 * (a.n + b.n) + 65536};
	return value(&w, a, b);
}
