/* SPDX-License-Identifier: MIT */
#include "wire/scan.h"

#include "base/buf.h"
#include "base/macros.h"
#include "base/str.h"
#include "wire/cursor.h"

#include <ctype.h>
#include <string.h>

static inline bool same(const char *key, const char *name, size_t n) {
	return memcmp(key, name, n) == 0;
}

/* --- Walks -------------------------------------------------------------------------------------------------------- */

/* Set the cursor to the next element; *first: it is the first one. */
static bool resume(struct span s, char opening, size_t at, struct cursor *c, bool *first) {
	if (s.n < 2 || *s.p != opening || at > s.n) return false;
	*first = at == 0;
	*c = (struct cursor){s.p + (at ? at : 1), s.p + s.n, wide_here()};
	return true;
}

bool span_next_member_past(struct span obj, size_t *at, struct span *key, struct span *value, struct span known) {
	struct cursor c;
	bool first;
	if (!resume(obj, '{', *at, &c, &first) || (first && cursor_is_wide(obj.p)) ||
		cursor_next_key(&c, first, key) != CURSOR_MEMBER)
		return false;
	if (c.p == known.p) {
		*value = known;
		c.p += known.n;
	} else if (!cursor_skip_value(&c, value)) {
		return false;
	}
	*at = (size_t)(c.p - obj.p);
	return true;
}

bool span_next_member(struct span obj, size_t *at, struct span *key, struct span *value) {
	return span_next_member_past(obj, at, key, value, SPAN_NONE);
}

void span_put_member(struct buf *b, struct span key, struct span value) {
	buf_putc(b, ',');
	buf_put(b, key.p, key.n);
	buf_putc(b, ':');
	buf_put(b, value.p, value.n);
}

bool span_next(struct span array, size_t *at, struct span *element) {
	struct cursor c;
	bool first;
	if (!resume(array, '[', *at, &c, &first)) return false;
	if (cursor_next_item(&c, ']', first) != CURSOR_MEMBER || !cursor_skip_value(&c, element)) return false;
	*at = (size_t)(c.p - array.p);
	return true;
}

struct span span_member(struct span obj, const char *name) {
	struct span key, value, found = SPAN_NONE;
	size_t at = 0, n = strlen(name);
	while (span_next_member(obj, &at, &key, &value))
		if (key.n == n + 2 && same(key.p + 1, name, n)) found = value;
	return found;
}

struct span span_member_spelled(struct span obj, const char *name) {
	struct span key, value, found = SPAN_NONE;
	size_t n = strlen(name), len;
	for (size_t at = 0; span_next_member(obj, &at, &key, &value);) {
		_cleanup_free_ char *text = memchr(key.p, '\\', key.n) ? span_dup(key, &len) : NULL;
		bool is_it = text ? len == n && same(text, name, n) : key.n == n + 2 && same(key.p + 1, name, n);
		if (is_it) found = value;
	}
	return found;
}

struct span span_element(struct span array, size_t index) {
	struct span element;
	size_t at = 0;
	while (span_next(array, &at, &element))
		if (index-- == 0) return element;
	return SPAN_NONE;
}

size_t span_values(struct span s) {
	struct cursor c = {s.p, s.p + s.n, wide_here()};
	size_t n = 1;
	while (c.p < c.end) {
		if (*c.p == '"') {
			if (!cursor_skip_string(&c)) break;
			continue;
		}
		n += *c.p == ',' || *c.p == ':' || *c.p == '[' || *c.p == '{';
		c.p++;
	}
	return n;
}

/* --- Values ------------------------------------------------------------------------------------------------------- */

bool span_is_object(struct span s) {
	return s.n >= 2 && s.p[0] == '{';
}

bool span_is_array(struct span s) {
	return s.n >= 2 && s.p[0] == '[';
}

bool span_is_true(struct span s) {
	return s.n == 4 && same(s.p, "true", 4);
}

bool span_is_one_of(struct span s, const char *const *texts) {
	for (; *texts; texts++)
		if (span_equals(s, *texts)) return true;
	return false;
}

bool span_same(struct span a, struct span b) {
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* Return the value of four hex digits, or -1. */
static int hex4(const char *p, const char *end) {
	int v = 0;
	if (end - p < 4) return -1;
	for (int i = 0; i < 4; i++) {
		int c = p[i] | 0x20;
		int digit = p[i] >= '0' && p[i] <= '9' ? p[i] - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
		if (digit < 0) return -1;
		v = v << 4 | digit;
	}
	return v;
}

/* Return the next letter of a string's content in lower case; 0 for a character of no word. */
static int next_letter(const char **at, const char *end) {
	const char *p = *at;
	*at = p + 1;
	if (*p == '\xc5' && end - p >= 2 && p[1] == '\xbf') { /* U+017F, long s */
		*at = p + 2;
		return 's';
	}
	if (*p != '\\' || end - p < 2) return tolower((unsigned char)*p);
	*at = p + 2;
	if (p[1] != 'u') return strchr("bfnrt", p[1]) ? 0 : tolower((unsigned char)p[1]);
	int code = hex4(p + 2, end);
	if (code < 0) return 0;
	*at = p + 6;
	return code == 0x17f ? 's' : code < 0x80 ? tolower(code) : 0;
}

bool span_spells(struct span s, const char *word, bool whole) {
	if (!span_is_string(s)) return false;
	const char *p = s.p + 1, *end = s.p + s.n - 1;
	for (; *word; word++)
		if (p >= end || next_letter(&p, end) != *word) return false;
	return !whole || p == end;
}

struct span span_content(struct span s) {
	return span_is_string(s) ? (struct span){s.p + 1, s.n - 2} : SPAN_NONE;
}

bool span_int(struct span s, int64_t *value) {
	const bool negative = s.n && *s.p == '-';
	int64_t v = 0; /* counted downwards: INT64_MIN has no positive counterpart */
	size_t i = negative;
	if (i >= s.n || (s.p[i] == '0' && i + 1 < s.n)) return false;
	for (; i < s.n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9') return false;
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_sub_overflow(v, s.p[i] - '0', &v)) return false;
	}
	if (!negative && v == INT64_MIN) return false;
	*value = negative ? v : -v;
	return true;
}

/* --- Unescaping --------------------------------------------------------------------------------------------------- */

static void put_code_point(struct buf *b, int cp) {
	char out[4];
	size_t n = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
	static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
	for (size_t i = n; i-- > 1; cp >>= 6) out[i] = (char)(0x80 | (cp & 0x3f));
	out[0] = (char)(n == 1 ? cp : lead[n] | cp);
	buf_put(b, out, n);
}

/* p is after "\u". A high surrogate includes the low one after it. */
static bool unescape_unicode(struct buf *b, const char **p, const char *end) {
	int cp = hex4(*p, end);
	if (cp <= 0) return false;
	*p += 4;
	if (cp >= 0xd800 && cp < 0xdc00 && end - *p >= 6 && (*p)[0] == '\\' && (*p)[1] == 'u') {
		int low = hex4(*p + 2, end);
		if (low >= 0xdc00 && low < 0xe000) {
			cp = 0x10000 + ((cp - 0xd800) << 10) + (low - 0xdc00);
			*p += 6;
		}
	}
	put_code_point(b, cp >= 0xd800 && cp < 0xe000 ? 0xfffd : cp);
	return true;
}

/* p is after the backslash. */
static bool unescape(struct buf *b, const char **p, const char *end) {
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	if (*p >= end || **p == 0) return false;
	char c = *(*p)++;
	if (c == 'u') return unescape_unicode(b, p, end);
	const char *found = strchr(from, c);
	return found && buf_putc(b, to[found - from]);
}

/* Copy plain bytes up to the next escape; invalid UTF-8 becomes U+FFFD. */
static bool put_plain(struct buf *b, const char **p, const char *end) {
	const char *from = *p;
	size_t n;
	while (*p < end && **p != '\\' && **p && (n = str_utf8(*p, (size_t)(end - *p)))) *p += n;
	buf_put(b, from, (size_t)(*p - from));
	if (*p >= end || **p == '\\') return true;
	if (**p == 0) return false;
	++*p;
	return buf_puts(b, "\xef\xbf\xbd");
}

/* Return the end of a piece of about max bytes, between two characters. */
static const char *piece_end(const char *p, const char *end, size_t max) {
	if ((size_t)(end - p) <= max) return end;
	const char *stop = p + max;
	for (int i = 0; i < 3 && stop < end && ((unsigned char)*stop & 0xc0) == 0x80; i++) stop++;
	return stop;
}

char *span_dup_start(struct span s, size_t max, size_t *len) {
	struct span raw = span_content(s);
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	const char *p = raw.p, *end = raw.p ? raw.p + raw.n : NULL;
	bool ok = raw.p && buf_reserve(&b, MIN(raw.n, max));
	while (ok && p < end && b.len <= max) {
		if (*p != '\\') {
			ok = put_plain(&b, &p, piece_end(p, end, max - b.len + 1));
			continue;
		}
		p++;
		ok = unescape(&b, &p, end);
	}
	if (ok) return buf_steal(&b, len);
	buf_free(&b);
	return NULL;
}

char *span_dup(struct span s, size_t *len) {
	return span_dup_start(s, SIZE_MAX - 1, len);
}
