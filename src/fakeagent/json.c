/* SPDX-License-Identifier: MIT */
#include "fakeagent/json.h"

#include "base/str.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NO_LIMIT (SIZE_MAX / 2)
#define MARK 0x10F000u /* where lone surrogates are kept */

json_t *js_need(json_t *value) {
	if (!value) {
		fputs("plenum-fakeagent: out of memory\n", stderr);
		_exit(70);
	}
	return value;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

static int hex4(const char *p, const char *end, unsigned *value) {
	if (end - p < 6 || p[0] != '\\' || p[1] != 'u') return 0;
	unsigned v = 0;
	for (int i = 2; i < 6; i++) {
		if (!isxdigit((unsigned char)p[i])) return 0;
		v = v * 16 + (unsigned)(isdigit((unsigned char)p[i]) ? p[i] - '0' : (p[i] | 32) - 'a' + 10);
	}
	*value = v;
	return 6;
}

static void put_utf8(struct buf *b, unsigned c) {
	char s[4] = {(char)(0xF0 | c >> 18), (char)(0x80 | (c >> 12 & 63)), (char)(0x80 | (c >> 6 & 63)),
				 (char)(0x80 | (c & 63))};
	buf_put(b, s, 4);
}

/* An escape at p: copied, or marked where it is half a pair. Returns the bytes used. */
static size_t put_escape(struct buf *b, const char *p, const char *end) {
	unsigned hi, lo;
	size_t n = (size_t)hex4(p, end, &hi);
	if (!n) {
		n = end - p < 2 ? 1 : 2;
	} else if (hi >= 0xD800 && hi < 0xDC00 && hex4(p + 6, end, &lo) && lo >= 0xDC00 && lo < 0xE000) {
		n = 12;
	} else if (hi >= 0xD800 && hi < 0xE000) {
		put_utf8(b, MARK + (hi & 0x7FF));
		return 6;
	}
	buf_put(b, p, n);
	return n;
}

static size_t put_string(struct buf *b, const char *p, const char *end) {
	const char *from = p;
	buf_putc(b, *p++);
	while (p < end && *p != '"') {
		if (*p == '\\') {
			p += put_escape(b, p, end);
			continue;
		}
		size_t n = str_utf8(p, (size_t)(end - p));
		if (n)
			buf_put(b, p, n);
		else
			buf_puts(b, "\xEF\xBF\xBD");
		p += n ? n : 1;
	}
	if (p < end) buf_putc(b, *p++);
	return (size_t)(p - from);
}

/* A number that fits is copied; one that does not becomes a real that does. */
static size_t put_number(struct buf *b, const char *p, const char *end) {
	size_t n = 0;
	while (p + n < end && strchr("+-.eE0123456789", p[n]) && p[n]) n++;
	bool whole = !memchr(p, '.', n) && !memchr(p, 'e', n) && !memchr(p, 'E', n);
	char *text = strndup(p, n);
	double d = text ? strtod(text, NULL) : 0;
	if (d > 1e308 || d < -1e308)
		buf_puts(b, d > 0 ? "1.7e308" : "-1.7e308");
	else if (whole && n > 18)
		buf_printf(b, "%.*s.0", (int)n, p);
	else
		buf_put(b, p, n);
	free(text);
	return n;
}

static void tolerate(struct buf *b, const char *p, size_t n) {
	const char *end = p + n;
	while (p < end) {
		if (*p == '"') {
			p += put_string(b, p, end);
		} else if (*p == '-' || isdigit((unsigned char)*p)) {
			p += put_number(b, p, end);
		} else {
			buf_putc(b, *p++);
		}
	}
}

enum js_result js_parse(const char *p, size_t n, json_t **value) {
	json_error_t err;
	*value = json_loadb(p, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &err);
	if (*value) return JS_OK;
	_cleanup_(buf_free) struct buf b = BUF_INIT(NO_LIMIT);
	tolerate(&b, p, n);
	if (b.len) *value = json_loadb(b.data, b.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &err);
	if (*value) return JS_OK;
	enum json_error_code code = json_error_code(&err);
	return code == json_error_stack_overflow || code == json_error_null_byte_in_key ? JS_ODD : JS_BAD;
}

/* ---- printing -------------------------------------------------------------------------------------------------- */

static int dump_some(const char *p, size_t n, void *arg) {
	struct buf *b = arg;
	return buf_put(b, p, n) ? 0 : -1;
}

/* Bytes that JSON.stringify and we print as escapes: the marks, U+2028 and U+2029. Returns their length. */
static size_t special(const unsigned char *p, const unsigned char *end, unsigned *c) {
	if (end - p >= 4 && p[0] == 0xF4 && p[1] == 0x8F && p[2] >= 0x80 && p[2] < 0xA0) {
		*c = 0xD800 + ((unsigned)(p[2] & 0x1F) << 6 | (p[3] & 63u));
		return 4;
	}
	if (end - p >= 3 && p[0] == 0xE2 && p[1] == 0x80 && (p[2] & 0xFE) == 0xA8) {
		*c = 0x2000 + (p[2] & 63u);
		return 3;
	}
	return 0;
}

static const char *find_special(const char *p, const char *end) {
	for (; p < end; p++)
		if ((*p == (char)0xF4 || *p == (char)0xE2)) return p;
	return NULL;
}

void js_dump(struct buf *out, const json_t *value) {
	size_t from = out->len;
	if (json_dump_callback(value, dump_some, out, JSON_COMPACT | JSON_ENCODE_ANY) != 0 || out->failed) js_need(NULL);
	const char *hit = find_special(out->data + from, out->data + out->len);
	if (!hit) return;
	_cleanup_(buf_free) struct buf b = BUF_INIT(NO_LIMIT);
	const char *p = out->data + from, *end = out->data + out->len;
	for (; hit; hit = find_special(hit, end)) {
		unsigned c = 0;
		size_t n = special((const unsigned char *)hit, (const unsigned char *)end, &c);
		buf_put(&b, p, (size_t)(hit - p));
		if (n)
			buf_printf(&b, "\\u%04x", c);
		else
			buf_putc(&b, *hit);
		hit += n ? n : 1;
		p = hit;
	}
	buf_put(&b, p, (size_t)(end - p));
	out->len = from;
	if (!buf_put(out, b.data, b.len)) js_need(NULL);
}

char *js_dumps(const json_t *value) {
	struct buf b = BUF_INIT(NO_LIMIT);
	js_dump(&b, value);
	return buf_steal(&b, NULL);
}

/* ---- making and reading values --------------------------------------------------------------------------------- */

json_t *js_text(const char *p, size_t n) {
	json_t *s = json_stringn(p, n);
	if (s) return s;
	_cleanup_(buf_free) struct buf b = BUF_INIT(NO_LIMIT);
	for (size_t i = 0; i < n;) {
		size_t k = str_utf8(p + i, n - i);
		if (k)
			buf_put(&b, p + i, k);
		else
			buf_puts(&b, "\xEF\xBF\xBD");
		i += k ? k : 1;
	}
	return js_need(json_stringn(b.len ? b.data : "", b.len));
}

json_t *js_printf(const char *fmt, ...) {
	va_list ap;
	char *text = NULL;
	va_start(ap, fmt);
	int n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0) js_need(NULL);
	json_t *s = js_text(text, (size_t)n);
	free(text);
	return s;
}

const char *js_get(const json_t *obj, const char *key) {
	return json_string_value(json_object_get(obj, key));
}

bool js_true(const json_t *obj, const char *key) {
	return json_is_true(json_object_get(obj, key));
}

char *js_content_text(const json_t *content) {
	struct buf b = BUF_INIT(NO_LIMIT);
	size_t i;
	json_t *block;
	if (json_is_string(content)) buf_put(&b, json_string_value(content), json_string_length(content));
	json_array_foreach(content, i, block) {
		json_t *text = json_object_get(block, "text");
		if (!json_is_string(text)) continue;
		if (b.len) buf_putc(&b, '\n');
		buf_put(&b, json_string_value(text), json_string_length(text));
	}
	return buf_steal(&b, NULL);
}

void js_put(json_t *obj, const char *key, json_t *value) {
	if (value) json_object_set_new(obj, key, value);
}

void js_uuid(char out[37]) {
	char h[33];
	str_random_hex(h, 32);
	h[12] = '4';
	h[16] = "89ab"[h[16] & 3];
	snprintf(out, 37, "%.8s-%.4s-%.4s-%.4s-%.12s", h, h + 8, h + 12, h + 16, h + 20);
}
