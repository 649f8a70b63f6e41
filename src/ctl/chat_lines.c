/* SPDX-License-Identifier: MIT
 *
 * Lines of the session: show them, and learn the state of the session from them.
 */
#include "base/str.h"
#include "ctl/chat.h"
#include "ctl/text.h"

#include <stdlib.h>
#include <string.h>

static bool is_own_echo(const struct chat *ch, const struct incoming *in) {
	struct speech_fact f;
	if (!speech_find(in, SPEECH_ECHO, &f)) return false;
	for (size_t i = 0; i < CHAT_OWN_UUIDS; i++)
		if (*ch->own[i] && span_equals(f.id, ch->own[i])) return true;
	return false;
}

/* Notices that a user in a conversation need not see. */
static bool is_noise(struct span event) {
	static const char *const noise[] = {PLENUM_EV_SESSION_STATE, PLENUM_EV_TURN_STARTED, PLENUM_EV_SETTLED,
										PLENUM_EV_SESSION_CREATED};
	for (size_t i = 0; i < ARRAY_SIZE(noise); i++)
		if (span_equals(event, noise[i])) return true;
	return false;
}

/* --- Slash commands ----------------------------------------------------------------------------------------------- */

void chat_take_commands(struct chat *ch, struct span list) {
	struct span one;
	if (!span_is_array(list)) return;
	json_decref(ch->commands);
	ch->commands = json_array();
	for (size_t at = 0; span_next(list, &at, &one);) {
		_cleanup_free_ char *name = span_dup(span_is_object(one) ? span_member(one, "name") : one, NULL);
		if (name) json_array_append_new(ch->commands, json_string(name));
	}
}

/* --- Notices ------------------------------------------------------------------------------------------------------ */

bool chat_is_starting(const struct chat *ch) {
	bool ended = strcmp(ch->state, PLENUM_ST_ASLEEP) == 0 || strcmp(ch->state, PLENUM_ST_FAILED) == 0;
	return ch->made && !ch->proven && !ended;
}

void chat_take_failure(struct chat *ch, const char *reason) {
	if (!ch->made || ch->proven) return;
	const char *why = ch->start_error ? ch->start_error : reason ? reason : "its agent could not start";
	show_note(&ch->show, SHOW_RED, "session %s: %s (the session was removed)", ch->session, why);
	ch->remove = true;
	ch->code = CTL_REFUSED;
}

static void learn(struct chat *ch, const struct incoming *in) {
	struct speech_fact f;
	struct span code, text;
	if (*ch->initialize && span_equals(in->e.inner_request_id, ch->initialize)) {
		in->speech->read_error(in, &code, &text);
		if (!span_equals(code, PLENUM_E_CHILD_EXITED))
			ch->proven = true; /* only an agent with its conversation answers */
	}
	for (size_t at = 0; speech_next(in, &at, &f);) {
		if (f.kind == SPEECH_COMMANDS) chat_take_commands(ch, f.list);
		if (f.kind == SPEECH_READY) ch->proven = true;
		if (f.kind == SPEECH_CALL && f.list.p) chat_question_call(ch, in);
		if (f.kind == SPEECH_END && f.bad && !ch->proven) { /* the turn of an agent that cannot resume ends at once */
			free(ch->start_error);
			ch->start_error = text_dup(f.text, NULL);
			if (!ch->start_error) ch->start_error = strdup("its agent could not start");
		}
		chat_status_fact(ch, &f);
	}
}

static void take_event(struct chat *ch, const struct incoming *in, struct span event) {
	char *name = follow_renamed(in, ch->session);
	if (name) {
		free(ch->session);
		ch->session = name;
	}
	if (span_equals(event, PLENUM_EV_SESSION_STATE)) {
		struct span state = span_member(in->notice, "state");
		chat_status_state(ch, state);
		if (!ch->speech->hello && span_equals(state, PLENUM_ST_IDLE)) ch->proven = true;
		_cleanup_free_ char *reason = text_dup(span_member(in->notice, "reason"), NULL);
		if (span_equals(state, PLENUM_ST_FAILED)) chat_take_failure(ch, reason);
		chat_prompt_sign(ch);
	}
	if (span_equals(event, PLENUM_EV_SETTLED)) chat_settled(ch, in);
	bool refused = span_equals(event, PLENUM_EV_ERROR) &&
				   !span_member(in->notice, "request_id").p; /* not about an answer */
	bool lost = refused || (ch->waiting &&
							(follow_changed(in, "prompt_cancelled", ch->turn.uuid) || follow_ended(in, ch->turn.uuid)));
	bool removed = span_equals(event, PLENUM_EV_SESSION_REMOVED);
	bool fails = chat_is_starting(ch); /* the reason follows */
	if (lost) ch->waiting = false;     /* no result will come */
	if (removed || (lost && !ch->terminal && !fails)) ch->code = CTL_CUT;
	if (!is_noise(event)) show_line(&ch->show, in);
	if (lost || span_equals(event, PLENUM_EV_SETTLED)) chat_prompt_sign(ch);
}

static void take_request(struct chat *ch, const struct incoming *in) {
	struct speech_ask ask = {0};
	in->speech->read_ask(in, &ask);
	if (ask.kind == SPEECH_ASKS_TOOL || ask.kind == SPEECH_ASKS_FORM)
		chat_question_add(ch, in);
	else
		show_note(&ch->show, SHOW_DIM, "(the agent asks something that only another program can answer: %.*s)",
				  (int)ask.name.n, ask.name.p);
}

/* --- Lines -------------------------------------------------------------------------------------------------------- */

/* Return true for a part of the conversation that the agent repeats while our prompt wakes it. */
static bool is_repeated(const struct chat *ch, const struct incoming *in) {
	static const enum speech_kind kinds[] = {SPEECH_PIECE, SPEECH_TEXT, SPEECH_CALL, SPEECH_RESULT, SPEECH_ECHO};
	struct speech_fact f;
	if (!in->speech->replays || !ch->waiting || chat_is_starting(ch) || strcmp(ch->state, PLENUM_ST_STARTING) != 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (speech_find(in, kinds[i], &f)) return true;
	return false;
}

static void take_live(struct chat *ch, const struct incoming *in) {
	struct span event = follow_event(in);
	struct speech_fact f;
	if (event.p) {
		take_event(ch, in, event);
	} else if (speech_find(in, SPEECH_ASK, &f)) {
		take_request(ch, in);
	} else if (speech_find(in, SPEECH_WITHDRAW, &f)) {
		chat_question_drop(ch, f.id);
	} else if (!is_own_echo(ch, in) && !is_repeated(ch, in)) {
		show_line(&ch->show, in);
	}
}

void chat_take_line(struct chat *ch, const struct incoming *in) {
	struct span event = follow_event(in);
	struct speech_fact f;
	int64_t seq;
	bool numbered = follow_seq(in, &seq);
	if (numbered) ch->seen = seq;
	learn(ch, in);
	bool end = in->speech->ends(&ch->turn, in) && *ch->turn.uuid;
	bool bad = end && speech_find(in, SPEECH_END, &f) && f.bad;
	bool history = numbered && seq < ch->live;
	if (!history)
		take_live(ch, in); /* *in is no longer valid */
	else if ((!event.p || !is_noise(event)) && !is_own_echo(ch, in))
		show_line(&ch->show, in);
	if (history && ch->unanswered && speech_find(in, SPEECH_END, &f)) ch->waiting = false;
	if (!end) return;
	ch->waiting = false;
	if (!ch->terminal && bad && !chat_is_starting(ch)) ch->code = CTL_REFUSED; /* else the reason follows */
	chat_prompt_sign(ch);
}
