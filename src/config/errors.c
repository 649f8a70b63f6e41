/* SPDX-License-Identifier: MIT */
#include "config/errors.h"

#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define WHAT_MAX 512 /* a quoted value can be long */

bool errors_add(struct errors *m, struct place at, const char *fmt, ...) {
	char what[WHAT_MAX];
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	if (at.file && at.line)
		buf_printf(&b, "%s:%d: ", at.file, at.line);
	else if (at.file)
		buf_printf(&b, "%s: ", at.file);
	str_put_safe(&b, what, strlen(what));
	if (!b.failed) words_add(&m->list, b.data);
	m->n++;
	buf_free(&b);
	return false;
}

bool errors_add_memory(struct errors *m) {
	return errors_add(m, (struct place){0}, "out of memory");
}

const char *errors_text(const struct errors *m, size_t i) {
	return i < m->list.n ? m->list.v[i] : "out of memory";
}

void errors_sum_up(const struct errors *m, struct error *out) {
	const char *first = errors_text(m, 0);
	if (m->n < 2)
		error_set(out, "%s", first);
	else
		error_set(out, "%s (and %zu more: the log has them, and plenumd --check prints them)", first, m->n - 1);
}

void errors_free(struct errors *m) {
	words_free(&m->list);
	m->n = 0;
}
