/* SPDX-License-Identifier: MIT
 *
 * Parts of `plenumctl chat` that need no terminal: differences, the history, letters.
 */
#include "base/str.h"
#include "ctl/diff.h"
#include "ctl/history.h"
#include "ctl/text.h"
#include "ctl/wtext.h"

#include <check.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- Differences -------------------------------------------------------------------------------------------------- */

static void put_line(void *arg, char sign, const char *line, size_t n) {
	buf_printf(arg, "%c%.*s\n", sign, (int)n, line);
}

static void expect_diff(const char *old, const char *fresh, const char *want) {
	struct buf b = BUF_INIT(65536);
	buf_puts(&b, "");
	diff_lines(old, strlen(old), fresh, strlen(fresh), put_line, &b);
	ck_assert_str_eq(b.data, want);
	buf_free(&b);
}

START_TEST(a_difference_has_every_change) {
	expect_diff("", "", "");
	expect_diff("", "a\nb\n", "+a\n+b\n");
	expect_diff("a\nb", "", "-a\n-b\n");
	expect_diff("a\nb\nc\n", "a\nB\nc\n", " a\n-b\n+B\n c\n");
	expect_diff("a\nb\nc\nd\n", "b\nc\nX\nd\ne", "-a\n b\n c\n+X\n d\n+e\n");
	expect_diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n", "@6\n 7\n 8\n 9\n+10\n");
	expect_diff("x\n1\n2\n3\n4\n5\n6\n7\ny\n", "X\n1\n2\n3\n4\n5\n6\n7\nY\n",
				"-x\n+X\n 1\n 2\n 3\n@1\n 5\n 6\n 7\n-y\n+Y\n");
	expect_diff("same\n", "same\n", "@1\n");
}
END_TEST

static void put_repeated(struct buf *b, const char *line, int times) {
	for (int i = 0; i < times; i++) buf_printf(b, "%s%d\n", line, i);
}

START_TEST(a_large_difference_is_all_of_both) {
	struct buf old = BUF_INIT(1 << 20), fresh = BUF_INIT(1 << 20), out = BUF_INIT(1 << 20);
	put_repeated(&old, "a", 3000);
	put_repeated(&fresh, "b", 3000);
	diff_lines(old.data, old.len, fresh.data, fresh.len, put_line, &out);
	ck_assert_uint_eq(out.len, old.len + fresh.len + 6000);
	ck_assert_mem_eq(out.data, "-a0\n-a1\n", 8);
	buf_free(&old);
	buf_free(&fresh);
	buf_free(&out);
}
END_TEST

/* --- The history -------------------------------------------------------------------------------------------------- */

static void add(struct history *h, const wchar_t *text) {
	history_add(h, text, wcslen(text));
}

START_TEST(a_history_is_kept) {
	char folder[] = "/tmp/pl-history-XXXXXX";
	ck_assert_ptr_nonnull(mkdtemp(folder));
	_cleanup_free_ char *path = str_printf("%s/history", folder);
	struct history h, other;
	struct stat st;
	history_open(&h, strdup(path));
	history_open(&other, strdup(path));
	add(&h, L"one\\n\ntwo é");
	add(&other, L"of another program");
	add(&h, L"last");
	add(&h, L"last");
	history_free(&other);
	history_free(&h);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(st.st_mode & 0777, 0600);
	history_open(&h, strdup(path));
	ck_assert_uint_eq(h.n, 3);
	ck_assert(wcscmp(h.entries[0], L"one\\n\ntwo é") == 0);
	ck_assert_uint_eq(history_find(&h, 3, L"o"), 1);
	ck_assert_uint_eq(history_find(&h, 1, L"é"), 0);
	ck_assert_uint_eq(history_find(&h, 3, L"nowhere"), 3);
	history_free(&h);
	unlink(path);
	rmdir(folder);
}
END_TEST

START_TEST(a_history_has_a_bound) {
	char folder[] = "/tmp/pl-history-XXXXXX";
	ck_assert_ptr_nonnull(mkdtemp(folder));
	_cleanup_free_ char *path = str_printf("%s/history", folder);
	struct history h;
	FILE *f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	for (int i = 0; i <= HISTORY_MAX * 2; i++) fprintf(f, "entry %d\n", i);
	fclose(f);
	for (int run = 0; run < 2; run++) {
		history_open(&h, strdup(path));
		ck_assert_uint_eq(h.n, HISTORY_MAX);
		ck_assert(wcscmp(h.entries[0], L"entry 2001") == 0);
		history_free(&h);
	}
	struct stat st;
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(st.st_size, HISTORY_MAX * 11); /* of "entry 2001\n" */
	ck_assert_int_eq(st.st_mode & 0777, 0600);
	unlink(path);
	rmdir(folder);
}
END_TEST

START_TEST(a_history_without_a_file) {
	struct history h;
	history_open(&h, strdup("/nonexistent/folder/history"));
	add(&h, L"a");
	ck_assert_uint_eq(h.n, 1);
	history_free(&h);
	history_open(&h, NULL);
	history_add(&h, L"", 0);
	ck_assert_uint_eq(h.n, 0);
	history_free(&h);
}
END_TEST

/* --- Letters ------------------------------------------------------------------------------------------------------ */

START_TEST(letters_both_ways) {
	static const char text[] = "a\xff\xc3\xa9\xf0\x9f\x98\x80\0b";
	size_t n, back;
	_cleanup_wide_ wchar_t *wide = wtext_from(text, sizeof text - 1, &n);
	_cleanup_free_ char *same = wtext_to(wide, n, &back);
	ck_assert_uint_eq(n, 6);
	ck_assert_str_eq(same, "a\xef\xbf\xbd\xc3\xa9\xf0\x9f\x98\x80\xe2\x90\x80"
						   "b");
	ck_assert_uint_eq(back, strlen(same));
}
END_TEST

START_TEST(columns_of_letters) {
	ck_assert_uint_eq(wtext_columns(L'a', 0), 1);
	ck_assert_uint_eq(wtext_columns(L'\t', 3), 5);
	ck_assert_uint_eq(wtext_columns(0x1b, 0), 2);
	ck_assert_uint_eq(wtext_columns(0x4f60, 0), 2);
	ck_assert_uint_eq(text_width("a\xe4\xbd\xa0"), 3);
}
END_TEST

START_TEST(a_zero_is_shown) {
	static const char plain[] = "\"a\\u0000b\\\\u0000\\n\"", bad[] = "17";
	size_t n;
	_cleanup_free_ char *text = text_dup(span_of(plain), &n);
	ck_assert_str_eq(text, "a\xe2\x90\x80"
						   "b\\u0000\n");
	ck_assert_uint_eq(n, strlen(text));
	ck_assert_ptr_null(text_dup(span_of(bad), NULL));
}
END_TEST

int main(void) {
	setlocale(LC_CTYPE, "C.UTF-8");
	Suite *s = suite_create("chat");
	TCase *t = tcase_create("all");
	tcase_add_test(t, a_difference_has_every_change);
	tcase_add_test(t, a_large_difference_is_all_of_both);
	tcase_add_test(t, a_history_is_kept);
	tcase_add_test(t, a_history_has_a_bound);
	tcase_add_test(t, a_history_without_a_file);
	tcase_add_test(t, letters_both_ways);
	tcase_add_test(t, columns_of_letters);
	tcase_add_test(t, a_zero_is_shown);
	suite_add_tcase(s, t);
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? 1 : 0;
}
