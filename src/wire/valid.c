/* SPDX-License-Identifier: MIT */
#include "wire/valid.h"

#include "base/macros.h"
#include "base/str.h"

#include <stddef.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

static enum valid_state bad(struct valid *v, const char *error) {
	v->error = error;
	return VALID_BAD;
}

/* Return true if the pass must stop before the end of the text. */
static inline bool is_interrupted(const struct valid *v) {
	return UNLIKELY(v->p >= v->stop) && v->stop < v->end;
}

static inline void skip_blanks(struct valid *v) {
	while (v->p < v->stop && span_blank(*v->p)) v->p++;
}

/* Move to the next byte of a string that is not plain: quote, backslash, control character, or not ASCII. As signed
 * bytes the last two are both less than a space. */
static inline const char *skip_plain(const char *p, const char *end) {
#ifdef __SSE2__
	const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\'), blank = _mm_set1_epi8(' ');
	for (; end - p >= 16; p += 16) {
		__m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
		__m128i hit = _mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, backslash));
		int mask = _mm_movemask_epi8(_mm_or_si128(hit, _mm_cmplt_epi8(v, blank)));
		if (mask) return p + __builtin_ctz((unsigned)mask);
	}
#endif
	while (p < end && *p != '"' && *p != '\\' && (signed char)*p >= ' ') p++;
	return p;
}

static bool is_hex(char c) {
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

static bool is_short_escape(char ch) {
	switch (ch) {
	case '"':
	case '\\':
	case '/':
	case 'b':
	case 'f':
	case 'n':
	case 'r':
	case 't':
		return true;
	default:
		return false;
	}
}

/* p is at a backslash. A lone surrogate is accepted, as by the child. */
static bool check_escape(struct valid *v) {
	if (v->end - v->p >= 2 && is_short_escape(v->p[1])) {
		v->p += 2;
		return true;
	}
	if (v->end - v->p >= 2 && v->p[1] == 'u') {
		int digits = 0;
		while (digits < 4 && v->end - v->p > 2 + digits && is_hex(v->p[2 + digits])) digits++;
		v->p += digits == 4 ? 6 : 0;
		if (digits == 4) return true;
	}
	v->error = "a string has a backslash with nothing after it that JSON knows: write \\\\ for a backslash";
	return false;
}

static const char *odd_byte(const struct valid *v) {
	if (v->p >= v->end) return "a string is not closed: its ending quote is missing";
	if (*v->p == 0) return "there is a NUL byte in the line: write it as \\u0000 inside a string";
	if ((unsigned char)*v->p < 0x20) return "a string has a raw control character: write it as an escape, such as \\n";
	return "the line is not valid UTF-8";
}

enum string { STRING_OVER, STRING_BAD, STRING_MORE };

/* p is within a string; move past the closing quote. */
static enum string check_string(struct valid *v) {
	for (;;) {
		v->p = skip_plain(v->p, v->stop);
		if (LIKELY(v->p < v->stop && *v->p == '"')) {
			v->p++;
			return STRING_OVER;
		}
		if (is_interrupted(v)) return STRING_MORE;
		size_t n = v->p < v->end ? str_utf8(v->p, (size_t)(v->end - v->p)) : 0;
		if (n > 1) {
			v->p += n;
		} else if (n == 1 && *v->p == '\\') {
			if (!check_escape(v)) return STRING_BAD;
		} else {
			v->error = odd_byte(v);
			return STRING_BAD;
		}
	}
}

static bool accept(struct valid *v, char a, char b) {
	if (v->p >= v->end || (*v->p != a && *v->p != b)) return false;
	v->p++;
	return true;
}

static bool check_literal(struct valid *v, const char *word) {
	size_t n = strlen(word);
	if ((size_t)(v->end - v->p) >= n && memcmp(v->p, word, n) == 0) {
		v->p += n;
		return true;
	}
	v->error = "a word that is not JSON: strings need double quotes, and the only words are true, false and null";
	return false;
}

static const char *no_value(const struct valid *v) {
	if (v->p >= v->end)
		return v->depth ? "the line ends in the middle of the JSON: is it one line?" : "the line is empty";
	if (*v->p == 0) return "there is a NUL byte in the line: write it as \\u0000 inside a string";
	if (*v->p == ']' || *v->p == '}' || *v->p == ',') return "a value is missing (a comma too many?)";
	if (*v->p == '\'') return "single quotes are not JSON: strings need double quotes";
	if (v->end - v->p >= 3 && memcmp(v->p, "\xef\xbb\xbf", 3) == 0)
		return "there is a byte order mark (EF BB BF): write UTF-8 without it";
	if (!str_utf8(v->p, (size_t)(v->end - v->p))) return "the line is not valid UTF-8";
	return "this is not JSON: write one JSON object on each line";
}

/* --- The machine -------------------------------------------------------------------------------------------------- */

static bool in_array(const struct valid *v) {
	return v->arrays[(v->depth - 1) / 64] >> (v->depth - 1) % 64 & 1;
}

static enum valid_state end_value(struct valid *v) {
	if (v->depth < ARRAY_SIZE(v->wants) && v->wants[v->depth]) {
		v->wants[v->depth] = false;
		v->watch->value(v, (struct span){v->begin[v->depth], (size_t)(v->p - v->begin[v->depth])});
	}
	return v->depth ? VALID_AFTER : VALID_END;
}

static enum valid_state close_level(struct valid *v) {
	v->p++;
	v->depth--;
	return end_value(v);
}

static enum valid_state step_first(struct valid *v) {
	bool array = in_array(v);
	skip_blanks(v);
	if (is_interrupted(v)) return VALID_FIRST;
	if (v->p < v->end && *v->p == (array ? ']' : '}')) return close_level(v);
	return array ? VALID_VALUE : VALID_KEY;
}

static enum valid_state open_level(struct valid *v) {
	bool array = *v->p == '[';
	if (v->depth == VALID_MAX_DEPTH) return bad(v, "the JSON is nested deeper than 4096 levels");
	v->p++;
	uint64_t bit = (uint64_t)1 << v->depth % 64;
	if (array)
		v->arrays[v->depth / 64] |= bit;
	else
		v->arrays[v->depth / 64] &= ~bit;
	v->depth++;
	return step_first(v);
}

static enum valid_state step_string(struct valid *v) {
	switch (check_string(v)) {
	case STRING_OVER:
		return end_value(v);
	case STRING_MORE:
		return VALID_STRING;
	default:
		return VALID_BAD;
	}
}

/* A run of digits, and the bytes allowed after it. */
static enum valid_state step_digits(struct valid *v) {
	for (;;) {
		for (; v->p < v->stop && *v->p >= '0' && *v->p <= '9'; v->p++) v->digits = true;
		if (is_interrupted(v)) return VALID_DIGITS;
		if (!v->digits) return bad(v, "a number is not written as JSON wants it");
		if (v->part < VALID_FRACTION && accept(v, '.', '.')) {
			v->part = VALID_FRACTION;
		} else if (v->part < VALID_EXPONENT && accept(v, 'e', 'E')) {
			v->part = VALID_EXPONENT;
			accept(v, '+', '-');
		} else {
			return end_value(v);
		}
		v->digits = false;
	}
}

static enum valid_state begin_number(struct valid *v) {
	accept(v, '-', '-');
	v->part = VALID_INTEGER;
	v->digits = accept(v, '0', '0');
	if (v->digits && v->p < v->end && *v->p >= '0' && *v->p <= '9')
		return bad(v, "a number begins with 0: JSON has no leading zeros");
	return step_digits(v);
}

static enum valid_state step_value(struct valid *v) {
	skip_blanks(v);
	if (is_interrupted(v)) return VALID_VALUE;
	if (v->depth < ARRAY_SIZE(v->begin)) v->begin[v->depth] = v->p;
	if (!v->first) v->first = v->p;
	char first = v->p < v->end ? *v->p : 0;
	if (first == '-' || (first >= '0' && first <= '9')) return begin_number(v);
	switch (first) {
	case '{':
	case '[':
		return open_level(v);
	case '"':
		v->p++;
		return step_string(v);
	case 't':
		return check_literal(v, "true") ? end_value(v) : VALID_BAD;
	case 'f':
		return check_literal(v, "false") ? end_value(v) : VALID_BAD;
	case 'n':
		return check_literal(v, "null") ? end_value(v) : VALID_BAD;
	default:
		return bad(v, no_value(v));
	}
}

static enum valid_state step_colon(struct valid *v) {
	skip_blanks(v);
	if (is_interrupted(v)) return VALID_COLON;
	if (v->p >= v->end || *v->p != ':') return bad(v, "a colon is missing after a key");
	v->p++;
	return VALID_VALUE;
}

static enum valid_state step_key_string(struct valid *v) {
	enum string r = check_string(v);
	if (r != STRING_OVER) return r == STRING_MORE ? VALID_KEY_STRING : VALID_BAD;
	bool looked_at = v->depth < ARRAY_SIZE(v->keys) && v->keys[v->depth];
	if (looked_at && !v->watch->key(v, v->key, (size_t)(v->p - v->key) - 1)) return VALID_BAD;
	return step_colon(v);
}

static enum valid_state step_key(struct valid *v) {
	skip_blanks(v);
	if (is_interrupted(v)) return VALID_KEY;
	if (v->p >= v->end) return bad(v, no_value(v));
	if (*v->p != '"')
		return bad(v, *v->p == '}' ? "there is a comma before }" : "a key is missing: keys need double quotes");
	v->key = ++v->p;
	return step_key_string(v);
}

static enum valid_state step_after(struct valid *v) {
	bool array = in_array(v);
	skip_blanks(v);
	if (is_interrupted(v)) return VALID_AFTER;
	if (v->p >= v->end) return bad(v, "the line ends in the middle of the JSON: is it one line?");
	if (*v->p == (array ? ']' : '}')) return close_level(v);
	if (*v->p != ',')
		return bad(v, array ? "a comma or ] is missing after a value" : "a comma or } is missing after a value");
	v->p++;
	return array ? VALID_VALUE : VALID_KEY;
}

static enum valid_state step_end(struct valid *v) {
	skip_blanks(v);
	if (is_interrupted(v)) return VALID_END;
	if (v->p == v->end) return VALID_DONE;
	return bad(v, *v->p ? "there is something after the JSON object: end each object with a newline"
						: "there is a NUL byte in the line: write it as \\u0000 inside a string");
}

/* Continue after an interruption. */
static enum valid_state go_on(struct valid *v, enum valid_state state) {
	switch (state) {
	case VALID_STRING:
		return step_string(v);
	case VALID_DIGITS:
		return step_digits(v);
	case VALID_FIRST:
		return step_first(v);
	case VALID_KEY_STRING:
		return step_key_string(v);
	case VALID_COLON:
		return step_colon(v);
	case VALID_END:
		return step_end(v);
	default:
		return state;
	}
}

static inline enum valid_state step(struct valid *v, enum valid_state state) {
	if (state == VALID_VALUE) return step_value(v);
	if (state == VALID_KEY) return step_key(v);
	if (state == VALID_AFTER) return step_after(v);
	return go_on(v, state);
}

bool valid_run(struct valid *v, size_t bytes) {
	enum valid_state state = v->state;
	v->stop = bytes < (size_t)(v->end - v->p) ? v->p + bytes : v->end;
	while (state < VALID_DONE && v->p < v->stop) state = step(v, state);
	while (state < VALID_DONE && v->stop == v->end) state = step(v, state); /* at the end each step ends a value */
	v->state = state;
	return state >= VALID_DONE;
}

void valid_begin(struct valid *v, const char *p, size_t n, const struct valid_watch *watch) {
	memset(v, 0, offsetof(struct valid, arrays)); /* for every line: a short one does not use all of it */
	v->p = p;
	v->end = p + n;
	v->watch = watch;
	v->keys[1] = watch != NULL;
}

bool valid_json(const char *p, size_t n, const char **error, size_t *at) {
	struct valid v;
	valid_begin(&v, p, n, NULL);
	valid_run(&v, n);
	if (v.state == VALID_DONE) return true;
	*error = v.error;
	*at = (size_t)(v.p - p);
	return false;
}

bool valid_span(struct span json) {
	const char *error;
	size_t at;
	return valid_json(json.p, json.n, &error, &at);
}

/* --- keys ------------------------------------------------------------------------------------------------------------
 */

#define DISGUISE_MAX 4096 /* longer than any name that routing or the child looks for */

bool valid_hides_key(const char *key, size_t n) {
	if (n > DISGUISE_MAX || !memchr(key, '\\', n)) return false;
	for (size_t i = 0; i < n; i++) {
		int ch = (unsigned char)key[i];
		if (ch == '\\') {
			if (key[i + 1] != 'u' || key[i + 2] != '0' || key[i + 3] != '0') return false;
			char hex[3] = {key[i + 4], key[i + 5], 0};
			ch = (int)strtol(hex, NULL, 16);
			i += 5;
		}
		bool word = ch == '_' || (ch >= '0' && ch <= '9') || ((ch | 0x20) >= 'a' && (ch | 0x20) <= 'z' && ch < 0x80);
		if (!word) return false;
	}
	return true;
}
