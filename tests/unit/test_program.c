/* SPDX-License-Identifier: MIT */
#include "core/program.h"

#include "core/glob.h"
#include "harness.h"

#define WORDS_MAX 12

/* The letters of the flags: Data, Runs, Lines, reAds, Unsure. `line` is cut at spaces; ? stands for GLOB_UNKNOWN. */
static const char *letters(const char *line) {
	static char out[8];
	char copy[200], *words[WORDS_MAX], *save;
	size_t n = 0, k = 0;
	snprintf(copy, sizeof copy, "%s", line);
	for (char *p = copy; *p; p++)
		if (*p == '?') *p = GLOB_UNKNOWN;
	for (char *w = strtok_r(copy, " ", &save); w && n < WORDS_MAX; w = strtok_r(NULL, " ", &save)) words[n++] = w;
	struct program p = program_of(words, n);
	const bool set[] = {p.data, p.runs, p.lines, p.reads, p.unsure};
	for (size_t i = 0; i < ARRAY_SIZE(set); i++)
		if (set[i]) out[k++] = "DRLAU"[i];
	out[k] = 0;
	return out;
}

START_TEST(base_name) {
	ck_assert_str_eq(program_base("ls"), "ls");
	ck_assert_str_eq(program_base("/usr/bin/ls"), "ls");
	ck_assert_str_eq(program_base("./x"), "x");
	ck_assert_str_eq(program_base("=ls"), "ls");
	ck_assert_str_eq(program_base("="), "=");
	ck_assert_str_eq(program_base("/"), "/");
	ck_assert_str_eq(program_base(""), "");
}
END_TEST

static const struct {
	const char *line, *want;
} programs[] = {
	{"cat a", "D"},
	{"/bin/cat a", "D"},
	{"some-tool a", ""},
	{"nice rm a", "R"},
	{"/lib64/ld-linux-x86-64.so.2 rm", "R"},
	{"ssh host rm", "RL"},
	{"eval rm", "RLA"},
	{"crontab x", "AU"},
	{"vim a", "U"},
	/* options of programs that are harmless without them */
	{"printf %s a", "D"},
	{"printf -v a b", "U"},
	{"sort a", ""},
	{"sort --compress-program=rm a", "U"},
	{"git log", ""},
	{"git -c core.pager=rm log", "U"},
	{"tar -cf a b", ""},
	{"tar -I rm -cf a b", "U"},
	{"printf %s ?", "D"},
	{"sort -? a", "U"},
	{"wait -np a", "U"},
	{"wait -n?", "U"},
	{"mapfile -tC a", "U"},
	{"jobs -x rm", "U"},
	/* their own texts */
	{"find . -name a", "D"},
	{"find . -exec rm", ""},
	{"find . -ex?ec rm", "U"},
	{"=cat a", "D"},
	{"[[ a == b ]]", "D"},
	{"[[ a -eq b ]]", ""},
	{". file", "A"},
	{".", "AU"},
};

START_TEST(programs_and_options) {
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		const char *got = letters(programs[i].line);
		REQUIRE(strcmp(got, programs[i].want) == 0, "%s: %s, want %s", programs[i].line, got, programs[i].want);
	}
}
END_TEST

START_TEST(shells_and_languages) {
	ck_assert_ptr_nonnull(strchr(letters("bash -c rm"), 'L'));
	ck_assert_ptr_nonnull(strchr(letters("bash -c rm"), 'A'));
	ck_assert_ptr_nonnull(strchr(letters("python3 -c pass"), 'U'));
	ck_assert_ptr_null(strchr(letters("python3 script.py"), 'U'));
	ck_assert_ptr_nonnull(strchr(letters("awk {system(\"rm\")}"), 'U'));
	ck_assert_str_eq(letters("awk {print$1} a"), "D");
	ck_assert_str_eq(letters("sed s/a/b/ f"), "D");
	ck_assert_ptr_nonnull(strchr(letters("sed s/a/b/e f"), 'U'));
}
END_TEST

RUN_TESTS("program", base_name, programs_and_options, shells_and_languages)
