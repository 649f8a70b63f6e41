/* SPDX-License-Identifier: MIT
 *
 * pending: what waits for somebody. allow, deny: the answer, from a connection of its own: it attaches as an approver,
 * is asked what is open as any new approver is, answers the one that was named, and makes sure that this answer
 * counted.
 */
#include "base/buf.h"
#include "base/fd.h"
#include "ctl/answer.h"
#include "ctl/show.h"
#include "ctl/text.h"

#include <stdio.h>
#include <string.h>

/* --- pending ------------------------------------------------------------------------------------------------------ */

/* What it is about, from the entry's JSON by the same rules as a question's. */
static char *summary(json_t *entry) {
	json_t *input = json_object_get(entry, "input");
	if (json_is_string(input)) return strdup(json_string_value(input));
	_cleanup_free_ char *text = json_dumps(entry, JSON_COMPACT);
	struct span line = {text, text ? strlen(text) : 0};
	if (!text) return NULL;
	return show_input(span_member(line, "input"), 100);
}

static void add_entry(struct table *t, json_t *entry) {
	_cleanup_free_ char *what = summary(entry);
	table_add(t, ctl_str(entry, "session", "?"));
	table_add(t, ctl_str(entry, "request_id", "?"));
	table_add_age(t, ctl_int(entry, "since_ms", 0));
	table_addf(t, "%zu", json_array_size(json_object_get(entry, "asked")));
	table_addf(t, "%s%s", ctl_str(entry, "tool_name", ctl_str(entry, "subtype", "")),
			   ctl_str(entry, "agent_id", NULL) ? " (subagent)" : "");
	table_add(t, what);
}

int cmd_pending(struct ctl *c, int argc, char **argv) {
	static const char *const head[] = {"SESSION", "REQUEST", "SINCE", "ASKED", "TOOL", "WHAT"};
	bool ids = false;
	const struct ctl_option options[] = {
		{"ids", 0, NULL, "only the request ids, one a line", .flag = &ids},
		{0},
	};
	_cleanup_json_ json_t *answer = NULL;
	int code = ctl_options(c, options, &argc, &argv, 0, 1);
	if (code != CTL_GO) return code;
	code = ctl_ask_once(c, PLENUM_PENDING, argc ? json_pack("{s:s}", "session", argv[0]) : NULL, &answer);
	if (code != CTL_OK) return code;
	if (c->json && !ids) return ctl_print_json(answer);
	json_t *list = ctl_array(answer, "pending"), *entry;
	size_t i;
	if (!ids) return ctl_print_table(list, head, ARRAY_SIZE(head), add_entry, "nothing waits");
	json_array_foreach(list, i, entry) puts(ctl_str(entry, "request_id", ""));
	return CTL_OK;
}

/* --- allow, deny -------------------------------------------------------------------------------------------------- */

static bool was_offered(json_t *answer, const char *id) {
	json_t *list = ctl_array(answer, "pending"), *one;
	size_t i;
	json_array_foreach(list, i, one) {
		const char *text = json_string_value(one);
		if (text && strcmp(text, id) == 0) return true;
	}
	return false;
}

/* Waits for the question itself: it says which kind of answer it wants. */
static int await_request(struct plenum *p, const char *id, struct incoming *in) {
	int64_t deadline = now_ms() + CTL_ANSWER_TIME;
	for (;;) {
		int64_t left = deadline - now_ms();
		enum plenum_result r = follow_next(p, (int)MAX(left, 0), in);
		if (r != PLENUM_OK) return ctl_failed(p, r);
		if (!span_equals(in->e.request_id, id)) continue;
		if (span_equals(in->e.type, "control_request")) return CTL_OK;
		if (span_equals(in->e.type, "control_cancel_request")) {
			ctl_say("request %s was settled meanwhile", id);
			return CTL_REFUSED;
		}
	}
}

/* What came back about our answer so far. */
struct verdict {
	const char *id;             /* of the request */
	char fence[PLENUM_ID_SIZE]; /* of a request behind our answer: its answer comes after every complaint */
	bool settled, fenced;
};

static int take_notice(const struct incoming *in, struct verdict *v) {
	struct span event = follow_event(in);
	if (span_equals(in->e.inner_request_id, v->fence) && span_equals(in->e.type, "control_response")) v->fenced = true;
	if (!event.p || !span_equals(span_member(in->line, "request_id"), v->id)) return CTL_GO;
	if (span_equals(event, PLENUM_EV_SETTLED)) v->settled = true;
	if (!span_equals(event, PLENUM_EV_ERROR)) return CTL_GO;
	follow_print_error(in);
	return CTL_REFUSED;
}

/* Ours counted if the request is settled and nobody complained about our answer. */
static int confirm(struct plenum *p, const char *id) {
	int64_t deadline = now_ms() + CTL_ANSWER_TIME;
	struct verdict v = {.id = id};
	struct incoming in;
	enum plenum_result r = plenum_post(p, PLENUM_HELLO, NULL, v.fence);
	while (r == PLENUM_OK && !(v.settled && v.fenced)) {
		int64_t left = deadline - now_ms();
		r = follow_next(p, (int)MAX(left, 0), &in);
		int code = r == PLENUM_OK ? take_notice(&in, &v) : CTL_GO;
		if (code != CTL_GO) return code;
	}
	if (r == PLENUM_TIMED_OUT) ctl_say("the daemon did not say whether the answer counted");
	return r == PLENUM_OK ? CTL_OK : r == PLENUM_TIMED_OUT ? CTL_CUT : ctl_failed(p, r);
}

static int decide_attached(struct plenum *p, const char *id, const struct decision *d) {
	struct incoming in;
	int code = await_request(p, id, &in);
	if (code != CTL_OK) return code;
	const char *lacks = answer_lacks(in.e.request, d);
	if (lacks) {
		ctl_say("%s", lacks);
		return CTL_USAGE;
	}
	json_t *body = answer_body(in.e.request, d);
	if (!body) {
		ctl_say("this kind of request cannot be answered so; use `plenumctl attach`, or a program that knows it");
		return CTL_REFUSED;
	}
	code = answer_send(p, id, body);
	return code == CTL_OK ? confirm(p, id) : code;
}

static int print_decided(struct ctl *c, const char *session, const char *id, bool allow) {
	if (!c->json) {
		printf("%s %s\n", allow ? "allowed" : "denied", id);
		return CTL_OK;
	}
	_cleanup_json_ json_t *told = json_pack("{s:s,s:s,s:s}", "session", session, "request_id", id, "decision",
											allow ? "allow" : "deny");
	return ctl_print_json(told);
}

static int decide(struct ctl *c, const char *session, const char *id, const struct decision *d) {
	_cleanup_plenum_ struct plenum *p = ctl_open(c);
	_cleanup_json_ json_t *answer = NULL;
	int code = follow_to(p, session, json_pack("{s:s,s:s,s:b}", "create", "never", "role", "driver", "approve", 1),
						 &answer);
	if (code != CTL_OK) return code;
	if (!was_offered(answer, id)) {
		ctl_say("no request %s waits in session %s; `plenumctl pending` lists what does", id, session);
		return CTL_REFUSED;
	}
	code = decide_attached(p, id, d);
	return code == CTL_OK ? print_decided(c, session, id, d->allow) : code;
}

int cmd_allow(struct ctl *c, int argc, char **argv) {
	const char *input = NULL;
	struct decision d = {.allow = true};
	const struct ctl_option options[] = {
		{"always", 'a', NULL, "and remember the agent's suggestion, so that it does not ask again", .flag = &d.always},
		{"input", 'i', "JSON", "run the tool with this input instead (an object)", .value = &input},
		{0},
	};
	int code = ctl_options(c, options, &argc, &argv, 2, 2);
	if (code != CTL_GO) return code;
	_cleanup_json_ json_t *changed = input ? json_loads(input, JSON_ALLOW_NUL, NULL) : NULL;
	if (input && !json_is_object(changed)) return ctl_usage(c, "allow: --input is no JSON object");
	d.input = changed;
	return decide(c, argv[0], argv[1], &d);
}

int cmd_deny(struct ctl *c, int argc, char **argv) {
	struct decision d = {.message = "The user denied this."};
	const struct ctl_option options[] = {
		{"interrupt", 'i', NULL, "and end the turn", .flag = &d.interrupt},
		{0},
	};
	int code = ctl_options(c, options, &argc, &argv, 2, INT_MAX);
	if (code != CTL_GO) return code;
	struct buf message = BUF_INIT(1 << 30);
	ctl_put_words(&message, argc - 2, argv + 2);
	if (message.len) d.message = message.data;
	code = decide(c, argv[0], argv[1], &d);
	buf_free(&message);
	return code;
}
