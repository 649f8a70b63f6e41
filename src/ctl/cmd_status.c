/* SPDX-License-Identifier: MIT
 *
 * status: everything that the daemon says of itself or of one session. top: the same as a table, again and again.
 * reload, shutdown: the two requests to the daemon itself.
 */
#include "base/fd.h"
#include "ctl/pick.h"
#include "ctl/text.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

/* --- Any answer as text ------------------------------------------------------------------------------------------- */

/* Values are shown as they are: the daemon may tell more than this program knows of. */
static char *value_text(json_t *value) {
	if (json_is_string(value)) return strdup(json_string_value(value));
	return json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
}

/* A newline in a client's name begins no line here. */
static void print_text(const char *text, bool quoted) {
	struct buf b = BUF_INIT((size_t)1 << 20);
	if (quoted)
		text_put_value(&b, text);
	else
		text_put_line(&b, text, strlen(text), (size_t)1 << 16);
	fputs(b.data ? b.data : "", stdout);
	buf_free(&b);
}

static void print_value(const char *key, json_t *value, int depth);

static void print_members(json_t *object, int depth) {
	const char *key;
	json_t *value;
	json_object_foreach(object, key, value) print_value(key, value, depth);
}

static void print_scalar(const char *key, json_t *value, int depth) {
	_cleanup_free_ char *text = value_text(value);
	int pad = 24 - depth * 2;
	printf("%*s%-*s ", depth * 2, "", pad > 0 ? pad : 0, key);
	print_text(text ? text : "?", false);
	putchar('\n');
}

/* Objects of a list, one line each. */
static void print_list(json_t *list, int depth) {
	json_t *one, *value;
	const char *key;
	size_t i;
	json_array_foreach(list, i, one) {
		printf("%*s-", depth * 2, "");
		json_object_foreach(one, key, value) {
			_cleanup_free_ char *text = value_text(value);
			if (!text || json_is_null(value)) continue;
			printf(" %s=", key);
			print_text(text, json_is_string(value));
		}
		putchar('\n');
	}
}

static void print_value(const char *key, json_t *value, int depth) {
	bool of_objects = json_array_size(value) && json_is_object(json_array_get(value, 0));
	if (!json_is_object(value) && !of_objects) {
		print_scalar(key, value, depth);
		return;
	}
	printf("%*s%s\n", depth * 2, "", key);
	if (of_objects)
		print_list(value, depth + 1);
	else
		print_members(value, depth + 1);
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
	if (profiles && argc) return ctl_usage(c, "status: profiles are the daemon's, not a session's");
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
	if (!argc && !json_object_get(answer, "socket")) printf("%-24s %s\n", "socket", plenum_path(p));
	print_members(answer, 0);
	return CTL_OK;
}

/* --- top ---------------------------------------------------------------------------------------------------------- */

static void add_bytes(struct table *t, json_t *client, const char *key) {
	struct buf b = BUF_INIT(64);
	text_put_bytes(&b, (uint64_t)MAX(ctl_int(client, key, 0), 0));
	table_add(t, b.data);
	buf_free(&b);
}

static void add_client(struct table *t, json_t *one, const char *session, const char *state, json_t *client) {
	table_add(t, session);
	table_add(t, state);
	table_add(t, ctl_str(client, "name", "-"));
	table_add(t, ctl_str(client, "role", "-"));
	table_addf(t, "%lld", (long long)ctl_int(client, "uid", -1));
	table_addf(t, "%lld", (long long)ctl_int(client, "pid", 0));
	table_add(t, ctl_str(client, "program", "-"));
	add_bytes(t, client, "lag_bytes");
	table_add_age(t, ctl_int(client, "lag_ms", 0));
	add_bytes(t, client, "bytes_in");
	add_bytes(t, client, "bytes_out");
	ctl_add_background(t, one);
}

static const char *const top_head[] = {"SESSION", "STATE",  "CLIENT", "ROLE", "UID", "PID",
									   "PROGRAM", "BEHIND", "FOR",    "IN",   "OUT", "BACKGROUND"};

static void add_alone(struct table *t, json_t *one, const char *session, const char *state) {
	table_add(t, session);
	table_add(t, state);
	for (size_t i = 3; i < ARRAY_SIZE(top_head); i++) table_add(t, "-");
	ctl_add_background(t, one);
}

static int add_session(struct plenum *p, struct table *t, json_t *one) {
	_cleanup_json_ json_t *status = NULL;
	const char *name = ctl_str(one, "session", "?"), *state = ctl_str(one, "state", "?");
	int code = ctl_ask(p, PLENUM_STATUS, json_pack("{s:s}", "session", name), &status);
	if (code != CTL_OK) return code;
	json_t *clients = ctl_array(status, "clients"), *client;
	size_t i;
	json_array_foreach(clients, i, client) add_client(t, one, name, state, client);
	if (json_array_size(clients) == 0) add_alone(t, one, name, state);
	return CTL_OK;
}

static const char *const share_head[] = {"UID", "SESSIONS", "CONNECTIONS", "HELD", "REQUESTS"};

/* What each uid has of the daemon; nothing, where there is one alone or the daemon does not tell. */
static int print_shares(struct plenum *p) {
	_cleanup_json_ json_t *status = NULL;
	int code = ctl_ask(p, PLENUM_STATUS, json_pack("{s:b}", "daemon", true), &status);
	json_t *shares = ctl_array(status, "shares"), *one;
	size_t i;
	if (code != CTL_OK || json_array_size(shares) < 2) return code == CTL_CUT ? code : CTL_OK;
	struct table t = TABLE(ARRAY_SIZE(share_head));
	for (i = 0; i < ARRAY_SIZE(share_head); i++) table_add(&t, share_head[i]);
	json_array_foreach(shares, i, one) {
		table_addf(&t, "%lld", (long long)ctl_int(one, "uid", -1));
		table_addf(&t, "%lld", (long long)ctl_int(one, "sessions", 0));
		table_addf(&t, "%lld", (long long)ctl_int(one, "clients", 0));
		add_bytes(&t, one, "bytes");
		table_addf(&t, "%lld", (long long)ctl_int(one, "requests", 0));
	}
	putchar('\n');
	table_print(&t, stdout);
	table_free(&t);
	return CTL_OK;
}

static int print_top(struct plenum *p) {
	_cleanup_json_ json_t *list = NULL;
	int code = ctl_ask(p, PLENUM_LIST, NULL, &list);
	if (code != CTL_OK) return code;
	struct table t = TABLE(ARRAY_SIZE(top_head));
	json_t *sessions = ctl_array(list, "sessions"), *one;
	size_t i;
	for (i = 0; i < ARRAY_SIZE(top_head); i++) table_add(&t, top_head[i]);
	/* A session may be gone between the list and the question about it: that one is left out. */
	json_array_foreach(sessions, i, one) if (add_session(p, &t, one) == CTL_CUT) code = CTL_CUT;
	printf("%s: %zu sessions\n", plenum_path(p), json_array_size(sessions));
	table_print(&t, stdout);
	table_free(&t);
	return code == CTL_OK ? print_shares(p) : code;
}

/* The same for machines: one line, the whole status of each session. */
static int print_top_json(struct plenum *p) {
	_cleanup_json_ json_t *list = NULL, *all = json_pack("{s:[]}", "sessions");
	int code = ctl_ask(p, PLENUM_LIST, NULL, &list);
	json_t *sessions = ctl_array(list, "sessions"), *one;
	size_t i;
	json_array_foreach(sessions, i, one) {
		json_t *status = NULL, *ask = json_pack("{s:s}", "session", ctl_str(one, "session", "?"));
		if (ctl_ask(p, PLENUM_STATUS, ask, &status) == CTL_CUT) code = CTL_CUT;
		if (status) json_array_append_new(json_object_get(all, "sessions"), status);
	}
	return code == CTL_OK ? ctl_print_json(all) : code;
}

static bool leave_pressed(int ms) {
	struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
	char text[64];
	if (poll(&fd, 1, ms) <= 0) return false;
	ssize_t n = fd_read(STDIN_FILENO, text, sizeof text);
	return n <= 0 || memchr(text, 'q', (size_t)n);
}

int cmd_top(struct ctl *c, int argc, char **argv) {
	bool once = false;
	const struct ctl_option options[] = {
		{"once", '1', NULL, "print it once", .flag = &once},
		{0},
	};
	int code = ctl_options(c, options, &argc, &argv, 0, 0);
	if (code != CTL_GO) return code;
	_cleanup_plenum_ struct plenum *p = ctl_open(c);
	if (!p) return CTL_NO_DAEMON;
	if (c->json) return print_top_json(p);
	once = once || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO);
	do {
		if (!once) fputs("\033[H\033[2J", stdout);
		code = print_top(p);
		if (!once) fputs("\n(q and Enter, or Ctrl-C, leaves)\n", stdout);
		fflush(stdout);
	} while (code == CTL_OK && !once && !leave_pressed(2000));
	return code;
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
		_cleanup_free_ char *text = value_text(value);
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
