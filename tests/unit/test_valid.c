/* SPDX-License-Identifier: MIT */
#include "base/macros.h"
#include "wire/valid.h"

#include "harness.h"

#include <stdio.h>
#include <string.h>

/* The seen keys and values: "level:text" each. */
static char seen[400];

static void note(size_t level, const char *p, size_t n) {
	size_t at = strlen(seen);
	snprintf(seen + at, sizeof seen - at, "%s%zu:%.*s", at ? " " : "", level, (int)n, p);
}

static bool on_key(struct valid *v, const char *key, size_t n) {
	note(v->depth, key, n);
	if (n == 3 && memcmp(key, "bad", 3) == 0) {
		v->error = "refused by the watcher";
		return false;
	}
	if (v->depth < ARRAY_SIZE(v->wants)) v->wants[v->depth] = n == 4 && memcmp(key, "want", 4) == 0;
	if (v->depth == 1) v->keys[2] = n != 3 || memcmp(key, "not", 3) != 0;
	v->keys[3] = v->depth == 2;
	return true;
}

static void on_value(struct valid *v, struct span value) {
	note(v->depth, value.p, value.n);
}

static const struct valid_watch watch = {.key = on_key, .value = on_value};

static bool check(const char *text, size_t step, struct valid *v) {
	seen[0] = 0;
	valid_begin(v, text, strlen(text), &watch);
	while (!valid_run(v, step)) {}
	return v->state == VALID_DONE;
}

static const char nested[] = "{\"a\":{\"want\":[1,{\"x\":2}],\"b\":{\"c\":{\"deep\":1}}},\"want\":{\"d\":\"\\\"\"},"
							 "\"e\":[3],\"not\":{\"hidden\":{\"x\":1}}}";
static const char expected[] = "1:a 2:want 2:[1,{\"x\":2}] 2:b 3:c 1:want 2:d 1:{\"d\":\"\\\"\"} 1:e 1:not";

START_TEST(a_watcher_sees_keys_and_wanted_values_of_the_first_levels) {
	struct valid v;
	ck_assert(check(nested, sizeof nested, &v));
	ck_assert_str_eq(seen, expected);
}
END_TEST

START_TEST(an_interruption_repeats_and_misses_nothing) {
	struct valid v;
	for (size_t step = 1; step < sizeof nested; step++) {
		REQUIRE(check(nested, step, &v), "step %zu", step);
		ck_assert_str_eq(seen, expected);
	}
}
END_TEST

START_TEST(a_refused_key_ends_the_check_with_the_watchers_error) {
	struct valid v;
	ck_assert(!check("{\"a\":1,\"bad\":2,\"c\":3}", 100, &v));
	ck_assert_str_eq(v.error, "refused by the watcher");
	ck_assert_str_eq(seen, "1:a 1:bad");
}
END_TEST

START_TEST(plain_texts) {
	static const struct {
		const char *text;
		bool good;
		size_t at;
	} cases[] = {
		{"1.5e-3", true, 0},    {"\"\\ud800\"", true, 0}, {"[]", true, 0},         {" {} ", true, 0},
		{"01", false, 1},       {"[1,]", false, 3},       {"{\"a\" 1}", false, 5}, {"", false, 0},
		{"\"\x80\"", false, 1}, {"{} {}", false, 3},      {"nul", false, 0},
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *error = NULL;
		size_t at = 0;
		bool good = valid_json(cases[i].text, strlen(cases[i].text), &error, &at);
		REQUIRE(good == cases[i].good, "%s: %s", cases[i].text, error ? error : "no error");
		if (!good) REQUIRE(error && at == cases[i].at, "%s: at %zu", cases[i].text, at);
	}
}
END_TEST

RUN_TESTS("valid", a_watcher_sees_keys_and_wanted_values_of_the_first_levels,
		  an_interruption_repeats_and_misses_nothing, a_refused_key_ends_the_check_with_the_watchers_error, plain_texts)
