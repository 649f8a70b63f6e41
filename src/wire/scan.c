/* SPDX-License-Identifier: MIT */
#include "wire/scan.h"

#include "base/buf.h"
#include "base/str.h"
#include "wire/disown.h"
#include "wire/lengths.h"
#include "wire/wide.h"

#include <ctype.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* The position of a scan. Every step either moves p forward or fails, and never reads at or after end. */
struct cursor {
	const char *p, *end;
	bool wide; /* wide.h may be used */
};

#define WIDE_FROM 64 /* shorter lines do not profit */

/* --- Steps -------------------------------------------------------------------------------------------------------- */

static inline void skip_blanks(struct cursor *c) {
	while (c->p < c->end && span_blank(*c->p)) c->p++;
}

/* Most strings of a line are keys and ids: look at 16 or 32 bytes in place before a call to memchr() pays. */
static inline const char *find_quote(const char *p, const char *end) {
#ifdef __SSE2__
	const __m128i quote = _mm_set1_epi8('"');
	for (int i = 0; i < 2 && end - p >= 16; i++, p += 16) {
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
static bool is_escaped(const char *quote) {
	const char *p = quote;
	while (p[-1] == '\\') p--;
	return (quote - p) % 2 != 0;
}

/* p is at the opening quote; move past the closing one. */
static inline bool skip_string(struct cursor *c) {
	const char *p = c->p + 1;
	for (;;) {
		const char *quote = find_quote(p, c->end);
		if (!quote) return false;
		p = quote + 1;
		if (LIKELY(quote[-1] != '\\') || !is_escaped(quote)) break;
		if (!c->wide || c->end - p < WIDE_FROM) continue;
		p = wide_string(p, c->end);
		if (!p) return false;
		break;
	}
	c->p = p;
	return true;
}

/* '{' and '[' differ in one bit, as do '}' and ']': with that bit set only two brackets are left to look for. */
static bool skip_container(struct cursor *c) {
	size_t depth = 0;
	if (c->wide && c->end - c->p >= WIDE_FROM) {
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
			if (!skip_string(c)) return false;
			continue;
		}
		c->p++;
		if (bracket == '{') depth++;
		if (bracket == '}' && --depth == 0) return true;
	}
	return false;
}

/* Skip a number, a literal or anything else in the place of a value, up to the next byte with a meaning. */
static bool skip_scalar(struct cursor *c) {
	const char *from = c->p;
	for (; c->p < c->end; c->p++) {
		char ch = *c->p;
		if (ch == ',' || ch == '"' || ch == ':' || (ch | 0x20) == '{' || (ch | 0x20) == '}' || span_blank(ch)) break;
	}
	return c->p > from;
}

static inline bool skip_value(struct cursor *c, struct span *value) {
	const char *from = c->p;
	size_t n;
	bool ok;
	if (c->p >= c->end) return false;
	if (UNLIKELY(lengths_in_use) && lengths_find(c->p, c->end, &n)) {
		c->p += n;
		ok = n != 0;
	} else if (*c->p == '"')
		ok = skip_string(c);
	else if (*c->p == '{' || *c->p == '[')
		ok = skip_container(c);
	else
		ok = skip_scalar(c);
	*value = (struct span){from, (size_t)(c->p - from)};
	return ok;
}

enum step { STEP_MEMBER, STEP_END, STEP_BAD };

/* After '[', '{' or a value: move to the next value or key, or past the closing bracket. */
static inline enum step next_item(struct cursor *c, char closing, bool first) {
	skip_blanks(c);
	if (c->p >= c->end) return STEP_BAD;
	if (*c->p == closing) {
		c->p++;
		return STEP_END;
	}
	if (first) return STEP_MEMBER;
	if (*c->p != ',') return STEP_BAD;
	c->p++;
	skip_blanks(c);
	return c->p < c->end && *c->p != closing ? STEP_MEMBER : STEP_BAD;
}

/* Read a key with its quotes and stop at the value. */
static inline bool read_key(struct cursor *c, struct span *key) {
	const char *from = c->p;
	if (c->p >= c->end || *c->p != '"' || !skip_string(c)) return false;
	*key = (struct span){from, (size_t)(c->p - from)};
	skip_blanks(c);
	if (c->p >= c->end || *c->p != ':') return false;
	c->p++;
	skip_blanks(c);
	return c->p < c->end;
}

static inline enum step next_key(struct cursor *c, bool first, struct span *key) {
	enum step step = next_item(c, '}', first);
	if (step == STEP_MEMBER && !read_key(c, key)) step = STEP_BAD;
	return step;
}

/* --- The envelope ------------------------------------------------------------------------------------------------- */

static inline bool is(const char *key, const char *name, size_t n) {
	return memcmp(key, name, n) == 0;
}

static inline struct span *member_slot(struct envelope *e, const char *k, size_t n) {
	switch (n) {
	case 4:
		return is(k, "type", 4) ? &e->type : is(k, "uuid", 4) ? &e->uuid : NULL;
	case 7:
		return is(k, "subtype", 7)   ? &e->subtype
			   : is(k, "request", 7) ? &e->request
			   : is(k, "message", 7) ? &e->message
									 : NULL;
	case 8:
		return is(k, "response", 8)   ? &e->response
			   : is(k, "is_error", 8) ? &e->is_error
			   : is(k, "isReplay", 8) ? &e->is_replay
									  : NULL;
	case 10:
		return is(k, "session_id", 10) ? &e->session_id : is(k, "request_id", 10) ? &e->request_id : NULL;
	case 17:
		return is(k, "user_message_uuid", 17) ? &e->user_message_uuid : NULL;
	case 18:
		return is(k, "parent_tool_use_id", 18)   ? &e->parent_tool_use_id
			   : is(k, "user_message_uuids", 18) ? &e->user_message_uuids
												 : NULL;
	default:
		return NULL;
	}
}

struct span *envelope_slot(struct envelope *e, const char *key, size_t n) {
	return member_slot(e, key, n);
}

/* The members inside `request` and `response` that routing reads. */
struct inner {
	struct span subtype, request_id, response;
	bool reserved;
};

/* The first byte distinguishes nearly all keys from the daemon's names. */
static inline bool may_be_name(struct span s) {
	switch (s.n > 2 ? s.p[1] : 0) {
	case 'p':
	case 'P':
	case 's':
	case 'S':
	case 'r':
	case 'R':
	case '\xc5':
	case '\\':
		return true;
	default:
		return false;
	}
}

static inline bool is_reserved_key(struct span key) {
	return UNLIKELY(may_be_name(key)) && disown_is_key(key);
}

static inline bool is_reserved_value(struct span value) {
	return UNLIKELY(may_be_name(value)) && disown_is_value(value);
}

static bool scan_inner(struct cursor *c, struct inner *in) {
	struct span key, value;
	enum step step;
	c->p++;
	for (bool first = true; (step = next_key(c, first, &key)) == STEP_MEMBER; first = false) {
		if (!skip_value(c, &value)) return false;
		if (key.n == 9 && is(key.p + 1, "subtype", 7)) {
			in->subtype = value;
			in->reserved |= is_reserved_value(value);
		} else {
			in->reserved |= is_reserved_key(key);
		}
		if (key.n == 12 && is(key.p + 1, "request_id", 10)) in->request_id = value;
		if (key.n == 10 && is(key.p + 1, "response", 8)) in->response = value;
	}
	return step == STEP_END;
}

static bool scan_member(struct cursor *c, struct span key, struct envelope *e, struct inner *request,
						struct inner *response) {
	struct span ignored = SPAN_NONE, *slot = member_slot(e, key.p + 1, key.n - 2);
	struct inner *in = slot == &e->request ? request : slot == &e->response ? response : NULL;
	if (LIKELY(!in)) {
		struct span *value = slot ? slot : &ignored;
		if (!skip_value(c, value)) return false;
		if (slot ? slot == &e->subtype && is_reserved_value(*slot) : is_reserved_key(key)) e->reserved = true;
		return true;
	}
	*in = (struct inner){0};
	if (*c->p != '{') return skip_value(c, slot);
	const char *from = c->p;
	if (!scan_inner(c, in)) return false;
	e->reserved |= in == request && in->reserved;
	*slot = (struct span){from, (size_t)(c->p - from)};
	return true;
}

/* Nearly every line of the child starts like this. */
static inline bool scan_type_first(struct cursor *c, struct envelope *e) {
	static const char start[] = "{\"type\":\"";
	const size_t n = sizeof start - 1;
	if ((size_t)(c->end - c->p) <= n || memcmp(c->p, start, n) != 0) return false;
	struct cursor value = {c->p + n - 1, c->end, false};
	if (!skip_string(&value)) return false;
	e->type = (struct span){c->p + n - 1, (size_t)(value.p - (c->p + n - 1))};
	c->p = value.p;
	return true;
}

static inline bool scan(const char *p, size_t n, struct envelope *e, bool wide) {
	struct cursor c = {p, p + n, wide};
	struct inner request = {0}, response = {0};
	struct span key;
	enum step step;
	*e = (struct envelope){0};
	skip_blanks(&c);
	bool first = !scan_type_first(&c, e);
	if (first && (c.p >= c.end || *c.p++ != '{')) return false;
	for (; (step = next_key(&c, first, &key)) == STEP_MEMBER; first = false)
		if (!scan_member(&c, key, e, &request, &response)) return false;
	skip_blanks(&c);
	e->inner_subtype = e->request.p ? request.subtype : response.subtype;
	e->inner_request_id = e->request.p ? request.request_id : response.request_id;
	e->inner_response = response.response;
	return step == STEP_END && c.p == c.end;
}

bool scan_envelope(const char *p, size_t n, struct envelope *e) {
	return scan(p, n, e, wide_here());
}

bool scan_envelope_plain(const char *p, size_t n, struct envelope *e) {
	return scan(p, n, e, false);
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
	if (!resume(obj, '{', *at, &c, &first) || next_key(&c, first, key) != STEP_MEMBER) return false;
	if (c.p == known.p) {
		*value = known;
		c.p += known.n;
	} else if (!skip_value(&c, value)) {
		return false;
	}
	*at = (size_t)(c.p - obj.p);
	return true;
}

bool span_next_member(struct span obj, size_t *at, struct span *key, struct span *value) {
	return span_next_member_past(obj, at, key, value, SPAN_NONE);
}

bool span_next(struct span array, size_t *at, struct span *element) {
	struct cursor c;
	bool first;
	if (!resume(array, '[', *at, &c, &first)) return false;
	if (next_item(&c, ']', first) != STEP_MEMBER || !skip_value(&c, element)) return false;
	*at = (size_t)(c.p - array.p);
	return true;
}

struct span span_member(struct span obj, const char *name) {
	struct span key, value, found = SPAN_NONE;
	size_t at = 0, n = strlen(name);
	while (span_next_member(obj, &at, &key, &value))
		if (key.n == n + 2 && is(key.p + 1, name, n)) found = value;
	return found;
}

struct span span_member_spelled(struct span obj, const char *name) {
	struct span key, value, found = SPAN_NONE;
	size_t n = strlen(name), len;
	for (size_t at = 0; span_next_member(obj, &at, &key, &value);) {
		_cleanup_free_ char *text = memchr(key.p, '\\', key.n) ? span_dup(key, &len) : NULL;
		bool is_it = text ? len == n && is(text, name, n) : key.n == n + 2 && is(key.p + 1, name, n);
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
			if (!skip_string(&c)) break;
			continue;
		}
		n += *c.p == ',' || *c.p == ':' || *c.p == '[' || *c.p == '{';
		c.p++;
	}
	return n;
}

/* --- Values ------------------------------------------------------------------------------------------------------- */

bool span_is_string(struct span s) {
	return s.n >= 2 && s.p[0] == '"' && s.p[s.n - 1] == '"';
}

bool span_is_object(struct span s) {
	return s.n >= 2 && s.p[0] == '{';
}

bool span_is_array(struct span s) {
	return s.n >= 2 && s.p[0] == '[';
}

bool span_is_true(struct span s) {
	return s.n == 4 && is(s.p, "true", 4);
}

bool span_equals(struct span s, const char *text) {
	size_t n = strlen(text);
	return span_is_string(s) && s.n == n + 2 && is(s.p + 1, text, n);
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

char *span_dup(struct span s, size_t *len) {
	struct span raw = span_content(s);
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	const char *p = raw.p, *end = raw.p ? raw.p + raw.n : NULL;
	bool ok = raw.p && buf_reserve(&b, raw.n);
	while (ok && p < end) {
		if (*p != '\\') {
			ok = put_plain(&b, &p, end);
			continue;
		}
		p++;
		ok = unescape(&b, &p, end);
	}
	if (ok) return buf_steal(&b, len);
	buf_free(&b);
	return NULL;
}
