/* SPDX-License-Identifier: MIT
 *
 * wait: until a session is idle, asks or has ended. events: what the daemon reports, one line each, for a person or
 * for a script.
 */
#include "base/fd.h"
#include "base/str.h"
#include "ctl/follow.h"
#include "ctl/pick.h"
#include "ctl/sentence.h"
#include "ctl/text.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* --- wait --------------------------------------------------------------------------------------------------------- */

#define REMOVED "removed" /* no state: the session is gone */

enum goal { GOAL_IDLE = 1, GOAL_ASKING = 2, GOAL_ENDED = 4 };

static const struct {
	const char *name;
	enum goal goal;
} goals[] = {{"idle", GOAL_IDLE}, {"asking", GOAL_ASKING}, {"ended", GOAL_ENDED}};

struct waiting {
	const char *session;
	unsigned goals;
	int64_t deadline; /* now_ms() clock; INT64_MAX: none */
};

static int read_goals(struct ctl *c, int n, char **words, unsigned *wanted) {
	for (int i = 0; i < n; i++) {
		unsigned goal = 0;
		for (size_t k = 0; k < ARRAY_SIZE(goals); k++)
			if (strcmp(words[i], goals[k].name) == 0) goal = goals[k].goal;
		if (!goal) return ctl_usage(c, "wait: %s: not one of idle, asking, ended", words[i]);
		*wanted |= goal;
	}
	if (!n) *wanted = GOAL_IDLE | GOAL_ASKING | GOAL_ENDED;
	return CTL_GO;
}

/* The state that a line reports of the session; NULL: another line. The caller frees. */
static char *state_in(const struct incoming *in, const char *session) {
	struct span event = follow_event(in);
	if (!event.p || !span_equals(span_member(in->notice, "session"), session)) return NULL;
	if (span_equals(event, PLENUM_EV_SESSION_REMOVED)) return strdup(REMOVED);
	if (!span_equals(event, PLENUM_EV_SESSION_STATE)) return NULL;
	return span_dup(span_member(in->notice, "state"), NULL);
}

static int take_state(struct ctl *c, const struct waiting *w, const char *state) {
	bool ended = strcmp(state, PLENUM_ST_ASLEEP) == 0 || strcmp(state, PLENUM_ST_FAILED) == 0 ||
				 strcmp(state, REMOVED) == 0;
	unsigned goal = strcmp(state, PLENUM_ST_IDLE) == 0     ? GOAL_IDLE
					: strcmp(state, PLENUM_ST_ASKING) == 0 ? GOAL_ASKING
					: ended                                ? GOAL_ENDED
														   : 0;
	if (goal & w->goals) {
		_cleanup_json_ json_t *told = json_pack("{s:s,s:s}", "session", w->session, "state", state);
		if (c->json) return ctl_print_json(told);
		puts(state);
		return CTL_OK;
	}
	if (strcmp(state, REMOVED) != 0) return CTL_GO;
	ctl_say("session %s: was removed before it was %s", w->session, w->goals & GOAL_IDLE ? "idle" : "asking");
	return CTL_REFUSED;
}

static int await_goal(struct ctl *c, struct plenum *p, struct waiting *w) {
	struct incoming in;
	_cleanup_free_ char *name = NULL;
	for (;;) {
		int64_t left = w->deadline == INT64_MAX ? -1 : MAX(w->deadline - now_ms(), 0);
		enum plenum_result r = follow_next(p, (int)MIN(left, INT32_MAX), &in);
		if (r == PLENUM_TIMED_OUT && left >= 0) {
			ctl_say("session %s: timeout", w->session);
			return CTL_TIMED_OUT;
		}
		if (r != PLENUM_OK && r != PLENUM_TIMED_OUT) return ctl_failed(p, r);
		char *fresh = r == PLENUM_OK ? follow_renamed(&in, w->session) : NULL;
		if (fresh) {
			free(name);
			w->session = name = fresh;
		}
		_cleanup_free_ char *state = r == PLENUM_OK ? state_in(&in, w->session) : NULL;
		int code = state ? take_state(c, w, state) : CTL_GO;
		if (code != CTL_GO) return code;
	}
}

int cmd_wait(struct ctl *c, int argc, char **argv) {
	const char *timeout = NULL;
	const struct ctl_option options[] = {
		{"timeout", 't', "TIME", "wait no longer than this (30s, 5min), then exit 124", .value = &timeout},
		{0},
	};
	int code = ctl_options(c, options, &argc, &argv, 1, INT_MAX);
	if (code != CTL_GO) return code;
	int64_t ms = INT64_MAX;
	struct waiting w = {.session = argv[0]};
	if (timeout && !str_time(timeout, &ms))
		return ctl_usage(c, "wait: --timeout %s: a number with a unit is needed (30s, 5min)", timeout);
	code = read_goals(c, argc - 1, argv + 1, &w.goals);
	if (code != CTL_GO) return code;
	w.deadline = ms == INT64_MAX ? ms : now_ms() + ms;
	_cleanup_plenum_ struct plenum *p = NULL;
	_cleanup_json_ json_t *status = NULL;
	code = pick_open(c, &w.session, &p);
	/* Subscribe first, so that no change between the question and the wait is missed. */
	if (code == CTL_OK) code = ctl_ask(p, PLENUM_SUBSCRIBE, NULL, NULL);
	if (code == CTL_OK) code = ctl_ask(p, PLENUM_STATUS, json_pack("{s:s}", "session", w.session), &status);
	if (code != CTL_OK) return code;
	code = take_state(c, &w, ctl_str(status, "state", ""));
	return code == CTL_GO ? await_goal(c, p, &w) : code;
}

/* --- events ------------------------------------------------------------------------------------------------------- */

static void print_event(struct ctl *c, const struct incoming *in) {
	if (c->json) {
		fwrite(in->line.p, 1, in->line.n, stdout);
		putchar('\n');
		return;
	}
	struct buf b = BUF_INIT(65536);
	time_t now = time(NULL);
	struct tm tm;
	char clock[16] = "";
	if (localtime_r(&now, &tm)) strftime(clock, sizeof clock, "%H:%M:%S", &tm);
	size_t n = 0;
	_cleanup_free_ char *session = span_dup(span_member(in->notice, "session"), &n);
	_cleanup_free_ char *event = text_dup(span_member(in->notice, "event"), NULL);
	buf_printf(&b, "%s  ", clock);
	text_put_line(&b, session ? session : "-", session ? n : 1, 60);
	buf_puts(&b, "  ");
	text_put_line(&b, event ? event : "?", event ? strlen(event) : 1, 60);
	sentence_put_members(&b, in->notice);
	if (!b.failed) puts(b.data);
	buf_free(&b);
}

int cmd_events(struct ctl *c, int argc, char **argv) {
	int code = ctl_options(c, NULL, &argc, &argv, 0, 1);
	if (code != CTL_GO) return code;
	_cleanup_plenum_ struct plenum *p = NULL;
	const char *session = argc ? argv[0] : NULL;
	if (!session) {
		p = ctl_open(c);
		code = ctl_ask(p, PLENUM_SUBSCRIBE, NULL, NULL);
	} else {
		code = pick_open(c, &session, &p);
		json_t *members = json_pack("{s:s,s:s,s:[s]}", "create", "never", "role", "observer", "types", "system");
		if (code == CTL_OK) code = follow_to(p, session, json_incref(members), NULL);
		json_decref(members);
	}
	if (code != CTL_OK) return code;
	struct incoming in;
	while ((code = follow_printing(p, &in)) == CTL_GO)
		if (follow_event(&in).p) print_event(c, &in);
	return code;
}
