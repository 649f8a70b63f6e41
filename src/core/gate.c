/* SPDX-License-Identifier: MIT */
#include "core/gate.h"

#include "core/router.h"

#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NAME_MAX_SHOWN 60

/* For names without a row. */
static const struct gate_row unknown = {.name = "", .least = GATE_OWN, .affects = GATE_USER, .act = ACT_PLAIN};

struct judge {
	struct gate *gate;
	enum trust who;
	struct gate_verdict *v;
};

static bool is_word(int c) {
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool admits(enum trust who, enum gate_least least) {
	switch (who) {
	case TRUST_OWN:
		return true;
	case TRUST_DRIVER:
	case TRUST_AGENT:
		return least != GATE_OWN;
	default:
		return least == GATE_OBSERVER;
	}
}

void gate_init(struct gate *g, const struct dialect *d) {
	g->n = 0;
	g->dialect = d;
	g->commands = false;
	for (size_t i = 0; i < d->n_gate; i++) g->commands |= d->gate[i].kind == GATE_COMMAND;
	gate_index_init(&g->rows, d->gate, d->n_gate);
}

/* --- names -------------------------------------------------------------------------------------------------------- */

struct shown {
	char text[NAME_MAX_SHOWN + 1];
};

/* Make a name from a client safe: a byte that might forge a line of the log is shown as '?'. */
static struct shown show(const char *name, size_t n) {
	struct shown out = {""};
	for (size_t i = 0; i < n && i < NAME_MAX_SHOWN; i++) {
		char c = name[i];
		out.text[i] = c && (is_word(c) || strchr("_.:/-", c)) ? c : '?';
	}
	return out;
}

static uint64_t hash_of(uint64_t h, const char *p, size_t n) {
	for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)p[i]) * 0x100000001b3u;
	return h;
}

/* Log a name without a row, once. parent: the object that has it, or its kind. */
static void note_unknown(struct gate *g, const char *parent, const char *name, size_t n) {
	if (g->n == GATE_SEEN_MAX) return;
	uint64_t h = hash_of(hash_of(0xcbf29ce484222325u, parent, strlen(parent)), name, n);
	for (size_t i = 0; i < g->n; i++)
		if (g->seen[i] == h) return;
	g->seen[g->n++] = h;
	log_warn("gate: no row for %s \"%s\": passed on for the daemon's own user alone%s", parent, show(name, n).text,
			 g->n == GATE_SEEN_MAX ? " (further unknown names are not logged)" : "");
}

/* --- verdicts ----------------------------------------------------------------------------------------------------- */

/* Keep the first reason. */
static void PRINTF_LIKE(2, 3) refuse(struct judge *j, const char *fmt, ...) {
	va_list ap;
	if (!j->v->passes) return;
	j->v->passes = false;
	va_start(ap, fmt);
	vsnprintf(j->v->thing, sizeof j->v->thing, fmt, ap);
	va_end(ap);
}

static bool is_same_without_blanks(struct span a, const char *b) {
	size_t at = 0;
	for (; at < a.n; at++) {
		if (strchr(" \t\r\n", a.p[at])) continue;
		if (*b++ != a.p[at]) return false;
	}
	return *b == 0;
}

/* Return true for members that ask for nothing, as written by SDKs: `"hooks":null`, `"agents":{}`. */
static bool asks_nothing(const struct gate_row *row, struct span value) {
	if (is_same_without_blanks(value, "null")) return true;
	return row && row->kind == GATE_MEMBER && row->member && value.n < 16 && is_same_without_blanks(value, row->member);
}

/* long_one: the member that may be most of the line. */
static void judge_members(struct judge *j, const char *parent, size_t n, struct span object, struct span long_one) {
	struct span key, value;
	for (size_t at = 0; j->v->passes && span_next_member_past(object, &at, &key, &value, long_one);) {
		const char *name = key.p + 1;
		size_t len = key.n - 2;
		const struct gate_row *row = dialect_gate_member(&j->gate->rows, parent, n, name, len);
		if (asks_nothing(row, value)) continue;
		if (!row) note_unknown(j->gate, show(parent, n).text, name, len);
		if (admits(j->who, row ? row->least : GATE_OWN)) continue;
		refuse(j, "%s with `%s`", show(parent, n).text, show(name, len).text);
	}
}

/* --- prompts ------------------------------------------------------------------------------------------------------ */

/* Return the next unit of a checked string: a byte, or the value of an escape. */
static int next_unit(const char **p, const char *end) {
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	int c = (unsigned char)*(*p)++;
	if (c != '\\' || *p >= end) return c;
	c = (unsigned char)*(*p)++;
	const char *short_form = strchr(from, c);
	if (c && short_form) return to[short_form - from];
	if (c != 'u' || end - *p < 4) return c;
	int value = 0;
	for (int i = 0; i < 4; i++, ++*p) {
		int digit = (unsigned char)**p;
		value = value << 4 | (digit <= '9' ? digit - '0' : (digit | 0x20) - 'a' + 10);
	}
	return value;
}

static bool is_blank(int c) {
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* "/model x": a word with a further slash is a path. */
static void judge_command(struct judge *j, struct span text) {
	char word[NAME_MAX_SHOWN + 1];
	const char *p = text.p, *end = text.p + text.n;
	size_t n = 0;
	int c = ' ';
	while (p < end && is_blank(c)) c = next_unit(&p, end);
	if (c != '/') return;
	while (p < end && !is_blank(c = next_unit(&p, end))) {
		if (c == '/') return;
		if (n < sizeof word) word[n] = (char)(c < 0x80 ? c : '?');
		n += n < sizeof word;
	}
	const struct gate_row *row = dialect_gate_row(&j->gate->rows, GATE_COMMAND, word, n);
	if (!admits(j->who, row ? row->least : GATE_OWN)) refuse(j, "the command /%s", show(word, n).text);
}

/* "@path": not behind a letter or a digit, as in an address. */
static void judge_mentions(struct judge *j, struct span text) {
	const char *p = text.p, *end = text.p + text.n;
	const struct gate_row *row = dialect_gate_row(&j->gate->rows, GATE_COMMAND, "@", 1);
	int before = ' ';
	bool open = false;
	while (p < end) {
		int c = next_unit(&p, end);
		if (open && !is_blank(c) && !admits(j->who, row->least)) {
			refuse(j, "a prompt that mentions a file with @");
			return;
		}
		open = row && c == '@' && !is_word(before);
		before = c;
	}
}

static void judge_text(struct judge *j, struct span string) {
	struct span text = span_content(string);
	if (!text.p || !j->gate->commands) return;
	judge_command(j, text);
	judge_mentions(j, text);
}

static void judge_block(struct judge *j, struct span block) {
	struct span key, value, type = SPAN_NONE, text = SPAN_NONE;
	for (size_t at = 0; span_next_member(block, &at, &key, &value);) { /* the last one of its name counts */
		if (span_equals(key, "type")) type = span_content(value);
		if (span_equals(key, "text")) text = value;
	}
	const struct gate_row *row = type.p ? dialect_gate_row(&j->gate->rows, GATE_BLOCK, type.p, type.n) : NULL;
	if (!row && type.p) note_unknown(j->gate, "block", type.p, type.n);
	if (!admits(j->who, row ? row->least : GATE_OWN))
		refuse(j, "a prompt with a `%s` block", show(type.p, type.n).text);
	judge_text(j, text);
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

static const struct gate_row *judge_name(struct judge *j, enum gate_kind kind, struct span name) {
	const struct gate_row *row = dialect_gate_row(&j->gate->rows, kind, name.p, name.n);
	bool is_type = kind == GATE_TYPE;
	if (!row) note_unknown(j->gate, is_type ? "type" : "subtype", name.p, name.n);
	if (!admits(j->who, row ? row->least : GATE_OWN))
		refuse(j, is_type ? "a line of type %s" : "%s", show(name.p, name.n).text);
	return row ? row : &unknown;
}

void gate_judge(struct gate *g, enum trust who, const struct message *m, struct span line, struct gate_verdict *v) {
	struct judge j = {g, who, v};
	struct span type = span_content(m->env.type), subtype = span_content(m->env.inner_subtype), block;
	*v = (struct gate_verdict){.passes = true};
	while (line.n && *line.p != '{') line.p++, line.n--; /* spaces before it are allowed */
	v->row = judge_name(&j, GATE_TYPE, type);
	if (m->kind == MESSAGE_REQUEST) v->row = judge_name(&j, GATE_REQUEST, subtype);
	if (v->row->least == GATE_OWN) return; /* an own peer may send it with any member */
	struct span long_one = m->env.request.p ? m->env.request : m->env.message.p ? m->env.message : m->env.response;
	judge_members(&j, type.p, type.n, line, long_one);
	if (m->kind == MESSAGE_REQUEST) judge_members(&j, subtype.p, subtype.n, m->env.request, SPAN_NONE);
	if (m->kind != MESSAGE_USER) return;
	judge_members(&j, "message", 7, m->env.message, m->content);
	if (who == TRUST_OWN) return; /* passes regardless of its content */
	judge_text(&j, m->content);
	for (size_t at = 0; span_next(m->content, &at, &block);) judge_block(&j, block);
}

struct gate *gate_of(const struct client *c) {
	struct gate *g = c->world->gates;
	while (g->dialect != c->dialect) g++;
	return g;
}
