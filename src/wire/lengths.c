/* SPDX-License-Identifier: MIT */
#include "wire/lengths.h"

#include "base/macros.h"
#include "wire/limits.h"
#include "wire/wide.h"

#include <stdlib.h>
#include <string.h>

#define LEVELS 8 /* deeper values are parts of the remembered ones */

struct value {
	const char *from;
	size_t n;         /* 0: not ended (yet) */
	uint32_t strings; /* directly in it; it stays at UINT32_MAX */
};

struct lengths {
	struct lengths *next; /* in use */
	size_t next_value;    /* the first value that begins behind the last one looked for */
	const char *start, *p, *end;
	size_t least; /* bytes of the shortest remembered value */
	bool wide, over, checked;
	struct wide_state state; /* of strings at p */
	const char *string;      /* the opening quote of the last string */
	const char *own;         /* the opening bracket of the line's own object */
	uint32_t strings;        /* directly in that */
	size_t depth;            /* open brackets; the line's own is not remembered: no reader steps over it */
	size_t open[LEVELS];     /* the places of their values, from the second on */
	struct value *values;    /* in the order of the line: long ones, and open ones at the end */
	size_t n_values, cap;
};

struct lengths *lengths_in_use;

struct lengths *lengths_new(const char *p, size_t n, size_t least) {
	struct lengths *l = calloc(1, sizeof *l);
	if (l) *l = (struct lengths){.start = p, .p = p, .end = p + n, .least = least, .wide = wide_here()};
	return l;
}

struct lengths *lengths_new_checked(const char *p, size_t n, size_t least) {
	struct lengths *l = lengths_new(p, n, least);
	if (l) l->checked = true;
	return l;
}

void lengths_free(struct lengths *l) {
	if (!l) return;
	for (struct lengths **one = &lengths_in_use; *one; one = &(*one)->next) {
		if (*one != l) continue;
		*one = l->next;
		break;
	}
	free(l->values);
	free(l);
}

/* --- measuring ---------------------------------------------------------------------------------------------------- */

static bool put_value(struct lengths *l, const char *from, size_t n) {
	if (l->n_values == l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 256;
		struct value *more = realloc(l->values, cap * sizeof *more);
		if (!more) { /* no value is known: the line is read as a short one */
			free(l->values);
			l->values = NULL;
			l->n_values = 0;
			l->over = true;
			return false;
		}
		l->values = more;
		l->cap = cap;
	}
	l->values[l->n_values++] = (struct value){from, n, 0};
	return true;
}

static bool is_remembered(size_t depth) {
	return depth > 0 && depth <= LEVELS;
}

static void opened(struct lengths *l, const char *at) {
	if (is_remembered(l->depth)) {
		l->open[l->depth - 1] = l->n_values;
		if (!put_value(l, at, 0)) return;
	}
	if (l->depth == 0) l->own = at;
	l->depth++;
}

/* The parts of a short value are short: they were removed before. */
static void closed(struct lengths *l, const char *at) {
	if (l->depth == 0) { /* behind the line's end: the scanner reads no further either */
		l->over = true;
		return;
	}
	if (!is_remembered(--l->depth)) return;
	struct value *v = &l->values[l->open[l->depth - 1]];
	v->n = (size_t)(at - v->from) + 1;
	if (v->n < l->least) l->n_values--;
}

static void string_ended(struct lengths *l, const char *at) {
	size_t n = (size_t)(at - l->string) + 1;
	uint32_t *strings = l->depth == 1 ? &l->strings : NULL;
	if (l->depth > 1 && is_remembered(l->depth - 1)) strings = &l->values[l->open[l->depth - 2]].strings;
	if (strings && *strings < UINT32_MAX && !l->checked) ++*strings;
	if (n >= l->least && is_remembered(l->depth)) (void)put_value(l, l->string, n);
}

/* A byte with a meaning, outside of strings or at one of their ends. */
static void take(struct lengths *l, const char *at, bool *within) {
	if (*at == '"') {
		*within = !*within;
		if (*within)
			l->string = at;
		else
			string_ended(l, at);
	} else if ((*at | 0x20) == '{') {
		opened(l, at);
	} else {
		closed(l, at);
	}
}

static void measure_plain(struct lengths *l, const char *stop) {
	bool within = l->state.within, escaped = l->state.carry;
	for (; l->p < stop && !l->over; l->p++) {
		char ch = *l->p, bracket = (char)(ch | 0x20);
		if (within && escaped)
			escaped = false;
		else if (within && ch == '\\')
			escaped = true;
		else if (ch == '"' || (!within && (bracket == '{' || bracket == '}')))
			take(l, l->p, &within);
	}
	l->state = (struct wide_state){.within = within ? UINT64_MAX : 0, .carry = escaped};
}

static void measure_wide(struct lengths *l, const char *stop) {
	bool within = l->state.within;
	while (l->p < stop && l->wide && !l->over) {
		const char *step;
		uint64_t marks = wide_marks(&l->p, stop, l->end, &l->state, &step);
		for (; marks && !l->over; marks &= marks - 1) take(l, step + __builtin_ctzll(marks), &within);
		l->wide = !l->state.refused;
	}
}

/* A string that does not end is no value: its reader comes to the line's end. */
static void end(struct lengths *l) {
	if (!l->over && l->state.within && is_remembered(l->depth)) (void)put_value(l, l->string, 0);
	l->over = true;
}

bool lengths_step(struct lengths *l, size_t bytes) {
	const char *stop = bytes < (size_t)(l->end - l->p) ? l->p + bytes : l->end;
	if (l->wide) measure_wide(l, stop);
	if (!l->wide) measure_plain(l, stop);
	if (l->p == l->end) end(l);
	return l->over;
}

/* --- use ---------------------------------------------------------------------------------------------------------- */

static bool is_wide(uint32_t strings) {
	return strings > LIMITS_CHILD_MEMBERS;
}

void lengths_use(struct lengths *l) {
	lengths_in_use = NULL;
	(void)lengths_use_also(l);
}

struct lengths *lengths_use_also(struct lengths *l) {
	struct lengths *before = lengths_in_use;
	if (!l || (!l->n_values && !is_wide(l->strings))) return before;
	for (const struct lengths *one = before; one; one = one->next)
		if (one == l) return before;
	l->next_value = 0;
	l->next = before;
	lengths_in_use = l;
	return before;
}

void lengths_use_again(struct lengths *before) {
	lengths_in_use = before;
}

/* Return those of the line with this byte. */
static struct lengths *lengths_at(const char *p) {
	struct lengths *l = lengths_in_use;
	while (l && (p < l->start || p >= l->end)) l = l->next;
	return l;
}

/* The value in the copy of its line. False: it is what was replaced. */
static bool move_value(struct value *v, const struct lengths *from, const struct lengths *to, size_t at, size_t cut) {
	size_t off = (size_t)(v->from - from->start), grown = (size_t)(to->end - to->start),
		   was = (size_t)(from->end - from->start);
	if (off >= at && off < at + cut) return false;
	if (off < at && v->n && off + v->n > at) v->n = v->n + grown - was;
	v->from = to->start + (off < at ? off : off + grown - was);
	return true;
}

struct lengths *lengths_of_copy(const char *at, size_t cut, struct chunk copy) {
	const struct lengths *l = lengths_at(at);
	struct lengths *c = l ? calloc(1, sizeof *c) : NULL;
	if (!c) return NULL;
	*c = (struct lengths){.start = copy.data, .end = copy.data + copy.len, .over = true, .strings = l->strings};
	struct value own = {.from = l->own};
	if (l->own && move_value(&own, l, c, (size_t)(at - l->start), cut)) c->own = own.from;
	c->values = malloc((l->n_values + 1) * sizeof *c->values);
	for (size_t i = 0; c->values && i < l->n_values; i++) {
		c->values[c->n_values] = l->values[i];
		c->n_values += move_value(&c->values[c->n_values], l, c, (size_t)(at - l->start), cut);
	}
	return c;
}

/* Return the value that begins at this byte of a line, or NULL. */
static const struct value *value_at(struct lengths *l, const char *from) {
	size_t low = 0, high = l->n_values, i = l->next_value;
	/* Readers go forward: most values lie between the same two long ones. */
	bool hit = (i == 0 || l->values[i - 1].from < from) && (i == l->n_values || l->values[i].from >= from);
	while (!hit && low < high) {
		size_t middle = low + (high - low) / 2;
		if (l->values[middle].from < from)
			low = middle + 1;
		else
			high = middle;
	}
	if (!hit) i = l->next_value = low;
	return i < l->n_values && l->values[i].from == from ? &l->values[i] : NULL;
}

bool lengths_find(const char *p, const char *end, size_t *n) {
	struct lengths *l = lengths_at(p);
	const struct value *v = l ? value_at(l, p) : NULL;
	if (!v || v->n > (size_t)(end - p)) return false;
	*n = v->n;
	return true;
}

bool lengths_is_wide(const char *p) {
	struct lengths *l = lengths_at(p);
	if (!l) return false;
	if (p == l->own) return is_wide(l->strings);
	const struct value *v = value_at(l, p);
	return v && is_wide(v->strings);
}

bool lengths_line_is_wide(void) {
	return lengths_in_use && is_wide(lengths_in_use->strings);
}
