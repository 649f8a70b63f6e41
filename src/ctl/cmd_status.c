/* SPDX-License-Identifier: MIT
 *
 * status: the daemon or one session, in units for people; --json has all that the daemon reports. metrics: its
 * counters. reload, upgrade, shutdown: the requests to the daemon itself.
 */
#include "base/fd.h"
#include "base/str.h"
#include "ctl/column.h"
#include "ctl/pick.h"
#include "ctl/share.h"
#include "ctl/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* --- Rows --------------------------------------------------------------------------------------------------------- */

static void PRINTF_LIKE(2, 3) row(const char *key, const char *fmt, ...) {
	va_list ap;
	va_start(ap, fmt);
	_cleanup_free_ char *text = str_vprintf(fmt, ap);
	va_end(ap);
	struct buf b = BUF_INIT((size_t)1 << 20);
	if (text) text_put_line(&b, text, strlen(text), 4096);
	printf("%-13s %s\n", key, b.len && !b.failed ? b.data : "");
	buf_free(&b);
}

static void row_text(json_t *object, const char *member, const char *key) {
	const char *text = ctl_str(object, member, NULL);
	if (text) row(key, "%s", text);
}

static char *size_text(int64_t bytes) {
	struct buf b = BUF_INIT(64);
	text_put_bytes(&b, (uint64_t)MAX(bytes, 0));
	return buf_steal(&b, NULL);
}

static char *age_text(int64_t ms) {
	struct buf b = BUF_INIT(64);
	text_put_age(&b, MAX(ms, 0));
	return buf_steal(&b, NULL);
}

/* A point of time, in ms since 1970, and how long ago it was. */
static void row_date(json_t *object, const char *member, const char *key) {
	int64_t ms = ctl_int(object, member);
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm;
	char date[32] = "?";
	_cleanup_free_ char *age = age_text(now_real_ms() - ms);
	if (ms <= 0) return;
	if (localtime_r(&seconds, &tm)) strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &tm);
	row(key, "%s (%s ago)", date, age ? age : "?");
}

/* A count that matters only if it is not 0. */
static void row_count(json_t *object, const char *member, const char *key) {
	int64_t n = ctl_int(object, member);
	if (n > 0) row(key, "%lld", (long long)n);
}

#define PRINT_LIST(list, title, columns) column_print(list, title, columns, ARRAY_SIZE(columns))

/* --- Of a session ------------------------------------------------------------------------------------------------- */

static const struct column client_columns[] = {
	{"CLIENT", "name", COLUMN_WORD, "-"},     {"ROLE", "role", COLUMN_WORD, "-"},
	{"PEER", "peer", COLUMN_WORD, "-"},       {"PID", "pid", COLUMN_NUMBER},
	{"PROGRAM", "program", COLUMN_WORD, "-"}, {"BEHIND", "lag_bytes", COLUMN_SIZE},
	{"IN", "bytes_in", COLUMN_SIZE},          {"OUT", "bytes_out", COLUMN_SIZE},
};

static const struct column prompt_columns[] = {
	{"PROMPT", "uuid", COLUMN_WORD, "?"},
	{"STATE", "state", COLUMN_WORD, "?"},
	{"SINCE", "since_ms", COLUMN_AGE},
	{"CLIENT", "name", COLUMN_WORD, "-"},
};

static const struct column task_columns[] = {
	{"TASK", "description", COLUMN_WORD, "-"},
	{"KIND", "task_type", COLUMN_WORD, "-"},
};

static const struct column timer_columns[] = {
	{"TIMER", "prompt", COLUMN_WORD, "-"},
	{"WHEN", "schedule", COLUMN_WORD, "-"},
};

static const struct column leftover_columns[] = {
	{"PID", "pid", COLUMN_NUMBER},
	{"PROGRAM", "program", COLUMN_WORD, "-"},
	{"SINCE", "since_ms", COLUMN_AGE},
	{"SESSION", "session", COLUMN_WORD, "-"}, /* of the daemon's list only */
};

static const struct column guard_columns[] = {
	{"GUARD", "event", COLUMN_WORD, "?"},
	{"TOOLS", "matcher", COLUMN_WORD, "all"},
	{"CLIENT", "name", COLUMN_WORD, "-"},
	{"THERE", "here", COLUMN_YES, "no: its tools are refused"},
};

static void print_session(json_t *s) {
	json_t *cost = json_object_get(s, "cost_usd"); /* of the conversation */
	int64_t pid = ctl_int(s, "pid");
	_cleanup_free_ char *idle = age_text(ctl_int(s, "idle_ms")), *tape = size_text(ctl_int(s, "tape_bytes"));
	_cleanup_free_ char *silent = age_text(ctl_int(s, "output_ms")), *rss = size_text(ctl_int(s, "child_rss"));
	row_text(s, "session", "session");
	row("state", "%s, last used %s ago", ctl_str(s, "state", "?"), idle ? idle : "?");
	row_text(s, "reason", "reason");
	row_text(s, "profile", "profile");
	row_text(s, "cwd", "directory");
	row_text(s, "conversation_id", "conversation");
	row_text(s, "resumed_id", "resumed from");
	row_text(s, "permission_mode", "mode");
	row_text(s, "model", "model");
	if (pid > 0) {
		row("agent", "pid %lld, %s of memory, last output %s ago", (long long)pid, rss ? rss : "?",
			silent ? silent : "?");
		row_text(s, "program", "program");
		row_text(s, "version", "version");
	}
	row_date(s, "created_ms", "made");
	row_count(s, "turns", "turns");
	if (json_is_number(cost)) row("cost", "$%.4f", json_number_value(cost));
	row("tape", "%lld lines, %s", (long long)ctl_int(s, "tape_lines"), tape ? tape : "?");
	row_count(s, "pending", "pending");
	row_count(s, "hooks", "hooks");
	row_count(s, "stray_lines", "stray lines");
	if (ctl_bool(s, "guards_lost")) row("guards", "lost: every tool is refused (plenumctl clear-lost)");
	PRINT_LIST(ctl_array(s, "clients"), "clients", client_columns);
	PRINT_LIST(ctl_array(s, "prompts"), "prompts", prompt_columns);
	PRINT_LIST(ctl_array(s, "tasks"), "background tasks", task_columns);
	PRINT_LIST(ctl_array(s, "timers"), "timers", timer_columns);
	column_print(ctl_array(s, "leftovers"), "detached processes", leftover_columns, ARRAY_SIZE(leftover_columns) - 1);
	PRINT_LIST(ctl_array(s, "guards"), "guards", guard_columns);
}

/* --- Of the daemon ------------------------------------------------------------------------------------------------ */

static const struct column profile_columns[] = {
	{"PROFILE", "name", COLUMN_WORD, "?"},
	{"COMMAND", "program", COLUMN_WORD, "-"},
	{"PRESTARTED", "warm", COLUMN_OF, "warm_wanted"},
	{"PRIVATE", "private", COLUMN_YES, "no"},
};

static const struct column connection_columns[] = {
	{"CLIENT", "name", COLUMN_WORD, "-"},
	{"SESSION", "session", COLUMN_WORD, "-"},
	{"UID", "uid", COLUMN_NUMBER},
	{"PID", "pid", COLUMN_NUMBER},
	{"PROGRAM", "program", COLUMN_WORD, "-"},
	{"BEHIND", "lag_bytes", COLUMN_SIZE},
};

static void print_daemon(json_t *s) {
	_cleanup_free_ char *rss = size_text(ctl_int(s, "rss"));
	row("daemon", "plenumd %s, pid %lld, %s of memory", ctl_str(s, "version", "?"), (long long)ctl_int(s, "pid"),
		rss ? rss : "?");
	row_date(s, "started_ms", "started");
	row_text(s, "socket", "socket");
	row("state", "%s", ctl_str(s, "state_dir", "none: sessions do not survive a restart (plenumctl doctor)"));
	row("sessions", "%lld", (long long)ctl_int(s, "sessions"));
	row("profile", "%s", ctl_str(s, "default_profile", "none is the default"));
	row_count(s, "decisions", "decisions");
	row_count(s, "bad_lines", "bad lines");
	if (ctl_bool(s, "guards_lost")) row("guards", "lost: new sessions refuse every tool (plenumctl clear-lost --all)");
	PRINT_LIST(ctl_array(s, "profiles"), "profiles", profile_columns);
	PRINT_LIST(ctl_array(s, "clients"), "connections", connection_columns);
	share_print(ctl_array(s, "shares"));
	PRINT_LIST(ctl_array(s, "leftovers"), "detached processes", leftover_columns);
}

int cmd_status(struct ctl *c, int argc, char **argv) {
	bool profiles = false;
	const struct ctl_option options[] = {
		{"profiles", 0, NULL, "only the names of the daemon's profiles, one a line", .flag = &profiles},
		{0},
	};
	_cleanup_json_ json_t *answer = NULL;
	json_t *one;
	size_t i;
	int code = ctl_options(c, options, &argc, &argv, 0, 1);
	if (code != CTL_GO) return code;
	if (profiles && argc) return ctl_usage(c, "status: --profiles excludes a session: profiles are the daemon's");
	_cleanup_plenum_ struct plenum *p = NULL;
	const char *session = argc ? argv[0] : NULL;
	if (argc)
		code = pick_open(c, &session, &p);
	else
		p = ctl_open(c);
	if (code == CTL_OK || code == CTL_GO)
		code = ctl_ask(p, PLENUM_STATUS, argc ? json_pack("{s:s}", "session", session) : NULL, &answer);
	if (code != CTL_OK) return code;
	if (profiles) {
		json_t *list = ctl_array(answer, "profiles");
		json_array_foreach(list, i, one) puts(ctl_str(one, "name", "")); /* names have no letter that is not plain */
		return CTL_OK;
	}
	if (c->json) return ctl_print_json(answer);
	if (argc)
		print_session(answer);
	else
		print_daemon(answer);
	return CTL_OK;
}

/* --- The daemon itself -------------------------------------------------------------------------------------------- */

/* CTL_GO: *answer is to be printed for a user. */
static int ask_daemon(struct ctl *c, int argc, char **argv, const char *verb, json_t **answer) {
	int code = ctl_options(c, NULL, &argc, &argv, 0, 0);
	if (code != CTL_GO) return code;
	code = ctl_ask_once(c, verb, NULL, answer);
	if (code != CTL_OK) return code;
	return c->json ? ctl_print_json(*answer) : CTL_GO;
}

int cmd_metrics(struct ctl *c, int argc, char **argv) {
	_cleanup_json_ json_t *answer = NULL;
	json_t *value;
	const char *key;
	int code = ask_daemon(c, argc, argv, PLENUM_METRICS, &answer);
	if (code != CTL_GO) return code;
	json_object_foreach(answer, key, value) {
		_cleanup_free_ char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
		printf("%-20s %s\n", key, text ? text : "?");
	}
	return CTL_OK;
}

int cmd_reload(struct ctl *c, int argc, char **argv) {
	_cleanup_json_ json_t *answer = NULL;
	int code = ask_daemon(c, argc, argv, PLENUM_RELOAD, &answer);
	if (code != CTL_GO) return code;
	puts("the configuration was read again and is in force");
	return CTL_OK;
}

int cmd_upgrade(struct ctl *c, int argc, char **argv) {
	_cleanup_json_ json_t *answer = NULL;
	int code = ask_daemon(c, argc, argv, PLENUM_UPGRADE, &answer);
	if (code != CTL_GO) return code;
	printf("plenumd %s has taken over; sessions and connections go on\n", ctl_str(answer, "version", "?"));
	return CTL_OK;
}

int cmd_shutdown(struct ctl *c, int argc, char **argv) {
	_cleanup_json_ json_t *answer = NULL;
	int code = ask_daemon(c, argc, argv, PLENUM_SHUTDOWN, &answer);
	if (code != CTL_GO) return code;
	puts("the daemon ends");
	return CTL_OK;
}
