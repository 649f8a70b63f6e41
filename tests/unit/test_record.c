/* SPDX-License-Identifier: MIT */
#include "store/record.h"

#include "harness.h"
#include "store/state.h"

#include <stdlib.h>

#define LONG (2 * RECORD_KEPT)

static char name[] = "work", profile[] = "claude", cwd[] = "/", small[] = "[1]", arg[LONG + 1], guards[LONG + 1],
			memo[LONG + 1];
static char *args[] = {arg, NULL};
static struct record *all;

static void before(void) {
	memset(arg, 'a', LONG);
	memset(guards, 'g', LONG);
	memset(memo, 'm', LONG);
	all = NULL;
}

static void after(void) {
	record_free(&all);
	ck_assert_ptr_null(all);
}

static struct state_session sample(uint64_t id) {
	return (struct state_session){.name = name,
								  .profile = profile,
								  .cwd = cwd,
								  .args = args,
								  .n_args = 1,
								  .guards = guards,
								  .memo = memo,
								  .id = id,
								  .marks = {1, 2, 3},
								  .hashes = {10, 20, 30}};
}

/* Return the line of a record; the caller frees. */
static char *line_of(const struct state_session *s) {
	struct draft d;
	draft_init(&d);
	record_put(&d, &all, s);
	ck_assert(!d.own.failed);
	FILE *f = tmpfile();
	char *text = calloc(1, d.len + 1);
	ck_assert(f && text && draft_write(&d, fileno(f)) == 0);
	rewind(f);
	ck_assert_uint_eq(fread(text, 1, d.len, f), d.len);
	fclose(f);
	draft_free(&d);
	return text;
}

static void is_same_line(const struct state_session *a, const struct state_session *b) {
	char *one = line_of(a), *other = line_of(b);
	ck_assert_str_eq(one, other);
	free(one);
	free(other);
}

static bool has(uint64_t id, enum record_part part, uint64_t mark) {
	uint64_t hash = 0;
	bool found = record_has(all, id, part, mark, &hash);
	if (found) ck_assert_uint_eq(hash, 10 * (uint64_t)(part + 1));
	return found;
}

/* Under its mark a part is the one of before, without its text. */
START_TEST(test_kept) {
	struct state_session fresh = sample(0), s = sample(7), bare;
	is_same_line(&fresh, &s);
	for (enum record_part i = 0; i < RECORD_PARTS; i++)
		ck_assert(has(7, i, i + 1) && !has(7, i, 9) && !has(8, i, i + 1));
	bare = s;
	bare.args = NULL;
	bare.n_args = 0;
	bare.guards = bare.memo = NULL;
	is_same_line(&fresh, &bare);
	fresh.seq = bare.seq = 5; /* a short member is read each time */
	is_same_line(&fresh, &bare);
}
END_TEST

START_TEST(test_changed) {
	struct state_session s = sample(7), fresh = sample(0);
	free(line_of(&s));
	memset(arg, 'b', LONG); /* also the beginning of the line of the parts that stay */
	s.marks[RECORD_LAUNCH] = 8;
	is_same_line(&fresh, &s);
	ck_assert(has(7, RECORD_LAUNCH, 8) && !has(7, RECORD_LAUNCH, 1) && has(7, RECORD_GUARDS, 2));
	s.guards = fresh.guards = small;
	s.marks[RECORD_GUARDS] = 8;
	is_same_line(&fresh, &s);
	ck_assert(!has(7, RECORD_GUARDS, 8) && has(7, RECORD_MEMO, 3));
	s.guards = fresh.guards = NULL;
	is_same_line(&fresh, &s);
}
END_TEST

/* Without a mark it may be any: such as hooks that are staged. */
START_TEST(test_unmarked) {
	struct state_session s = sample(7), fresh = sample(0);
	s.marks[RECORD_GUARDS] = 0;
	is_same_line(&fresh, &s);
	ck_assert(!has(7, RECORD_GUARDS, 0) && has(7, RECORD_LAUNCH, 1));
	memset(guards, 'h', LONG);
	is_same_line(&fresh, &s);
	s.marks[RECORD_GUARDS] = 2;
	free(line_of(&s));
	ck_assert(has(7, RECORD_GUARDS, 2));
	s.marks[RECORD_GUARDS] = 0; /* and the one of before is not kept either: it would be read under its mark */
	free(line_of(&s));
	ck_assert(!has(7, RECORD_GUARDS, 2));
}
END_TEST

START_TEST(test_short) {
	struct state_session s = sample(7);
	arg[10] = guards[10] = memo[10] = 0;
	free(line_of(&s));
	ck_assert_ptr_null(all);
}
END_TEST

START_TEST(test_sweep) {
	struct state_session one = sample(1), two = sample(2);
	free(line_of(&one));
	free(line_of(&two));
	record_sweep(&all);
	ck_assert(has(1, RECORD_LAUNCH, 1) && has(2, RECORD_LAUNCH, 1));
	free(line_of(&two));
	record_sweep(&all);
	ck_assert(!has(1, RECORD_LAUNCH, 1) && has(2, RECORD_LAUNCH, 1));
	record_sweep(&all);
	ck_assert_ptr_null(all);
}
END_TEST

RUN_TESTS_WITH(before, after, "record", test_kept, test_changed, test_unmarked, test_short, test_sweep)
