/* SPDX-License-Identifier: MIT */
#include "ctl/follow.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

/* Return the dialect of the session that an attach would be to, or of the profile that a new one would have; NULL: the
 * daemon does not say. */
static char *dialect_of(struct plenum *p, json_t *members) {
	_cleanup_json_ json_t *status = NULL, *daemon = NULL;
	json_t *session = json_object_get(members, "session"), *one;
	size_t i;
	if (session) ctl_ask_quietly(p, PLENUM_STATUS, json_pack("{s:O}", "session", session), &status);
	if (status) return str_dup(ctl_str(status, "dialect", NULL));
	if (strcmp(ctl_str(members, "create", "auto"), "never") == 0) return NULL;
	ctl_ask_quietly(p, PLENUM_STATUS, json_pack("{s:b}", "daemon", 1), &daemon);
	const char *profile = ctl_str(members, "profile", ctl_str(daemon, "default_profile", ""));
	json_array_foreach(ctl_array(daemon, "profiles"), i, one) {
		if (strcmp(ctl_str(one, "name", ""), profile) == 0) return str_dup(ctl_str(one, "dialect", NULL));
	}
	return NULL;
}

static int unknown(const char *session, const char *dialect) {
	ctl_say("session %s: its agent speaks %s, which this plenumctl does not know", session ? session : "(new)",
			dialect);
	return CTL_REFUSED;
}

/* Attach to a session of another protocol than the connection's: in that protocol. */
static int attach_again(struct plenum *p, const char *session, json_t *members, const struct plenum_answer *refusal,
						json_t **answer) {
	_cleanup_free_ char *dialect = dialect_of(p, members);
	if (!dialect || strcmp(dialect, plenum_dialect(p)) == 0) {
		ctl_say_error(refusal->error, refusal->code);
		return CTL_REFUSED;
	}
	if (!speech_named(dialect)) return unknown(session, dialect);
	enum plenum_result r = plenum_speak(p, dialect);
	return r == PLENUM_OK ? ctl_ask(p, PLENUM_ATTACH, json_incref(members), answer) : ctl_failed(p, r);
}

int follow_to(struct plenum *p, const char *session, json_t *members, json_t **answer) {
	json_t *own = NULL, **to = answer ? answer : &own;
	if (p && !members) { /* a directory was made absolute before */
		ctl_say("the directory's name is not valid UTF-8");
		return CTL_USAGE;
	}
	if (session) json_object_set_new(members, "session", json_string(session));
	json_object_set_new(members, "name", json_string("plenumctl"));
	struct plenum_answer refusal;
	int code = ctl_ask_first(p, PLENUM_ATTACH, json_incref(members), to, &refusal);
	if (code == CTL_REFUSED) code = attach_again(p, session, members, &refusal, to);
	json_decref(members);
	plenum_answer_free(&refusal);
	const char *dialect = ctl_str(*to, "dialect", NULL);
	if (code == CTL_OK && dialect && !speech_named(dialect)) code = unknown(session, dialect);
	if (code == CTL_OK && ctl_bool(*to, "guards_lost"))
		ctl_say("the hooks that guarded this session could not be read when the daemon started: every tool is refused "
				"(plenumctl clear-lost goes on without them)");
	json_decref(own);
	return code;
}

void follow_print_peer(json_t *answer) {
	const char *why = ctl_str(answer, "why", NULL);
	if (why) ctl_say("you decide nothing here (%s): %s", ctl_str(answer, "peer", "?"), why);
}

enum plenum_result follow_next(struct plenum *p, int timeout_ms, struct incoming *in) {
	const char *line;
	size_t n;
	enum plenum_result r = plenum_next(p, timeout_ms, &line, &n);
	if (r == PLENUM_OK) speech_read(speech_of(p), line, n, in);
	return r;
}

int follow_printing(struct plenum *p, struct incoming *in) {
	enum plenum_result r = follow_next(p, 0, in);
	if (r == PLENUM_TIMED_OUT) {
		if (fflush(stdout) != 0) return CTL_CUT;
		r = follow_next(p, -1, in);
	}
	return r == PLENUM_OK ? CTL_GO : ctl_failed(p, r);
}

struct span follow_event(const struct incoming *in) {
	return span_member(in->notice, "event");
}

bool follow_seq(const struct incoming *in, int64_t *seq) {
	struct span key, value;
	size_t at = 0;
	return span_next_member(in->line, &at, &key, &value) && span_equals(key, "plenum_seq") && span_int(value, seq);
}

bool follow_changed(const struct incoming *in, const char *what, const char *value) {
	return span_equals(follow_event(in), PLENUM_EV_CHANGED) && span_equals(span_member(in->notice, "what"), what) &&
		   span_equals(span_member(in->notice, "value"), value);
}

char *follow_renamed(const struct incoming *in, const char *session) {
	bool changed = span_equals(follow_event(in), PLENUM_EV_CHANGED) &&
				   span_equals(span_member(in->notice, "what"), "name") &&
				   span_equals(span_member(in->notice, "session"), session);
	return changed ? span_dup(span_member(in->notice, "value"), NULL) : NULL;
}

bool follow_ended(const struct incoming *in, const char *uuid) {
	struct span uuids = span_member(in->notice, "uuids"), one;
	if (!span_equals(follow_event(in), PLENUM_EV_TURN_ENDED) || !span_is_array(uuids)) return false;
	for (size_t at = 0; span_next(uuids, &at, &one);)
		if (span_equals(one, uuid)) return true;
	return false;
}

int follow_print_error(const struct incoming *in) {
	struct span code = span_member(in->notice, "code"), text = span_member(in->notice, "error");
	if (!in->notice.p) in->speech->read_error(in, &code, &text);
	_cleanup_free_ char *name = span_dup(code, NULL), *error = span_dup(text, NULL);
	ctl_say_error(error ? error : "the daemon refused a line", name);
	return span_equals(code, PLENUM_E_CHILD_EXITED) ? CTL_CUT : CTL_REFUSED;
}

int follow_to_end(struct plenum *p, const char *session, bool forget) {
	struct incoming in;
	for (int code = CTL_OK;;) {
		enum plenum_result r = follow_next(p, CTL_ANSWER_TIME * 2, &in);
		if (r != PLENUM_OK) return ctl_failed(p, r);
		struct span event = follow_event(&in), state = span_member(in.notice, "state");
		if (!event.p || !span_equals(span_member(in.notice, "session"), session)) continue;
		if (span_equals(event, PLENUM_EV_ERROR) && span_equals(span_member(in.notice, "code"), PLENUM_E_CANNOT_STOP)) {
			_cleanup_free_ char *reason = span_dup(span_member(in.notice, "error"), NULL);
			if (reason) ctl_say("%s", reason);
			code = CTL_REFUSED;
		}
		if (span_equals(event, PLENUM_EV_SESSION_REMOVED)) return code;
		if (!forget && span_equals(event, PLENUM_EV_SESSION_STATE) &&
			(span_equals(state, PLENUM_ST_ASLEEP) || span_equals(state, PLENUM_ST_FAILED)))
			return code;
	}
}
