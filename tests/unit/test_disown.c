/* SPDX-License-Identifier: MIT */
#include "dialect/envelope.h"
#include "wire/disown.h"

#include "harness.h"

#include <stdio.h>
#include <string.h>

static struct chunk text(const char *line) {
	return (struct chunk){NULL, line, strlen(line)};
}

/* Filter a line from the child like the router: only if the scanner marks it. */
static struct chunk from_child(const char *line) {
	struct envelope wide, plain;
	struct chunk c = text(line);
	REQUIRE(scan_envelope(c.data, c.len, &wide) && scan_envelope_plain(c.data, c.len, &plain), "%s", line);
	REQUIRE(wide.reserved == plain.reserved, "%s", line);
	return wide.reserved ? disown_line(c) : chunk_ref(c);
}

static void becomes(const char *line, const char *want) {
	struct chunk c = from_child(line);
	REQUIRE(c.data && c.len == strlen(want) && memcmp(c.data, want, c.len) == 0, "%s: %.*s", line, (int)c.len, c.data);
	if (strcmp(line, want) == 0) ck_assert_ptr_eq(c.data, line); /* not even copied */
	chunk_drop(&c);
}

START_TEST(names_of_the_daemon) {
	becomes("{\"plenum_seq\":1}", "{\"child_plenum_seq\":1}");
	becomes("{\"type\":\"x\",\"plenum_seq\":1}\n", "{\"type\":\"x\",\"child_plenum_seq\":1}\n");
	becomes(" {\t\"plenum_seq\" :1 , \"a\":{} }\r", " {\t\"child_plenum_seq\" :1 , \"a\":{} }\r");
	becomes("{\"plenum_seq\":1,\"plenum_seq\":[2]}", "{\"child_plenum_seq\":1,\"child_plenum_seq\":[2]}");
	becomes("{\"plenum_\":1,\"plenum_x\":2}", "{\"child_plenum_\":1,\"child_plenum_x\":2}");
	becomes("{\"type\":\"system\",\"subtype\":\"plenum_event\"}",
			"{\"type\":\"system\",\"subtype\":\"child_plenum_event\"}");
	becomes("{\"subtype\":\"plenum_event\",\"subtype\":\"init\",\"plenum_seq\":0}",
			"{\"subtype\":\"child_plenum_event\",\"subtype\":\"init\",\"child_plenum_seq\":0}");
	becomes("{\"subtype\":\"init\",\"subtype\":\"plenum_event\"}",
			"{\"subtype\":\"init\",\"subtype\":\"child_plenum_event\"}");
	becomes("{\"request\":{\"subtype\":\"plenum_stop\",\"plenum_x\":1}}",
			"{\"request\":{\"subtype\":\"child_plenum_stop\",\"plenum_x\":1}}");
	becomes("{\"request\":{\"subtype\":\"plenum_stop\"},\"request\":{\"subtype\":\"x\"}}",
			"{\"request\":{\"subtype\":\"child_plenum_stop\"},\"request\":{\"subtype\":\"x\"}}");
}
END_TEST

START_TEST(other_names_stay) {
	static const char *const lines[] = {
		"{}",
		"[\"plenum_seq\"]",
		"{\"type\":\"plenum_event\",\"plenum\":1,\"plenumseq\":2,\"xplenum_seq\":3,\"lenum_seq\":4,\"\":5}",
		"{\"subtype\":\"xplenum_event\",\"text\":\"plenum_event\",\"session_id\":\"plenum_seq\"}",
		"{\"subtype\":[\"plenum_event\"],\"subtyp\":\"plenum_event\",\"subtypes\":\"plenum_event\"}",
		"{\"o\":{\"plenum_seq\":1,\"subtype\":\"plenum_event\"},\"message\":{\"plenum_seq\":1}}",
		"{\"request\":{\"o\":{\"subtype\":\"plenum_event\"},\"plenum_seq\":1}}",
		"{\"response\":{\"subtype\":\"plenum_event\",\"code\":1}}",
		"{\"plen\\num_seq\":1,\"plenum\\\\u005fseq\":2,\"plenum\\u005\":3,\"plenum\\u105fseq\":4,\"\\\\plenum_seq\":5}",
		"{\"s\\u0000ubtype\":\"plenum_event\",\"p\":\"plenum_\",\"P\":1,\"r\":1,\"s\":1,\"\\\\\":1}",
		"{\"child_plenum_seq\":1,\"subtype\":\"child_plenum_event\"}",
	};
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		if (*lines[i] == '{') becomes(lines[i], lines[i]);
}
END_TEST

/* A letter in one of the spellings that some parser accepts. */
static size_t put_letter(char *out, char letter, uint64_t *seed) {
	const unsigned code = (unsigned char)letter;
	const bool has_case = letter >= 'a' && letter <= 'z';
	switch (rng_below(seed, letter == 's' ? 6 : 4)) {
	case 0:
		return (size_t)sprintf(out, "\\u%04x", code);
	case 1:
		return (size_t)sprintf(out, "\\u%04X", has_case ? code - 32 : code);
	case 2:
		return (size_t)sprintf(out, "%c", has_case ? letter - 32 : letter);
	case 4:
		return (size_t)sprintf(out, "\\u017f");
	case 5:
		return (size_t)sprintf(out, "\xc5\xbf");
	default:
		return (size_t)sprintf(out, "%c", letter);
	}
}

static void spell(char *out, const char *word, uint64_t *seed) {
	for (; *word; word++) out += put_letter(out, *word, seed);
	*out = 0;
}

START_TEST(every_spelling) {
	static const char *const names[] = {"plenum_seq", "plenum_event", "plenum_", "plenum_x"};
	char key[200], value[200], line[1000], want[1000], pad[100];
	uint64_t seed = 1;
	const int n_rounds = rounds(20000);
	for (int i = 0; i < n_rounds; i++) {
		size_t n = rng_below(&seed, sizeof pad - 1); /* to reach the wide paths, too */
		memset(pad, 'a', n);
		pad[n] = 0;
		spell(key, names[rng_below(&seed, ARRAY_SIZE(names))], &seed);
		snprintf(line, sizeof line, "{\"%s\":1,\"t\":\"%s\",\"%s\":2}", key, pad, key);
		snprintf(want, sizeof want, "{\"child_%s\":1,\"t\":\"%s\",\"child_%s\":2}", key, pad, key);
		becomes(line, want);
		spell(key, "subtype", &seed);
		spell(value, names[rng_below(&seed, ARRAY_SIZE(names))], &seed);
		snprintf(line, sizeof line, "{\"t\":\"%s\",\"%s\" : \"%s\"}", pad, key, value);
		snprintf(want, sizeof want, "{\"t\":\"%s\",\"%s\" : \"child_%s\"}", pad, key, value);
		becomes(line, want);
		spell(value, "plenum_stop", &seed);
		snprintf(line, sizeof line, "{\"t\":\"%s\",\"r\\u0065quest\":{\"%s\":\"%s\"}}", pad, key, value);
		snprintf(want, sizeof want, "{\"t\":\"%s\",\"r\\u0065quest\":{\"%s\":\"child_%s\"}}", pad, key, value);
		becomes(line, want);
	}
}
END_TEST

/* With one byte removed or changed it is not the name: nothing reads past the end of a string. */
START_TEST(near_misses) {
	char line[100];
	for (size_t n = 0; n < 7; n++) {
		snprintf(line, sizeof line, "{\"%.*s\":1}", (int)n, "plenum_");
		becomes(line, line);
		snprintf(line, sizeof line, "{\"%.*s-%s\":1}", (int)n, "plenum_", &"plenum_"[n + 1]);
		becomes(line, line);
		snprintf(line, sizeof line, "{\"subtype\":\"%.*s\"}", (int)n, "plenum_");
		becomes(line, line);
	}
}
END_TEST

static void answer_becomes(const char *line, bool initialize, const char *want) {
	struct chunk c = disown_answer(text(line), initialize);
	REQUIRE(c.data && c.len == strlen(want) && memcmp(c.data, want, c.len) == 0, "%s: %.*s", line, (int)c.len, c.data);
	if (strcmp(line, want) == 0) ck_assert_ptr_eq(c.data, line);
	chunk_drop(&c);
}

START_TEST(answers) {
	static const char good[] =
		"{\"response\":{\"subtype\":\"success\",\"code\":1,\"response\":{\"plenum\":1,\"code\":2}}}";
	answer_becomes(good, false, good);
	answer_becomes(good, true,
				   "{\"response\":{\"subtype\":\"success\",\"code\":1,\"response\":{\"child_plenum\":1,\"code\":2}}}");
	answer_becomes(
		"{\"response\":{\"code\":\"a\",\"c\\u006fde\":\"b\",\"subtype\":\"error\",\"error_code\":\"c\"}}", false,
		"{\"response\":{\"child_code\":\"a\",\"child_c\\u006fde\":\"b\",\"subtype\":\"error\",\"error_code\":\"c\"}}");
	answer_becomes("{\"r\\u0065sponse\":{\"subtype\":\"error\",\"code\":1},\"response\":{\"code\":2}}\n", false,
				   "{\"r\\u0065sponse\":{\"subtype\":\"error\",\"child_code\":1},\"response\":{\"child_code\":2}}\n");
	answer_becomes("{\"code\":1,\"response\":{\"subtype\":\"error\",\"response\":{\"code\":2}}}", true,
				   "{\"code\":1,\"response\":{\"subtype\":\"error\",\"response\":{\"code\":2}}}");
	answer_becomes("{\"response\":7}", true, "{\"response\":7}");
}
END_TEST

RUN_TESTS("disown", names_of_the_daemon, other_names_stay, every_spelling, near_misses, answers)
