/* SPDX-License-Identifier: MIT
 *
 * top: the sessions on a screen that is drawn again every two seconds, or once as a table, or as JSON.
 */
#include "base/fd.h"
#include "ctl/column.h"
#include "ctl/ctl.h"
#include "ctl/share.h"
#include "ctl/text.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <termios.h>

#define EVERY 2000 /* ms */

/* --- Columns ------------------------------------------------------------------------------------------------------ */

static const struct column columns[] = {
	{"SESSION", "session", COLUMN_WORD, "?", 32, 0, 'n'},  {"STATE", "state", COLUMN_WORD, "?", 0, 1, 's'},
	{"MODEL", "model", COLUMN_WORD, "-", 28, 9},           {"MODE", "permission_mode", COLUMN_WORD, "-", 20, 7},
	{"QUEUE", "prompts", COLUMN_WAITING, "-", 0, 5, 'u'},  {"PENDING", "pending", COLUMN_NUMBER, "-", 0, 2, 'p'},
	{"CLIENTS", "clients", COLUMN_NUMBER, "-", 0, 4, 'c'}, {"MEMORY", "child_rss", COLUMN_SIZE, "-", 0, 6, 'm'},
	{"IDLE", "idle_ms", COLUMN_AGE, NULL, 0, 3, 'i'},      {"COST", "cost_usd", COLUMN_DOLLARS, "-", 0, 8, 'o'},
	{"BACKGROUND", NULL, COLUMN_BACKGROUND, NULL, 0, 10},
};

/* --- Data --------------------------------------------------------------------------------------------------------- */

/* Set `sessions`, the whole status of each, and `shares`. A session may be gone between the list and the question about
 * it. *told: the caller frees. */
static int ask_all(struct plenum *p, json_t **told) {
	_cleanup_json_ json_t *list = NULL, *daemon = NULL;
	json_t *all = json_array();
	int code = ctl_ask(p, PLENUM_LIST, NULL, &list);
	if (code == CTL_OK) code = ctl_ask(p, PLENUM_STATUS, NULL, &daemon);
	*told = json_pack("{s:o,s:O?}", "sessions", all, "shares", ctl_array(daemon, "shares"));
	json_t *one;
	size_t i;
	json_array_foreach(ctl_array(list, "sessions"), i, one) {
		json_t *status = NULL, *members = json_pack("{s:s}", "session", ctl_str(one, "session", "?"));
		int got = ctl_ask_quietly(p, PLENUM_STATUS, members, &status);
		if (status) json_array_append_new(all, status);
		if (got == CTL_CUT) return got;
	}
	return code;
}

static const struct column *sort_column; /* qsort() has no argument for it */
static bool sort_reversed;

static int compare_used(json_t *a, json_t *b) {
	int64_t x = ctl_int(a, "idle_ms"), y = ctl_int(b, "idle_ms");
	return (x > y) - (x < y);
}

/* Numbers fall, but for the time since the last use: what happens now stands above. */
static int compare(const void *left, const void *right) {
	json_t *a = *(json_t *const *)left, *b = *(json_t *const *)right;
	int order;
	if (sort_column->kind == COLUMN_AGE) {
		order = compare_used(a, b);
	} else if (sort_column->kind == COLUMN_WORD) {
		order = strcmp(ctl_str(a, sort_column->member, ""), ctl_str(b, sort_column->member, ""));
	} else {
		double x = column_number(sort_column, a), y = column_number(sort_column, b);
		order = (x < y) - (x > y);
	}
	if (order == 0) order = compare_used(a, b);
	return sort_reversed ? -order : order;
}

/* --- The table ---------------------------------------------------------------------------------------------------- */

/* rows: at most this many lines; 0: no limit. */
static void print_sessions(json_t *all, size_t width, size_t rows) {
	size_t n = json_array_size(all), shown = rows && n + 1 > rows ? MAX(rows, (size_t)3) - 2 : n;
	_cleanup_json_ json_t *list = column_sorted(all, compare);
	struct table t = TABLE(ARRAY_SIZE(columns));
	column_fill(&t, columns, list, shown);
	t.width = width;
	while (width && table_width(&t) > width) { /* hide columns until the rest fits */
		size_t worst = 0;
		for (size_t c = 1; c < t.columns; c++)
			if (!table_is_hidden(&t, c) && columns[c].rank > columns[worst].rank) worst = c;
		if (worst == 0) break;
		table_hide(&t, worst);
	}
	table_print(&t, stdout);
	if (shown < n) printf("... %zu more\n", n - shown);
	table_free(&t);
}

/* --- The screen --------------------------------------------------------------------------------------------------- */

struct top {
	struct plenum *p;
	struct termios before;
	int signals; /* signalfd */
	bool leave;
};

static void enter(struct top *t) {
	struct termios raw = t->before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	fputs("\033[?1049h\033[?25l", stdout); /* alternate screen, no cursor */
}

static void restore(struct top *t) {
	fputs("\033[?25h\033[?1049l", stdout);
	fflush(stdout);
	tcsetattr(STDIN_FILENO, TCSANOW, &t->before);
}

static void print_cut(const char *text, size_t width) {
	struct buf b = BUF_INIT(4096);
	text_put_line(&b, text, strlen(text), width > 1 ? width - 1 : 1);
	puts(b.data ? b.data : "");
	buf_free(&b);
}

static int draw(const struct top *t) {
	_cleanup_json_ json_t *told = NULL;
	struct buf b = BUF_INIT(4096), keys = BUF_INIT(4096);
	json_t *one;
	size_t i, asking = 0, width, height;
	int code = ask_all(t->p, &told);
	if (code != CTL_OK) return code;
	json_t *all = ctl_array(told, "sessions"), *shares = ctl_array(told, "shares");
	table_screen(&width, &height);
	json_array_foreach(all, i, one) asking += ctl_int(one, "pending") > 0;
	buf_printf(&b, "%zu session%s, %zu asking   ", json_array_size(all), json_array_size(all) == 1 ? "" : "s", asking);
	text_put_line(&b, plenum_path(t->p), strlen(plenum_path(t->p)), 200);
	buf_printf(&keys, "q leaves; sorted by %s%s (", sort_column->head, sort_reversed ? ", reversed" : "");
	for (size_t c = 0; c < ARRAY_SIZE(columns); c++)
		if (columns[c].key) buf_printf(&keys, "%c ", columns[c].key);
	buf_puts(&keys, "to change, r reverses)");
	fputs("\033[H\033[2J", stdout);
	print_cut(b.data ? b.data : "", width);
	print_cut(keys.data ? keys.data : "", width);
	/* Each line has its newline, so the last row of the screen stays empty. */
	size_t rows = height > 5 ? height - 3 : 2, others = share_lines(shares);
	bool fits = others && rows > others + 4;
	print_sessions(all, width, fits ? rows - others : rows);
	if (fits) share_print(shares);
	fflush(stdout);
	buf_free(&b);
	buf_free(&keys);
	return CTL_OK;
}

static void take_keys(struct top *t) {
	char keys[64];
	ssize_t n = fd_read(STDIN_FILENO, keys, sizeof keys);
	if (n <= 0) t->leave = true;
	if (n > 1 && *keys == '\033') return; /* an arrow and the like */
	for (ssize_t i = 0; i < n; i++) {
		if (keys[i] == 'q' || keys[i] == 'Q' || keys[i] == 4) t->leave = true;
		if (keys[i] == 'r') sort_reversed = !sort_reversed;
		for (size_t c = 0; c < ARRAY_SIZE(columns); c++)
			if (columns[c].key && columns[c].key == keys[i]) sort_column = &columns[c];
	}
}

static void take_signal(struct top *t) {
	struct signalfd_siginfo got;
	if (fd_read(t->signals, &got, sizeof got) != (ssize_t)sizeof got || got.ssi_signo == SIGWINCH) return;
	if (got.ssi_signo != SIGTSTP) {
		t->leave = true;
		return;
	}
	restore(t);
	raise(SIGSTOP);
	enter(t);
}

static int watch(struct top *t) {
	int code = CTL_OK;
	enter(t);
	while (code == CTL_OK && !t->leave) {
		struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = t->signals, .events = POLLIN}};
		code = draw(t);
		if (code != CTL_OK || poll(fds, ARRAY_SIZE(fds), EVERY) <= 0) continue;
		if (fds[0].revents) take_keys(t);
		if (fds[1].revents) take_signal(t);
	}
	restore(t);
	return code;
}

static int print_once(struct ctl *c, struct plenum *p) {
	_cleanup_json_ json_t *told = NULL;
	size_t width, height;
	int code = ask_all(p, &told);
	if (code != CTL_OK) return code;
	if (c->json) return ctl_print_json(told);
	bool screen = table_screen(&width, &height);
	print_sessions(ctl_array(told, "sessions"), screen ? width : 0, 0);
	share_print(ctl_array(told, "shares"));
	return CTL_OK;
}

int cmd_top(struct ctl *c, int argc, char **argv) {
	bool once = false;
	const char *sort = NULL;
	const struct ctl_option options[] = {
		{"once", '1', NULL, "print it once", .flag = &once},
		{"sort", 's', "COLUMN", "sort by this column (default: idle)", .value = &sort},
		{0},
	};
	int code = ctl_options(c, options, &argc, &argv, 0, 0);
	if (code != CTL_GO) return code;
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		if (columns[i].key && strcasecmp(columns[i].head, sort ? sort : "idle") == 0) sort_column = &columns[i];
	if (!sort_column) return ctl_usage(c, "top: --sort %s: no such column", sort);
	_cleanup_plenum_ struct plenum *p = ctl_open(c);
	struct top t = {.p = p};
	if (!p) return CTL_NO_DAEMON;
	bool person = isatty(STDOUT_FILENO) && isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &t.before) == 0;
	if (once || c->json || !person || ctl_is_dumb()) return print_once(c, p);
	_cleanup_close_ int signals = fd_signals((const int[]){SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP, 0});
	t.signals = signals;
	return watch(&t);
}
