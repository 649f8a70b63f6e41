/* SPDX-License-Identifier: MIT */
#include "config/inifile.h"

#include "base/buf.h"
#include "base/words.h"
#include "harness.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* The output of the reader as text: "[section]LINE", "name=value@LINE". It knows the keys `key` and `other`. */
struct told {
	struct inifile_user user;
	struct buf text;
};

static void on_section(struct inifile_user *u, const char *name, int line) {
	buf_printf(&CONTAINER_OF(u, struct told, user)->text, "[%s]%d ", name, line);
}

static void on_member(struct inifile_user *u, const char *name, const char *value, int line) {
	buf_printf(&CONTAINER_OF(u, struct told, user)->text, "%s=%s@%d ", name, value, line);
}

static bool knows(struct inifile_user *u, const char *name, size_t n) {
	(void)u;
	return (n == 3 && memcmp(name, "key", 3) == 0) || (n == 5 && memcmp(name, "other", 5) == 0);
}

/* errors: the lines with errors, "2 5 ". */
static void reads(const char *file, const char *want, const char *mistaken) {
	struct told t = {.user = {.section = on_section, .member = on_member, .knows = knows}, .text = BUF_INIT(1 << 20)};
	struct errors errors = {0};
	struct buf lines = BUF_INIT(1 << 20);
	FILE *stream = fmemopen((char *)(uintptr_t)file, strlen(file), "r");
	ck_assert_ptr_nonnull(stream);
	inifile_read(stream, "f", &t.user, &errors);
	fclose(stream);
	for (size_t i = 0; i < errors.n; i++) buf_printf(&lines, "%ld ", strtol(errors_text(&errors, i) + 2, NULL, 10));
	ck_assert_msg(strcmp(t.text.data ? t.text.data : "", want) == 0, "%.2000s", t.text.data ? t.text.data : "nothing");
	ck_assert_str_eq(lines.data ? lines.data : "", mistaken);
	buf_free(&t.text);
	buf_free(&lines);
	errors_free(&errors);
}

START_TEST(test_good) {
	reads("[a]\nkey = 1 ; comment\n# comment\n\n[b c]\r\nother: x;y \"; z\"\r\n",
		  "[a]1 key=1@2 [b c]5 other=x;y \"; z\"@6 ", "");
	reads("key =\n[a]", "key=@1 [a]2 ", "");
	reads("# nothing", "", "");
	reads("\xef\xbb\xbf[a]\nkey = 1", "[a]1 key=1@2 ", "");
}
END_TEST

START_TEST(test_continued) {
	reads("[a]\nkey = 1\n 2\n\n; x\n\t3\nother = 4\n", "[a]1 key=1 2 3@2 other=4@7 ", "");
	reads("[a]\n key = 1\n [b]\nother = 2\n", "[a]1 key=1 [b]@2 other=2@4 ", "");
	reads("[a]\n [b]\nkey = 1\n", "[a]1 [b]2 key=1@3 ", "");
}
END_TEST

START_TEST(test_mistaken) {
	reads("[a]\nkey = 1\nnonsense\n goes on\nother = 2\nmore\n", "[a]1 key=1@2 other=2@5 ", "3 6 ");
	reads("[a]\nkey = 1\n other = 2\n 3\n", "[a]1 key=1@2 other=2 3@3 ", "3 ");
	reads("[a\nkey = 1\n[b]\n", "[a]1 key=1@2 [b]3 ", "1 ");
	reads("[a]\nkey = 1\n\x01\nother = 2\n", "[a]1 key=1@2 ", "3 ");
}
END_TEST

/* Read in pieces: nothing is lost between them, and a line of spaces cannot be cut. */
START_TEST(test_long) {
	struct buf file = BUF_INIT(1 << 20), want = BUF_INIT(1 << 20);
	buf_puts(&file, "[a]\nkey =");
	buf_puts(&want, "[a]1 key=");
	for (int i = 0; i < 500; i++) {
		buf_printf(&file, " w%d;#[=", i);
		buf_printf(&want, "%sw%d;#[=", i ? " " : "", i);
	}
	buf_printf(&file, "\nother = 1%*s2\nkey = 3\n", 400, "");
	buf_puts(&want, "@2 key=3@4 ");
	reads(file.data, want.data, "3 ");
	buf_free(&file);
	buf_free(&want);
}
END_TEST

RUN_TESTS("inifile", test_good, test_continued, test_mistaken, test_long)
