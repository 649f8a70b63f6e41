/* SPDX-License-Identifier: MIT
 *
 * For the test of a dialect through its table, which defines `d` before it includes this.
 */
#pragma once

#include "core/gate.h"
#include "harness.h"

#include <stdlib.h>
#include <string.h>

static struct envelope scan(const char *line) {
	struct envelope e;
	REQUIRE(d->scan(line, strlen(line), &e), "%s", line);
	return e;
}

static void has(struct span s, const char *want) {
	bool same = want ? s.p && s.n == strlen(want) && memcmp(s.p, want, s.n) == 0 : !s.p;
	REQUIRE(same, "%.*s is not %s", (int)s.n, s.p ? s.p : "", want ? want : "(none)");
}

/* Return what was built; it lives until the next call. */
static const char *built(struct buf *b) {
	static char *last;
	free(last);
	last = buf_steal(b, NULL);
	return last ? last : "";
}

#define B BUF_INIT(1 << 16)

struct kind_row {
	const char *line;
	enum line_kind kind;
};

static void check_kinds(const struct kind_row *rows, size_t n) {
	for (size_t i = 0; i < n; i++) {
		struct envelope e = scan(rows[i].line);
		REQUIRE(d->kind(&e) == rows[i].kind, "%s: %d", rows[i].line, (int)d->kind(&e));
	}
}

static bool passes(struct gate *gate, enum trust who, const char *line) {
	struct message m;
	struct chunk rewritten;
	struct gate_verdict v;
	struct span id;
	struct error error;
	REQUIRE(d->check(line, strlen(line), &m, &rewritten, &error, &id), "%s: %s", line, error.text);
	gate_judge(gate, who, &m, span_of(line), &v);
	return v.passes;
}

struct right_row {
	const char *line;
	bool observer, driver;
};

/* An own peer may send each of the lines. */
static void check_rights(const struct right_row *rows, size_t n) {
	static struct gate gate;
	gate_init(&gate, d);
	for (size_t i = 0; i < n; i++) {
		ck_assert(passes(&gate, TRUST_OWN, rows[i].line));
		REQUIRE(passes(&gate, TRUST_OBSERVER, rows[i].line) == rows[i].observer, "an observer: %s", rows[i].line);
		REQUIRE(passes(&gate, TRUST_DRIVER, rows[i].line) == rows[i].driver, "a driver: %s", rows[i].line);
	}
}
