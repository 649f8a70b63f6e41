/* SPDX-License-Identifier: MIT
 *
 * top: the sessions on a screen that is drawn again every two seconds, or once as a table, or as JSON.
 */
#include "base/fd.h"
#include "base/str.h"
#include "ctl/pick.h"
#include "ctl/share.h"
#include "ctl/text.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>

#define EVERY 2000 /* ms */

/* --- Columns ------------------------------------------------------------------------------------------------------ */

static void put_name(struct buf *b, json_t *s) {
	const char *name = ctl_str(s, "session", "?");
	text_put_line(b, name, strlen(name), 32);
}

static void put_state(struct buf *b, json_t *s) {
	buf_puts(b, ctl_str(s, "state", "?"));
}

static void put_count(struct buf *b, size_t n) {
	if (n)
		buf_printf(b, "%zu", n);
	else
		buf_putc(b, '-');
}

static void put_pending(struct buf *b, json_t *s) {
	put_count(b, (size_t)MAX(ctl_int(s, "pending", 0), 0));
}

/* Prompts that wait, not those of the turn. */
static size_t queued(json_t *s) {
	json_t *one;
	size_t i, n = 0;
	json_array_foreach(ctl_array(s, "prompts"), i, one) {
		const char *state = ctl_str(one, "state", "");
		n += strcmp(state, "held") == 0 || strcmp(state, "sent") == 0;
	}
	return n;
}

static void put_queue(struct buf *b, json_t *s) {
	put_count(b, queued(s));
}

static void put_clients(struct buf *b, json_t *s) {
	put_count(b, json_array_size(ctl_array(s, "clients")));
}

static void put_memory(struct buf *b, json_t *s) {
	int64_t bytes = ctl_int(s, "child_rss", 0);
	if (bytes > 0)
		text_put_bytes(b, (uint64_t)bytes);
	else
		buf_putc(b, '-');
}

static void put_idle(struct buf *b, json_t *s) {
	text_put_age(b, ctl_int(s, "idle_ms", 0));
}

static void put_word(struct buf *b, json_t *s, const char *key, size_t max) {
	const char *text = ctl_str(s, key, "-");
	text_put_line(b, text, strlen(text), max);
}

static void put_mode(struct buf *b, json_t *s) {
	put_word(b, s, "permission_mode", 20);
}

static void put_model(struct buf *b, json_t *s) {
	put_word(b, s, "model", 28);
}

static void put_cost(struct buf *b, json_t *s) {
	json_t *cost = json_object_get(s, "cost_usd");
	if (json_is_number(cost))
		buf_printf(b, "$%.2f", json_number_value(cost));
	else
		buf_putc(b, '-');
}

/* Each with the key that sorts by it; a narrow screen loses the column with the greatest rank first. */
static const struct column {
	const char *head;
	int rank;
	char key;
	const char *sort; /* member to sort by; NULL: not at all */
	void (*put)(struct buf *b, json_t *session);
} columns[] = {
	{"SESSION", 0, 'n', "session", put_name},
	{"STATE", 1, 's', "state", put_state},
	{"MODEL", 9, 0, NULL, put_model},
	{"MODE", 7, 0, NULL, put_mode},
	{"QUEUE", 5, 'u', "prompts", put_queue},
	{"PENDING", 2, 'p', "pending", put_pending},
	{"CLIENTS", 4, 'c', "clients", put_clients},
	{"MEMORY", 6, 'm', "child_rss", put_memory},
	{"IDLE", 3, 'i', "idle_ms", put_idle},
	{"COST", 8, 'o', "cost_usd", put_cost},
	{"BACKGROUND", 10, 0, NULL, ctl_put_background},
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

static double weight(json_t *s, const char *key) {
	json_t *value = json_object_get(s, key);
	if (strcmp(key, "prompts") == 0) return (double)queued(s);
	return json_is_array(value) ? (double)json_array_size(value) : json_number_value(value);
}

static int compare_used(json_t *a, json_t *b) {
	int64_t x = ctl_int(a, "idle_ms", 0), y = ctl_int(b, "idle_ms", 0);
	return (x > y) - (x < y);
}

/* Numbers fall, but for the time since the last use: what happens now stands above. */
static int compare(const void *left, const void *right) {
	json_t *a = *(json_t *const *)left, *b = *(json_t *const *)right;
	const char *key = sort_column->sort;
	int order;
	if (strcmp(key, "idle_ms") == 0)
		order = compare_used(a, b);
	else if (json_is_string(json_object_get(a, key)))
		order = strcmp(ctl_str(a, key, ""), ctl_str(b, key, ""));
	else
		order = (weight(a, key) < weight(b, key)) - (weight(a, key) > weight(b, key));
	if (order == 0) order = compare_used(a, b);
	return sort_reversed ? -order : order;
}

/* --- The table ---------------------------------------------------------------------------------------------------- */

static struct table fill(json_t **list, size_t n) {
	struct table t = TABLE(ARRAY_SIZE(columns));
	for (size_t c = 0; c < ARRAY_SIZE(columns); c++) table_add(&t, columns[c].head);
	for (size_t i = 0; i < n; i++)
		for (size_t c = 0; c < ARRAY_SIZE(columns); c++) {
			struct buf b = BUF_INIT(4096);
			buf_puts(&b, "");
			columns[c].put(&b, list[i]);
			table_add(&t, b.data);
			buf_free(&b);
		}
	return t;
}

/* rows: at most this many lines; 0: no limit. */
static void print_sessions(json_t *all, size_t width, size_t rows) {
	size_t n = json_array_size(all);
	json_t **list = calloc(n + 1, sizeof(json_t *));
	if (!list) return;
	for (size_t i = 0; i < n; i++) list[i] = json_array_get(all, i);
	qsort(list, n, sizeof(json_t *), compare);
	size_t shown = rows && n + 1 > rows ? MAX(rows, (size_t)3) - 2 : n;
	struct table t = fill(list, shown);
	t.width = width;
	while (width && table_width(&t) > width) { /* hide columns until the rest fits */
		size_t worst = 0;
		for (size_t c = 1; c < ARRAY_SIZE(columns); c++)
			if (!table_is_hidden(&t, c) && columns[c].rank > columns[worst].rank) worst = c;
		if (worst == 0) break;
		table_hide(&t, worst);
	}
	table_print(&t, stdout);
	if (shown < n) printf("... %zu more\n", n - shown);
	table_free(&t);
	free(list);
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
	json_array_foreach(all, i, one) asking += ctl_int(one, "pending", 0) > 0;
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
		if (columns[i].sort && strcasecmp(columns[i].head, sort ? sort : "idle") == 0) sort_column = &columns[i];
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
