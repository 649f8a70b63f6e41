/* SPDX-License-Identifier: MIT */
#include "core/handles.h"
#include "dialect/codex/codex.h"

#include "carrying.h"

#include <string.h>

static const char *const unwatch = "fs/unwatch", *const stop = "process/kill";

static struct span marked(const struct handle *h) {
	return span_of(h->name);
}

START_TEST(two_clients_choose_the_same_one) {
	struct handles all;
	uint64_t client = 0;
	handles_init(&all);
	struct handle *a = handles_add(&all, 1, 0, unwatch, span_of("\"w\"")),
				  *b = handles_add(&all, 12, 0, unwatch, span_of("\"w\"")),
				  *c = handles_add(&all, 1, 0, stop, span_of("\"w\""));
	ck_assert_uint_eq(all.n, 3);
	ck_assert_str_eq(a->name, "\"1:w\"");
	ck_assert_str_eq(b->name, "\"12:w\"");
	ck_assert_ptr_null(handles_add(&all, 1, 0, unwatch, span_of("\"w\"")));
	ck_assert_uint_eq(handles_read_mark(marked(b), &client), 3);
	ck_assert_uint_eq(client, 12);
	ck_assert_ptr_eq(handles_find(&all, NULL, marked(b)), b);
	ck_assert_ptr_eq(handles_find_own(&all, 1, stop, span_of("\"w\"")), c);
	ck_assert_ptr_null(handles_find_own(&all, 2, stop, span_of("\"w\"")));
	ck_assert_ptr_null(handles_find_own(&all, 12, stop, span_of("\"w\"")));
	handles_drop(&all, a);
	ck_assert_ptr_eq(handles_of(&all, 1), c);
	handles_drop(&all, c);
	ck_assert_ptr_null(handles_of(&all, 1));
	handles_free(&all);
	ck_assert_uint_eq(all.n, 0);
	ck_assert_ptr_null(handles_of(&all, 12));
}
END_TEST

START_TEST(only_a_mark_of_the_daemon_is_one) {
	static const char *const others[] = {"\"\"",
										 "\"w\"",
										 "\":w\"",
										 "\"1\"",
										 "\"1w\"",
										 "\"01:w\"",
										 "1",
										 "null",
										 "\"-1:\"",
										 "\"\\u0031:\"",
										 "\"99999999999999999999:w\""};
	uint64_t client;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		ck_assert_msg(handles_read_mark(span_of(others[i]), &client) == 0, "%s", others[i]);
	ck_assert_uint_eq(handles_read_mark(SPAN_NONE, &client), 0);
	ck_assert_uint_eq(handles_read_mark(span_of("\"7:\""), &client), 2);
	ck_assert_uint_eq(handles_read_mark(span_of("\"18446744073709551615:x\""), &client), 21);
	ck_assert_uint_eq(client, UINT64_MAX);
}
END_TEST

static void carry(struct carry *c, void *what) {
	handles_carry(c, what, &codex_dialect);
}

static void begin(void *arg) {
	handles_init(arg);
}

static void end(void *arg) {
	handles_free(arg);
}

static void fill(struct handles *all) {
	handles_init(all);
	handles_add(all, 1, 0, unwatch, span_of("\"w\""));
	handles_add(all, 2, 0, stop, span_of("\"a\\\"b\""));
}

START_TEST(they_end_with_their_child) {
	struct handles all;
	fill(&all);
	struct handle *next = handles_of(&all, 2);
	handles_of(&all, 1)->child = 3;
	next->child = 4;
	handles_child_gone(&all, 3);
	ck_assert_uint_eq(all.n, 1);
	ck_assert_ptr_eq(handles_of(&all, 2), next);
	handles_child_gone(&all, UINT64_MAX);
	ck_assert_uint_eq(all.n, 0);
}
END_TEST

/* The next child may be asked for one of the same name while the last one is being stopped. */
START_TEST(each_child_may_have_it) {
	struct handles all;
	handles_init(&all);
	struct handle *old = handles_add(&all, 1, 3, unwatch, span_of("\"w\"")),
				  *new = handles_add(&all, 1, 4, unwatch, span_of("\"w\""));
	ck_assert(old && new && !handles_add(&all, 1, 4, unwatch, span_of("\"w\"")));
	ck_assert_ptr_eq(handles_find_own(&all, 1, unwatch, span_of("\"w\"")), old);
	handles_child_gone(&all, 3);
	ck_assert_ptr_eq(handles_find_own(&all, 1, unwatch, span_of("\"w\"")), new);
	handles_free(&all);
}
END_TEST

START_TEST(is_carried) {
	struct handles all, other;
	struct error error;
	fill(&all);
	handles_of(&all, 2)->child = 7;
	handles_init(&other);
	struct saved s = carry_save_thing(carry, &all);
	ck_assert_msg(carry_load_thing(s, s.len, carry, &other, &error), "%s", error.text);
	ck_assert_uint_eq(other.n, 2);
	const struct handle *h = handles_of(&other, 2);
	ck_assert_str_eq(h->name, "\"2:a\\\"b\"");
	ck_assert_str_eq(h->ends, stop);
	ck_assert_uint_eq(h->child, 7);
	ck_assert_ptr_eq(h->ends, dialect_gate_what(codex_dialect.gate, codex_dialect.n_gate, stop));
	free(s.data);
	handles_free(&all);
	handles_free(&other);
}
END_TEST

START_TEST(damage_is_noticed) {
	struct handles all, other;
	fill(&all);
	struct saved s = carry_save_thing(carry, &all);
	carry_spoil_thing(s, carry, &other, begin, end);
	free(s.data);
	handles_free(&all);
}
END_TEST

/* The request that ends a handle names it by the member of its own row. */
START_TEST(each_end_is_a_request) {
	struct gate_index rows;
	size_t n = 0;
	gate_index_init(&rows, codex_dialect.gate, codex_dialect.n_gate);
	for (size_t i = 0; i < codex_dialect.n_gate; i++) {
		const struct gate_row *row = &codex_dialect.gate[i];
		if (row->act != ACT_OPENS && row->act != ACT_RUNS) continue;
		const struct gate_row *ends = dialect_gate_row(&rows, GATE_REQUEST, row->what, strlen(row->what));
		ck_assert_msg(ends && ends->act == ACT_NAMES && ends->member, "%s", row->name);
		n++;
	}
	ck_assert_uint_gt(n, 0);
}
END_TEST

RUN_TESTS("handles", two_clients_choose_the_same_one, only_a_mark_of_the_daemon_is_one, they_end_with_their_child,
		  each_child_may_have_it, is_carried, damage_is_noticed, each_end_is_a_request)
