/* SPDX-License-Identifier: MIT */
#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "core/rules.h"
#include "core/shell.h"
#include "dialect/claude/claude.h"
#include "harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const verdicts[] = {"none", "allow", "deny", "ask"};

static void expect(enum rule_verdict want, enum rule_verdict have, const char *rule, const char *text) {
	ck_assert_msg(want == have, "%s, not %s: rule %s, input %s", verdicts[have], verdicts[want], rule, text);
}

static void add(struct words *w, const char *rule) {
	if (rule) ck_assert(words_add(w, rule));
}

static unsigned looks; /* file system accesses */

char *__real_realpath(const char *path, char *resolved);
char *__wrap_realpath(const char *path, char *resolved);

char *__wrap_realpath(const char *path, char *resolved) {
	looks++;
	return __real_realpath(path, resolved);
}

/* A call without an errand is judged without looking at files. Ignoring links allows nothing more, and denied calls at
 * least ask. */
static void judge_without_links(const struct profile *p, const char *tool, struct span json, enum rule_verdict v,
								unsigned looked) {
	unsigned before = looks;
	const char *rule;
	enum rule_verdict blind = rules_answer(p, tool, json, SPAN_NONE, &rule);
	ck_assert_uint_eq(looks, before);
	ck_assert_int_eq(rule != NULL, blind != RULE_NONE);
	ck_assert(blind != RULE_ALLOW || v == RULE_ALLOW);
	ck_assert(v != RULE_DENY || blind == RULE_DENY || blind == RULE_ASK);
	if (rules_need_errand(p, tool, json)) return;
	ck_assert_uint_eq(looked, 0);
	expect(v, blind, rule, json.p);
}

static enum rule_verdict judge(const char *allow, const char *deny, const char *ask, const char *tool,
							   const char *json) {
	struct profile p = {.dialect = &claude_dialect};
	const char *rule;
	add(&p.allow_tools, allow);
	add(&p.deny_tools, deny);
	add(&p.ask_tools, ask);
	unsigned before = looks;
	enum rule_verdict v = rules_judge(&p, tool, (struct span){json, strlen(json)}, &rule);
	ck_assert_int_eq(rule != NULL, v != RULE_NONE);
	judge_without_links(&p, tool, (struct span){json, strlen(json)}, v, looks - before);
	words_free(&p.allow_tools);
	words_free(&p.deny_tools);
	words_free(&p.ask_tools);
	return v;
}

static char *input(const char *key, const char *value) {
	struct buf b = BUF_INIT(1 << 20);
	buf_printf(&b, "{\"%s\":", key);
	str_put_json(&b, value, strlen(value));
	buf_puts(&b, ",\"description\":\"x\"}");
	return buf_steal(&b, NULL);
}

static void allows(const char *rule, const char *tool, const char *key, const char *value, bool yes) {
	_cleanup_free_ char *json = input(key, value);
	ck_assert_msg(rules_check(&claude_tools, rule, true) == NULL, "%s", rule);
	expect(yes ? RULE_ALLOW : RULE_NONE, judge(rule, NULL, NULL, tool, json), rule, json);
}

static void denies(const char *rule, const char *tool, const char *key, const char *value, enum rule_verdict want) {
	_cleanup_free_ char *json = input(key, value);
	ck_assert_msg(rules_check(&claude_tools, rule, false) == NULL, "%s", rule);
	expect(want, judge("*", rule, NULL, tool, json), rule, json);
}

#define ALLOWED(rule, command) allows(rule, "Bash", "command", command, true)
#define NOT_ALLOWED(rule, command) allows(rule, "Bash", "command", command, false)
#define DENIED(rule, command) denies(rule, "Bash", "command", command, RULE_DENY)
#define ASKED(rule, command) denies(rule, "Bash", "command", command, RULE_ASK)
#define PASSED(rule, command) denies(rule, "Bash", "command", command, RULE_ALLOW)

START_TEST(test_names) {
	ck_assert_int_eq(judge("Bash", NULL, NULL, "Bash", "{}"), RULE_ALLOW);
	ck_assert_int_eq(judge("Bash", NULL, NULL, "BashOutput", "{}"), RULE_NONE);
	ck_assert_int_eq(judge("mcp__a", NULL, NULL, "mcp__a__b", "{}"), RULE_ALLOW);
	ck_assert_int_eq(judge("mcp__a", NULL, NULL, "mcp__ab__b", "{}"), RULE_NONE);
	ck_assert_int_eq(judge("mcp__a__*", NULL, NULL, "mcp__a__b", "{}"), RULE_ALLOW);
	ck_assert_int_eq(judge("mcp__a__b", NULL, NULL, "mcp__a__b", "{}"), RULE_ALLOW);
	ck_assert_int_eq(judge("mcp__a__b", NULL, NULL, "mcp__a__bc", "{}"), RULE_NONE);
	ck_assert_int_eq(judge("mcp__a__b", NULL, NULL, "mcp__a__b__c", "{}"), RULE_NONE);
	ck_assert_int_eq(judge("*", NULL, NULL, "Whatever", "{}"), RULE_ALLOW);
	/* deny Edit covers every tool that edits, allow Edit only that one */
	ck_assert_int_eq(judge(NULL, "Edit", NULL, "Write", "{}"), RULE_DENY);
	ck_assert_int_eq(judge("Edit", NULL, NULL, "Write", "{}"), RULE_NONE);
}
END_TEST

START_TEST(test_order) {
	ck_assert_int_eq(judge("Bash", "Bash", "Bash", "Bash", "{}"), RULE_DENY);
	ck_assert_int_eq(judge("Bash", NULL, "Bash", "Bash", "{}"), RULE_ASK);
	ck_assert_int_eq(judge("Bash", "Read", "Edit", "Bash", "{}"), RULE_ALLOW);
	ck_assert_int_eq(judge(NULL, NULL, NULL, "Bash", "{}"), RULE_NONE);
	ck_assert_int_eq(judge("Read", NULL, NULL, "Bash", "{}"), RULE_NONE);
}
END_TEST

START_TEST(test_never_allowed) {
	ck_assert_int_eq(judge("*", NULL, NULL, "AskUserQuestion", "{}"), RULE_NONE);
	ck_assert_int_eq(judge("AskUserQuestion", NULL, NULL, "AskUserQuestion", "{}"), RULE_NONE);
	ck_assert_int_eq(judge("ExitPlanMode", NULL, NULL, "ExitPlanMode", "{\"plan\":\"x\"}"), RULE_NONE);
	ck_assert_int_eq(judge(NULL, "ExitPlanMode", NULL, "ExitPlanMode", "{}"), RULE_DENY);
	ck_assert_int_eq(judge("Bash", NULL, NULL, "Bash", "{\"command\":\"ls\",\"dangerouslyDisableSandbox\":true}"),
					 RULE_NONE);
	ck_assert_int_eq(judge("Bash", NULL, NULL, "Bash", "{\"command\":\"ls\",\"dangerouslyDisableSandbox\":false}"),
					 RULE_ALLOW);
}
END_TEST

START_TEST(test_allow_commands) {
	ALLOWED("Bash(git status)", "git status");
	ALLOWED("Bash(git status)", " git status ");
	NOT_ALLOWED("Bash(git status)", "git status -s");
	NOT_ALLOWED("Bash(git status)", "git statuses");
	ALLOWED("Bash(npm run:*)", "npm run");
	ALLOWED("Bash(npm run:*)", "npm run test -- --grep='a b' \"c (d)\" x/y.js");
	ALLOWED("Bash(npm run *)", "npm run test");
	NOT_ALLOWED("Bash(npm run:*)", "npm runx");
	NOT_ALLOWED("Bash(npm run *)", "npm install");
	ALLOWED("Bash(git * --stat)", "git diff --stat");
	NOT_ALLOWED("Bash(git * --stat)", "git diff");
	ALLOWED("Bash(git log*)", "git log -1 HEAD~2^");
	ALLOWED("Bash(git commit:*)", "git commit -m 'costs $5; `not` a command'");
	ALLOWED("Bash(git commit:*)", "git commit -m \"say \\\"hi\\\" & go\"");
	ALLOWED("Bash(echo:*)", "echo 'gr\xc3\xbc\xc3\x9f"
							"e'");
	ALLOWED("Bash(*)", "make all");
	ALLOWED("Bash(:*)", "make all");
	NOT_ALLOWED("Bash(*)", "make; rm x");
}
END_TEST

/* A pattern never allows a command line with which a shell could do more than run that one command. */
START_TEST(test_allow_is_not_fooled) {
	static const char *const tails[] = {
		"; rm x", " && rm x", " || rm x",  " | sh",    " |& sh",      " & rm x",   "\nrm x",  "\r\nrm x",   " > /etc/x",
		" >> x",  " < x",     " 2>&1",     " <(rm x)", " >(rm x)",    " $(rm x)",  " `rm x`", " \"$(rm)\"", " \"`rm`\"",
		" $X",    " ${X}",    " \"$X\"",   " 'open",   " \"open",     " \\",       " a\\;b",  " *",         " ?",
		" [a]",   " {a,b}",   " (x)",      " #x",      " !x",         " $'a'",     "\t-x",    " \x01",      " \x7f",
		" <<EOF", " \"a\\",   " \"a\nb\"", " 'a\nb'",  " \xc2\xa0rm", " a\x1b[2K",
	};
	char command[64];
	for (size_t i = 0; i < ARRAY_SIZE(tails); i++) {
		snprintf(command, sizeof command, "npm run test%s", tails[i]);
		NOT_ALLOWED("Bash(npm run:*)", command);
		NOT_ALLOWED("Bash(npm run test*)", command);
		NOT_ALLOWED("Bash(*)", command);
	}
	NOT_ALLOWED("Bash(npm run:*)", "PATH=/evil npm run test");
	NOT_ALLOWED("Bash(npm run:*)", "sudo npm run test");
	NOT_ALLOWED("Bash(npm run:*)", "/evil/npm run test");
	NOT_ALLOWED("Bash(npm run:*)", "\"npm\" run test");
	NOT_ALLOWED("Bash(npm run:*)", "");
}
END_TEST

START_TEST(test_undecodable_input) {
	static const char *const inputs[] = {
		"{\"command\":\"npm run \\u0000; rm x\"}",
		"{\"command\":[\"npm\",\"run\"]}",
		"{\"command\":7}",
		"{\"command\":null}",
		"{}",
		"[]",
		"\"npm run\"",
		"",
		"{\"command\":\"npm run a\",\"command\":\"rm x\"}",
		"{\"command\":\"npm run a\",\"comm\\u0061nd\":\"rm x\"}",
	};
	for (size_t i = 0; i < ARRAY_SIZE(inputs); i++) {
		expect(RULE_NONE, judge("Bash(npm run:*)", NULL, NULL, "Bash", inputs[i]), "allow", inputs[i]);
		expect(RULE_DENY, judge("Bash", "Bash(mkfs:*)", NULL, "Bash", inputs[i]), "deny", inputs[i]);
		expect(RULE_ASK, judge("Bash", NULL, "Bash(mkfs:*)", "Bash", inputs[i]), "ask", inputs[i]);
		expect(RULE_ALLOW, judge("Read", "Bash(mkfs:*)", NULL, "Read", "{}"), "other tool", inputs[i]);
	}
	ck_assert_int_eq(judge("*", "Read", NULL, NULL, "{}"), RULE_DENY);
	ck_assert_int_eq(judge("*", NULL, "Read", NULL, "{}"), RULE_ASK);
	ck_assert_int_eq(judge("*", NULL, NULL, NULL, "{}"), RULE_NONE);
	/* a lone surrogate is no reason to refuse: both sides read U+FFFD */
	ck_assert_int_eq(judge("Bash(echo:*)", NULL, NULL, "Bash", "{\"command\":\"echo '\\ud800'\"}"), RULE_ALLOW);
}
END_TEST

START_TEST(test_deny_finds_the_command) {
	static const char *const lines[] = {
		"rm -rf /",
		"  rm -rf /",
		"rm",
		"ls; rm -rf /",
		"ls && rm x",
		"ls || rm x",
		"ls | rm x",
		"ls |& rm x",
		"ls & rm x",
		"ls\nrm x",
		"(rm x)",
		"((ls); rm x)",
		"{ rm x; }",
		"echo $(rm x)",
		"echo \"a $(rm x) b\"",
		"echo \"$(echo \"$(rm x)\")\"",
		"echo `rm x`",
		"echo \"`rm x`\"",
		"echo `echo \\`rm x\\``",
		"cat <(rm x)",
		"tee >(rm x)",
		"X=1 rm x",
		"X=$(ls) Y+=2 Z[1]=3 rm x",
		"X=\"a b\" rm x",
		"sudo rm x",
		"sudo -u root -- rm x",
		"sudo -n env X=1 nice -n 5 rm x",
		"command rm x",
		"command -p rm x",
		"env rm x",
		"env -i X=1 rm x",
		"env -S 'rm x'",
		"env -S'rm x'",
		"env --split-string='rm x'",
		"nohup rm x &",
		"exec rm x",
		"time rm x",
		"timeout 5 rm x",
		"xargs rm < list",
		"ls | xargs -n1 rm -f",
		"find . -name x -exec rm {} \\;",
		"find . -type f -execdir rm -f {} +",
		"if true; then rm x; fi",
		"for i in a b; do rm $i; done",
		"while ! rm x; do :; done",
		"case a in a) rm x;; esac",
		"echo \"$(case a in a) rm x;; esac)\"",
		"f() { rm x; }; f",
		"function f { rm x; }; f",
		"/bin/rm x",
		"./rm x",
		"../../bin/rm x",
		"'rm' x",
		"\"rm\" x",
		"r''m x",
		"r\"\"m x",
		"\\rm x",
		"r\\m x",
		"r\\\nm x",
		"$'\\x72m' x",
		"$'\\162'm x",
		"$'\\u0072m' x",
		"rm\t-rf",
		">/dev/null rm x",
		"2>/dev/null rm x",
		">/dev/null 2>&1 rm x",
		">&- rm x",
		">&-rm x",
		"&>log rm x",
		"ls >|log; rm x",
		"sh -c 'rm x'",
		"bash -lc \"ls; rm x\"",
		"bash -c 'bash -c \"rm x\"'",
		"eval rm x",
		"eval 'r''m x'",
		"eval \"ls; rm x\"",
		"echo 'rm x' | sh",
		"echo 'ls; rm x' | sudo bash -s",
		"bash <<< 'rm x'",
		"bash <<EOF\nrm x\nEOF",
		"cat <<'EOF'\ndon't\nEOF\nrm x",
		"cat <<'EOF'\n$(ls\nEOF\nrm x",
		"cat <<EOF\n$(rm x)\nEOF",
		"cat <<A <<B\nA\nB\nrm x",
		"echo $((1<<2)); ls\nrm x\n2",
		"echo $((1<<2\n)); rm x\n2\n",
		"cat <<'EOF'\nEOF \nrm x\nEOF",
		"cat <<-EOF\n\tdon't\n\tEOF\nrm x",
		"echo # don't\nrm x",
		"echo a#'\nrm x #'; rm x",
		"echo ${X:-'}; rm x #'}",
		"echo \"${X#'\"'}\"; rm x #\"",
		"echo ${X:-$(rm x)}",
		"trap 'rm x' EXIT",
		"su -c 'rm x' root",
		"watch 'rm x'",
		"ssh host 'rm x'",
		"python3 -c 'import os; os.system(\"rm x\")'",
		"ls 'unclosed; rm x",
		"echo $'it\\'s'; rm x",
		"! rm x",
		"coproc rm x",
		"busybox rm x",
		"[[ a == b ]] || rm x",
		"[ -f x ] && rm x",
		"rm *",
		"=rm x",
		"if [[ a ]] rm x",
		"{ : } always { rm x }",
	};
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		DENIED("Bash(rm:*)", lines[i]);
		DENIED("Bash(rm *)", lines[i]);
	}
	DENIED("Bash(git push:*)", "cd x && git  push   origin");
	DENIED("Bash(git push:*)", "git \"push\" -f");
	DENIED("Bash(git * --force)", "cd /x; git push origin --force");
	DENIED("Bash(make && make install)", "make && make install");
	DENIED("Bash(echo \"a b\")", "ls; echo \"a b\"");
	DENIED("Bash(:*)", "ls");
}
END_TEST

START_TEST(test_deny_asks_where_it_cannot_know) {
	static const char *const lines[] = {
		"$CMD x", "ls; $CMD x", "${X}m x",   "$(echo rm) x", "`echo rm` x", "{rm,x}",    "/bin/r? x", "/bin/r* x",
		"[r]m x", "r$X x",      "sudo $CMD", "ls 'unclosed", "ls \"open",   "echo $(ls", "ls \\",     "X=rm; $X -rf",
	};
	/* text is evaluated again, or a file is run that the line writes */
	static const char *const evaluated[] = {
		"x=-v; printf $x'a[$(r\"\"m x)]' x",
		"x=-v; [ ! $x 'a[$(r\"\"m x)]' ]",
		"sleep 0 & wait -np 'a[$(r\"\"m x)]'",
		"for i in $(printf 'a[$(\\162m)]'); do echo $((i)); done",
		"[[ $(printf 'a[$(\\162m)]') -gt 1 ]]",
		"echo $['a[$(r\"\"m x)]']",
		"echo 1 {x['b[$(r\"\"m x)]']}>s",
		"wc() { printf 'a[$(\\162m)]'; }; echo $(($(wc -l)))",
		"printf '#!/bin/sh\\n\\162m x' > ls; chmod +x ls; PATH=.:$PATH; ls",
		"printf '\\162m x' | sort -uos; sh s",
		"for i in $(printf 'a[$(\\162m)]'); do read$@ \"$i\" <<< 1; done",
		"a['1+a[$(r\\m)]']=1",
		"echo $\\\n['a[$(r\"\"m x)]']",
		"f() { sh s; }; printf '\\162m x' > s; f",
		"{ sleep 1; sh s; } & printf '\\162m x' > s; wait",
		"printf '\\162m x' > .profile; bash -l",
		"a['1+a[$(r\\m)]' 1]=1",
		"a['1+b$(r\\m)]'>s]=1",
		"find . -name 'r?' -ex${x}ec {} \\;",
		"nice -n$(printf '1 \\162m')",
		"env A=$(printf 'b \\162m') x",
		"env -S\"$(printf '\\162m x')\"",
		"printf -- '-exec\\n\\162m\\n;' | xargs find x",
		/* zsh */
		"ls -d .(e:'r\"\"m':)",
		"NULLCMD=r; NULLCMD+=m; > s",
	};
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) ASKED("Bash(rm:*)", lines[i]);
	for (size_t i = 0; i < ARRAY_SIZE(evaluated); i++) ASKED("Bash(rm:*)", evaluated[i]);
	ASKED("Bash(git push:*)", "git $VERB");
	ASKED("Bash(rm -rf:*)", "rm $FLAGS x");
}
END_TEST

START_TEST(test_deny_passes_the_rest) {
	static const char *const lines[] = {
		"ls",
		"echo hello",
		"echo rm",
		"rmdir x",
		"ls -l | grep rm",
		"echo 'a; rm x'",
		"echo \"a && rm x\"",
		"ls > rm",
		"ls >rm",
		"cat < rm",
		"npm run build -- --flag=$X",
		"npm test -- --rm && docker ps",
		"git commit -m 'removes the farm'",
		"git add $f && git diff --stat | head -n 3",
		"for f in *.c; do echo $f; done",
		"for f in *.c; do gcc -c $f; n=$((n+1)); done",
		"find . -name rm",
		"find . -name '*.o' -exec ls -l {} \\;",
		"X=rm ls",
		"[ -f x ] && ls",
		"[ -n \"$x\" ] && [ \"$x\" = y ] && printf '%s' \"$x\"",
		"cp a.{c,h} x/",
		"grep -E 'a|rm' x",
		"sed -n '1,10p' x | awk '{print $1}' | sort | uniq -c",
		"sed -i 's/a/b/g; /^$/d' x.c",
		"cat <<'EOF' > x\ndon't do $(this)\nEOF\nls",
		"cat <<A <<-\"B C\"\n'\nA\n\t\"\n\tB C\nls",
		"echo $((1<<2)); ls",
		"bash -c 'cd x && npm test'",
		"bash x.sh --all",
		"source venv/bin/activate && python3 -m pytest -q && python3 x.py",
		"make -j$(nproc) && git log --author=$ME",
		"make -j4 CFLAGS='-O2 -g' 2>&1 | tail -n 5",
		"tar czf x.tar.gz src && git status",
		"echo a | xargs git add",
		"find . -name '*.py' | xargs grep -n foo",
		"curl -d '{\"a\":1,\"m\":2}' x",
		"ls | xargs -I{} cp {} x",
		"timeout 60 npm test",
		"set -euo pipefail; cd x",
		"echo \"${X:-none} ${#A[@]} ${A[0]}\"",
		"echo done # don't",
		"[[ $x == rm ]] && echo yes",
		"[ $? -eq 0 ] && [ $(ls *.c | wc -l) -gt 3 ]",
		"for i in $(seq 1 10); do echo $((i*2)); done",
		"while read -r x; do n=$((n+1)); done < f",
		"sleep 1 & p=$!; wait $p",
		"sort -o out in; cat out",
		"time ls a.{c,h}",
		"env FOO=$BAR npm test",
		"find \"$d\" -type f -exec grep -l x {} \\;",
	};
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) PASSED("Bash(rm:*)", lines[i]);
	PASSED("Bash(git push)", "git push origin");
	PASSED("Bash(git push:*)", "git status && git log --stat");
	PASSED("Bash(git push:*)", "git commit -m 'it pushes'");
	PASSED("Bash(/bin/rm:*)", "ls && make");
}
END_TEST

/* The name is where some program may take it for a command, or a part of the pattern is elsewhere. */
START_TEST(test_deny_asks_where_the_name_stands) {
	static const char *const lines[] = {
		"git rm x",
		"git commit -m 'fix; rm of x'",
		"git commit -m \"$(cat <<'EOF'\nremove the rm call\n\nEOF\n)\"",
		"mywrapper rm x",
		"mywrapper --run=rm x",
		"mywrapper -crm x",
		"mywrapper \"r''m\" x",
		"mywrapper 'a\\nrm x'",
		"mywrapper r{m,} x",
		"mywrapper 'r{m,}' x",
		"mywrapper 'r? x'",
		"mywrapper r$X",
		"X=rm mywrapper",
		"npm test && echo rm",
	};
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) ASKED("Bash(rm:*)", lines[i]);
	ASKED("Bash(git push:*)", "git -C x push");
	ASKED("Bash(git push:*)", "git --no-pager push origin");
	ASKED("Bash(git push:*)", "git -c alias.x=push x");
	ASKED("Bash(git push:*)", "/usr/lib/git-core/git-push origin");
	ASKED("Bash(git push:*)", "mywrapper git push");
	ASKED("Bash(/bin/rm:*)", "rm x");
	ASKED("Bash(*rm*)", "mywrapper x");
}
END_TEST

static void is_covered(const char *tool, const char *json, const char *deny, enum rule_verdict want) {
	expect(want, judge("*", deny, NULL, tool, json), deny, json);
}

/* Rules for Bash cover every tool that runs a shell line; other tools that execute are asked about. */
START_TEST(test_tools_that_execute) {
	is_covered("Monitor", "{\"command\":\"rm x\"}", "Bash(rm:*)", RULE_DENY);
	is_covered("Monitor", "{\"command\":\"ls\"}", "Bash(rm:*)", RULE_ALLOW);
	is_covered("Monitor", "{\"command\":\"ls\"}", "Bash", RULE_DENY);
	is_covered("Monitor", "{\"command\":\"ls\"}", "Monitor", RULE_DENY);
	is_covered("Monitor", "{\"command\":\"ls\"}", "Monitor(ls)", RULE_DENY);
	is_covered("Monitor", "{\"command\":[\"rm\"]}", "Bash(rm:*)", RULE_DENY);
	is_covered("Monitor", "{\"ws\":{\"url\":\"wss://example.com\"}}", "Bash(rm:*)", RULE_ALLOW);
	is_covered("Monitor", "{\"ws\":{\"url\":\"wss://example.com\"}}", "Bash", RULE_ALLOW);
	is_covered("Monitor", "{\"ws\":{\"url\":\"wss://example.com\"}}", "WebFetch(domain:example.com)", RULE_DENY);
	is_covered("PowerShell", "{\"command\":\"ls\"}", "Bash(rm:*)", RULE_ASK);
	is_covered("PowerShell", "{\"command\":\"rm x\"}", "Bash(rm:*)", RULE_DENY);
	is_covered("PowerShell", "{\"command\":\"ls\"}", "Bash", RULE_DENY);
	is_covered("REPL", "{\"code\":\"1\"}", "Bash(rm:*)", RULE_ASK);
	is_covered("REPL", "{\"code\":\"1\"}", "Bash", RULE_ASK);
	is_covered("TaskStop", "{\"task_id\":\"rm\"}", "Bash(rm:*)", RULE_ALLOW);
	is_covered("mcp__a__b", "{\"command\":\"rm x\"}", "Bash(rm:*)", RULE_ALLOW);
	is_covered("Future", "{\"command\":\"ls\"}", "Bash(rm:*)", RULE_ASK);
	is_covered("Future", "{\"shellCommand\":\"ls\"}", "Bash", RULE_ASK);
	is_covered("Future", "{\"comm\\u0061nd\":\"ls\"}", "Bash(rm:*)", RULE_ASK);
	is_covered("Future", "[]", "Bash(rm:*)", RULE_ASK);
	is_covered("Future", "{\"text\":\"rm x\"}", "Bash(rm:*)", RULE_ALLOW);
	/* an allow rule for Bash is only for Bash */
	expect(RULE_NONE, judge("Bash(ls)", NULL, NULL, "Monitor", "{\"command\":\"ls\"}"), "Bash(ls)", "Monitor");
	expect(RULE_NONE, judge("Bash", NULL, NULL, "Monitor", "{\"command\":\"ls\"}"), "Bash", "Monitor");
	expect(RULE_ALLOW, judge("Monitor", NULL, NULL, "Monitor", "{\"command\":\"ls\"}"), "Monitor", "Monitor");
	ck_assert_ptr_nonnull(rules_check(&claude_tools, "Monitor(ls)", true));
	ck_assert_ptr_null(rules_check(&claude_tools, "Monitor(ls)", false));
}
END_TEST

/* Likewise every tool that reads or writes files, under any number of names. */
START_TEST(test_tools_with_files) {
	is_covered("LSP", "{\"filePath\":\"/srv/a\"}", "Read(/srv/**)", RULE_DENY);
	is_covered("SendFile", "{\"files\":[\"/x\",\"/srv/a\"]}", "Read(/srv/**)", RULE_DENY);
	is_covered("SendFile", "{\"files\":[\"/x\"]}", "Read(/srv/**)", RULE_ALLOW);
	is_covered("SendFile", "{\"files\":[\"/x\"]}", "Read", RULE_DENY);
	is_covered("SendUserFile", "{\"files\":\"/srv/a\"}", "Read(/srv/**)", RULE_DENY);
	is_covered("Artifact", "{\"files\":{\"p\":{\"from\":\"/srv/a\"}}}", "Read(/srv/**)", RULE_DENY);
	is_covered("Artifact", "{\"action\":\"list\"}", "Read(/srv/**)", RULE_ALLOW);
	is_covered("Artifact", "{\"out_dir\":\"/srv/a\"}", "Edit(/srv/**)", RULE_DENY);
	is_covered("Workflow", "{\"scriptPath\":\"/srv/a\"}", "Read(/srv/**)", RULE_DENY);
	is_covered("Projects", "{\"local_path\":7}", "Read(/srv/**)", RULE_DENY);
	is_covered("Future", "{\"file\":\"/srv/a\"}", "Read(/srv/**)", RULE_ASK);
	is_covered("Future", "{\"targetPaths\":[\"/srv/a\"]}", "Edit(/srv/**)", RULE_ASK);
	is_covered("Future", "{\"file\":\"/x\"}", "Read(/srv/**)", RULE_ALLOW);
	is_covered("Future", "{\"text\":\"/srv/a\"}", "Read(/srv/**)", RULE_ALLOW);
	is_covered("Future", "{\"url\":\"https://example.com\"}", "WebFetch(domain:example.com)", RULE_ASK);
	expect(RULE_NONE, judge("Read(/srv/**)", NULL, NULL, "LSP", "{\"filePath\":\"/srv/a\"}"), "Read", "LSP");
}
END_TEST

/* A hostile command neither hangs nor crashes, and is not allowed. */
START_TEST(test_hostile_commands) {
	static const char *const pieces[] = {"$(",    "`",         "(",   "\"$(", "sudo ", "eval ", "'",     "\\",
										 "{",     "sh -c \"",  "#\n", "${",   "<(",    "rm x;", "$'",    "a ",
										 "case ", "xargs rm ", "\"`", "<<",   "a>b ",  "sudo ", "X='$(", "a<<E\n"};
	const size_t len = (size_t)rounds(20000);
	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++)
		for (size_t j = 0; j < ARRAY_SIZE(pieces); j += 3) {
			struct buf b = BUF_INIT(1 << 20);
			while (b.len < len) buf_printf(&b, "%s%s", pieces[i], pieces[j]);
			_cleanup_free_ char *json = input("command", b.data);
			enum rule_verdict v = judge("Bash(*)", "Bash(*m*k*f*s*)", NULL, "Bash", json);
			ck_assert_msg(v != RULE_ALLOW || shell_is_plain(b.data), "%.40s", b.data);
			buf_free(&b);
		}
}
END_TEST

#define READ_ALLOWED(rule, path, yes) allows(rule, "Read", "file_path", path, yes)
#define READ_DENIED(rule, path, want) denies(rule, "Read", "file_path", path, want)

START_TEST(test_paths) {
	READ_ALLOWED("Read(/srv/**)", "/srv/a/b.c", true);
	READ_ALLOWED("Read(//srv/**)", "/srv/a", true);
	READ_ALLOWED("Read(/srv/*)", "/srv/a", true);
	READ_ALLOWED("Read(/srv/*)", "/srv/a/b", false);
	READ_ALLOWED("Read(/srv/*.c)", "/srv/a.c", true);
	READ_ALLOWED("Read(/srv/**/x.c)", "/srv/x.c", true);
	READ_ALLOWED("Read(/srv/**/x.c)", "/srv/a/b/x.c", true);
	READ_ALLOWED("Read(/srv/**/x.c)", "/srv/a/ax.c", false);
	READ_ALLOWED("Read(**/*.md)", "/srv/a/b.md", true);
	READ_ALLOWED("Read(/srv/a?)", "/srv/ab", true);
	READ_ALLOWED("Read(/srv/**)", "/srvx/a", false);
	READ_ALLOWED("Read(/srv/**)", "/srv/../etc/passwd", false);
	READ_ALLOWED("Read(/srv/**)", "/srv/./a", false);
	READ_ALLOWED("Read(/srv/**)", "/srv//a", false);
	READ_ALLOWED("Read(/srv/**)", "srv/a", false);
	READ_ALLOWED("Read(/srv/**)", "~/a", false);
	READ_ALLOWED("Read(/srv/**)", "", false);
	READ_ALLOWED("Read(/srv/**)", "/srv/a\nb", false);
	allows("Edit(/srv/**)", "Write", "file_path", "/srv/a", true);
	allows("Edit(/srv/**)", "NotebookEdit", "notebook_path", "/srv/a.ipynb", true);
	allows("Edit(/srv/**)", "Read", "file_path", "/srv/a", false);
	allows("Read(/srv/**)", "Write", "file_path", "/srv/a", false);
}
END_TEST

START_TEST(test_denied_paths) {
	setenv("HOME", "/home/u", 1);
	READ_DENIED("Read(/srv/**)", "/srv/a/b", RULE_DENY);
	READ_DENIED("Read(/srv/**)", "/srv", RULE_DENY);
	READ_DENIED("Read(/srv/secret)", "/srv/secret/below", RULE_DENY);
	READ_DENIED("Read(/srv/secret/)", "/srv/secret/below", RULE_DENY);
	READ_DENIED("Read(/srv/**)", "/x/../srv/a", RULE_DENY);
	READ_DENIED("Read(/srv/**)", "//srv/./a", RULE_DENY);
	READ_DENIED("Read(/srv/**)", "/srvx/a", RULE_ALLOW);
	READ_DENIED("Read(~/.ssh/**)", "/home/u/.ssh/id", RULE_DENY);
	READ_DENIED("Read(.env)", "/srv/a/.env", RULE_DENY);
	READ_DENIED("Read(.env)", "a/.env", RULE_DENY);
	READ_DENIED("Read(.env)", "a/.envx", RULE_ALLOW);
	READ_DENIED("Read(./secrets/**)", "/srv/secrets/a", RULE_DENY);
	READ_DENIED("Read(**/*.key)", "/srv/a.key", RULE_DENY);
	READ_DENIED("Read(/srv/**)", "relative/a", RULE_ASK);
	READ_DENIED("Read(/srv/**)", "~/a", RULE_ASK);
	denies("Edit(/etc/**)", "Write", "file_path", "/etc/passwd", RULE_DENY);
	denies("Read(/srv/**)", "Grep", "path", "/srv/a", RULE_DENY);
	denies("Read(/srv/a/**)", "Grep", "path", "/srv", RULE_ASK);
	denies("Read(/srv/a/**)", "Grep", "path", "/", RULE_ASK);
	denies("Read(/srv/a/**)", "Grep", "path", "/sr", RULE_ALLOW);
	denies("Read(/srv/a/**)", "Grep", "pattern", "x", RULE_ASK);
	denies("Read(/srv/a/**)", "Glob", "pattern", "/srv/a/*", RULE_DENY);
}
END_TEST

START_TEST(test_glob_tool) {
	const char *in = "{\"path\":\"/srv\",\"pattern\":\"**/*.c\"}", *out = "{\"path\":\"/srv\",\"pattern\":\"/etc/*\"}";
	const char *up = "{\"path\":\"/srv\",\"pattern\":\"../etc/*\"}";
	ck_assert_int_eq(judge("Read(/srv/**)", NULL, NULL, "Glob", in), RULE_ALLOW);
	ck_assert_int_eq(judge("Read(/srv/**)", NULL, NULL, "Glob", out), RULE_NONE);
	ck_assert_int_eq(judge("Read(/srv/**)", NULL, NULL, "Glob", up), RULE_NONE);
	ck_assert_int_eq(judge("Glob", "Read(/etc/**)", NULL, "Glob", in), RULE_ALLOW);
	ck_assert_int_eq(judge("Glob", "Read(/etc/**)", NULL, "Glob", out), RULE_DENY);
	ck_assert_int_eq(judge("Glob", "Read(/etc/**)", NULL, "Glob", up), RULE_ASK);
}
END_TEST

/* A link out of an allowed directory is not covered by its rule; a link into a denied one is. */
START_TEST(test_links) {
	char dir[] = "/tmp/plenum-rules-XXXXXX", rule[100], path[100], target[100];
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/in", dir);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	snprintf(path, sizeof path, "%s/out", dir);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	snprintf(target, sizeof target, "%s/in/link", dir);
	ck_assert_int_eq(symlink("../out", target), 0);
	snprintf(rule, sizeof rule, "Read(%s/in/**)", dir);
	snprintf(path, sizeof path, "%s/in/plain", dir);
	READ_ALLOWED(rule, path, true);
	snprintf(path, sizeof path, "%s/in/link/new/file", dir);
	READ_ALLOWED(rule, path, false);
	snprintf(rule, sizeof rule, "Read(%s/out/**)", dir);
	READ_DENIED(rule, path, RULE_DENY);
	snprintf(rule, sizeof rule, "Read(%s/in/link/**)", dir); /* the rule itself contains a link */
	READ_ALLOWED(rule, path, true);
	snprintf(path, sizeof path, "%s/out/file", dir);
	READ_DENIED(rule, path, RULE_DENY);
	unlink(target);
	snprintf(path, sizeof path, "%s/in", dir);
	rmdir(path);
	snprintf(path, sizeof path, "%s/out", dir);
	rmdir(path);
	ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

#define FETCH_ALLOWED(rule, url, yes) allows(rule, "WebFetch", "url", url, yes)
#define FETCH_DENIED(rule, url, want) denies(rule, "WebFetch", "url", url, want)

START_TEST(test_hosts) {
	const char *rule = "WebFetch(domain:example.com)";
	FETCH_ALLOWED(rule, "https://example.com", true);
	FETCH_ALLOWED(rule, "http://EXAMPLE.com:8080/a?b@c#d", true);
	FETCH_ALLOWED(rule, "https://www.example.com/", false);
	FETCH_ALLOWED("WebFetch(domain:*.example.com)", "https://www.example.com/", true);
	FETCH_ALLOWED("WebFetch(domain:*.example.com)", "https://example.com/", false);
	FETCH_ALLOWED("WebFetch(domain:*.example.com)", "https://badexample.com/", false);
	FETCH_ALLOWED(rule, "https://example.com@evil.org/", false);
	FETCH_ALLOWED(rule, "https://evil.org\\@example.com/", false);
	FETCH_ALLOWED(rule, "https://u@example.com/", false);
	FETCH_ALLOWED(rule, "ftp://example.com/", false);
	FETCH_ALLOWED(rule, "https:example.com", false);
	FETCH_ALLOWED(rule, "https://example.com.evil.org/", false);
	FETCH_ALLOWED(rule, "https://ex%61mple.com/", false);
	FETCH_ALLOWED(rule, "https://example.com\n.evil.org", false);
	FETCH_ALLOWED(rule, "example.com", false);
	FETCH_DENIED(rule, "https://example.com/x", RULE_DENY);
	FETCH_DENIED(rule, "https:\\\\u:p@Example.COM.:1/x", RULE_DENY);
	FETCH_DENIED(rule, " https:/exam\nple.com", RULE_DENY);
	FETCH_DENIED(rule, "https://example.org/?example.com", RULE_ALLOW);
	FETCH_DENIED(rule, "https://ex%61mple.com/", RULE_ASK);
	FETCH_DENIED(rule, "nonsense", RULE_ASK);
}
END_TEST

START_TEST(test_other_patterns) {
	allows("Task(Explore)", "Task", "subagent_type", "Explore", true);
	allows("Task(Explore)", "Task", "subagent_type", "Write", false);
	denies("Agent(Explore)", "Task", "subagent_type", "Explore", RULE_DENY);
	denies("Other(xy*)", "Other", "member", "xyz", RULE_DENY);
	denies("Other(xy*)", "Other", "member", "yz", RULE_ALLOW);
	ck_assert_int_eq(judge("Other(x)", NULL, NULL, "Other", "{\"a\":\"x\"}"), RULE_NONE);
}
END_TEST

START_TEST(test_check) {
	static const char *const good[] = {"Bash", "Bash(ls)", "mcp__a", "mcp__a__*", "*", "Read(/a/**)", "Bash(a (b) c)"};
	static const char *const bad[] = {"",          "Bash(",      "Bash()",    "(ls)", "Bash(ls",
									  "Ba sh",     "Bash(ls) x", "mcp__a(x)", "B*",   "WebFetch(example.com)",
									  "Bash(a\nb)"};
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		ck_assert_msg(!rules_check(&claude_tools, good[i], true), "%s", good[i]);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		ck_assert_msg(rules_check(&claude_tools, bad[i], false) != NULL, "%s", bad[i]);
	ck_assert_ptr_nonnull(rules_check(&claude_tools, "Read(src/**)", true));
	ck_assert_ptr_null(rules_check(&claude_tools, "Read(src/**)", false));
	ck_assert_ptr_nonnull(rules_check(&claude_tools, "Other(x)", true));
	ck_assert_ptr_null(rules_check(&claude_tools, "Other(x)", false));
}
END_TEST

START_TEST(test_split) {
	static const char *const want[] = {"Read", "Bash(git status)", "Bash(a (b), c)", "Edit(x y)", "mcp__x"};
	struct words w = {0};
	ck_assert(rules_split(" Read Bash(git status),Bash(a (b), c)\t\"Edit(x y)\" , mcp__x", &w));
	ck_assert_uint_eq(w.n, ARRAY_SIZE(want));
	for (size_t i = 0; i < w.n; i++) ck_assert_str_eq(w.v[i], want[i]);
	words_free(&w);
	ck_assert(rules_split("", &w) && w.n == 0);
}
END_TEST

RUN_TESTS("rules", test_names, test_order, test_never_allowed, test_allow_commands, test_allow_is_not_fooled,
		  test_undecodable_input, test_deny_finds_the_command, test_deny_asks_where_it_cannot_know,
		  test_deny_passes_the_rest, test_deny_asks_where_the_name_stands, test_tools_that_execute,
		  test_tools_with_files, test_hostile_commands, test_paths, test_denied_paths, test_glob_tool, test_links,
		  test_hosts, test_other_patterns, test_check, test_split)
