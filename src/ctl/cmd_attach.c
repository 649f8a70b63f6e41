/* SPDX-License-Identifier: MIT
 *
 * attach: stdin and stdout become a client of the session, line by line and byte by byte. tail: the same for eyes, and
 * nothing is ever written.
 */
#include "base/fd.h"
#include "base/str.h"
#include "ctl/follow.h"
#include "ctl/pick.h"
#include "ctl/show.h"
#include "wire/lines.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

struct pump {
	struct plenum *p;
	struct lines_pool pool;
	struct lines in;
	bool stdin_open;
};

/* --- stdin -> session --------------------------------------------------------------------------------------------- */

static enum plenum_result send_lines(struct pump *m) {
	struct chunk line = CHUNK_NONE;
	enum plenum_result r = PLENUM_OK;
	enum lines_result got;
	size_t size;
	while ((got = lines_next(&m->in, &line, &size)) != LINES_MORE && got != LINES_OOM) {
		if (got == LINES_LONG) ctl_say("stdin: a line of %zu bytes is too long and was not sent", size);
		if (got == LINES_LINE && r == PLENUM_OK) r = plenum_send_wait(m->p, line.data, line.len, -1);
		chunk_drop(&line);
	}
	return got == LINES_OOM ? PLENUM_FAILED : r;
}

static enum plenum_result read_stdin(struct pump *m) {
	size_t room;
	char *space = lines_space(&m->in, &room);
	ssize_t n = space ? fd_read(STDIN_FILENO, space, room) : -1;
	if (n > 0) {
		lines_commit(&m->in, (size_t)n);
		return send_lines(m);
	}
	if (space) lines_commit(&m->in, 0);
	struct chunk rest = CHUNK_NONE;
	enum plenum_result r = PLENUM_OK;
	if (lines_rest(&m->in, &rest)) r = plenum_send_wait(m->p, rest.data, rest.len, -1);
	chunk_drop(&rest);
	m->stdin_open = r != PLENUM_OK; /* the end of the connection is then no end after the last answer */
	return r == PLENUM_OK ? plenum_finish(m->p) : r;
}

/* --- session -> stdout -------------------------------------------------------------------------------------------- */

static enum plenum_result copy_lines(struct plenum *p) {
	const char *line;
	size_t n;
	enum plenum_result r;
	while ((r = plenum_next(p, 0, &line, &n)) == PLENUM_OK) {
		fwrite(line, 1, n, stdout);
		putc('\n', stdout);
	}
	if (fflush(stdout) != 0) return PLENUM_REFUSED; /* our reader left */
	return r == PLENUM_FAILED && errno == EMSGSIZE ? PLENUM_TIMED_OUT : r;
}

static int pump(struct pump *m) {
	for (;;) {
		enum plenum_result r = copy_lines(m->p);
		if (r == PLENUM_CLOSED && !m->stdin_open) return CTL_OK; /* the last answer is out */
		if (r == PLENUM_CLOSED) return ctl_failed(m->p, r);
		if (r == PLENUM_REFUSED) return CTL_CUT;
		if (r == PLENUM_FAILED) return ctl_failed(m->p, r);
		struct pollfd fds[] = {{.fd = plenum_fd(m->p), .events = plenum_events(m->p, NULL)},
							   {.fd = m->stdin_open ? STDIN_FILENO : -1, .events = POLLIN}};
		if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR) return CTL_INTERNAL;
		if (fds[1].revents) r = read_stdin(m);
		if (fds[1].revents && r == PLENUM_FAILED) return ctl_failed(m->p, r);
	}
}

/* --- Options ------------------------------------------------------------------------------------------------------ */

/* none, all, a number of lines, or after:SEQ. NULL: it is none of these. */
static json_t *replay_value(const char *text) {
	uint64_t n;
	if (strcmp(text, "none") == 0 || strcmp(text, "all") == 0) return json_string(text);
	if (str_u64(text, 0, INT64_MAX, &n)) return json_pack("{s:I}", "last", (json_int_t)n);
	if (strncmp(text, "after:", 6) == 0 && str_u64(text + 6, 0, INT64_MAX, &n))
		return json_pack("{s:I}", "after", (json_int_t)n);
	return NULL;
}

int cmd_attach(struct ctl *c, int argc, char **argv) {
	const char *replay = "none", *profile = NULL, *cwd = NULL, *resume = NULL, *lag = NULL;
	bool observer = false, deny_me = false, tag = false, existing = false, verbose = false;
	const struct ctl_option options[] = {
		{"observer", 'o', NULL, "only watch: the session takes no line of ours", .flag = &observer},
		{"no-approve", 0, NULL, "do not be asked for permissions", .flag = &deny_me},
		{"replay", 'r', "WHAT", "none, all, a number of lines, or after:SEQ", .value = &replay},
		{"tag", 't', NULL, "number the lines (plenum_seq)", .flag = &tag},
		{"on-lag", 0, "WHAT", "gap, close or wait", .value = &lag},
		{"existing", 'e', NULL, "do not make the session if it is not there", .flag = &existing},
		{"profile", 'p', "NAME", "the profile of a new session", .value = &profile},
		{"cwd", 'C', "DIRECTORY", "the working directory of a new session", .value = &cwd},
		{"resume", 0, "ID", "the conversation that a new session goes on with", .value = &resume},
		{"verbose", 'v', NULL, "print the daemon's answer to the attach on stderr", .flag = &verbose},
		{0},
	};
	int code = ctl_options(c, options, &argc, &argv, 1, 1);
	if (code != CTL_GO) return code;
	if (lag && strcmp(lag, "gap") != 0 && strcmp(lag, "close") != 0 && strcmp(lag, "wait") != 0)
		return ctl_usage(c, "attach: --on-lag %s: not gap, close or wait", lag);
	char room[PATH_MAX];
	ctl_absolute(&cwd, room);
	json_t *what = replay_value(replay);
	if (!what) return ctl_usage(c, "attach: --replay %s: not none, all, a number of lines, or after:SEQ", replay);
	_cleanup_json_ json_t *answer = NULL,
						  *members = json_pack("{s:s,s:s,s:o,s:b,s:s*,s:s*,s:s*,s:s*}", "create",
											   existing ? "never" : "auto", "role", observer ? "observer" : "driver",
											   "replay", what, "tag", (int)tag, "profile", profile, "cwd", cwd,
											   "resume", resume, "on_lag", lag);
	if (deny_me) json_object_set_new(members, "approve", json_false());
	const char *session = argv[0], *create;
	_cleanup_plenum_ struct plenum *p = NULL;
	code = pick_or_make(c, &session, !existing, &p, &create);
	if (code == CTL_OK) code = follow_to(p, session, json_incref(members), &answer);
	if (code != CTL_OK) return code;
	follow_print_peer(answer);
	_cleanup_free_ char *text = verbose ? json_dumps(answer, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
	if (text) ctl_say("attached %s", text);
	struct pump m = {.p = p, .stdin_open = true};
	lines_init(&m.in, &m.pool, PLENUM_CLIENT_LINE_MAX);
	code = pump(&m);
	lines_free(&m.in);
	lines_pool_free(&m.pool);
	return code;
}

/* --- tail --------------------------------------------------------------------------------------------------------- */

/* stop_at: the number of the last line that was there when it began; 0: watch on. */
static int watch(struct ctl *c, struct plenum *p, int64_t stop_at) {
	struct show show;
	struct incoming in;
	int64_t seq = 0;
	show_init(&show, stdout);
	while (!stop_at || seq < stop_at) {
		int code = follow_printing(p, &in);
		if (code != CTL_GO) return code;
		if (stop_at) follow_seq(&in, &seq);
		if (c->json)
			printf("%.*s\n", (int)in.line.n, in.line.p);
		else
			show_line(&show, &in);
		if (span_equals(follow_event(&in), PLENUM_EV_SESSION_REMOVED)) break;
	}
	show_break(&show);
	return fflush(stdout) == 0 ? CTL_OK : CTL_CUT;
}

int cmd_tail(struct ctl *c, int argc, char **argv) {
	const char *replay = "100";
	bool no_follow = false;
	const struct ctl_option options[] = {
		{"lines", 'n', "N", "begin with the last N lines that are kept (all: with all; default 100)", .value = &replay},
		{"no-follow", 0, NULL, "print these lines and exit", .flag = &no_follow},
		{0},
	};
	int code = ctl_options(c, options, &argc, &argv, 1, 1);
	if (code != CTL_GO) return code;
	json_t *what = replay_value(replay);
	if (!what) return ctl_usage(c, "tail: --lines %s: not a number of lines, and not all", replay);
	_cleanup_json_ json_t *answer = NULL, *members = json_pack("{s:s,s:s,s:o,s:b}", "create", "never", "role",
															   "observer", "replay", what, "tag", (int)no_follow);
	const char *session = argv[0];
	_cleanup_plenum_ struct plenum *p = NULL;
	code = pick_open(c, &session, &p);
	if (code == CTL_OK) code = follow_to(p, session, json_incref(members), &answer);
	if (code != CTL_OK) return code;
	int64_t next = ctl_int(answer, "seq"), oldest = ctl_int(answer, "oldest_seq");
	if (no_follow && (next <= oldest || strcmp(replay, "0") == 0)) return CTL_OK; /* there is nothing to print */
	return watch(c, p, no_follow ? next - 1 : 0);
}
