/* SPDX-License-Identifier: MIT */
#include "fakeagent/js.h"

#include "base/fd.h"
#include "base/str.h"

#include <ctype.h>
#include <regex.h>
#include <stdio.h>
#include <time.h>

#define MARK 0x10F000u /* stands for lone surrogates */

void js_no_memory(void) {
	fputs("plenum-fakeagent: out of memory\n", stderr);
	_exit(70);
}

static json_t *need(json_t *value) {
	if (!value) js_no_memory();
	return value;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

/* Copy an escape; replace a lone surrogate by its mark. Return the bytes used. */
static size_t put_escape(struct buf *b, const char *p, size_t left) {
	char text[13] = "";
	unsigned hi = 0, lo = 0;
	memcpy(text, p, MIN(left, sizeof text - 1));
	bool half = sscanf(text, "\\u%4x\\u%4x", &hi, &lo) > 0 && hi >> 11 == 0x1B; /* NOLINT(cert-err34-c) */
	bool pair = half && hi < 0xDC00 && lo >> 10 == 0x37;
	size_t n = pair ? 12 : half ? 6 : MIN(left, (size_t)2);
	if (half && !pair)
		buf_printf(b, "\\u%04x\\u%04x", 0xDBFC | (hi >> 10 & 1), 0xDC00 | (hi & 0x3FF));
	else
		buf_put(b, p, n);
	return n;
}

/* Copy a number; replace one out of range by a real in range. */
static size_t put_number(struct buf *b, const char *p, size_t left) {
	size_t n = 0;
	while (n < left && p[n] && strchr("+-.eE0123456789", p[n])) n++;
	_cleanup_free_ char *text = strndup(p, n);
	double d = text ? strtod(text, NULL) : 0;
	if (d > 1e308 || d < -1e308)
		buf_puts(b, d > 0 ? "1.7e308" : "-1.7e308");
	else
		buf_printf(b, "%.*s%s", (int)n, p, n > 18 && text && !strpbrk(text, ".eE") ? ".0" : "");
	return n;
}

/* Copy a line, with replacements for what only jansson refuses. */
static void tolerate(struct buf *b, const char *p, const char *end) {
	bool text = false;
	for (size_t n; p < end; p += n) {
		size_t left = (size_t)(end - p), whole = str_utf8(p, left);
		n = MAX(whole, (size_t)1);
		if (*p == '"') text = !text;
		if (text && *p == '\\')
			n = put_escape(b, p, left);
		else if (!text && (*p == '-' || isdigit((unsigned char)*p)))
			n = put_number(b, p, left);
		else
			buf_put(b, whole ? p : "\xEF\xBF\xBD", whole ? n : 3);
	}
}

enum js_result js_parse(const char *p, size_t n, json_t **value) {
	json_error_t err;
	*value = json_loadb(p, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &err);
	if (*value) return JS_OK;
	_cleanup_(buf_free) struct buf b = JS_BUF;
	tolerate(&b, p, p + n);
	if (b.len) *value = json_loadb(b.data, b.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &err);
	if (*value) return JS_OK;
	enum json_error_code code = json_error_code(&err);
	return code == json_error_stack_overflow || code == json_error_null_byte_in_key ? JS_ODD : JS_BAD;
}

/* ---- printing -------------------------------------------------------------------------------------------------- */

/* Printed as escapes: the marks, and U+2028 and U+2029 as by the CLI. */
char *js_dumps(const json_t *value) {
	struct buf out = JS_BUF;
	char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
	if (!text) js_no_memory();
	if (!strpbrk(text, "\xE2\xF4")) return text;
	for (const char *p = text; *p;) {
		size_t plain = strcspn(p, "\xE2\xF4"), n = p[plain] ? str_utf8(p + plain, 4) : 0;
		uint32_t c = n ? str_char(p + plain, n) : 0;
		bool mark = c >= MARK && c < MARK + 0x800, special = mark || c == 0x2028 || c == 0x2029;
		buf_put(&out, p, special ? plain : plain + n);
		if (special) buf_printf(&out, "\\u%04x", mark ? c - MARK + 0xD800 : c);
		p += plain + n;
	}
	free(text);
	if (!(text = buf_steal(&out, NULL))) js_no_memory();
	return text;
}

/* ---- templates ------------------------------------------------------------------------------------------------- */

struct maker {
	const char *p;
	const json_t *of;
	va_list ap;
};

static json_t *make_cwd(void) {
	_cleanup_free_ char *cwd = get_current_dir_name();
	return js_string(cwd ? cwd : "/");
}

/* In UTC, as by Date.toISOString(). */
static json_t *make_time(void) {
	int64_t ms = now_real_ms();
	struct tm tm;
	char day[32];
	gmtime_r(&(time_t){ms / 1000}, &tm);
	strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm);
	return js_printf("%s.%03dZ", day, (int)(ms % 1000));
}

static json_t *make_argument(struct maker *m) {
	const char *text;
	char what = *m->p++;
	switch (what) {
	case 's':
	case 'z':
		text = va_arg(m->ap, const char *);
		return text || what == 's' ? js_string(text) : NULL;
	case 'o':
		return va_arg(m->ap, json_t *);
	case 'O':
		return json_incref(va_arg(m->ap, json_t *));
	case 'i':
		return json_integer(va_arg(m->ap, int));
	case 'I':
		return json_integer(va_arg(m->ap, json_int_t));
	case 'b':
		return json_boolean(va_arg(m->ap, int));
	case 't':
		return va_arg(m->ap, int) ? json_true() : NULL;
	case 'f':
		return json_real(va_arg(m->ap, double));
	case 'u':
		return js_uuid();
	case 'w':
		return make_cwd();
	case 'n':
		return make_time();
	default:
		abort();
	}
}

static json_t *make_value(struct maker *m) {
	const char *from = m->p++;
	if (*from == '%') return make_argument(m);
	if (*from == '{' || *from == '[') {
		json_t *all = need(*from == '{' ? json_object() : json_array());
		for (; *m->p != '}' && *m->p != ']'; m->p += *m->p == ',') {
			const char *key = m->p;
			size_t n = *from == '{' ? strcspn(key, ":") : 0;
			if (!key[n]) abort();
			if (*from == '{') m->p += n + 1;
			json_t *value = make_value(m); /* NOLINT(misc-no-recursion): templates are constants */
			if (*from == '[')
				js_add(all, value);
			else if (value)
				json_object_setn_new(all, key, n, value);
		}
		m->p++;
		return all;
	}
	size_t n = strcspn(from, ",}]");
	m->p = from + n;
	if (*from == '$') return json_incref(js_at(m->of, from + 1));
	if (strchr("-0123456789", *from)) return json_integer(strtoll(from, NULL, 10));
	if (n == 4 && memcmp(from, "null", n) == 0) return json_null();
	if (n == 4 && memcmp(from, "true", n) == 0) return json_true();
	return n == 5 && memcmp(from, "false", n) == 0 ? json_false() : js_text(from, n);
}

json_t *js_vmake(const json_t *of, const char *format, va_list ap) {
	struct maker m = {.p = format, .of = of};
	va_copy(m.ap, ap);
	json_t *value = make_value(&m);
	va_end(m.ap);
	return need(value);
}

json_t *js_view(const json_t *of, const char *format, ...) {
	va_list ap;
	va_start(ap, format);
	json_t *value = js_vmake(of, format, ap);
	va_end(ap);
	return value;
}

/* ---- making values --------------------------------------------------------------------------------------------- */

json_t *js_text(const char *p, size_t n) {
	json_t *s = json_stringn(p, n);
	if (s) return s;
	_cleanup_(buf_free) struct buf b = JS_BUF;
	str_put_json(&b, p, n);
	return need(json_loadb(b.data, b.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL));
}

json_t *js_string(const char *text) {
	return text ? js_text(text, strlen(text)) : json_null();
}

json_t *js_of(struct buf *b) {
	json_t *s = js_text(b->data ? b->data : "", b->len);
	buf_free(b);
	return s;
}

json_t *js_printf(const char *fmt, ...) {
	va_list ap;
	va_start(ap, fmt);
	_cleanup_free_ char *text = str_vprintf(fmt, ap);
	va_end(ap);
	if (!text) js_no_memory();
	return js_string(text);
}

json_t *js_uuid(void) {
	char uuid[STR_UUID_SIZE];
	str_uuid(uuid);
	return js_string(uuid);
}

json_t *js_id(const char *prefix) {
	static long number;
	return js_printf("%s%07lx%04ld", prefix, (unsigned long)getpid(), ++number);
}

void js_set(json_t **to, json_t *value) {
	json_decref(*to);
	*to = value;
}

void js_replace(char **to, const char *text) {
	char *copy = str_dup(text);
	free(*to);
	*to = copy;
}

/* ---- reading values -------------------------------------------------------------------------------------------- */

json_t *js_at(const json_t *obj, const char *path) {
	size_t n;
	for (; path[n = strcspn(path, ".,}]")] == '.'; path += n + 1) obj = json_object_getn(obj, path, n);
	return json_object_getn(obj, path, n);
}

const char *js_get(const json_t *obj, const char *key) {
	return json_string_value(js_at(obj, key));
}

json_int_t js_number(const json_t *obj, const char *path) {
	return json_integer_value(js_at(obj, path));
}

bool js_same(const char *a, const char *b) {
	return a && b && strcmp(a, b) == 0;
}

bool js_is(const json_t *obj, const char *key, const char *value) {
	return js_same(js_get(obj, key), value);
}

bool js_true(const json_t *obj, const char *key) {
	return json_is_true(json_object_get(obj, key));
}

bool js_word(const char *word, const char *words) {
	size_t n = strlen(word);
	for (const char *at = words; n && (at = strstr(at, word)); at++)
		if ((at == words || at[-1] == ' ') && strchr(" ", at[n])) return true;
	return false;
}

bool js_has(const json_t *list, const char *text) {
	JS_EACH (one, list)
		if (js_same(json_string_value(one.v), text)) return true;
	return false;
}

bool js_matches(const char *pattern, const char *text) {
	regex_t r;
	if (regcomp(&r, pattern, REG_EXTENDED | REG_NOSUB) != 0) return false;
	bool hit = regexec(&r, text, 0, NULL, 0) == 0;
	regfree(&r);
	return hit;
}

json_t *js_content(const json_t *content) {
	struct buf b = JS_BUF;
	if (json_is_string(content)) return json_incref((json_t *)(uintptr_t)content);
	JS_EACH (block, content) {
		json_t *text = json_object_get(block.v, "text");
		if (!json_is_string(text)) continue;
		if (b.len) buf_putc(&b, '\n');
		buf_put(&b, json_string_value(text), json_string_length(text));
	}
	return js_of(&b);
}

json_t *js_blocks(const json_t *content) {
	if (!json_is_array(content)) return js_make("[{type:text,text:%O}]", content);
	return need(json_copy((json_t *)(uintptr_t)content));
}

bool js_has_block(const json_t *content, const char *type) {
	JS_EACH (block, content)
		if (js_is(block.v, "type", type)) return true;
	return false;
}
