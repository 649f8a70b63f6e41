/* SPDX-License-Identifier: MIT */
#include "base/str.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <time.h>

static const char *digits(const char *p, uint64_t *value) {
	const char *start = p;
	uint64_t v = 0;
	for (; *p >= '0' && *p <= '9'; p++) {
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v)) return NULL;
	}
	*value = v;
	return p == start ? NULL : p;
}

bool str_u64(const char *text, uint64_t min, uint64_t max, uint64_t *value) {
	uint64_t v;
	const char *end = digits(text, &v);
	if (!end || *end || v < min || v > max) return false;
	*value = v;
	return true;
}

bool str_size(const char *text, size_t *bytes) {
	uint64_t v;
	const char *p = digits(text, &v);
	if (!p) return false;
	unsigned shift = 0;
	if (*p == 'K' || *p == 'k') shift = 10;
	if (*p == 'M' || *p == 'm') shift = 20;
	if (*p == 'G' || *p == 'g') shift = 30;
	if (shift) p++;
	if (shift && *p == 'i') p++;
	if (*p == 'B') p++;
	if (*p || v > (SIZE_MAX >> 1 >> shift)) return false;
	*bytes = (size_t)v << shift;
	return true;
}

bool str_time(const char *text, int64_t *ms) {
	static const struct {
		const char *name;
		int64_t ms;
	} units[] = {{"ms", 1}, {"s", 1000}, {"sec", 1000}, {"m", 60000}, {"min", 60000}, {"h", 3600000}, {"d", 86400000}};
	uint64_t v;
	if (strcasecmp(text, "never") == 0) {
		*ms = INT64_MAX;
		return true;
	}
	const char *p = digits(text, &v);
	if (!p) return false;
	while (*p == ' ') p++;
	if (!*p && v == 0) {
		*ms = 0;
		return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (strcmp(p, units[i].name) == 0) {
			if (v > (uint64_t)(INT64_MAX / 4 / units[i].ms)) return false;
			*ms = (int64_t)v * units[i].ms;
			return true;
		}
	return false;
}

size_t str_utf8(const char *text, size_t n) {
	const unsigned char *p = (const unsigned char *)text;
	if (n == 0) return 0;
	if (p[0] < 0x80) return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4) return 0;
	size_t need = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (n < need) return 0;
	for (size_t i = 1; i < need; i++)
		if ((p[i] & 0xc0) != 0x80) return 0;
	if (p[0] == 0xe0 && p[1] < 0xa0) return 0;
	if (p[0] == 0xed && p[1] > 0x9f) return 0;
	if (p[0] == 0xf0 && p[1] < 0x90) return 0;
	if (p[0] == 0xf4 && p[1] > 0x8f) return 0;
	return need;
}

size_t str_fit(const char *text, size_t max) {
	size_t n = strnlen(text, max + 1);
	if (n <= max) return n;
	for (n = max; n && max - n < 4 && ((unsigned char)text[n] & 0xc0) == 0x80;) n--;
	return n;
}

/* Return true if none of these 8 bytes is of a longer character. */
static bool is_ascii(const char *eight) {
	uint64_t word;
	memcpy(&word, eight, sizeof word);
	return !(word & 0x8080808080808080ULL);
}

bool str_is_utf8(const char *text, size_t n) {
	for (size_t i = 0, len; i < n; i += len) {
		len = n - i >= 8 && is_ascii(text + i) ? 8 : str_utf8(text + i, n - i);
		if (!len) return false;
	}
	return true;
}

uint32_t str_char(const char *text, size_t n) {
	const unsigned char *p = (const unsigned char *)text;
	uint32_t c = n == 1 ? p[0] : p[0] & (0xffU >> (n + 1));
	for (size_t i = 1; i < n; i++) c = c << 6 | (p[i] & 0x3f);
	return c;
}

struct range {
	uint32_t from, to;
};

static bool is_in(const struct range *ranges, size_t n, uint32_t c) {
	for (size_t i = 0; i < n; i++)
		if (c >= ranges[i].from && c <= ranges[i].to) return true;
	return false;
}

bool str_misleads(uint32_t c) {
	static const struct range ranges[] = {{0x00, 0x1f},     {0x7f, 0x9f},     {0x61c, 0x61c},
										  {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}};
	return is_in(ranges, ARRAY_SIZE(ranges), c);
}

bool str_hides(uint32_t c) {
	static const struct range ranges[] = {{0xad, 0xad},     {0x34f, 0x34f},   {0x115f, 0x1160}, {0x17b4, 0x17b5},
										  {0x180e, 0x180e}, {0x200b, 0x200d}, {0x2060, 0x206f}, {0x3164, 0x3164},
										  {0xfeff, 0xfeff}, {0xffa0, 0xffa0}, {0xfff9, 0xfffb}, {0xe0000, 0xe0fff}};
	return str_misleads(c) || (c >= 0xad && is_in(ranges, ARRAY_SIZE(ranges), c));
}

static void put_escape(struct buf *b, uint32_t c) {
	if (c > 0xffff)
		buf_printf(b, "\\u%04x\\u%04x", 0xd7c0 + (c >> 10), 0xdc00 + (c & 0x3ff));
	else
		buf_printf(b, "\\u%04x", c);
}

void str_put_safe(struct buf *b, const char *text, size_t n) {
	for (size_t i = 0, len; i < n; i += MAX(len, (size_t)1)) {
		len = str_utf8(text + i, n - i);
		uint32_t c = len ? str_char(text + i, len) : 0;
		if (c >= 0xa0 && str_hides(c))
			put_escape(b, c);
		else if (str_hides(c))
			for (size_t k = i; k < i + MAX(len, (size_t)1); k++) buf_printf(b, "\\x%02x", (unsigned char)text[k]);
		else
			buf_put(b, text + i, len);
	}
}

void str_put_quoted(struct buf *b, const char *text, size_t n) {
	buf_putc(b, '"');
	for (size_t i = 0, len; i < n; i += MAX(len, (size_t)1)) {
		len = str_utf8(text + i, n - i);
		uint32_t c = len ? str_char(text + i, len) : 0xfffd;
		if (c == '"' || c == '\\')
			buf_printf(b, "\\%c", (char)c);
		else if (c == '\n' || c == '\t')
			buf_puts(b, c == '\n' ? "\\n" : "\\t");
		else if (!len || str_hides(c))
			put_escape(b, c);
		else
			buf_put(b, text + i, len);
	}
	buf_putc(b, '"');
}

void str_put_word(struct buf *b, const char *text, size_t n) {
	bool plain = n > 0;
	for (size_t i = 0; plain && i < n; i++) plain = text[i] > ' ' && text[i] < 0x7f && !strchr("\"=\\", text[i]);
	if (plain)
		buf_put(b, text, n);
	else
		str_put_quoted(b, text, n);
}

char *str_word(const char *text) {
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	str_put_word(&b, text, strlen(text));
	if (!b.failed) return buf_steal(&b, NULL);
	buf_free(&b);
	return NULL;
}

/* Bytes that need no escape in a JSON string. */
static size_t plain(const char *text, size_t n) {
	size_t i = 0;
	while (i < n && text[i] >= ' ' && text[i] < 0x7f && text[i] != '"' && text[i] != '\\') i++;
	return i;
}

void str_put_json(struct buf *b, const char *text, size_t n) {
	buf_putc(b, '"');
	for (size_t i = 0; i < n;) {
		size_t same = plain(text + i, n - i);
		if (same) {
			buf_put(b, text + i, same);
			i += same;
			continue;
		}
		size_t len = str_utf8(text + i, n - i);
		unsigned char c = (unsigned char)text[i];
		if (len == 0) {
			buf_puts(b, "\xef\xbf\xbd");
			i++;
			continue;
		}
		if (c == '"' || c == '\\')
			buf_printf(b, "\\%c", c);
		else if (c == '\n')
			buf_puts(b, "\\n");
		else if (c == '\t')
			buf_puts(b, "\\t");
		else if (c < 0x20 || c == 0x7f)
			buf_printf(b, "\\u%04x", c);
		else
			buf_put(b, text + i, len);
		i += len;
	}
	buf_putc(b, '"');
}

char *str_dup(const char *text) {
	return text ? strdup(text) : NULL;
}

char *str_vprintf(const char *fmt, va_list ap) {
	char *text = NULL;
	return vasprintf(&text, fmt, ap) < 0 ? NULL : text;
}

char *str_printf(const char *fmt, ...) {
	va_list ap;
	va_start(ap, fmt);
	char *text = str_vprintf(fmt, ap);
	va_end(ap);
	return text;
}

void str_random_hex(char *out, size_t n) {
	unsigned char raw[64];
	size_t got = 0, want = MIN((n + 1) / 2, sizeof raw);
	while (got < want) {
		ssize_t r = getrandom(raw + got, want - got, 0);
		if (r < 0 && errno != EINTR) abort(); /* no randomness: ids could be guessed */
		if (r > 0) got += (size_t)r;
	}
	for (size_t i = 0; i < n; i++) out[i] = "0123456789abcdef"[raw[(i / 2) % sizeof raw] >> (i % 2 ? 4 : 0) & 15];
	out[n] = 0;
}

void str_uuid(char out[STR_UUID_SIZE]) {
	char hex[33];
	str_random_hex(hex, 32);
	hex[12] = '4';
	hex[16] = "89ab"[(unsigned char)hex[16] & 3];
	snprintf(out, STR_UUID_SIZE, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16, hex + 20);
}
