/* SPDX-License-Identifier: MIT
 *
 * status: the daemon or one session, in units for people; --json has all that the daemon reports. metrics: its
 * counters. reload, shutdown: the two requests to the daemon itself.
 */
#include "base/fd.h"
#include "base/str.h"
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
	int64_t ms = ctl_int(object, member, 0);
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
	int64_t n = ctl_int(object, member, 0);
	if (n > 0) row(key, "%lld", (long long)n);
}

static void add_bytes(struct table *t, json_t *object, const char *key) {
	_cleanup_free_ char *text = size_text(ctl_int(object, key, 0));
	table_add(t, text ? text : "?");
}

#define PRINT_LIST(list, title, head, add) ctl_print_list(list, title, head, ARRAY_SIZE(head), add)

/* --- Of a session ------------------------------------------------------------------------------------------------- */

static const char *const client_head[] = {"CLIENT", "ROLE", "PEER", "PID", "PROGRAM", "BEHIND", "IN", "OUT"};

static void add_client(struct table *t, json_t *one) {
	table_add(t, ctl_str(one, "name", "-"));
	table_add(t, ctl_str(one, "role", "-"));
	table_add(t, ctl_str(one, "peer", "-"));
	table_addf(t, "%lld", (long long)ctl_int(one, "pid", 0));
	table_add(t, ctl_str(one, "program", "-"));
	add_bytes(t, one, "lag_bytes");
	add_bytes(t, one, "bytes_in");
	add_bytes(t, one, "bytes_out");
}

static const char *const prompt_head[] = {"PROMPT", "STATE", "SINCE", "CLIENT"};

static void add_prompt(struct table *t, json_t *one) {
	table_add(t, ctl_str(one, "uuid", "?"));
	table_add(t, ctl_str(one, "state", "?"));
	table_add_age(t, ctl_int(one, "since_ms", 0));
	table_add(t, ctl_str(one, "name", "-"));
}

static const char *const task_head[] = {"TASK", "KIND"};

static void add_task(struct table *t, json_t *one) {
	table_add(t, ctl_str(one, "description", "-"));
	table_add(t, ctl_str(one, "task_type", "-"));
}

static const char *const timer_head[] = {"TIMER", "WHEN"};

static void add_timer(struct table *t, json_t *one) {
	table_add(t, ctl_str(one, "prompt", "-"));
	table_add(t, ctl_str(one, "schedule", "-"));
}

static const char *const leftover_head[] = {"PID", "PROGRAM", "SINCE", "SESSION"};

/* Without the last column. */
static void add_leftover_of_one(struct table *t, json_t *one) {
	table_addf(t, "%lld", (long long)ctl_int(one, "pid", 0));
	table_add(t, ctl_str(one, "program", "-"));
	table_add_age(t, ctl_int(one, "since_ms", 0));
}

static void add_leftover(struct table *t, json_t *one) {
	add_leftover_of_one(t, one);
	table_add(t, ctl_str(one, "session", "-"));
}

static const char *const guard_head[] = {"GUARD", "TOOLS", "CLIENT", "THERE"};

static void add_guard(struct table *t, json_t *one) {
	table_add(t, ctl_str(one, "event", "?"));
	table_add(t, ctl_str(one, "matcher", "all"));
	table_add(t, ctl_str(one, "name", "-"));
	table_add(t, ctl_bool(one, "here") ? "yes" : "no: its tools are refused");
}

static void print_session(json_t *s) {
	json_t *cost = json_object_get(s, "cost_usd"); /* of the conversation */
	int64_t pid = ctl_int(s, "pid", 0);
	_cleanup_free_ char *idle = age_text(ctl_int(s, "idle_ms", 0)), *tape = size_text(ctl_int(s, "tape_bytes", 0));
	_cleanup_free_ char *silent = age_text(ctl_int(s, "output_ms", 0)), *rss = size_text(ctl_int(s, "child_rss", 0));
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
	row("tape", "%lld lines, %s", (long long)ctl_int(s, "tape_lines", 0), tape ? tape : "?");
	row_count(s, "pending", "pending");
	row_count(s, "hooks", "hooks");
	row_count(s, "stray_lines", "stray lines");
	if (ctl_bool(s, "guards_lost")) row("guards", "lost: every tool is refused (plenumctl clear-lost)");
	PRINT_LIST(ctl_array(s, "clients"), "clients", client_head, add_client);
	PRINT_LIST(ctl_array(s, "prompts"), "prompts", prompt_head, add_prompt);
	PRINT_LIST(ctl_array(s, "tasks"), "background tasks", task_head, add_task);
	PRINT_LIST(ctl_array(s, "timers"), "timers", timer_head, add_timer);
	ctl_print_list(ctl_array(s, "leftovers"), "detached processes", leftover_head, ARRAY_SIZE(leftover_head) - 1,
				   add_leftover_of_one);
	PRINT_LIST(ctl_array(s, "guards"), "guards", guard_head, add_guard);
}

/* --- Of the daemon ------------------------------------------------------------------------------------------------ */

static const char *const profile_head[] = {"PROFILE", "COMMAND", "PRESTARTED", "PRIVATE"};

static void add_profile(struct table *t, json_t *one) {
	table_add(t, ctl_str(one, "name", "?"));
	table_add(t, ctl_str(one, "program", "-"));
	table_addf(t, "%lld of %lld", (long long)ctl_int(one, "warm", 0), (long long)ctl_int(one, "warm_wanted", 0));
	table_add(t, ctl_bool(one, "private") ? "yes" : "no");
}

static const char *const connection_head[] = {"CLIENT", "SESSION", "UID", "PID", "PROGRAM", "BEHIND"};

static void add_connection(struct table *t, json_t *one) {
	table_add(t, ctl_str(one, "name", "-"));
	table_add(t, ctl_str(one, "session", "-"));
	table_addf(t, "%lld", (long long)ctl_int(one, "uid", -1));
	table_addf(t, "%lld", (long long)ctl_int(one, "pid", 0));
	table_add(t, ctl_str(one, "program", "-"));
	add_bytes(t, one, "lag_bytes");
}

static void print_daemon(json_t *s) {
	_cleanup_free_ char *rss = size_text(ctl_int(s, "rss", 0));
	row("daemon", "plenumd %s, pid %lld, %s of memory", ctl_str(s, "version", "?"), (long long)ctl_int(s, "pid", 0),
		rss ? rss : "?");
	row_date(s, "started_ms", "started");
	row_text(s, "socket", "socket");
	row("state", "%s", ctl_str(s, "state_dir", "none: sessions do not survive a restart (plenumctl doctor)"));
	row("sessions", "%lld", (long long)ctl_int(s, "sessions", 0));
	row("profile", "%s", ctl_str(s, "default_profile", "none is the default"));
	row_count(s, "decisions", "decisions");
	row_count(s, "bad_lines", "bad lines");
	if (ctl_bool(s, "guards_lost")) row("guards", "lost: new sessions refuse every tool (plenumctl clear-lost --all)");
	PRINT_LIST(ctl_array(s, "profiles"), "profiles", profile_head, add_profile);
	PRINT_LIST(ctl_array(s, "clients"), "connections", connection_head, add_connection);
	share_print(ctl_array(s, "shares"));
	PRINT_LIST(ctl_array(s, "leftovers"), "detached processes", leftover_head, add_leftover);
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

/* --- metrics ------------------------------------------------------------------------------------------------------ */

int cmd_metrics(struct ctl *c, int argc, char **argv) {
	_cleanup_json_ json_t *answer = NULL;
	json_t *value;
	const char *key;
	int code = ctl_options(c, NULL, &argc, &argv, 0, 0);
	if (code != CTL_GO) return code;
	code = ctl_ask_once(c, PLENUM_METRICS, NULL, &answer);
	if (code != CTL_OK) return code;
	if (c->json) return ctl_print_json(answer);
	json_object_foreach(answer, key, value) {
		_cleanup_free_ char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
		printf("%-20s %s\n", key, text ? text : "?");
	}
	return CTL_OK;
}

/* --- The daemon itself -------------------------------------------------------------------------------------------- */

static int ask_daemon(struct ctl *c, int argc, char **argv, const char *verb, const char *done) {
	_cleanup_json_ json_t *answer = NULL;
	int code = ctl_options(c, NULL, &argc, &argv, 0, 0);
	if (code != CTL_GO) return code;
	code = ctl_ask_once(c, verb, NULL, &answer);
	if (code != CTL_OK) return code;
	if (c->json) return ctl_print_json(answer);
	puts(done);
	return CTL_OK;
}

int cmd_reload(struct ctl *c, int argc, char **argv) {
	return ask_daemon(c, argc, argv, PLENUM_RELOAD, "the configuration was read again and is in force");
}

int cmd_shutdown(struct ctl *c, int argc, char **argv) {
	return ask_daemon(c, argc, argv, PLENUM_SHUTDOWN, "the daemon ends");
}
