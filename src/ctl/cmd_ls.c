/* SPDX-License-Identifier: MIT */
#include "base/paths.h"
#include "ctl/ctl.h"
#include "ctl/text.h"

#include <stdio.h>
#include <string.h>

static void add_number(struct table *t, int64_t n) {
	if (n > 0)
		table_addf(t, "%lld", (long long)n);
	else
		table_add(t, "-");
}

static void add_session(struct table *t, json_t *one) {
	struct buf background = BUF_INIT(200);
	const char *cwd = ctl_str(one, "cwd", "");
	_cleanup_free_ char *home = path_home();
	size_t n = home ? strlen(home) : 0;
	bool below = n > 1 && strncmp(cwd, home, n) == 0 && (cwd[n] == '/' || cwd[n] == 0);
	table_add(t, ctl_str(one, "session", "?"));
	table_add(t, ctl_str(one, "state", "?"));
	table_add_age(t, ctl_int(one, "idle_ms", 0));
	add_number(t, ctl_int(one, "attachments", 0));
	add_number(t, ctl_int(one, "pending", 0));
	ctl_put_background(&background, one);
	table_add(t, background.data ? background.data : "-");
	buf_free(&background);
	if (below)
		table_addf(t, "~%s", cwd + n);
	else
		table_add(t, cwd);
	table_add(t, ctl_str(one, "profile", ""));
	add_number(t, ctl_int(one, "pid", 0));
	table_add(t, ctl_str(one, "conversation_id", "-"));
}

#define SHORT_COLUMNS 7 /* the others are of --long */

static int by_use(const void *left, const void *right) {
	int64_t a = ctl_int(*(json_t *const *)left, "idle_ms", 0), b = ctl_int(*(json_t *const *)right, "idle_ms", 0);
	return (a > b) - (a < b);
}

static bool is_empty(const struct table *t, size_t column) {
	for (size_t i = t->columns + column; i < t->n; i += t->columns)
		if (strcmp(t->cells[i], "-") != 0) return false;
	return true;
}

/* The session used last stands first. */
static void print_sessions(json_t *sessions, bool all) {
	static const char *const head[] = {"SESSION",    "STATE",     "IDLE",    "CLIENTS", "PENDING",
									   "BACKGROUND", "DIRECTORY", "PROFILE", "PID",     "CONVERSATION"};
	size_t n = json_array_size(sessions), width, height;
	json_t **list = calloc(n + 1, sizeof(json_t *));
	struct table t = TABLE(ARRAY_SIZE(head));
	for (size_t i = 0; i < ARRAY_SIZE(head); i++) table_add(&t, head[i]);
	for (size_t i = 0; list && i < n; i++) list[i] = json_array_get(sessions, i);
	if (list) qsort(list, n, sizeof(json_t *), by_use);
	for (size_t i = 0; list && i < n; i++) add_session(&t, list[i]);
	for (size_t i = SHORT_COLUMNS; !all && i < ARRAY_SIZE(head); i++) table_hide(&t, i);
	if (table_screen(&width, &height) && !all) {
		/* Leave the room to the directories before they are cut. */
		for (size_t c = 3; c < 6 && table_width(&t) > width; c++)
			if (is_empty(&t, c)) table_hide(&t, c);
		t.width = width;
	}
	table_print(&t, stdout);
	table_free(&t);
	free(list);
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
