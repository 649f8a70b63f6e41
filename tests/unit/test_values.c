/* SPDX-License-Identifier: MIT */
#include "core/values.h"

#include "core/glob.h"
#include "core/shell.h"
#include "harness.h"

static bool is_odd(const char *line) {
	struct shell_commands c;
	ck_assert(shell_commands(line, &c));
	bool odd = values_are_odd(&c.values);
	shell_commands_free(&c);
	return odd;
}

/* Values that may hold a subscript, each reaching something that evaluates it. */
START_TEST(odd_values_are_found) {
	static const char *const lines[] = {
		/* arithmetic */
		"x='a[b]'; echo $((x))",
		"x=$(cmd); ((x))",
		"echo $(($(cmd)))",
		"for x in $(cmd); do echo $((x)); done",
		"for x in *; do let y=x; done",
		"x=y; y='a[b]'; echo $((x))",
		"x='a[b]'; y=$x; [[ $y -eq 1 ]]",
		"f() { echo $(($1)); }; f 'a[b]'",
		"set -- 'a[b]'; echo ${x:$1}",
		"read -r x; echo ${a[x]}",
		"mapfile -t x < f; echo $((x))",
		"echo 'a[b]'; echo $((_))",
		"[[ $x =~ y ]]; echo $((BASH_REMATCH))",
		"a=('b[c]'); echo $((a))",
		"a['1+b[$(cmd)]']=1",
		"read -r y x$z <<< 1; z=$(cmd)",
		"read$x 'a[b]'",
		"x='a[b]'; a[x]=1",
		"a='b[c]'; i=1; echo $((a$i))",
		"x='a[b]'; echo ${!x}",
		"export \"$x\"; echo $((y))",
		/* a computed option */
		"printf $x'a[b]' y",
		"x='-va[b]'; printf \"$x\" y",
		"x='-v a[b] c'; printf $x",
		"printf {-va,b} c",
		"printf * x",
		"[ $x 'a[b]' ]",
		"x='a -o -v b[c]'; [ $x = y ]",
		"[ $(cmd) = y ]",
		"wait -n $x'a[b]'",
		"mapfile \"$x\" a",
		"jobs $x cmd",
		"find $x $y {} \\;",
		"x='a[b]'; unset \"$x\"",
		/* by the shell itself */
		"PS4='$(cmd)'",
		"BASH_ENV=f",
		"read -r PS4",
	};
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) REQUIRE(is_odd(lines[i]), "%s", lines[i]);
}
END_TEST

START_TEST(the_rest_is_not_odd) {
	static const char *const lines[] = {
		"i=0; while [ $i -lt 5 ]; do i=$((i+1)); done",
		"for i in 1 2 3; do echo $((i*2)); done",
		"for i in $(seq 1 $n); do echo $((i*2)); done",
		"for i in {1..5}; do echo $((i*2)); done",
		"for f in *.c; do gcc -c \"$f\"; n=$((n+1)); done",
		"while read -r line; do n=$((n+1)); done < f",
		"n=$(ls *.c 2>/dev/null | wc -l); [ $n -gt 3 ]",
		"echo $(( $(date +%s) - start ))",
		"a=(1 2 3); for x in \"${a[@]}\"; do echo $((x+1)); done",
		"a=(b c); for i in \"${!a[@]}\"; do echo ${a[$i]}; done",
		"x=0x1F; echo $((x))",
		"x=$(cmd); [ \"$x\" = y ]",
		"[ $? -eq 0 ]",
		"[ -z \"$x\" -a \"$y\" = a ]",
		"printf '%s\\n' \"$(cmd)\" $x",
		"printf \"$x\\n\"",
		"wait $!",
		"cmd & p=$!; wait $p",
		"find \"$d\" -name \"$n\" -exec cmd {} \\;",
		"x='a[b]'; y=$x; cmd \"$y\"",
		"PS4='+ '; set -x",
	};
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) REQUIRE(!is_odd(lines[i]), "%s", lines[i]);
}
END_TEST

START_TEST(numbers) {
	static const char *const yes[] = {
		"nproc", " id -u ", "wc -l < f", "ls 'a b' | wc -l", "date +%s", "seq 1 10", "cmd 2>/dev/null | wc -l"};
	static const char *const no[] = {"cmd",           "wc -l f",     "a || wc -l",         "a; wc -l",
									 "a >&2 | wc -l", "seq -f x 1",  "printf 'a | wc -l'", "a | wc -l #",
									 "wc -l | cmd",   "`a` | wc -l", "date +%s -u",        "",
									 "a\nwc -l",      "(a | wc -l)"};
	struct values v = {0};
	for (size_t i = 0; i < ARRAY_SIZE(yes); i++) REQUIRE(values_is_number(&v, yes[i], strlen(yes[i])), "%s", yes[i]);
	for (size_t i = 0; i < ARRAY_SIZE(no); i++) REQUIRE(!values_is_number(&v, no[i], strlen(no[i])), "%s", no[i]);
	values_free(&v);
}
END_TEST

START_TEST(assignments) {
	static const char *const yes[] = {"a=v",        "_b1=v",      "a+=v",     "a[1]=v",
									  "a\x01x]+=v", "a[b+c=d]=v", "a[b]]+=v", "a\x01=v"};
	static const char *const no[] = {"", "a", "1a=b", "-a=b", "=b", "a-=b", "\x01=b", "a[b]"};
	for (size_t i = 0; i < ARRAY_SIZE(yes); i++) {
		const char *value = values_of(yes[i]);
		REQUIRE(value && strcmp(value, "v") == 0, "%s: %s", yes[i], value);
	}
	for (size_t i = 0; i < ARRAY_SIZE(no); i++) REQUIRE(!values_of(no[i]), "%s", no[i]);
}
END_TEST

/* Too many names are not understood. */
START_TEST(limits) {
	struct values v = {0};
	char word[20];
	for (int i = 0; i < 5000; i++) {
		snprintf(word, sizeof word, "n%d=(", i);
		values_assign(&v, word, WORD_PLAIN, NULL, 0);
	}
	ck_assert(values_are_odd(&v));
	ck_assert_uint_lt(v.odd.n, 5000);
	values_free(&v);
}
END_TEST

RUN_TESTS("values", odd_values_are_found, the_rest_is_not_odd, numbers, assignments, limits)
