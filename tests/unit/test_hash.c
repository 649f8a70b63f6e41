/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

static int allocations = -1; /* allocations left; -1: any number */

static void *try_malloc(size_t n) {
	if (allocations == 0) return NULL;
	if (allocations > 0) allocations--;
	return malloc(n);
}

#define uthash_malloc(n) try_malloc(n)
#include "base/hash.h"

#include "harness.h"

#include <string.h>

#define KEYS 300

struct item {
	UT_hash_handle hh, hh_other;
	char key[12];
	size_t n;
	int value;
};

/* Keys of any bytes; shorter ones are prefixes of longer ones. */
static void make_key(struct item *it, int i) {
	it->n = (size_t)(i % 11);
	memset(it->key, 0, sizeof it->key);
	if (it->n) it->key[it->n - 1] = (char)(i / 11);
}

START_TEST(finds_what_is_there) {
	struct item items[KEYS], *table = NULL, *found;
	bool in[KEYS] = {0};
	uint64_t seed = 1;
	size_t n = 0;
	for (int i = 0; i < KEYS; i++) {
		make_key(&items[i], i);
		items[i].value = i;
	}
	const int steps = rounds(50000);
	for (int step = 0; step < steps; step++) {
		int i = (int)rng_below(&seed, KEYS);
		if (i > 0 && i % 11 == 0) continue; /* only one empty key */
		HASH_FIND(hh, table, items[i].key, items[i].n, found);
		ck_assert_ptr_eq(found, in[i] ? &items[i] : NULL);
		if (in[i])
			HASH_DELETE(hh, table, &items[i]);
		else
			HASH_ADD_KEYPTR(hh, table, items[i].key, items[i].n, &items[i]);
		n += in[i] ? (size_t)-1 : 1;
		in[i] = !in[i];
		ck_assert_uint_eq(HASH_COUNT(table), n);
	}
	HASH_CLEAR(hh, table);
}
END_TEST

/* Whichever allocation fails: that element is in no table, the others are, and can be deleted. */
START_TEST(an_element_without_memory_is_refused) {
	for (int left = 0; left < 6; left++) {
		struct item items[KEYS], *table = NULL, *found;
		bool in[KEYS];
		allocations = left;
		for (int i = 0; i < KEYS; i++) {
			make_key(&items[i], 1 + i + i / 10);
			in[i] = HASH_TRY_ADD(hh, table, items[i].key, items[i].n, &items[i]);
		}
		ck_assert(in[0] == (left >= 2)); /* a table needs two */
		allocations = -1;
		for (int i = 0; i < KEYS; i++) {
			HASH_FIND(hh, table, items[i].key, items[i].n, found);
			ck_assert_ptr_eq(found, in[i] ? &items[i] : NULL);
		}
		for (int i = 0; i < KEYS; i++)
			if (in[i]) HASH_DELETE(hh, table, &items[i]);
		ck_assert_ptr_null(table);
	}
}
END_TEST

START_TEST(one_thing_in_two_tables) {
	struct item a = {.key = "a", .n = 1}, *by_key = NULL, *by_value = NULL, *found;
	a.value = 7;
	HASH_ADD_KEYPTR(hh, by_key, a.key, a.n, &a);
	HASH_ADD_KEYPTR(hh_other, by_value, &a.value, sizeof a.value, &a);
	HASH_FIND(hh_other, by_value, &(int){7}, sizeof(int), found);
	ck_assert_ptr_eq(found, &a);
	HASH_DELETE(hh, by_key, &a);
	ck_assert_ptr_null(by_key);
	HASH_FIND(hh_other, by_value, &(int){7}, sizeof(int), found);
	ck_assert_ptr_eq(found, &a);
	HASH_DELETE(hh_other, by_value, &a);
	ck_assert_ptr_null(by_value);
}
END_TEST

/* These hashes distinguish a retry from another prompt: every bit must count, and the address must not. */
START_TEST(hashes_see_each_bit) {
	char text[80], moved[88];
	uint64_t seed = 5;
	for (size_t i = 0; i < sizeof text; i++) text[i] = (char)rng_next(&seed);
	for (size_t n = 0; n < sizeof text; n++) {
		uint64_t h = hash_text(text, n);
		memcpy(moved + n % 8, text, n);
		REQUIRE(hash_text(moved + n % 8, n) == h, "%zu bytes, moved", n);
		for (size_t bit = 0; bit < 8 * n; bit++) {
			text[bit / 8] ^= (char)(1 << bit % 8);
			REQUIRE(hash_text(text, n) != h, "%zu bytes, bit %zu", n, bit);
			text[bit / 8] ^= (char)(1 << bit % 8);
		}
		REQUIRE(n == 0 || hash_text(text, n - 1) != h, "%zu bytes", n);
	}
}
END_TEST

RUN_TESTS("hash", hashes_see_each_bit, finds_what_is_there, an_element_without_memory_is_refused,
		  one_thing_in_two_tables)
