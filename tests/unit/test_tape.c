/* SPDX-License-Identifier: MIT */
#include "core/tape.h"

#include "carrying.h"

/* --- the model: a plain list -------------------------------------------------------------------------------------- */

#define MODEL_MAX 4000

struct model {
	struct {
		size_t len;
		char fill;
	} lines[MODEL_MAX]; /* all lines ever; line i has the number i + 1 */
	size_t n, first;    /* first: index of the oldest remaining one */
	size_t max_bytes, max_lines;
};

/* A line longer than half the tape counts as half the tape and a byte. */
static size_t model_cost(const struct model *m, size_t len) {
	return len > m->max_bytes / 2 ? m->max_bytes / 2 + 1 : len;
}

static size_t model_bytes(const struct model *m) {
	size_t sum = 0;
	for (size_t i = m->first; i < m->n; i++) sum += model_cost(m, m->lines[i].len);
	return sum;
}

static void model_append(struct model *m, size_t len, char fill) {
	m->lines[m->n].len = len;
	m->lines[m->n++].fill = fill;
	while (m->n - m->first > 1 && (model_bytes(m) > m->max_bytes || m->n - m->first > m->max_lines)) m->first++;
}

static void model_reserve(struct model *m, size_t len) {
	while (m->first < m->n && model_bytes(m) + model_cost(m, len) > m->max_bytes) m->first++;
}

static struct chunk line_of(size_t len, char fill) {
	char text[5000];
	memset(text, fill, len - 1);
	text[len - 1] = '\n';
	return chunk_copy(text, len);
}

static void compare(const struct tape *t, const struct model *m) {
	REQUIRE(t->count == m->n - m->first, "%zu lines, not %zu", t->count, m->n - m->first);
	REQUIRE(t->oldest == m->first + 1 && t->next == m->n + 1, "%zu to %zu", (size_t)t->oldest, (size_t)t->next);
	REQUIRE(t->bytes == model_bytes(m), "%zu bytes, not %zu", t->bytes, model_bytes(m));
	uint64_t behind = 0;
	for (size_t i = m->n; i-- > m->first;) {
		const struct tape_entry *e = tape_at(t, i + 1);
		behind += m->lines[i].len;
		REQUIRE(e->line.len == m->lines[i].len && e->line.data[0] == (e->line.len > 1 ? m->lines[i].fill : '\n'),
				"line %zu", i + 1);
		REQUIRE(tape_behind(t, i + 1) == behind, "behind %zu", i + 1);
	}
	REQUIRE(tape_behind(t, 0) == behind && tape_behind(t, t->next) == 0 && tape_behind(t, t->next + 5) == 0,
			"behind the ends");
}

START_TEST(does_what_a_list_does) {
	static const size_t bytes[] = {1, 2, 50, 1000, 4096}, lines[] = {0, 1, 2, 16, 33, 1000};
	uint64_t seed = 1;
	for (size_t a = 0; a < ARRAY_SIZE(bytes); a++)
		for (size_t b = 0; b < ARRAY_SIZE(lines); b++) {
			struct model *m = calloc(1, sizeof *m);
			struct tape t;
			tape_init(&t, bytes[a], lines[b]);
			m->max_bytes = bytes[a];
			m->max_lines = MAX(lines[b], (size_t)1);
			for (int i = 0; i < 300; i++) {
				size_t len = 1 + rng_below(&seed, rng_below(&seed, 8) ? 40 : 4500);
				char fill = (char)('a' + rng_below(&seed, 26));
				if (rng_below(&seed, 50) == 0) tape_pack(&t);
				if (rng_below(&seed, 10) == 0) {
					model_reserve(m, len);
					tape_reserve(&t, len);
				} else if (rng_below(&seed, 100) == 0) {
					m->first = m->n;
					tape_free(&t);
				} else {
					model_append(m, len, fill);
					ck_assert(tape_append(&t, line_of(len, fill), LINE_USER, 0));
				}
				compare(&t, m);
			}
			tape_free(&t);
			free(m);
		}
}
END_TEST

START_TEST(owns_one_reference_to_each_line) {
	struct tape t;
	struct chunk line = chunk_copy("one\n", 4);
	tape_init(&t, 1000, 2);
	for (int i = 0; i < 5; i++) ck_assert(tape_append(&t, chunk_ref(line), LINE_USER, 0));
	ck_assert_uint_eq(line.block->refs, 3); /* two on the tape, and this one */
	tape_free(&t);
	ck_assert_uint_eq(line.block->refs, 1);
	ck_assert_uint_eq(t.oldest, 6);
	ck_assert_uint_eq(t.next, 6);
	ck_assert(tape_append(&t, chunk_ref(line), LINE_USER, 0));
	tape_free(&t);
	ck_assert_uint_eq(line.block->refs, 1);
	chunk_drop(&line);
}
END_TEST

START_TEST(keeps_what_it_is_told_of_a_line) {
	struct tape t;
	tape_init(&t, 1000, 100);
	ck_assert(tape_append(&t, CHUNK_STATIC("a\n"), LINE_RESULT, TAPE_REPLAY));
	ck_assert(tape_append(&t, CHUNK_STATIC("bcd\n"), LINE_NOTICE, 0));
	const struct tape_entry *e = tape_at(&t, 1);
	ck_assert_uint_eq(e->kind, LINE_RESULT);
	ck_assert_uint_eq(e->flags, TAPE_REPLAY);
	ck_assert_uint_eq(e->end, 2);
	ck_assert_uint_eq(tape_at(&t, 2)->kind, LINE_NOTICE);
	ck_assert_uint_eq(tape_at(&t, 2)->end, 6);
	tape_free(&t);
}
END_TEST

/* One line over half the tape does not push out all earlier ones; the newest stays at any size. */
START_TEST(a_long_line_spares_the_rest) {
	struct tape t;
	tape_init(&t, 1000, 100);
	for (int i = 0; i < 10; i++) ck_assert(tape_append(&t, line_of(40, 'x'), LINE_USER, 0));
	ck_assert(tape_append(&t, line_of(5000, 'y'), LINE_USER, 0));
	ck_assert_uint_eq(t.count, 11);
	ck_assert(tape_append(&t, line_of(4000, 'z'), LINE_USER, 0));
	ck_assert_uint_eq(t.count, 1);
	ck_assert_uint_eq(tape_at(&t, 12)->line.len, 4000);
	ck_assert_uint_eq(tape_behind(&t, 1), 4000);
	tape_free(&t);
}
END_TEST

/* Reserving pushes out for a line before it is whole; its append pushes out nothing more. */
START_TEST(reserving_is_appending_early) {
	struct tape t;
	tape_init(&t, 1000, 100);
	for (int i = 0; i < 20; i++) ck_assert(tape_append(&t, line_of(50, 'x'), LINE_USER, 0));
	tape_reserve(&t, 0);
	ck_assert_uint_eq(t.count, 20);
	tape_reserve(&t, 120);
	ck_assert_uint_eq(t.count, 17);
	tape_reserve(&t, 150);
	ck_assert_uint_eq(t.count, 17);
	ck_assert(tape_append(&t, line_of(150, 'y'), LINE_USER, 0));
	ck_assert_uint_eq(t.count, 18);
	tape_reserve(&t, SIZE_MAX); /* half of it, as for any long line */
	ck_assert_uint_eq(t.count, 7);
	tape_free(&t);
}
END_TEST

static void put(struct tape *t, const char *line) {
	ck_assert(tape_append(t, chunk_copy(line, strlen(line)), LINE_USER, 0));
}

START_TEST(packing_leaves_what_is_not_its_own) {
	struct tape t;
	struct block *shared = block_new(100000);
	memset(block_data(shared), 'x', 20);
	tape_init(&t, 4096, 100);
	tape_pack(&t);
	for (int i = 0; i < 2; i++)
		ck_assert(tape_append(&t, (struct chunk){block_ref(shared), block_data(shared) + i * 10, 10}, LINE_OTHER, 0));
	struct chunk sent = chunk_ref(tape_at(&t, 1)->line); /* a client has half of it left to send */
	tape_pack(&t);
	ck_assert_uint_eq(shared->refs, 2);
	ck_assert_mem_eq(sent.data, "xxxxxxxxxx", 10);
	ck_assert_ptr_eq(tape_at(&t, 1)->line.block, tape_at(&t, 2)->line.block);
	ck_assert_uint_eq(tape_at(&t, 1)->line.block->cap, 20);
	chunk_drop(&sent);
	block_unref(shared);
	tape_free(&t);
}
END_TEST

/* Then the index is as long as the tape, at any length, and continues from there. */
START_TEST(packing_leaves_no_room_in_the_index) {
	struct tape t;
	char text[16];
	tape_init(&t, 4096, 7);
	for (size_t i = 1; i <= 100; i++) {
		snprintf(text, sizeof text, "%zu\n", i);
		put(&t, text);
		if (i % 9 == 0 || i % 4 == 0) {
			tape_pack(&t);
			ck_assert_uint_eq(t.cap, t.count);
		}
		ck_assert_uint_eq(t.count, MIN(i, (size_t)7));
		for (uint64_t seq = t.oldest; seq < t.next; seq++)
			ck_assert_uint_eq(strtoul(tape_at(&t, seq)->line.data, NULL, 10), seq);
	}
	tape_free(&t);
}
END_TEST

START_TEST(finds_a_line_by_its_uuid) {
	struct tape t;
	tape_init(&t, 1000, 4);
	ck_assert_uint_eq(tape_after_uuid(&t, dialect_default(), "u1"), 0);
	put(&t, "{\"type\":\"user\",\"uuid\":\"u1\"}\n");
	put(&t, "{\"type\":\"user\",\"uuid\":\"u2\"}\n");
	put(&t, "{\"type\":\"user\",\"uuid\":\"u1\",\"x\":2}\n");
	ck_assert_uint_eq(tape_after_uuid(&t, dialect_default(), "u1"), 4); /* the newest */
	ck_assert_uint_eq(tape_after_uuid(&t, dialect_default(), "u2"), 3);
	/* it contains the name, but not as its uuid */
	put(&t, "{\"type\":\"user\",\"uuid\":\"u22\",\"a\":\"u2\",\"message\":{\"uuid\":\"u2\"}}\n");
	ck_assert_uint_eq(tape_after_uuid(&t, dialect_default(), "u2"), 3);
	ck_assert_uint_eq(tape_after_uuid(&t, dialect_default(), "u22"), 5);
	ck_assert_uint_eq(tape_after_uuid(&t, dialect_default(), "u"), 0);
	ck_assert_uint_eq(tape_after_uuid(&t, dialect_default(), ""), 0);
	put(&t, "no JSON \"uuid\":\"u9\"\n");
	ck_assert_uint_eq(tape_after_uuid(&t, dialect_default(), "u9"), 0);
	put(&t, "{\"uuid\":\"u9\"}\n");
	ck_assert_uint_eq(tape_after_uuid(&t, dialect_default(), "u2"), 0); /* pushed out */
	ck_assert_uint_eq(tape_after_uuid(&t, dialect_default(), "u9"), 7);
	tape_free(&t);
}
END_TEST

/* A client's uuid may need escapes; the child prints it with those only. */
START_TEST(finds_a_uuid_that_is_spelled_with_escapes) {
	struct tape t;
	tape_init(&t, 1000, 10);
	put(&t, "{\"uuid\":\"a\\\"b\\\\c\"}\n");
	put(&t, "{\"uuid\":\"u-\xc3\xa9\\n\"}\n");
	put(&t, "{\"uuid\":\"plain\"}\n");
	ck_assert_uint_eq(tape_after_uuid(&t, dialect_default(), "a\"b\\c"), 2);
	ck_assert_uint_eq(tape_after_uuid(&t, dialect_default(), "u-\xc3\xa9\n"), 3);
	ck_assert_uint_eq(tape_after_uuid(&t, dialect_default(), "plain"), 4);
	ck_assert_uint_eq(tape_after_uuid(&t, dialect_default(), "a\\\"b\\\\c"), 0);
	tape_free(&t);
}
END_TEST

/* --- upgrade ------------------------------------------------------------------------------------------------------ */

static void carry(struct carry *c, void *t) {
	tape_carry(c, t);
}

static void begin(void *t) {
	tape_init(t, 2000, 50);
}

static void end(void *t) {
	tape_free(t);
}

static void same(const struct tape *a, const struct tape *b, uint64_t from) {
	ck_assert_uint_eq(b->oldest, from);
	ck_assert_uint_eq(b->next, a->next);
	ck_assert_uint_eq(b->total, a->total);
	for (uint64_t seq = from; seq < a->next; seq++) {
		const struct tape_entry *x = tape_at(a, seq), *y = tape_at(b, seq);
		ck_assert_uint_eq(x->line.len, y->line.len);
		ck_assert_mem_eq(x->line.data, y->line.data, x->line.len);
		ck_assert(x->kind == y->kind && x->flags == y->flags && x->end == y->end);
		ck_assert_uint_eq(tape_behind(a, seq), tape_behind(b, seq));
	}
}

static void fill(struct tape *t, int n) {
	for (int i = 0; i < n; i++)
		ck_assert(tape_append(t, line_of(1 + (size_t)i % 70, (char)('a' + i % 26)),
							  (enum line_kind)(i % (LINE_OTHER + 1)), i % 2));
}

START_TEST(is_carried) {
	struct error error;
	struct tape a, b;
	for (int n = 0; n < 200; n += 37) {
		begin(&a);
		fill(&a, n);
		struct saved s = carry_save_thing(carry, &a);
		begin(&b);
		ck_assert_msg(carry_load_thing(s, s.len, carry, &b, &error), "%s", error.text);
		same(&a, &b, a.oldest);
		ck_assert_uint_eq(a.bytes, b.bytes);
		tape_free(&b);
		tape_init(&b, 2000, 10); /* smaller bounds now: the oldest go */
		ck_assert_msg(carry_load_thing(s, s.len, carry, &b, &error), "%s", error.text);
		same(&a, &b, MAX(a.oldest, a.next > 10 ? a.next - 10 : 1));
		tape_free(&b);
		tape_free(&a);
		free(s.data);
	}
}
END_TEST

START_TEST(damage_is_noticed) {
	struct tape a, b;
	begin(&a);
	fill(&a, 20);
	struct saved s = carry_save_thing(carry, &a);
	carry_spoil_thing(s, carry, &b, begin, end);
	free(s.data);
	tape_free(&a);
}
END_TEST

START_TEST(numbers_only_grow) {
	ck_assert_uint_eq(tape_fresh_number(1700000000000, 0), 1700000000000000);
	ck_assert_uint_eq(tape_fresh_number(1700000000000, 1700000000000000), 1700000000000001); /* in one millisecond */
	ck_assert_uint_eq(tape_fresh_number(1600000000000, 1700000000000000), 1700000000000001); /* clock set back */
	ck_assert_uint_eq(tape_fresh_number(0, 0), 1);                                           /* no clock */
	ck_assert_uint_eq(tape_fresh_number(-5, 7), 8);
}
END_TEST

START_TEST(begins_where_it_is_told) {
	struct error error;
	struct tape a, b;
	begin(&a);
	tape_begin(&a, 500, true);
	fill(&a, 1);
	ck_assert(a.began == 500 && a.oldest == 500 && a.next == 501 && tape_at(&a, 500)->line.len == 1);
	struct saved s = carry_save_thing(carry, &a);
	begin(&b);
	ck_assert_msg(carry_load_thing(s, s.len, carry, &b, &error), "%s", error.text);
	same(&a, &b, 500);
	ck_assert_uint_eq(b.began, 500);
	free(s.data);
	tape_free(&a);
	tape_free(&b);
	begin(&a);
	tape_begin(&a, 600, false);
	ck_assert(a.began == 0 && a.oldest == 600 && a.next == 600);
}
END_TEST

RUN_TESTS("tape", numbers_only_grow, begins_where_it_is_told, does_what_a_list_does, owns_one_reference_to_each_line,
		  keeps_what_it_is_told_of_a_line, a_long_line_spares_the_rest, reserving_is_appending_early,
		  packing_leaves_what_is_not_its_own, packing_leaves_no_room_in_the_index, finds_a_line_by_its_uuid,
		  finds_a_uuid_that_is_spelled_with_escapes, is_carried, damage_is_noticed)
