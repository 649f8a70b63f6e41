/* SPDX-License-Identifier: MIT
 *
 * The rules for shell lines: any text is judged, in bounded time; a command on a line of its own is never lost behind
 * it; and what an allow pattern lets through is one plain command. An input holds lines with "\n----\n" between them:
 * the corpus is the list of evasions that bash_judge.py has run by a real bash.
 */
#include "base/buf.h"
#include "base/str.h"
#include "core/rules.h"
#include "core/shell.h"
#include "dialect/claude/claude.h"
#include "target.h"

#include <string.h>

static const char separator[] = "\n----\n";

static enum rule_verdict judge(char *deny, char *allow, const char *line) {
	struct profile p = {
		.dialect = &claude_dialect,
		.deny_tools = {&deny, deny != NULL},
		.allow_tools = {&allow, 1},
	};
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	buf_puts(&b, "{\"command\":");
	str_put_json(&b, line, strlen(line));
	buf_puts(&b, "}");
	INSIST(b.data && !b.failed);
	enum rule_verdict v = rules_judge(&p, "Bash", (struct span){b.data, b.len}, NULL);
	buf_free(&b);
	return v;
}

static void run_line(const char *line) {
	char deny[] = "Bash(forbidden *)", spread[] = "Bash(git push:*)", any[] = "*", one[] = "Bash(forbidden:*)";
	enum rule_verdict v = judge(deny, any, line);
	INSIST(v == RULE_ALLOW || v == RULE_DENY || v == RULE_ASK);
	judge(spread, any, line);
	if (judge(NULL, one, line) == RULE_ALLOW) INSIST(shell_is_plain(line) && v == RULE_DENY);
	struct buf b = BUF_INIT(SIZE_MAX / 4);
	INSIST(buf_printf(&b, "%s\nforbidden x\n", line));
	INSIST(judge(deny, any, b.data) != RULE_ALLOW);
	buf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	char *text = malloc(size + 1);
	INSIST(text);
	if (size) memcpy(text, data, size);
	text[size] = 0;
	for (char *line = text, *next; line; line = next) {
		next = strstr(line, separator);
		if (next) {
			*next = 0;
			next += sizeof separator - 1;
		}
		run_line(line);
	}
	free(text);
	return 0;
}
