/* SPDX-License-Identifier: MIT
 *
 * The steps of a scan over a JSON line: for scan.c, and for a dialect that reads the members of a line in one pass. All
 * inline: a line of the child passes them once. Lines are trusted to be JSON, as in scan.h.
 */
#pragma once

#include "base/macros.h"
#include "wire/lengths.h"
#include "wire/scan.h"
#include "wire/wide.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* The position of a scan. Every step either moves p forward or fails, and never reads at or after end. */
struct cursor {
	const char *p, *end;
	bool wide; /* wide.h may be used */
};

#define CURSOR_WIDE_FROM 64 /* shorter lines do not profit */

/* --- Steps -------------------------------------------------------------------------------------------------------- */

static inline void cursor_skip_blanks(struct cursor *c) {
	while (c->p < c->end && span_blank(*c->p)) c->p++;
}

/* Most strings of a line are keys and ids, with 36 bytes at most: look at 48 in place before a call to memchr() pays.
 */
static inline const char *cursor_find_quote(const char *p, const char *end) {
#ifdef __SSE2__
	const __m128i quote = _mm_set1_epi8('"');
	for (int i = 0; i < 3 && end - p >= 16; i++, p += 16) {
		__m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
		int mask = _mm_movemask_epi8(_mm_cmpeq_epi8(v, quote));
		if (mask) return p + __builtin_ctz((unsigned)mask);
	}
#else
	for (int i = 0; i < 16 && p < end; i++, p++)
		if (*p == '"') return p;
#endif
	return memchr(p, '"', (size_t)(end - p));
}

/* An odd run of backslashes before a quote escapes it. The run ends at the latest at the string's opening quote. */
static UNUSED bool cursor_is_escaped(const char *quote) {
	const char *p = quote;
	while (p[-1] == '\\') p--;
	return (quote - p) % 2 != 0;
}

/* p is at the opening quote; move past the closing one. */
static inline bool cursor_skip_string(struct cursor *c) {
	const char *p = c->p + 1;
	for (;;) {
		const char *quote = cursor_find_quote(p, c->end);
		if (!quote) return false;
		p = quote + 1;
		if (LIKELY(quote[-1] != '\\') || !cursor_is_escaped(quote)) break;
		if (!c->wide || c->end - p < CURSOR_WIDE_FROM) continue;
		p = wide_string(p, c->end);
		if (!p) return false;
		break;
	}
	c->p = p;
	return true;
}

/* '{' and '[' differ in one bit, as do '}' and ']': with that bit set only two brackets are left to look for. */
static UNUSED bool cursor_skip_container(struct cursor *c) {
	size_t depth = 0;
	if (c->wide && c->end - c->p >= CURSOR_WIDE_FROM) {
		const char *p = wide_container(c->p, c->end);
		if (!p) return false;
		if (p != c->p) {
			c->p = p;
			return true;
		}
	}
	while (c->p < c->end) {
		char bracket = (char)(*c->p | 0x20);
		if (*c->p == '"') {
			if (!cursor_skip_string(c)) return false;
			continue;
		}
		c->p++;
		if (bracket == '{') depth++;
		if (bracket == '}' && --depth == 0) return true;
	}
	return false;
}

/* Skip a number, a literal or anything else in the place of a value, up to the next byte with a meaning. */
static UNUSED bool cursor_skip_scalar(struct cursor *c) {
	const char *from = c->p;
	for (; c->p < c->end; c->p++) {
		char ch = *c->p;
		if (ch == ',' || ch == '"' || ch == ':' || (ch | 0x20) == '{' || (ch | 0x20) == '}' || span_blank(ch)) break;
	}
	return c->p > from;
}

static inline bool cursor_skip_value(struct cursor *c, struct span *value) {
	const char *from = c->p;
	size_t n;
	bool ok;
	if (c->p >= c->end) return false;
	if (UNLIKELY(lengths_in_use) && lengths_find(c->p, c->end, &n)) {
		c->p += n;
		ok = n != 0;
	} else if (*c->p == '"')
		ok = cursor_skip_string(c);
	else if (*c->p == '{' || *c->p == '[')
		ok = cursor_skip_container(c);
	else
		ok = cursor_skip_scalar(c);
	*value = (struct span){from, (size_t)(c->p - from)};
	return ok;
}

/* p is on the opening bracket of an object. True: its members must not be read. */
static inline bool cursor_is_wide(const char *p) {
	return UNLIKELY(lengths_in_use) && lengths_is_wide(p);
}

enum cursor_step { CURSOR_MEMBER, CURSOR_END, CURSOR_BAD };

/* After '[', '{' or a value: move to the next value or key, or past the closing bracket. */
static inline enum cursor_step cursor_next_item(struct cursor *c, char closing, bool first) {
	cursor_skip_blanks(c);
	if (c->p >= c->end) return CURSOR_BAD;
	if (*c->p == closing) {
		c->p++;
		return CURSOR_END;
	}
	if (first) return CURSOR_MEMBER;
	if (*c->p != ',') return CURSOR_BAD;
	c->p++;
	cursor_skip_blanks(c);
	return c->p < c->end && *c->p != closing ? CURSOR_MEMBER : CURSOR_BAD;
}

/* Read a key with its quotes and stop at the value. */
static inline bool cursor_read_key(struct cursor *c, struct span *key) {
	const char *from = c->p;
	if (c->p >= c->end || *c->p != '"' || !cursor_skip_string(c)) return false;
	*key = (struct span){from, (size_t)(c->p - from)};
	cursor_skip_blanks(c);
	if (c->p >= c->end || *c->p != ':') return false;
	c->p++;
	cursor_skip_blanks(c);
	return c->p < c->end;
}

static inline enum cursor_step cursor_next_key(struct cursor *c, bool first, struct span *key) {
	enum cursor_step step = cursor_next_item(c, '}', first);
	if (step == CURSOR_MEMBER && !cursor_read_key(c, key)) step = CURSOR_BAD;
	return step;
}
