/* SPDX-License-Identifier: MIT
 *
 * The table of tools agrees with docs/tools.md.
 */
#include "base/buf.h"
#include "core/rules.h"
#include "dialect/claude/claude.h"
#include "harness.h"

#include <stdio.h>
#include <string.h>

static char *read_page(void) {
	char path[4096];
	const char *root = getenv("PLENUM_SOURCE_ROOT");
	snprintf(path, sizeof path, "%s/docs/tools.md", root ? root : ".");
	FILE *f = fopen(path, "re");
	struct buf b = BUF_INIT(1 << 20);
	char line[1024];
	REQUIRE(f, "%s cannot be read", path);
	while (fgets(line, sizeof line, f)) buf_puts(&b, line);
	fclose(f);
	return buf_steal(&b, NULL);
}

/* Return the n-th cell of a table row, without spaces and backticks. */
static char *cell(const char *line, size_t n) {
	struct buf b = BUF_INIT(1000);
	for (; n && line; n--) line = strchr(line + 1, '|');
	buf_puts(&b, "");
	if (line)
		for (line++; *line && *line != '|'; line++)
			if (!strchr(" `", *line)) buf_putc(&b, *line);
	return buf_steal(&b, NULL);
}

static bool is_row(const char *line) {
	return strncmp(line, "| ", 2) == 0 && strncmp(line, "| tool ", 7) != 0;
}

static bool executes_otherwise(enum tool_subject subject) {
	return subject == TOOL_FOREIGN || subject == TOOL_CODE;
}

static const struct tool_use *find(const char *tool, const char *member, const char *rule) {
	size_t n;
	const struct tool_use *rows = tools_uses(&claude_tools, tool, strlen(tool), &n);
	for (size_t i = 0; i < n; i++) {
		char want[100];
		snprintf(want, sizeof want, "%s%s", rows[i].rule, executes_otherwise(rows[i].subject) ? ",asks" : "");
		if (strcmp(rows[i].members[0], member) == 0 && strcmp(want, rule) == 0) return &rows[i];
	}
	return NULL;
}

START_TEST(the_page_has_the_table) {
	_cleanup_free_ char *page = read_page();
	size_t rows = 0, others = 0;
	bool patterns = true;
	for (char *save, *line = strtok_r(page, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (strcmp(line, "## Tools without patterns") == 0) patterns = false;
		if (!is_row(line)) continue;
		_cleanup_free_ char *tool = cell(line, 0), *member = cell(line, 3), *rule = cell(line, 4);
		size_t n;
		REQUIRE(tools_know(&claude_tools, tool), "%s is not in the table", tool);
		REQUIRE(!patterns || find(tool, member, rule), "%s, %s, %s is not in the table", tool, member, rule);
		REQUIRE(patterns || !tools_uses(&claude_tools, tool, strlen(tool), &n), "%s has a pattern", tool);
		rows += patterns;
		others += !patterns;
	}
	ck_assert_uint_eq(rows, claude_tools.n_uses);
	ck_assert_uint_eq(rows + others, claude_tools.n_uses + claude_tools.n_others);
}
END_TEST

START_TEST(rows_stand_side_by_side) {
	size_t n;
	const struct tool_use *rows = tools_uses(&claude_tools, "Monitor", 7, &n);
	ck_assert_uint_eq(n, 2);
	for (size_t i = 0; i < n; i++) ck_assert_str_eq(rows[i].tool, "Monitor");
	rows = tools_uses(&claude_tools, "self_hosted_runner_spawn_local", 30, &n);
	ck_assert_uint_eq(n, 4);
	for (size_t i = 0; i < n; i++) ck_assert_str_eq(rows[i].tool, "self_hosted_runner_spawn_local");
	ck_assert_ptr_null(tools_uses(&claude_tools, "Bas", 3, &n));
	ck_assert(!tools_know(&claude_tools, "Bas") && !tools_know(&claude_tools, "") &&
			  tools_know(&claude_tools, "Bash") && tools_know(&claude_tools, "TodoWrite"));
}
END_TEST

RUN_TESTS("tools", the_page_has_the_table, rows_stand_side_by_side)
