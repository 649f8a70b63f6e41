/* SPDX-License-Identifier: MIT
 *
 * For bash_judge.py: shell lines on stdin, each ended by a NUL; on stdout one word a line, what the rules say of each
 * under `deny_tools = Bash(forbidden *)` and `allow_tools = *`.
 */
#include "base/buf.h"
#include "base/str.h"
#include "core/rules.h"
#include "dialect/claude/claude.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
	static const char *const words[] = {"none", "allow", "deny", "ask"};
	char deny[] = "Bash(forbidden *)", allow[] = "*", *deny_list[] = {deny, NULL}, *allow_list[] = {allow, NULL};
	struct profile p = {.dialect = &claude_dialect, .deny_tools = {deny_list, 1}, .allow_tools = {allow_list, 1}};
	char *line = NULL;
	size_t room = 0;
	for (ssize_t n; (n = getdelim(&line, &room, 0, stdin)) >= 0;) {
		struct buf b = BUF_INIT(1 << 24);
		buf_puts(&b, "{\"command\":");
		str_put_json(&b, line, strlen(line));
		buf_puts(&b, "}");
		if (b.failed) return EXIT_FAILURE;
		puts(words[rules_judge(&p, "Bash", (struct span){b.data, b.len}, NULL)]);
		buf_free(&b);
	}
	free(line);
	return EXIT_SUCCESS;
}
