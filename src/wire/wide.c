/* SPDX-License-Identifier: MIT */
#include "wire/wide.h"

#include <stddef.h>

#if defined __x86_64__ && (defined __GNUC__ || defined __clang__)

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define WIDE __attribute__((target("avx2,bmi,popcnt,pclmul")))
#define STEP 64
#define MANY 4 /* closing brackets in a step from which on they are not looked at one by one */

bool wide_here(void) {
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("popcnt") &&
		   __builtin_cpu_supports("pclmul");
}

/* 64 bytes of the line. */
struct step {
	__m256i low, high;
	size_t before; /* the first of them, which belong to the step before */
};

/* The line's last bytes are looked at with those before them, from start on; if there are not enough, in a copy with
 * zeros behind them, which is slow: its loads wait for its stores. */
static inline WIDE struct step load(const char *p, const char *start, const char *end) {
	char tail[STEP] = {0};
	size_t before = 0;
	if (end - p < STEP && end - start >= STEP) {
		before = (size_t)(STEP - (end - p));
		p -= before;
	} else if (end - p < STEP) {
		p = memcpy(tail, p, (size_t)(end - p));
	}
	return (struct step){_mm256_loadu_si256((const __m256i *)(const void *)p),
						 _mm256_loadu_si256((const __m256i *)(const void *)(p + STEP / 2)), before};
}

static inline WIDE uint64_t equal(struct step s, char c) {
	const __m256i v = _mm256_set1_epi8(c);
	uint32_t low = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(s.low, v));
	uint32_t high = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(s.high, v));
	return (low | (uint64_t)high << 32) >> s.before;
}

/* '[' becomes '{' and ']' becomes '}'; no other byte becomes one of them. */
static inline WIDE struct step fold_brackets(struct step s) {
	const __m256i bit = _mm256_set1_epi8(0x20);
	return (struct step){_mm256_or_si256(s.low, bit), _mm256_or_si256(s.high, bit), s.before};
}

/* The bytes that a backslash before them escapes. *carry: whether the first byte is one; then, of the next step. */
static inline WIDE uint64_t escaped(uint64_t backslash, uint64_t *carry) {
	const uint64_t even = 0x5555555555555555;
	uint64_t first = *carry, sequences;
	*carry = 0;
	if (!backslash) return first;
	backslash &= ~first;
	uint64_t follows = backslash << 1 | first, odd_starts = backslash & ~even & ~follows;
	*carry = __builtin_add_overflow(odd_starts, backslash, &sequences);
	return (even ^ sequences << 1) & follows;
}

/* Each bit becomes the parity of those up to it: between an opening quote (included) and its closing one it is 1. */
static inline WIDE uint64_t parity(uint64_t bits) {
	__m128i all = _mm_set1_epi8((char)0xff);
	return (uint64_t)_mm_cvtsi128_si64(_mm_clmulepi64_si128(_mm_set_epi64x(0, (int64_t)bits), all, 0));
}

WIDE const char *wide_string(const char *const start, const char *end) {
	uint64_t carry = 0;
	for (const char *p = start; p < end; p += STEP) {
		struct step s = load(p, start, end);
		uint64_t quotes = equal(s, '"') & ~escaped(equal(s, '\\'), &carry);
		if (quotes) return p + __builtin_ctzll(quotes) + 1;
	}
	return NULL;
}

/* The bit of the bracket that closes the container, where it is within this step. */
static WIDE int closing(uint64_t open, uint64_t close, uint64_t depth) {
	for (; close; close &= close - 1) {
		int at = __builtin_ctzll(close);
		uint64_t opened = (uint64_t)__builtin_popcountll(open & ((close & -close) - 1));
		if (depth-- + opened == 1) return at;
	}
	return -1;
}

/* Each byte becomes the sum of those up to it. */
static inline WIDE __m256i sums(__m256i v) {
	v = _mm256_add_epi8(v, _mm256_slli_si256(v, 1));
	v = _mm256_add_epi8(v, _mm256_slli_si256(v, 2));
	v = _mm256_add_epi8(v, _mm256_slli_si256(v, 4));
	v = _mm256_add_epi8(v, _mm256_slli_si256(v, 8));
	__m256i lanes = _mm256_shuffle_epi8(v, _mm256_set1_epi8(15));
	return _mm256_add_epi8(v, _mm256_permute2x128_si256(lanes, lanes, 0x08));
}

/* The same as closing() where no string is in the step, without a look at each bracket: +1 for one that opens, -1 for
 * one that closes, and the container ends where their sum is -depth for the first time. depth <= 64. */
static inline WIDE int closing_of_many(struct step brackets, uint64_t depth) {
	const __m256i opening = _mm256_set1_epi8('{'), closed = _mm256_set1_epi8('}');
	__m256i end = _mm256_set1_epi8((char)-(int)depth);
	__m256i low = sums(_mm256_sub_epi8(_mm256_cmpeq_epi8(brackets.low, closed), /* a hit is -1 */
									   _mm256_cmpeq_epi8(brackets.low, opening)));
	__m256i high = sums(
		_mm256_sub_epi8(_mm256_cmpeq_epi8(brackets.high, closed), _mm256_cmpeq_epi8(brackets.high, opening)));
	high = _mm256_add_epi8(high, _mm256_set1_epi8((char)_mm256_extract_epi8(low, 31)));
	uint64_t hits = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(low, end)) |
					(uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(high, end)) << 32;
	return hits ? __builtin_ctzll(hits) : -1;
}

WIDE const char *wide_container(const char *const start, const char *end) {
	uint64_t carry = 0, depth = 0, within = 0; /* within: all ones at the end of a step that ends in a string */
	for (const char *p = start; p < end; p += STEP) {
		struct step s = load(p, start, end);
		uint64_t backslash = equal(s, '\\'), quotes = equal(s, '"') & ~escaped(backslash, &carry);
		if (within && !quotes) continue; /* the inside of a long string */
		uint64_t string = parity(quotes) ^ within;
		within = (uint64_t)((int64_t)string >> 63);
		if (backslash & ~string) return start;
		struct step brackets = fold_brackets(s);
		uint64_t open = equal(brackets, '{') & ~string, close = equal(brackets, '}') & ~string;
		uint64_t closed = (uint64_t)__builtin_popcountll(close);
		if (closed >= depth && close) {
			int at = string || closed < MANY || s.before ? closing(open, close, depth)
														 : closing_of_many(brackets, depth);
			if (at >= 0) return p + at + 1;
		}
		depth += (uint64_t)__builtin_popcountll(open) - closed;
	}
	return NULL;
}

WIDE uint64_t wide_marks(const char **p, const char *stop, const char *end, struct wide_state *s, const char **step) {
	while (*p < stop) {
		const char *at = *p;
		struct step bytes = load(at, at, end), brackets = fold_brackets(bytes);
		uint64_t carry = s->carry, backslash = equal(bytes, '\\');
		uint64_t quotes = equal(bytes, '"') & ~escaped(backslash, &carry), string = parity(quotes) ^ s->within;
		s->refused = backslash & ~string;
		if (s->refused) return 0;
		s->carry = carry;
		s->within = (uint64_t)((int64_t)string >> 63);
		*p = end - at < STEP ? end : at + STEP;
		uint64_t marks = quotes | ((equal(brackets, '{') | equal(brackets, '}')) & ~string);
		if (!marks) continue;
		*step = at;
		return marks;
	}
	return 0;
}

#else

bool wide_here(void) {
	return false;
}

const char *wide_string(const char *p, const char *end) {
	(void)p, (void)end;
	return NULL;
}

const char *wide_container(const char *p, const char *end) {
	(void)end;
	return p;
}

uint64_t wide_marks(const char **p, const char *stop, const char *end, struct wide_state *s, const char **step) {
	(void)p, (void)stop, (void)end, (void)step;
	s->refused = true;
	return 0;
}

#endif
