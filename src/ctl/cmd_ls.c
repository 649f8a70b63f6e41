/* SPDX-License-Identifier: MIT */
#include "ctl/ctl.h"
#include "ctl/text.h"

#include <stdio.h>
#include <string.h>

static void print_names(json_t *list) {
	json_t *one;
	size_t i;
	json_array_foreach(list, i, one) {
		const char *name = ctl_str(one, "session", "");
		text_print(stdout, name, strlen(name));
		putchar('\n');
	}
}

/* A number, or how many there are where it is a list. */
static void add_count(struct table *t, json_t *one, const char *key) {
	json_t *value = json_object_get(one, key);
	table_addf(t, "%lld",
			   json_is_array(value) ? (long long)json_array_size(value) : (long long)json_integer_value(value));
}

static void add_session(struct table *t, json_t *one) {
	int64_t pid = ctl_int(one, "pid", 0);
	table_add(t, ctl_str(one, "session", "?"));
	table_add(t, ctl_str(one, "state", "?"));
	table_add(t, ctl_str(one, "profile", ""));
	add_count(t, one, "attachments");
	add_count(t, one, "pending");
	if (pid > 0)
		table_addf(t, "%lld", (long long)pid);
	else
		table_add(t, "-");
	ctl_add_background(t, one);
	table_add(t, ctl_str(one, "conversation_id", "-"));
	table_add(t, ctl_str(one, "cwd", ""));
}

int cmd_ls(struct ctl *c, int argc, char **argv) {
	static const char *const head[] = {"SESSION", "STATE",      "PROFILE",      "CLIENTS",  "PENDING",
									   "PID",     "BACKGROUND", "CONVERSATION", "DIRECTORY"};
	bool names = false;
	const struct ctl_option options[] = {
		{"names", 0, NULL, "only the names, one a line", .flag = &names},
		{0},
	};
	_cleanup_json_ json_t *answer = NULL;
	int code = ctl_options(c, options, &argc, &argv, 0, 0);
	if (code != CTL_GO) return code;
	code = ctl_ask_once(c, PLENUM_LIST, NULL, &answer);
	if (code != CTL_OK) return code;
	json_t *list = ctl_array(answer, "sessions");
	if (names) {
		print_names(list);
		return CTL_OK;
	}
	if (c->json) return ctl_print_json(answer);
	return ctl_print_table(list, head, ARRAY_SIZE(head), add_session,
						   "no sessions; `plenumctl send work \"hello\"` makes one");
}
