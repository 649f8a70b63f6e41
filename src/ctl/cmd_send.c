/* SPDX-License-Identifier: MIT
 *
 * send: one prompt; the answer as it comes; an exit code that says how it ended. It asks nothing: a permission waits
 * for whoever answers it (chat, allow, another program), so this client is no approver.
 */
#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "ctl/follow.h"
#include "ctl/pick.h"
#include "ctl/show.h"
#include "ctl/text.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define TAKE_BACK_TIME 2000 /* ms that the child may take to say whether a prompt still waited */

struct sending {
	struct ctl *c;
	struct plenum *p;
	const char *session;
	bool no_wait, existing;
	bool told_waiting; /* "a permission waits" was said for this stop */
	bool gap;          /* lines were lost: the result may be among them */
	struct buf last;   /* the last result that names no prompt of ours */
	int64_t deadline;  /* now_ms() clock; INT64_MAX: none */
	int signals;       /* signalfd of SIGINT and SIGTERM */
	struct speech_turn turn;
	struct show show;
};

/* --- How it ends -------------------------------------------------------------------------------------------------- */

static int take_result(struct sending *s, const struct speech_fact *end) {
	bool bad = end->bad || !span_equals(end->name, "success");
	if (!s->c->json && !bad && !s->show.wrote) { /* a command of the CLI's own has no other text than this */
		size_t n = 0;
		_cleanup_free_ char *text = text_dup(end->text, &n);
		if (text) text_print(stdout, text, n);
		s->show.mid_line = n && text && text[n - 1] != '\n';
	}
	show_break(&s->show);
	if (!bad) return CTL_OK;
	if (end->interrupted) {
		ctl_say("the turn was interrupted");
		return CTL_REFUSED;
	}
	_cleanup_free_ char *outcome = span_dup(end->name, NULL), *why = text_dup(end->text, NULL);
	bool named = outcome && strcmp(outcome, "success") != 0; /* a failure of the API is a `success` with is_error */
	ctl_say("the turn failed%s%s%s%s%s", named ? " (" : "", named ? outcome : "", named ? ")" : "",
			why && *why ? ": " : "", why ? why : "");
	return CTL_REFUSED;
}

/* A person is needed. */
static int take_asking(struct sending *s) {
	if (s->no_wait) {
		ctl_say("session %s: a request waits for an answer (`plenumctl pending %s`)", s->session, s->session);
		return CTL_WAITS;
	}
	if (!s->told_waiting)
		ctl_say("session %s: waiting for an answer to a request (`plenumctl pending %s`)", s->session, s->session);
	s->told_waiting = true;
	return CTL_GO;
}

/* The daemon knows that the last result was ours, though that does not say so (a command of the CLI 2.1.197). */
static int take_end(struct sending *s, const struct incoming *in) {
	struct incoming last;
	struct speech_fact end;
	speech_read(in->speech, s->last.data ? s->last.data : "", s->last.failed ? 0 : s->last.len, &last);
	bool bad = span_is_true(span_member(in->notice, "is_error"));
	if (speech_find(&last, SPEECH_END, &end) && end.bad == bad) return take_result(s, &end);
	if (!bad) return CTL_OK;
	ctl_say("the turn failed");
	return CTL_REFUSED;
}

/* Where the daemon has given the prompt another uuid, its sender is known. */
static bool is_held(const struct sending *s, const struct incoming *in) {
	bool held = span_equals(follow_event(in), PLENUM_EV_CHANGED) &&
				span_equals(span_member(in->notice, "what"), "prompt_held");
	int64_t pid = 0;
	span_int(span_member(span_member(in->notice, "by"), "pid"), &pid);
	return held && (in->speech->keeps ? span_equals(span_member(in->notice, "value"), s->turn.uuid) : pid == getpid());
}

static int take_event(struct sending *s, const struct incoming *in, struct span event) {
	if (span_equals(event, PLENUM_EV_SESSION_STATE)) {
		struct span state = span_member(in->notice, "state");
		if (span_equals(state, PLENUM_ST_ASKING)) return take_asking(s);
		s->told_waiting = false;
		if (!s->gap || !span_equals(state, PLENUM_ST_IDLE)) return CTL_GO;
		ctl_say("session %s: the end of the turn was lost, because plenumctl read too slowly", s->session);
		return CTL_CUT;
	}
	if (span_equals(event, PLENUM_EV_ERROR)) return follow_print_error(in);
	if (span_equals(event, PLENUM_EV_SESSION_REMOVED)) {
		ctl_say("session %s: was removed before the answer", s->session);
		return CTL_CUT;
	}
	if (follow_ended(in, s->turn.uuid)) return take_end(s, in);
	if (span_equals(event, PLENUM_EV_TURN_ENDED)) s->last.len = 0; /* it was another prompt's */
	if (is_held(s, in))
		ctl_say("session %s: the prompt waits for the end of another client's turn (`plenumctl queue %s`)", s->session,
				s->session);
	if (follow_changed(in, "prompt_cancelled", s->turn.uuid)) {
		ctl_say("the prompt was taken back before its turn");
		return CTL_REFUSED;
	}
	if (span_equals(event, PLENUM_EV_GAP)) s->gap = true;
	return CTL_GO;
}

static int take_line(struct sending *s, const struct incoming *in) {
	struct speech_fact end;
	struct span code, text;
	if (s->c->json) {
		fwrite(in->line.p, 1, in->line.n, stdout);
		fputc('\n', stdout);
	}
	bool ours = in->speech->ends(&s->turn, in), ended = speech_find(in, SPEECH_END, &end);
	in->speech->read_error(in, &code, &text);
	if (ours && ended) return code.p ? follow_print_error(in) : take_result(s, &end);
	if (ended) {
		s->last.len = 0;
		buf_put(&s->last, in->line.p, in->line.n);
	}
	if (!s->c->json && s->turn.ours) show_answer(&s->show, in);
	struct span event = follow_event(in);
	return event.p ? take_event(s, in, event) : CTL_GO;
}

/* --- Waiting ------------------------------------------------------------------------------------------------------ */

static int give_up(struct sending *s, int code) {
	const struct speech *speech = speech_of(s->p);
	struct incoming in;
	show_break(&s->show);
	/* It may still be queued while the turn of another client's prompt runs. */
	bool queued = !s->turn.ours && speech->take_back && speech->take_back(s->p, s->turn.uuid, TAKE_BACK_TIME);
	/* An agent that names its turns takes no interrupt without the name. */
	int64_t deadline = now_ms() + TAKE_BACK_TIME;
	while (speech->names_turns && !*s->turn.name &&
		   follow_next(s->p, (int)MAX(deadline - now_ms(), 0), &in) == PLENUM_OK)
		if (in.speech->ends(&s->turn, &in)) break;
	if (!queued) speech->interrupt(s->p, &s->turn);
	ctl_say("%s%s", code == CTL_TIMED_OUT ? "timeout: " : "",
			queued                  ? "the prompt was taken back before its turn"
			: code == CTL_TIMED_OUT ? "the turn was interrupted"
									: "interrupted");
	return code;
}

static int follow(struct sending *s) {
	struct incoming in;
	for (;;) {
		enum plenum_result r = follow_next(s->p, 0, &in);
		if (r == PLENUM_OK) {
			int code = take_line(s, &in);
			if (code != CTL_GO) return code;
			continue;
		}
		if (r != PLENUM_TIMED_OUT) return ctl_failed(s->p, r);
		struct pollfd fds[] = {{.fd = plenum_fd(s->p), .events = plenum_events(s->p, NULL)},
							   {.fd = s->signals, .events = POLLIN}};
		int64_t left = s->deadline == INT64_MAX ? -1 : MAX(s->deadline - now_ms(), 0);
		fflush(stdout);
		int n = poll(fds, ARRAY_SIZE(fds), (int)MIN(left, INT32_MAX));
		if (n == 0) return give_up(s, CTL_TIMED_OUT);
		if (n > 0 && fds[1].revents) return give_up(s, CTL_INTERRUPTED);
	}
}

/* --- The prompt --------------------------------------------------------------------------------------------------- */

/* The words after the session, or stdin for "-" or none. */
static bool prompt_text(int argc, char **argv, struct buf *b) {
	if (argc == 0 && isatty(STDIN_FILENO)) ctl_say("type the prompt; Ctrl-D on a line of its own ends it");
	if (argc == 0 || (argc == 1 && strcmp(argv[0], "-") == 0)) return buf_read(b, STDIN_FILENO);
	ctl_put_words(b, argc, argv);
	return !b->failed;
}

/* members: of the attach. */
static int send_prompt(struct sending *s, json_t *members, const struct buf *text) {
	_cleanup_json_ json_t *answer = NULL;
	const char *create = ctl_str(members, "create", "");
	int code = follow_to(s->p, s->session, json_incref(members), &answer);
	if (code == CTL_REFUSED && !s->existing) pick_hint(s->c, s->p, create);
	if (code != CTL_OK) return code;
	pick_remember(ctl_str(answer, "session", s->session));
	if (strcmp(ctl_str(answer, "state", ""), PLENUM_ST_ASKING) == 0) {
		code = take_asking(s);
		if (code != CTL_GO) return code;
	}
	_cleanup_close_ int signals = fd_signals((const int[]){SIGINT, SIGTERM, 0});
	s->signals = signals;
	s->turn.client = ctl_int(answer, "client");
	str_uuid(s->turn.uuid);
	enum plenum_result r = speech_of(s->p)->prompt(s->p, text->data, text->len, s->turn.uuid);
	return r == PLENUM_OK ? follow(s) : ctl_failed(s->p, r);
}

int cmd_send(struct ctl *c, int argc, char **argv) {
	const char *profile = NULL, *cwd = NULL, *timeout = NULL;
	bool no_wait = false, existing = false, make = false;
	const struct ctl_option options[] = {
		{"no-wait", 0, NULL, "exit 75 if a permission request waits for an answer", .flag = &no_wait},
		{"timeout", 't', "TIME", "interrupt the turn after this time (30s, 5min) and exit 124", .value = &timeout},
		{"create", 'c', NULL, "make the session if it does not exist", .flag = &make},
		{"existing", 'e', NULL, "never make the session, not even if there is none at all", .flag = &existing},
		{"profile", 'p', "NAME", "the profile of a new session", .value = &profile},
		{"cwd", 'C', "DIRECTORY", "the working directory of a new session", .value = &cwd},
		{0},
	};
	int code = ctl_options(c, options, &argc, &argv, 1, CTL_TEXT);
	if (code != CTL_GO) return code;
	int64_t ms = INT64_MAX;
	if (timeout && !str_time(timeout, &ms))
		return ctl_usage(c, "send: --timeout %s: a number with a unit is needed (30s, 5min)", timeout);
	if (make && existing) return ctl_usage(c, "send: --create and --existing exclude each other");
	struct buf text = BUF_INIT((size_t)1 << 30);
	if (!prompt_text(argc - 1, argv + 1, &text) || text.len == 0) {
		buf_free(&text);
		return ctl_usage(c, "send: the prompt is empty");
	}
	char room[PATH_MAX];
	ctl_absolute(&cwd, room);
	const char *session = argv[0], *create;
	_cleanup_plenum_ struct plenum *p = NULL;
	code = pick_or_make(c, &session, make, &p, &create);
	if (existing) create = "never";
	struct sending s = {.c = c,
						.p = p,
						.session = session,
						.no_wait = no_wait,
						.existing = existing,
						.signals = -1,
						.last = BUF_INIT(SIZE_MAX / 4)};
	s.deadline = ms == INT64_MAX ? ms : now_ms() + ms;
	show_init(&s.show, stdout);
	json_t *members = json_pack("{s:s,s:b,s:s,s:s*,s:s*}", "create", create, "approve", 0, "on_lag", "wait", "profile",
								profile, "cwd", cwd);
	code = code == CTL_OK ? send_prompt(&s, members, &text) : code;
	json_decref(members);
	buf_free(&text);
	buf_free(&s.last);
	return code;
}
