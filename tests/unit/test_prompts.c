/* SPDX-License-Identifier: MIT */
#include "core/prompts.h"

#include "carrying.h"

static struct prompt *add(struct prompts *p, const char *uuid) {
	return prompt_add(p, uuid, strlen(uuid));
}

static struct prompt *hold(struct prompts *p, const char *uuid) {
	struct prompt *one = add(p, uuid);
	one->state = PROMPT_HELD;
	one->held = chunk_copy("{}\n", 3);
	p->n_held++;
	return one;
}

static struct prompt *first_held(struct prompts *p) {
	struct prompt *one;
	LIST_FOR_EACH (one, &p->open, struct prompt, node)
		if (one->state == PROMPT_HELD) return one;
	return NULL;
}

static struct prompt *find(struct prompts *p, const char *raw) {
	return prompt_find(p, (struct span){raw, strlen(raw)});
}

START_TEST(found_by_its_uuid) {
	struct prompts p;
	prompts_init(&p);
	struct prompt *a = add(&p, "u-1"), *b = add(&p, "a\"b\xc3\xa9");
	ck_assert_int_eq(a->state, PROMPT_SENT);
	ck_assert_ptr_eq(find(&p, "\"u-1\""), a);
	ck_assert_ptr_eq(find(&p, "\"\\u0075-1\""), a); /* the same uuid in any spelling */
	ck_assert_ptr_eq(find(&p, "\"a\\\"b\xc3\xa9\""), b);
	ck_assert_ptr_eq(find(&p, "\"a\\u0022b\\u00e9\""), b);
	ck_assert_ptr_null(find(&p, "\"u-2\""));
	ck_assert_ptr_null(find(&p, "\"u-1\\u0000\""));
	ck_assert_ptr_null(find(&p, "1"));
	ck_assert_ptr_null(prompt_find(&p, SPAN_NONE));
	ck_assert_uint_eq(p.n_open, 2);
	prompt_forget(&p, a);
	ck_assert_ptr_null(find(&p, "\"u-1\""));
	ck_assert_uint_eq(p.n_open, 1);
	prompts_free(&p);
}
END_TEST

START_TEST(held_ones_are_counted) {
	struct prompts p;
	prompts_init(&p);
	add(&p, "sent");
	struct prompt *a = hold(&p, "a"), *b = hold(&p, "b");
	ck_assert_uint_eq(p.n_held, 2);
	prompt_done(&p, a); /* dropped */
	ck_assert_ptr_null(a->held.data);
	ck_assert_uint_eq(p.n_held, 1);
	prompt_forget(&p, b);
	ck_assert_uint_eq(p.n_held, 0);
	prompts_free(&p);
}
END_TEST

START_TEST(finished_ones_are_remembered) {
	struct prompts p;
	char uuid[32];
	prompts_init(&p);
	for (int i = 0; i < PROMPTS_KEPT + 10; i++) {
		snprintf(uuid, sizeof uuid, "u%d", i);
		struct prompt *one = add(&p, uuid);
		one->asker = PARTY(0);
		prompt_done(&p, one);
		if (i + 1 < PROMPTS_KEPT) prompt_done(&p, one); /* counts only once */
	}
	ck_assert_uint_eq(p.n_open, 0);
	ck_assert_uint_eq(p.n_done, PROMPTS_KEPT);
	ck_assert_ptr_null(find(&p, "\"u9\""));
	ck_assert_int_eq(find(&p, "\"u10\"")->state, PROMPT_DONE);
	ck_assert_ptr_null(find(&p, "\"u10\"")->asker);
	struct prompt *open = add(&p, "open");
	prompts_trim(&p, 2);
	ck_assert_uint_eq(p.n_done, 2);
	ck_assert_ptr_null(find(&p, "\"u4103\""));
	ck_assert_ptr_nonnull(find(&p, "\"u4104\""));
	prompt_forget(&p, find(&p, "\"u4105\""));
	ck_assert_uint_eq(p.n_done, 1);
	prompts_trim(&p, 0);
	ck_assert_uint_eq(p.n_done, 0);
	ck_assert_ptr_eq(find(&p, "\"open\""), open);
	prompts_free(&p);
}
END_TEST

START_TEST(whose_they_are) {
	struct prompts p;
	prompts_init(&p);
	add(&p, "1")->asker = PARTY(0);
	add(&p, "2")->asker = PARTY(1);
	hold(&p, "3")->asker = PARTY(0);
	ck_assert_uint_eq(prompts_of(&p, PARTY(0)), 2);
	prompt_done(&p, find(&p, "\"1\""));
	ck_assert_uint_eq(prompts_of(&p, PARTY(0)), 1);
	prompts_asker_gone(&p, PARTY(0));
	ck_assert_uint_eq(prompts_of(&p, PARTY(0)), 0);
	ck_assert_uint_eq(prompts_of(&p, PARTY(1)), 1);
	ck_assert_ptr_nonnull(find(&p, "\"3\"")); /* it runs nevertheless */
	ck_assert_uint_eq(p.n_open, 2);
	prompts_free(&p);
}
END_TEST

START_TEST(those_that_need_hooks) {
	struct prompts p;
	prompts_init(&p);
	add(&p, "sent")->asker = PARTY(0);
	hold(&p, "held")->asker = PARTY(0);
	hold(&p, "other")->asker = PARTY(1);
	ck_assert(!prompts_needy(&p, NULL, 0));
	prompts_need(&p, PARTY(0), 4);
	ck_assert_uint_eq(find(&p, "\"sent\"")->needs, 0);
	ck_assert(prompts_needy(&p, NULL, 3) && prompts_needy(&p, PARTY(0), 3));
	ck_assert(!prompts_needy(&p, NULL, 4) && !prompts_needy(&p, PARTY(1), 3));
	prompt_done(&p, find(&p, "\"held\""));
	ck_assert(!prompts_needy(&p, NULL, 3));
	prompts_free(&p);
}
END_TEST

/* --- at random, against counters ---------------------------------------------------------------------------------- */

START_TEST(counts_stay_right) {
	struct prompts p;
	uint64_t seed = 11;
	enum { N = 60 };
	struct prompt *all[N] = {0};
	prompts_init(&p);
	for (int i = 0; i < 5000; i++) {
		size_t k = rng_below(&seed, N), open = 0, done = 0, held = 0;
		char uuid[32];
		snprintf(uuid, sizeof uuid, "u%zu", k);
		if (!all[k]) {
			all[k] = rng_below(&seed, 2) ? add(&p, uuid) : hold(&p, uuid);
		} else if (rng_below(&seed, 2)) {
			prompt_done(&p, all[k]);
		} else {
			prompt_forget(&p, all[k]);
			all[k] = NULL;
		}
		for (k = 0; k < N; k++) {
			open += all[k] && all[k]->state != PROMPT_DONE;
			done += all[k] && all[k]->state == PROMPT_DONE;
			held += all[k] && all[k]->state == PROMPT_HELD;
		}
		ck_assert(p.n_open == open && p.n_done == done && p.n_held == held);
		ck_assert_int_eq(held > 0, first_held(&p) != NULL);
		ck_assert_uint_eq(HASH_COUNT(p.by_uuid), open + done);
	}
	prompts_free(&p);
}
END_TEST

/* --- upgrade ------------------------------------------------------------------------------------------------------ */

static void carry(struct carry *c, void *p) {
	prompts_carry(c, p);
}

static void begin(void *p) {
	prompts_init(p);
}

static void end(void *p) {
	prompts_free(p);
}

static void fill(struct prompts *p) {
	prompts_init(p);
	p->replays = p->echoed = true;
	prompt_done(p, add(p, "old"));
	struct prompt *one = add(p, "a\"\xc3\xa9");
	one->state = PROMPT_TAKEN;
	one->asker = PARTY(2);
	one->client = 3;
	one->child = 2;
	one->uid = 1234;
	one->name = strdup("phone");
	one->bytes_hash = UINT64_MAX - 1;
	one->command = true;
	hold(p, "later")->needs = UINT64_MAX - 2;
	prompt_done(p, add(p, "older"));
}

START_TEST(is_carried) {
	struct prompts a, b;
	struct error error;
	fill(&a);
	struct saved s = carry_save_thing(carry, &a);
	begin(&b);
	ck_assert_msg(carry_load_thing(s, s.len, carry, &b, &error), "%s", error.text);
	ck_assert(b.replays && b.echoed && b.n_open == 2 && b.n_done == 2 && b.n_held == 1);
	const struct prompt *x = find(&a, "\"a\\\"\\u00e9\""), *y = find(&b, "\"a\\\"\\u00e9\"");
	ck_assert(y->state == PROMPT_TAKEN && y->asker == PARTY(2) && y->client == 3 && y->child == 2 && y->uid == 1234);
	ck_assert(y->bytes_hash == x->bytes_hash && y->command && y->since == x->since);
	ck_assert_str_eq(y->name, "phone");
	ck_assert_str_eq(first_held(&b)->uuid, "later");
	ck_assert_uint_eq(first_held(&b)->needs, UINT64_MAX - 2);
	ck_assert_mem_eq(first_held(&b)->held.data, "{}\n", 3);
	prompts_trim(&b, 1); /* they are in the same order */
	ck_assert_ptr_null(find(&b, "\"old\""));
	ck_assert_ptr_nonnull(find(&b, "\"older\""));
	prompts_free(&b);
	prompts_free(&a);
	free(s.data);
}
END_TEST

START_TEST(damage_is_noticed) {
	struct prompts a, b;
	struct error error;
	fill(&a);
	struct saved s = carry_save_thing(carry, &a);
	carry_spoil_thing(s, carry, &b, begin, end);
	free(s.data);
	chunk_drop(&first_held(&a)->held);
	s = carry_save_thing(carry, &a);
	begin(&b);
	ck_assert(!carry_load_thing(s, s.len, carry, &b, &error));
	ck_assert_msg(strstr(error.text, "a queued prompt has no line"), "%s", error.text);
	prompts_free(&a);
	prompts_free(&b);
	free(s.data);
}
END_TEST

RUN_TESTS("prompts", found_by_its_uuid, held_ones_are_counted, finished_ones_are_remembered, whose_they_are,
		  those_that_need_hooks, counts_stay_right, is_carried, damage_is_noticed)
