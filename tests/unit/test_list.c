/* SPDX-License-Identifier: MIT */
#include "base/list.h"

#include "harness.h"

#include <string.h>

struct item {
	int before;
	struct list node;
	int number;
};

START_TEST(empty) {
	struct list l = LIST_SELF(l), node;
	ck_assert(list_empty(&l));
	ck_assert_ptr_null(LIST_TOP(&l, struct item, node));
	list_init(&node);
	list_del(&node); /* in no list, and twice: harmless */
	list_del(&node);
	ck_assert(list_empty(&node));
	list_add_tail(&l, &node);
	ck_assert(!list_empty(&l) && l.next == &node && l.prev == &node);
	list_del(&node);
	ck_assert(list_empty(&l) && list_empty(&node));
	list_del(&node);
	ck_assert(list_empty(&l));
}
END_TEST

#define ITEMS 20

/* The same as an array of numbers in order. */
struct model {
	int at[ITEMS];
	size_t n;
};

static void model_add(struct model *m, int number, bool head) {
	if (head) memmove(m->at + 1, m->at, m->n * sizeof *m->at);
	m->at[head ? 0 : m->n] = number;
	m->n++;
}

static void model_del(struct model *m, int number) {
	for (size_t i = 0; i < m->n; i++)
		if (m->at[i] == number) {
			m->n--;
			memmove(m->at + i, m->at + i + 1, (m->n - i) * sizeof *m->at);
			return;
		}
}

static void compare(struct list *l, const struct model *m) {
	struct item *it;
	size_t n = 0;
	LIST_FOR_EACH (it, l, struct item, node) {
		REQUIRE(n < m->n && it->number == m->at[n], "place %zu", n);
		n++;
	}
	ck_assert_uint_eq(n, m->n);
	for (struct list *at = l->prev; at != l; at = at->prev)
		ck_assert_int_eq(LIST_OF(at, struct item, node)->number, m->at[--n]);
	ck_assert_int_eq(list_empty(l), m->n == 0);
	it = LIST_TOP(l, struct item, node);
	ck_assert_int_eq(it != NULL, m->n > 0);
	if (it) ck_assert_int_eq(it->number, m->at[0]);
}

START_TEST(does_what_an_array_does) {
	struct list l;
	struct item items[ITEMS];
	struct model m = {0};
	bool in[ITEMS] = {0};
	uint64_t seed = 1;
	list_init(&l);
	for (int i = 0; i < ITEMS; i++) {
		items[i].number = i;
		list_init(&items[i].node);
	}
	const int n_rounds = rounds(20000);
	for (int i = 0; i < n_rounds; i++) {
		int k = (int)rng_below(&seed, ITEMS);
		bool head = rng_below(&seed, 2);
		if (in[k]) {
			list_del(&items[k].node);
			model_del(&m, k);
		} else {
			(head ? list_add_head : list_add_tail)(&l, &items[k].node);
			model_add(&m, k, head);
		}
		in[k] = !in[k];
		compare(&l, &m);
	}
}
END_TEST

START_TEST(the_current_one_may_go) {
	struct list l, other;
	struct item items[10], *it;
	int seen = 0;
	list_init(&l);
	list_init(&other);
	for (int i = 0; i < 10; i++) {
		items[i].number = i;
		list_add_tail(&l, &items[i].node);
	}
	LIST_FOR_EACH (it, &l, struct item, node) {
		ck_assert_int_eq(it->number, seen++);
		list_del(&it->node);
		if (it->number % 2) list_add_tail(&other, &it->node);
	}
	ck_assert_int_eq(seen, 10);
	ck_assert(list_empty(&l));
	seen = 0;
	LIST_FOR_EACH (it, &other, struct item, node) seen += it->number;
	ck_assert_int_eq(seen, 25);
}
END_TEST

RUN_TESTS("list", empty, does_what_an_array_does, the_current_one_may_go)
