/* SPDX-License-Identifier: MIT */
#include "base/str.h"

#include "harness.h"

#include <string.h>

START_TEST(numbers) {
	uint64_t v = 7;
	ck_assert(str_u64("0", 0, 10, &v) && v == 0);
	ck_assert(str_u64("10", 0, 10, &v) && v == 10);
	ck_assert(str_u64("007", 0, 10, &v) && v == 7);
	ck_assert(str_u64("18446744073709551615", 0, UINT64_MAX, &v) && v == UINT64_MAX);
	static const char *const wrong[] = {
		"", "-1", "+1", " 1", "1 ", "1x", "0x1", "1.0", "11", "18446744073709551616", "99999999999999999999999"};
	v = 7;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) REQUIRE(!str_u64(wrong[i], 0, 10, &v), "%s", wrong[i]);
	ck_assert(!str_u64("18446744073709551616", 0, UINT64_MAX, &v));
	ck_assert(!str_u64("1", 2, 10, &v));
	ck_assert_uint_eq(v, 7);
}
END_TEST

START_TEST(sizes) {
	static const struct {
		const char *text;
		size_t bytes;
	} good[] = {{"0", 0},       {"4096", 4096},    {"4096B", 4096},    {"64K", 65536},  {"64k", 65536},
				{"1KiB", 1024}, {"16M", 16 << 20}, {"16MB", 16 << 20}, {"1G", 1 << 30}, {"2GiB", (size_t)2 << 30}};
	static const char *const wrong[] = {
		"", "K", "-1", "1T", "1KK", "1 K", "1Ki B", "1.5M", "1i", "1BB", "9007199254740992G", "18446744073709551616"};
	size_t v;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		REQUIRE(str_size(good[i].text, &v) && v == good[i].bytes, "%s gives %zu", good[i].text, v);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) REQUIRE(!str_size(wrong[i], &v), "%s", wrong[i]);
}
END_TEST

START_TEST(times) {
	static const struct {
		const char *text;
		int64_t ms;
	} good[] = {
		{"0", 0},       {"0s", 0},       {"500ms", 500},   {"30s", 30000},       {"30 s", 30000},     {"2min", 120000},
		{"2m", 120000}, {"2h", 7200000}, {"1d", 86400000}, {"never", INT64_MAX}, {"NEVER", INT64_MAX}};
	static const char *const wrong[] = {
		"", "5", "s", "-1s", "1.5s", "1y", "1 minute", "1s1s", "99999999999999999d", "nevermore"};
	int64_t v;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		REQUIRE(str_time(good[i].text, &v) && v == good[i].ms, "%s", good[i].text);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) REQUIRE(!str_time(wrong[i], &v), "%s", wrong[i]);
}
END_TEST

/* The definition: decode, and check that the shortest encoding gives the same bytes. */
static size_t utf8_plain(const unsigned char *p, size_t n) {
	static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t need = p[0] < 0x80             ? 1
				  : (p[0] & 0xe0) == 0xc0 ? 2
				  : (p[0] & 0xf0) == 0xe0 ? 3
				  : (p[0] & 0xf8) == 0xf0 ? 4
										  : 0;
	if (need == 0 || n < need) return 0;
	unsigned cp = need == 1 ? p[0] : p[0] & (0x7fu >> need);
	for (size_t i = 1; i < need; i++) {
		if ((p[i] & 0xc0) != 0x80) return 0;
		cp = cp << 6 | (p[i] & 0x3fu);
	}
	return cp < least[need] || cp > 0x10ffff || (cp >= 0xd800 && cp < 0xe000) ? 0 : need;
}

START_TEST(utf8) {
	unsigned char p[4];
	for (unsigned a = 0; a < 256; a++)
		for (unsigned b = 0; b < 256; b++) {
			static const unsigned char tails[][2] = {{0x80, 0x80}, {0xbf, 0xbf}, {0x7f, 0x80}, {0x80, 0xc0}, {0, 0}};
			for (size_t t = 0; t < ARRAY_SIZE(tails); t++)
				for (size_t n = 1; n <= 4; n++) {
					memcpy(p, (unsigned char[]){(unsigned char)a, (unsigned char)b, tails[t][0], tails[t][1]}, 4);
					size_t got = str_utf8((const char *)p, n), want = utf8_plain(p, n);
					REQUIRE(got == want, "%02x %02x %02x %02x of %zu: %zu", a, b, p[2], p[3], n, got);
				}
		}
	ck_assert_uint_eq(str_utf8("", 0), 0);
	ck_assert(str_is_utf8("", 0) && str_is_utf8("a\0\xc3\xa9", 4));
	/* a bad byte is found, and a good character passes, at any place and length */
	for (size_t n = 1; n < 40; n++)
		for (size_t at = 0; at < n; at++) {
			char text[40];
			memset(text, 'a', n);
			ck_assert(str_is_utf8(text, n));
			text[at] = '\x80';
			ck_assert(!str_is_utf8(text, n));
			text[at] = '\xc3';
			ck_assert(!str_is_utf8(text, n));
			if (at + 1 < n) text[at + 1] = '\xa9';
			ck_assert(str_is_utf8(text, n) == (at + 1 < n));
		}
	ck_assert(!str_is_utf8("a\xc3", 2) && !str_is_utf8("a\xff"
													   "b",
													   3));
}
END_TEST

static void is_safe(const char *text, size_t n, const char *want) {
	struct buf b = BUF_INIT(1000);
	str_put_safe(&b, text, n);
	REQUIRE(strcmp(b.data ? b.data : "", want) == 0, "%s instead of %s", b.data, want);
	buf_free(&b);
}

START_TEST(safe_text) {
	is_safe("", 0, "");
	is_safe("plain \xc3\xa9", 8, "plain \xc3\xa9");
	is_safe("a\nb\tc\0d", 7, "a\\x0ab\\x09c\\x00d");
	is_safe("\x1b[2J", 4, "\\x1b[2J");
	is_safe("\x7f\xff", 2, "\\x7f\\xff");
	is_safe("\xc2\x9b"
			"x",
			3, "\\xc2\\x9bx"); /* CSI in one character */
	is_safe("\xe2\x82", 2, "\\xe2\\x82");
	is_safe("a\xe2\x80\xae\xe2\x80\xa8\xe2\x80\x8d", 10, "a\\u202e\\u2028\\u200d");
	is_safe("\xc2\xad\xf3\xa0\x81\x81", 6, "\\u00ad\\udb40\\udc41");
	is_safe("\xf0\x9f\x98\x80\xef\xb8\x8f", 7, "\xf0\x9f\x98\x80\xef\xb8\x8f"); /* a variation selector is visible */
}
END_TEST

START_TEST(characters_that_hide) {
	static const uint32_t names[] = {0,      '\n',   0x1f,   0x7f,   0x80,   0x9f,  0x61c,
									 0x200e, 0x200f, 0x2028, 0x202e, 0x2066, 0x2069};
	static const uint32_t more[] = {0xad,   0x34f,  0x115f, 0x1160, 0x17b4, 0x180e, 0x200b,  0x200c, 0x200d,
									0x2060, 0x206f, 0x3164, 0xfeff, 0xffa0, 0xfff9, 0xe0001, 0xe007f};
	static const uint32_t plain[] = {' ',    'a',    '~',    0xa0,   0xe9,   0x5d0,  0x200a,
									 0x2010, 0x2027, 0x202f, 0x2070, 0xfe0f, 0xfffd, 0x1f600};
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		REQUIRE(str_misleads(names[i]) && str_hides(names[i]), "%x", names[i]);
	for (size_t i = 0; i < ARRAY_SIZE(more); i++) REQUIRE(!str_misleads(more[i]) && str_hides(more[i]), "%x", more[i]);
	for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
		REQUIRE(!str_misleads(plain[i]) && !str_hides(plain[i]), "%x", plain[i]);
	ck_assert_uint_eq(str_char("a", 1), 'a');
	ck_assert_uint_eq(str_char("\xc3\xa9", 2), 0xe9);
	ck_assert_uint_eq(str_char("\xe2\x80\xae", 3), 0x202e);
	ck_assert_uint_eq(str_char("\xf0\x9f\x98\x80", 4), 0x1f600);
}
END_TEST

static void is_word(const char *text, const char *want) {
	_cleanup_free_ char *word = str_word(text);
	ck_assert_str_eq(word, want);
}

START_TEST(words_of_a_log_line) {
	is_word("s-1.x:/@", "s-1.x:/@");
	is_word("", "\"\"");
	is_word("a b", "\"a b\"");
	is_word("a=b", "\"a=b\"");
	is_word("a\"b", "\"a\\\"b\"");
	is_word("a\\b", "\"a\\\\b\"");
	is_word("\xc3\xa9", "\"\xc3\xa9\"");
	is_word("a\nb\x1b\x7f\xff", "\"a\\nb\\u001b\\u007f\\ufffd\"");
	is_word("\xe2\x80\xae\xf3\xa0\x81\x81", "\"\\u202e\\udb40\\udc41\"");
}
END_TEST

static void is_json(const char *text, size_t n, const char *want) {
	struct buf b = BUF_INIT(1000);
	str_put_json(&b, text, n);
	REQUIRE(strcmp(b.data, want) == 0, "%s instead of %s", b.data, want);
	buf_free(&b);
}

START_TEST(json_strings) {
	is_json("", 0, "\"\"");
	is_json("a\"b\\c", 5, "\"a\\\"b\\\\c\"");
	is_json("\n\t\x01\x7f", 4, "\"\\n\\t\\u0001\\u007f\"");
	is_json("a\0b", 3, "\"a\\u0000b\"");
	is_json("\xc3\xa9", 2, "\"\xc3\xa9\"");
	is_json("\xff", 1, "\"\xef\xbf\xbd\"");
	is_json("\xe2\x80\xa8", 3, "\"\xe2\x80\xa8\"");
}
END_TEST

START_TEST(random_hex) {
	char a[200], b[200];
	for (size_t n = 0; n < 40; n++) {
		str_random_hex(a, n);
		REQUIRE(strlen(a) == n && strspn(a, "0123456789abcdef") == n, "%zu: %s", n, a);
	}
	str_random_hex(a, 32);
	str_random_hex(b, 32);
	ck_assert_str_ne(a, b);
	ck_assert_int_ne(memcmp(a, a + 16, 16), 0);
}
END_TEST

START_TEST(random_uuids) {
	char one[37], last[37] = "";
	for (int i = 0; i < 200; i++) {
		str_uuid(one);
		ck_assert_uint_eq(strlen(one), 36);
		for (int k = 0; k < 36; k++) {
			bool dash = k == 8 || k == 13 || k == 18 || k == 23;
			ck_assert(dash ? one[k] == '-' : strchr("0123456789abcdef", one[k]) != NULL);
		}
		ck_assert_int_eq(one[14], '4');
		ck_assert(strchr("89ab", one[19]));
		ck_assert_str_ne(one, last);
		strcpy(last, one);
	}
}
END_TEST

START_TEST(fitting) {
	static const struct {
		const char *text;
		size_t max, n;
	} table[] = {
		{"", 3, 0},
		{"abc", 3, 3},
		{"abcd", 3, 3},
		{"ab\xc3\xa9", 3, 2},
		{"ab\xc3\xa9", 4, 4},
		{"a\xf0\x9f\x98\x80", 4, 1},
		{"a\xf0\x9f\x98\x80z", 5, 5},
		{"abc", 0, 0},
	};
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) ck_assert_uint_eq(str_fit(table[i].text, table[i].max), table[i].n);
	ck_assert_uint_gt(str_fit("\x80\x80\x80\x80\x80\x80\x80\x80", 6), 1); /* no text */
}
END_TEST

START_TEST(copies) {
	_cleanup_free_ char *text = str_printf("%s-%d", "a", 5), *copy = str_dup(text);
	ck_assert_str_eq(copy, "a-5");
	ck_assert_ptr_ne(copy, text);
	ck_assert_ptr_null(str_dup(NULL));
}
END_TEST

RUN_TESTS("str", numbers, sizes, times, utf8, safe_text, characters_that_hide, words_of_a_log_line, json_strings,
		  random_hex, random_uuids, fitting, copies)
