/* SPDX-License-Identifier: MIT */
#include "ctl/column.h"
#include "ctl/ctl.h"
#include "ctl/text.h"

#include <stdio.h>
#include <string.h>

static const struct column columns[] = {
	{"SESSION", "session", COLUMN_WORD, "?"},
	{"STATE", "state", COLUMN_WORD, "?"},
	{"IDLE", "idle_ms", COLUMN_AGE},
	{"CLIENTS", "attachments", COLUMN_NUMBER, "-"},
	{"PENDING", "pending", COLUMN_NUMBER, "-"},
	{"BACKGROUND", NULL, COLUMN_BACKGROUND},
	{"DIRECTORY", "cwd", COLUMN_PATH},
	{"PROFILE", "profile", COLUMN_WORD},
	{"PID", "pid", COLUMN_NUMBER, "-"},
	{"CONVERSATION", "conversation_id", COLUMN_WORD, "-"},
};

#define SHORT_COLUMNS 7 /* the others are of --long */

static int by_use(const void *left, const void *right) {
	int64_t a = ctl_int(*(json_t *const *)left, "idle_ms"), b = ctl_int(*(json_t *const *)right, "idle_ms");
	return (a > b) - (a < b);
}

static bool is_empty(const struct table *t, size_t column) {
	for (size_t i = t->columns + column; i < t->n; i += t->columns)
		if (strcmp(t->cells[i], "-") != 0) return false;
	return true;
}

/* The session used last stands first. */
static void print_sessions(json_t *sessions, bool all) {
	size_t width, height;
	struct table t = TABLE(ARRAY_SIZE(columns));
	_cleanup_json_ json_t *list = column_sorted(sessions, by_use);
	column_fill(&t, columns, list, SIZE_MAX);
	for (size_t i = SHORT_COLUMNS; !all && i < t.columns; i++) table_hide(&t, i);
	if (table_screen(&width, &height) && !all) {
		/* Leave the room to the directories before they are cut. */
		for (size_t c = 3; c < 6 && table_width(&t) > width; c++)
			if (is_empty(&t, c)) table_hide(&t, c);
		t.width = width;
	}
	table_print(&t, stdout);
	table_free(&t);
}

int cmd_ls(struct ctl *c, int argc, char **argv) {
	bool names = false, all = false;
	const struct ctl_option options[] = {
		{"names", 0, NULL, "only the names, one a line", .flag = &names},
		{"long", 'l', NULL, "also profile, pid and conversation; lines are not cut", .flag = &all},
		{0},
	};
	_cleanup_json_ json_t *answer = NULL;
	json_t *one;
	size_t i;
	int code = ctl_options(c, options, &argc, &argv, 0, 0);
	if (code != CTL_GO) return code;
	code = ctl_ask_once(c, PLENUM_LIST, NULL, &answer);
	if (code != CTL_OK) return code;
	json_t *list = ctl_array(answer, "sessions");
	if (c->json && !names) return ctl_print_json(answer);
	if (names) {
		json_array_foreach(list, i, one) {
			const char *name = ctl_str(one, "session", "");
			text_print(stdout, name, strlen(name));
			putchar('\n');
		}
	} else if (json_array_size(list) == 0) {
		puts("no sessions; `plenumctl send work \"hello\"` makes one");
	} else {
		print_sessions(list, all);
	}
	return CTL_OK;
}
