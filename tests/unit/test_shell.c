/* SPDX-License-Identifier: MIT
 *
 * test_rules.c lists the lines that must not be allowed or must be found; these tests check the two functions by
 * themselves, the first one against wordexp(3).
 */
#include "core/shell.h"

#include "base/buf.h"
#include "harness.h"

#include <string.h>
#include <wordexp.h>

START_TEST(plain) {
	static const char *const yes[] = {
		"",
		"ls",
		" ls  -l ",
		"a/b.c x:y --k=v,w %3 @x +y ^z ~",
		"echo 'a; b $c `d` \\'",
		"x \"a b\"",
		"x \"\\\" \\$ \\` \\\\\"",
		"''\"\"",
		"a'b'\"c\"d",
		"echo 'gr\xc3\xbc\xc3\x9f'",
	};
	static const char *const no[] = {
		"a;b",  "a&b",      "a|b",    "a\nb",     "a\tb",     "a<b",   "a>b",    "(a)",
		"`a`",  "$a",       "a\\ b",  "*",        "?",        "[a]",   "{a}",    "#a",
		"!a",   "'a",       "\"a",    "\"$a\"",   "\"`a`\"",  "\"a\\", "'a\nb'", "\"a\x01\"",
		"\x7f", "\"\\\n\"", "'\x7f'", "\xc2\xa0", "\xc3\xbc", "a\"b",  "'a'\"",  "a\rb",
	};
	for (size_t i = 0; i < ARRAY_SIZE(yes); i++) REQUIRE(shell_is_plain(yes[i]), "%s", yes[i]);
	for (size_t i = 0; i < ARRAY_SIZE(no); i++) REQUIRE(!shell_is_plain(no[i]), "%s", no[i]);
	char *text = malloc(SHELL_TEXT_MAX + 2);
	memset(text, 'a', SHELL_TEXT_MAX + 1);
	text[SHELL_TEXT_MAX] = 0;
	ck_assert(shell_is_plain(text));
	text[SHELL_TEXT_MAX] = 'a';
	text[SHELL_TEXT_MAX + 1] = 0;
	ck_assert(!shell_is_plain(text));
	free(text);
}
END_TEST

static bool finds(const struct shell_commands *c, const char *command) {
	for (size_t i = 0; i < c->texts.n; i++)
		if (strcmp(c->texts.v[i], command) == 0) return true;
	return false;
}

static void has(const char *text, const char *command) {
	struct shell_commands c;
	ck_assert(shell_commands(text, &c));
	REQUIRE(finds(&c, command), "%s is not found in %s", command, text);
	REQUIRE(!c.unsure, "%s is doubtful", text);
	shell_commands_free(&c);
}

START_TEST(commands) {
	has("ls -l", "ls -l");
	has("  ls   -l  ", "ls -l");
	has("/bin/ls -l", "/bin/ls -l");
	has("/bin/ls -l", "ls -l");
	has("a; b", "b");
	has("a|b&&c", "c");
	has("echo 'a b' \"c\"d", "echo a b cd");
	has("echo $(X)", "echo \x01");
	has("echo \"$X\"", "echo \x01");
	has("echo \"$(rm x)\"", "rm x");
	has("X=1 rm x", "rm x");
	has("sudo -u me rm x", "rm x");
	has("sh -c 'a; rm x'", "rm x");
	has("ls >out 2>&1 x", "ls x");
	has("ls <in", "ls");
	has("if a; then rm x; fi", "rm x");
	has("find . -exec rm {} +", "rm {} +");
	has("r\\m x", "rm x");
	has("'r'm x", "rm x");
	has("rm \\\n x", "rm x");
	has("a # ; rm x", "a");
}
END_TEST

START_TEST(doubt) {
	static const char *const doubtful[] = {"echo 'a", "echo \"a", "echo $(a", "echo `a", "echo \\"};
	struct shell_commands c;
	for (size_t i = 0; i < ARRAY_SIZE(doubtful); i++) {
		ck_assert(shell_commands(doubtful[i], &c));
		REQUIRE(c.unsure, "%s", doubtful[i]);
		shell_commands_free(&c);
	}
	ck_assert(shell_commands("", &c));
	ck_assert(!c.unsure && c.texts.n == 0);
	shell_commands_free(&c);
}
END_TEST

static char *repeat(const char *part, size_t n, const char *tail) {
	struct buf b = BUF_INIT(1 << 20);
	for (size_t i = 0; i < n; i++) buf_puts(&b, part);
	buf_puts(&b, tail);
	return buf_steal(&b, NULL);
}

START_TEST(limits) {
	struct shell_commands c;
	char *text = repeat("$(", 100, "");
	ck_assert(shell_commands(text, &c));
	ck_assert(c.unsure); /* too deep */
	shell_commands_free(&c);
	free(text);
	text = repeat("a;", SHELL_COMMANDS_MAX + 10, "");
	ck_assert(shell_commands(text, &c));
	ck_assert(c.unsure); /* too many */
	ck_assert_uint_eq(c.texts.n, SHELL_COMMANDS_MAX);
	shell_commands_free(&c);
	free(text);
	text = repeat("a ", SHELL_TEXT_MAX / 2 + 1, "");
	ck_assert(shell_commands(text, &c));
	ck_assert(c.unsure); /* too long */
	shell_commands_free(&c);
	free(text);
	text = repeat("a ", SHELL_COMMAND_MAX, ""); /* a long one is truncated, and says so */
	ck_assert(shell_commands(text, &c));
	size_t n = strlen(c.texts.v[0]);
	ck_assert_uint_le(n, SHELL_COMMAND_MAX + 1);
	ck_assert_int_eq(c.texts.v[0][n - 1], GLOB_UNKNOWN);
	shell_commands_free(&c);
	free(text);
}
END_TEST

static void some(char *out, size_t max, const char *const *parts, size_t n_parts, uint64_t *seed) {
	size_t n = rng_below(seed, max), at = 0;
	for (size_t i = 0; i < n; i++) {
		const char *part = parts[rng_below(seed, n_parts)];
		memcpy(out + at, part, strlen(part));
		at += strlen(part);
	}
	out[at] = 0;
}

static char *joined(const wordexp_t *w) {
	struct buf b = BUF_INIT(10000);
	for (size_t i = 0; i < w->we_wordc; i++) {
		if (i) buf_putc(&b, ' ');
		buf_puts(&b, w->we_wordv[i]);
	}
	return buf_steal(&b, NULL);
}

/* A plain line is one command for a shell, too, with the same words. */
START_TEST(plain_is_what_a_shell_takes_as_words) {
	static const char *const parts[] = {"a",  "b",  "-",  "=",  " ", " ", "'", "'",
										"\"", "\"", "\\", "\\", "$", ";", "%", "#"};
	uint64_t seed = 1;
	char text[40];
	size_t n_plain = 0;
	const int n = rounds(100000);
	for (int i = 0; i < n; i++) {
		struct shell_commands c;
		wordexp_t w;
		some(text, 14, parts, ARRAY_SIZE(parts), &seed);
		if (!shell_is_plain(text)) continue;
		if (strstr(text, "''") || strstr(text, "\"\"")) continue; /* glibc takes these for separate words */
		REQUIRE(wordexp(text, &w, WRDE_NOCMD | WRDE_UNDEF) == 0, "%s is no list of words", text);
		_cleanup_free_ char *want = joined(&w);
		ck_assert(shell_commands(text, &c));
		REQUIRE(!c.unsure, "%s", text);
		REQUIRE(w.we_wordc ? finds(&c, want) : c.texts.n == 0, "%s: not %s", text, want);
		shell_commands_free(&c);
		wordfree(&w);
		n_plain++;
	}
	ck_assert_uint_gt(n_plain, (size_t)n / 70);
}
END_TEST

/* A command on a line of its own is found after any text, or the result is unsure. */
START_TEST(nothing_hides_the_next_line) {
	static const char *const parts[] = {"a",   "b ",     "'",  "\"", "\\\\", "\\a", "$", "(",  ")",    "{",  "}",
										"`",   ";",      "&",  "|",  " ",    "#",   "!", "\n", "=",    "$(", "case ",
										"if ", "sh -c ", "$'", ">",  "[",    "]",   "*", "~",  "eval "};
	uint64_t seed = 2;
	char text[100];
	const int n = rounds(30000);
	for (int i = 0; i < n; i++) {
		struct shell_commands c;
		some(text, 12, parts, ARRAY_SIZE(parts), &seed);
		strcat(text, "\nrm x\n");
		ck_assert(shell_commands(text, &c));
		REQUIRE(c.unsure || finds(&c, "rm x"), "rm x is not found in: %s", text);
		shell_commands_free(&c);
	}
}
END_TEST

RUN_TESTS("shell", plain, commands, doubt, limits, plain_is_what_a_shell_takes_as_words, nothing_hides_the_next_line)
