/* SPDX-License-Identifier: MIT
 *
 * pending: the requests that wait for an answer. allow, deny: the answer, from a connection of its own: it attaches as
 * an approver, gets the open requests like any new approver, answers one, and makes sure that this answer
 * counted.
 */
#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "ctl/always.h"
#include "ctl/answer.h"
#include "ctl/follow.h"
#include "ctl/form.h"
#include "ctl/pick.h"
#include "ctl/show.h"
#include "ctl/table.h"

#include <stdio.h>
#include <string.h>

/* --- pending ------------------------------------------------------------------------------------------------------ */

static void add_entry(struct table *t, json_t *entry) {
	json_t *input = json_object_get(entry, "input");
	_cleanup_free_ char *text = json_is_string(input) ? NULL : json_dumps(entry, JSON_COMPACT);
	struct span said = text ? span_member(span_of(text), "summary") : SPAN_NONE;
	_cleanup_free_ char *what = text ? show_input(said.p ? said : span_member(span_of(text), "input"), 100) : NULL;
	table_add(t, ctl_str(entry, "session", "?"));
	table_add(t, ctl_str(entry, "request_id", "?"));
	table_add_age(t, ctl_int(entry, "since_ms"));
	/* The list may have some of them alone; an older daemon has no number. */
	size_t listed = json_array_size(json_object_get(entry, "asked")), asked = (size_t)ctl_int(entry, "asked_total");
	table_addf(t, "%zu", MAX(listed, asked));
	table_addf(t, "%s%s", ctl_str(entry, "tool_name", ctl_str(entry, "subtype", "")),
			   ctl_str(entry, "agent_id", NULL) ? " (subagent)" : "");
	table_add(t, json_is_string(input) ? json_string_value(input) : what);
	json_t *suggestions = ctl_array(entry, "suggestions");
	struct buf b = BUF_INIT((size_t)1 << 20);
	buf_puts(&b, "always: ");
	always_put(&b, suggestions);
	if (json_array_size(suggestions) && !b.failed) table_note(t, b.data);
	buf_free(&b);
}

int cmd_pending(struct ctl *c, int argc, char **argv) {
	static const char *const head[] = {"SESSION", "REQUEST", "SINCE", "ASKED", "TOOL", "WHAT"};
	struct table t = TABLE(ARRAY_SIZE(head));
	bool ids = false;
	const struct ctl_option options[] = {
		{"ids", 0, NULL, "only the request ids, one a line", .flag = &ids},
		{0},
	};
	_cleanup_json_ json_t *answer = NULL;
	int code = ctl_options(c, options, &argc, &argv, 0, 1);
	if (code != CTL_GO) return code;
	code = argc ? pick_ask(c, argv[0], PLENUM_PENDING, &answer) : ctl_ask_once(c, PLENUM_PENDING, NULL, &answer);
	if (code != CTL_OK) return code;
	if (c->json && !ids) return ctl_print_json(answer);
	json_t *list = ctl_array(answer, "pending"), *entry;
	size_t i;
	if (ids) {
		json_array_foreach(list, i, entry) puts(ctl_str(entry, "request_id", ""));
		return CTL_OK;
	}
	if (json_array_size(list) == 0) {
		puts("nothing waits");
		return CTL_OK;
	}
	for (i = 0; i < t.columns; i++) table_add(&t, head[i]);
	json_array_foreach(list, i, entry) add_entry(&t, entry);
	table_print(&t, stdout);
	table_free(&t);
	return CTL_OK;
}

/* --- allow, deny -------------------------------------------------------------------------------------------------- */

/* Waits for the question itself: it says which kind of answer it wants. */
static int await_request(struct plenum *p, const char *id, struct incoming *in) {
	struct speech_fact f;
	int64_t deadline = now_ms() + CTL_ANSWER_TIME;
	for (;;) {
		int64_t left = deadline - now_ms();
		enum plenum_result r = follow_next(p, (int)MAX(left, 0), in);
		if (r != PLENUM_OK) return ctl_failed(p, r);
		if (speech_find(in, SPEECH_ASK, &f) && span_equals(f.id, id)) return CTL_OK;
		if (speech_find(in, SPEECH_WITHDRAW, &f) && span_equals(f.id, id)) {
			ctl_say("request %s: was answered meanwhile", id);
			return CTL_REFUSED;
		}
	}
}

/* Ours counted if the request is settled and the daemon did not refuse our answer: it would have done so before it
 * answers a request behind that. */
static int confirm(struct plenum *p, const char *id) {
	int64_t deadline = now_ms() + CTL_ANSWER_TIME;
	char fence[PLENUM_ID_SIZE];
	bool settled = false, fenced = false;
	struct incoming in;
	enum plenum_result r = plenum_post(p, PLENUM_HELLO, NULL, fence);
	while (r == PLENUM_OK && !(settled && fenced)) {
		int64_t left = deadline - now_ms();
		r = follow_next(p, (int)MAX(left, 0), &in);
		if (r != PLENUM_OK) break;
		struct span event = follow_event(&in);
		if (span_equals(in.e.inner_request_id, fence)) fenced = true;
		if (!event.p || !span_equals(span_member(in.notice, "request_id"), id)) continue;
		if (span_equals(event, PLENUM_EV_SETTLED)) settled = true;
		if (!span_equals(event, PLENUM_EV_ERROR)) continue;
		follow_print_error(&in);
		return CTL_REFUSED;
	}
	if (r == PLENUM_TIMED_OUT) ctl_say("request %s: the daemon did not report in time whether the answer counted", id);
	return r == PLENUM_OK ? CTL_OK : r == PLENUM_TIMED_OUT ? CTL_CUT : ctl_failed(p, r);
}

/* A decision as it was typed. */
struct typed {
	struct speech_decision d;
	char **values; /* NAME=TEXT, of a form */
	size_t n_values;
};

/* *what: a line about the request; the caller frees it. */
static int decide_attached(struct plenum *p, const char *id, const struct typed *typed, char **what) {
	struct incoming in;
	int code = await_request(p, id, &in);
	if (code != CTL_OK) return code;
	struct speech_ask ask = {0};
	in.speech->read_ask(&in, &ask);
	struct speech_decision d = typed->d;
	_cleanup_free_ char *why = NULL;
	_cleanup_json_ json_t *values = typed->n_values ? form_fill(&ask, typed->values, typed->n_values, &why) : NULL;
	_cleanup_json_ json_t *input = values ? form_input(&ask, values) : NULL;
	if (input) d.input = input;
	const char *lacks = why ? why : answer_lacks(&ask, &d);
	if (lacks) {
		ctl_say("request %s: %s", id, lacks);
		return CTL_USAGE;
	}
	if (span_is_string(ask.tool)) *what = show_tool(ask.tool, ask.input, 100);
	enum plenum_result r = answer_post(p, in.speech, &ask, &d);
	if (r == PLENUM_OK) return confirm(p, id);
	if (r != PLENUM_REFUSED) return ctl_failed(p, r);
	ctl_say("request %s: has no allow or deny (`plenumctl attach`, or the program that knows this kind)", id);
	return CTL_REFUSED;
}

static int decide(struct ctl *c, const char *session, const char *id, const struct typed *typed) {
	_cleanup_plenum_ struct plenum *p = ctl_open(c);
	_cleanup_json_ json_t *answer = NULL;
	_cleanup_free_ char *what = NULL;
	bool offered = false;
	json_t *one;
	size_t i;
	int code = follow_to(p, session, json_pack("{s:s,s:s,s:b}", "create", "never", "role", "driver", "approve", 1),
						 &answer);
	if (code != CTL_OK) return code;
	json_array_foreach(ctl_array(answer, "pending"), i, one) {
		offered |= json_is_string(one) && strcmp(json_string_value(one), id) == 0;
	}
	if (!offered) {
		ctl_say("request %s: does not wait in session %s (`plenumctl pending` lists those that do)", id, session);
		return CTL_REFUSED;
	}
	code = decide_attached(p, id, typed, &what);
	if (code != CTL_OK) return code;
	if (c->json) {
		_cleanup_json_ json_t *told = json_pack("{s:s,s:s,s:s}", "session", session, "request_id", id, "decision",
												typed->d.allow ? "allow" : "deny");
		return ctl_print_json(told);
	}
	printf("%s %s", typed->d.allow ? "allowed" : "denied", id);
	if (what) printf(" (%s)", what);
	putchar('\n');
	return CTL_OK;
}

/* --- Which requests ----------------------------------------------------------------------------------------------- */

/* session NULL: of all sessions. id NULL: the only one that waits, or with all each. */
static int decide_some(struct ctl *c, const char *session, const char *id, bool all, const struct typed *typed) {
	_cleanup_json_ json_t *answer = NULL;
	_cleanup_plenum_ struct plenum *p = NULL;
	int code = CTL_OK;
	if (session)
		code = pick_open(c, &session, &p);
	else if (!(p = ctl_open(c)))
		code = CTL_NO_DAEMON;
	if (code != CTL_OK) return code;
	if (id) return decide(c, session, id, typed);
	code = ctl_ask(p, PLENUM_PENDING, session ? json_pack("{s:s}", "session", session) : NULL, &answer);
	if (code != CTL_OK) return code;
	json_t *list = ctl_array(answer, "pending"), *entry;
	size_t i, n = json_array_size(list);
	if (n == 0 || (n > 1 && !all)) {
		_cleanup_free_ char *in = session ? str_printf("session %s: ", session) : strdup("");
		if (n == 0)
			ctl_say("%sno request waits", in ? in : "");
		else
			ctl_say("%s%zu requests wait (name one of `plenumctl pending`, or say --all)", in ? in : "", n);
		return n ? CTL_USAGE : CTL_REFUSED;
	}
	json_array_foreach(list, i, entry) {
		int one = decide(c, ctl_str(entry, "session", ""), ctl_str(entry, "request_id", ""), typed);
		if (code == CTL_OK) code = one;
	}
	return code;
}

int cmd_allow(struct ctl *c, int argc, char **argv) {
	const char *input = NULL;
	bool all = false;
	struct typed typed = {.d = {.allow = true}};
	const struct ctl_option options[] = {
		{"always", 'a', NULL, "and remember what `plenumctl pending` shows", .flag = &typed.d.always},
		{"input", 'i', "JSON", "run the tool with this input instead (an object)", .value = &input},
		{"all", 0, NULL, "every request that waits", .flag = &all},
		{0},
	};
	int code = ctl_options(c, options, &argc, &argv, 0, INT_MAX);
	if (code != CTL_GO) return code;
	if (all && (input || argc >= 2)) return ctl_usage(c, "allow: --all excludes a request and --input");
	for (int i = 2; i < argc; i++)
		if (!strchr(argv[i], '=')) return ctl_usage(c, "allow: %s: not NAME=VALUE", argv[i]);
	if (input && argc > 2) return ctl_usage(c, "allow: --input excludes NAME=VALUE");
	if (argc > 2) {
		typed.values = argv + 2;
		typed.n_values = (size_t)argc - 2;
	}
	_cleanup_json_ json_t *changed = input ? json_loads(input, JSON_ALLOW_NUL, NULL) : NULL;
	if (input && !json_is_object(changed)) return ctl_usage(c, "allow: --input: not a JSON object");
	typed.d.input = changed;
	return decide_some(c, argc ? argv[0] : NULL, argc > 1 ? argv[1] : NULL, all, &typed);
}

int cmd_deny(struct ctl *c, int argc, char **argv) {
	bool all = false;
	struct typed typed = {0};
	const struct ctl_option options[] = {
		{"interrupt", 'i', NULL, "and end the turn", .flag = &typed.d.interrupt},
		{"all", 0, NULL, "every request that waits", .flag = &all},
		{0},
	};
	int code = ctl_options(c, options, &argc, &argv, 0, INT_MAX);
	if (code != CTL_GO) return code;
	bool named = argc > 1 && strncmp(argv[1], "req_", 4) == 0; /* else the second word is a message */
	int words = named ? 2 : argc ? 1 : 0;
	if (all && named) return ctl_usage(c, "deny: --all excludes a request");
	struct buf message = BUF_INIT(1 << 30);
	ctl_put_words(&message, argc - words, argv + words);
	if (message.len) typed.d.message = message.data;
	code = decide_some(c, argc ? argv[0] : NULL, named ? argv[1] : NULL, all, &typed);
	buf_free(&message);
	return code;
}
