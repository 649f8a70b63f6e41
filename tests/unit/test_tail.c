/* SPDX-License-Identifier: MIT */
#include "core/tail.h"

#include "carrying.h"

static void take(struct tail *t, const char *text) {
	tail_take(t, text, strlen(text));
}

static void has(const struct tail *t, size_t n, const char *const *lines) {
	ck_assert_int_eq(tail_count(t), n);
	for (size_t i = 0; i < n; i++) ck_assert_str_eq(tail_line(t, i), lines[i]);
}
#define HAS(t, ...)                                                                                                    \
	do {                                                                                                               \
		const char *const lines[] = {__VA_ARGS__};                                                                     \
		has(t, ARRAY_SIZE(lines), lines);                                                                              \
	} while (0)

START_TEST(lines_come_in_pieces) {
	struct tail t;
	tail_init(&t);
	has(&t, 0, NULL);
	take(&t, "");
	has(&t, 0, NULL);
	take(&t, "one\ntw");
	HAS(&t, "one", "tw"); /* an unfinished line is shown, too */
	take(&t, "o\n\nthree\n");
	HAS(&t, "one", "two", "", "three");
	tail_end(&t);
	HAS(&t, "one", "two", "", "three"); /* no line that was not written */
	take(&t, "four");
	tail_end(&t);
	HAS(&t, "one", "two", "", "three", "four");
	take(&t, "five\n");
	HAS(&t, "one", "two", "", "three", "four", "five");
	tail_clear(&t);
	has(&t, 0, NULL);
	ck_assert(!t.lines && !t.part.data);
}
END_TEST

START_TEST(only_the_last_are_kept) {
	struct tail t;
	char text[16];
	tail_init(&t);
	for (int i = 0; i < 3 * TAIL_LINES + 7; i++) {
		snprintf(text, sizeof text, "line %d\n", i);
		take(&t, text);
	}
	ck_assert_int_eq(tail_count(&t), TAIL_LINES);
	ck_assert_str_eq(tail_line(&t, 0), "line 87");
	ck_assert_str_eq(tail_line(&t, TAIL_LINES - 1), "line 126");
	take(&t, "more");
	ck_assert_int_eq(tail_count(&t), TAIL_LINES + 1);
	ck_assert_str_eq(tail_line(&t, TAIL_LINES), "more");
	tail_end(&t);
	ck_assert_int_eq(tail_count(&t), TAIL_LINES);
	ck_assert_str_eq(tail_line(&t, 0), "line 88");
	tail_clear(&t);
}
END_TEST

static void says(const char *text, const char *words) {
	struct tail t;
	tail_init(&t);
	take(&t, text);
	_cleanup_free_ char *got = tail_words(&t);
	ck_assert_pstr_eq(got, words);
	tail_clear(&t);
}

START_TEST(the_last_words) {
	char text[3 * TAIL_WORDS_MAX];
	says("", NULL);
	says("\n \t\r\n", NULL);
	says("one", "one");
	says("one\n\n", "one");
	says("throw\n\nError: boom\n    at main\n\nNode.js v20\n", "throw / Error: boom /     at main / Node.js v20");
	says("1\n2\n3\n4\n5\n", "2 / 3 / 4 / 5");
	memset(text, 'x', sizeof text);
	memcpy(text + sizeof text - 6, "\nend\n", 6);
	says(text, "end");
	text[sizeof text - 6] = '\0';
	says(text, text + sizeof text - 6 - TAIL_LINE_MAX);
}
END_TEST

START_TEST(the_rest_of_a_long_line_is_cut) {
	struct tail t;
	char text[3 * TAIL_LINE_MAX];
	tail_init(&t);
	memset(text, 'x', sizeof text);
	tail_take(&t, text, 1000);
	tail_take(&t, text, sizeof text);
	tail_take(&t, text, sizeof text);
	ck_assert_int_eq(strlen(tail_line(&t, 0)), TAIL_LINE_MAX);
	take(&t, "\nshort\n");
	ck_assert_int_eq(tail_count(&t), 2);
	ck_assert_int_eq(strlen(tail_line(&t, 0)), TAIL_LINE_MAX);
	ck_assert_str_eq(tail_line(&t, 1), "short");
	tail_clear(&t);
}
END_TEST

static void carry_tail(struct carry *c, void *t) {
	tail_carry(c, t);
}

static void begin_tail(void *t) {
	tail_init(t);
}

static void end_tail(void *t) {
	tail_clear(t);
}

START_TEST(is_carried) {
	struct tail t, other;
	struct error error;
	char text[16];
	tail_init(&t);
	tail_init(&other);
	for (int i = 0; i < TAIL_LINES + 3; i++) {
		snprintf(text, sizeof text, "line %d\n", i);
		take(&t, text);
	}
	take(&t, "half");
	struct saved s = carry_save_thing(carry_tail, &t);
	ck_assert_msg(carry_load_thing(s, s.len, carry_tail, &other, &error), "%s", error.text);
	ck_assert_int_eq(tail_count(&other), TAIL_LINES + 1);
	for (size_t i = 0; i <= TAIL_LINES; i++) ck_assert_str_eq(tail_line(&t, i), tail_line(&other, i));
	take(&other, " whole\n");
	ck_assert_str_eq(tail_line(&other, tail_count(&other) - 1), "half whole");
	tail_clear(&t);
	tail_clear(&other);
	carry_spoil_thing(s, carry_tail, &t, begin_tail, end_tail);
	free(s.data);
}
END_TEST

RUN_TESTS("tail", lines_come_in_pieces, only_the_last_are_kept, the_last_words, the_rest_of_a_long_line_is_cut,
		  is_carried)
