/* SPDX-License-Identifier: MIT
 *
 * The Agent Client Protocol, version 1. The daemon adds the id of the conversation to requests without one.
 */
#include "ctl/speech.h"

#include "base/macros.h"
#include "dialect/jsonrpc.h"
#include "plenum/protocol.h"

#include <stdlib.h>
#include <string.h>

static bool scan(const char *p, size_t n, struct envelope *e) {
	return jsonrpc_scan(p, n, e, "sessionId");
}

/* --- Updates ------------------------------------------------------------------------------------------------------ */

static bool is_over(struct span call) {
	struct span status = span_member(call, "status");
	return span_equals(status, "completed") || span_equals(status, "failed");
}

/* The text of the first content, else the raw output, else only the title is there. */
static bool read_result(struct span call, struct speech_fact *f) {
	struct span first = span_element(span_member(call, "content"), 0);
	f->kind = SPEECH_RESULT;
	f->text = span_member(span_member(first, "content"), "text");
	if (!f->text.p) f->text = span_member(call, "rawOutput");
	if (!span_is_string(f->text)) f->text = span_member(call, "title");
	f->bad = span_equals(span_member(call, "status"), "failed");
	return is_over(call);
}

static bool read_title(struct span call, struct speech_fact *f) {
	f->kind = SPEECH_CALL;
	f->name = span_member(call, "kind");
	if (!f->name.p) f->name = span_member(span_member(span_member(call, "_meta"), "claudeCode"), "toolName");
	f->input = span_member(call, "title");
	return span_is_string(f->input);
}

static bool is_empty(struct span object) {
	struct span key, value;
	size_t at = 0;
	return span_is_object(object) && !span_next_member(object, &at, &key, &value);
}

static bool read_update(struct span update, size_t n, struct speech_fact *f) {
	struct span kind = span_member(update, "sessionUpdate");
	if (span_equals(kind, "tool_call")) {
		/* Some agents report a call before they have its input, and update it then. */
		bool early = is_empty(span_member(update, "rawInput")) && span_equals(span_member(update, "status"), "pending");
		if (n == 0) return !early && read_title(update, f);
		return n == 1 && read_result(update, f); /* a short call may come with its result */
	}
	if (n) return false;
	if (span_equals(kind, "tool_call_update")) return is_over(update) ? read_result(update, f) : read_title(update, f);
	if (span_equals(kind, "available_commands_update")) {
		f->kind = SPEECH_COMMANDS;
		f->list = span_member(update, "availableCommands");
		return span_is_array(f->list);
	}
	bool thought = span_equals(kind, "agent_thought_chunk"), echo = span_equals(kind, "user_message_chunk");
	f->kind = echo ? SPEECH_ECHO : thought ? SPEECH_THINKS : SPEECH_PIECE;
	f->text = span_member(span_member(update, "content"), "text");
	return (thought || echo || span_equals(kind, "agent_message_chunk")) && span_is_string(f->text);
}

/* --- Ends --------------------------------------------------------------------------------------------------------- */

/* All clients get the notice, the sender of the prompt also its reply. */
static bool read_ended(struct span notice_, struct speech_fact *f) {
	static const char *const inputs[] = {"input", "cache_read", "cache_write"};
	struct span tokens = span_member(notice_, "tokens");
	int64_t n;
	f->kind = SPEECH_END;
	f->name = span_member(notice_, "outcome");
	f->bad = span_is_true(span_member(notice_, "is_error"));
	f->interrupted = span_equals(f->name, PLENUM_OUT_INTERRUPTED);
	span_int(span_member(notice_, "ms"), &f->ms);
	for (size_t i = 0; i < ARRAY_SIZE(inputs); i++)
		if (span_int(span_member(tokens, inputs[i]), &n)) f->in += n;
	span_int(span_member(tokens, "output"), &f->out);
	return true;
}

static bool read_reply(const struct incoming *in, struct speech_fact *f) {
	struct span error = in->e.is_error, reason = span_member(in->e.inner_response, "stopReason");
	f->kind = SPEECH_END;
	f->again = !error.p;
	f->interrupted = span_equals(reason, "cancelled");
	f->bad = error.p || !span_equals(reason, "end_turn");
	f->name = error.p ? SPAN_NONE : f->bad ? reason : span_of("\"" PLENUM_OUT_SUCCESS "\"");
	f->text = span_member(error, "message");
	return error.p || span_is_string(reason);
}

static bool names_us(const struct speech_turn *t, const struct incoming *in) {
	struct span clients = span_member(in->notice, "clients"), one;
	int64_t client;
	for (size_t at = 0; span_is_array(clients) && span_next(clients, &at, &one);)
		if (span_int(span_member(one, "client"), &client) && client == t->client) return true;
	return false;
}

/* Each prompt has a turn of its own, and turns overlap. An update does not name its turn: it is of the oldest one. */
static bool ends(struct speech_turn *t, const struct incoming *in) {
	struct span event = span_member(in->notice, "event"), state = span_member(in->notice, "state");
	bool end = span_equals(in->e.inner_request_id, t->uuid), us = names_us(t, in);
	if (span_equals(event, PLENUM_EV_TURN_STARTED)) {
		if (us) t->begun = true;
		if (!t->begun) t->ahead++;
	}
	if (span_equals(event, PLENUM_EV_TURN_ENDED)) {
		if (us)
			t->begun = false;
		else if (t->ahead > 0)
			t->ahead--;
	}
	bool runs = span_equals(state, PLENUM_ST_BUSY) || span_equals(state, PLENUM_ST_ASKING);
	if (span_equals(event, PLENUM_EV_SESSION_STATE) && !runs) t->ahead = 0; /* an agent may end within its turns */
	if (end) t->begun = false;
	t->ours = t->begun && t->ahead == 0;
	return end;
}

/* --- Facts -------------------------------------------------------------------------------------------------------- */

static bool next(const struct incoming *in, size_t *at, struct speech_fact *f) {
	const struct envelope *e = &in->e;
	size_t n = (*at)++;
	if (span_equals(e->type, "session/update")) return read_update(span_member(e->request, "update"), n, f);
	if (n) return false;
	if (in->notice.p)
		return span_equals(span_member(in->notice, "event"), PLENUM_EV_TURN_ENDED) && read_ended(in->notice, f);
	if (e->inner_request_id.p) return read_reply(in, f);
	f->kind = e->request_id.p ? SPEECH_ASK : SPEECH_WITHDRAW;
	f->id = e->request_id.p ? e->request_id : span_member(e->request, "requestId");
	return e->request_id.p || span_equals(e->type, "$/cancel_request");
}

/* --- Questions ---------------------------------------------------------------------------------------------------- */

static struct span option_of(struct span body, const char *kind) {
	struct span options = span_member(body, "options"), one;
	for (size_t at = 0; span_is_array(options) && span_next(options, &at, &one);)
		if (span_equals(span_member(one, "kind"), kind)) return one;
	return SPAN_NONE;
}

static struct span refusal_of(struct span body) {
	struct span once = option_of(body, "reject_once");
	return once.p ? once : option_of(body, "reject_always");
}

static void read_permission(struct speech_ask *ask) {
	struct span call = span_member(ask->body, "toolCall"), title = span_member(call, "title");
	struct span input = span_member(call, "rawInput"), kind = span_member(call, "kind");
	ask->kind = SPEECH_ASKS_TOOL;
	ask->tool = span_is_string(kind) ? kind : title;
	ask->about = title;
	ask->input = span_is_object(input) ? input : title;
	ask->changes = span_member(call, "content");
	ask->yes = span_member(option_of(ask->body, "allow_once"), "name");
	ask->no = span_member(refusal_of(ask->body), "name");
	ask->always = span_member(option_of(ask->body, "allow_always"), "name");
	ask->can_remember = ask->always.p != NULL;
}

static void read_ask(const struct incoming *in, struct speech_ask *ask) {
	ask->kind = SPEECH_ASKS_OTHER;
	ask->id = in->e.request_id;
	ask->body = in->e.request;
	ask->name = in->e.type;
	ask->only_choices = true;
	if (span_equals(in->e.type, "session/request_permission")) read_permission(ask);
	if (!span_equals(in->e.type, "elicitation/create")) return;
	ask->kind = SPEECH_ASKS_FORM;
	ask->message = span_member(ask->body, "message");
	ask->schema = span_member(ask->body, "requestedSchema");
}

/* False: the agent does not offer this. */
static bool put_result(struct buf *b, const struct speech_ask *ask, const struct speech_decision *d) {
	struct span option = !d->allow   ? refusal_of(ask->body)
						 : d->always ? option_of(ask->body, "allow_always")
									 : option_of(ask->body, "allow_once");
	struct span id = span_member(option, "optionId");
	if (ask->kind == SPEECH_ASKS_FORM) {
		speech_put_form(b, ask, d);
		return true;
	}
	if (ask->kind != SPEECH_ASKS_TOOL || (!id.p && d->allow)) return false;
	if (!id.p) return buf_puts(b, "{\"outcome\":{\"outcome\":\"cancelled\"}}");
	buf_puts(b, "{\"outcome\":{\"outcome\":\"selected\",\"optionId\":");
	buf_put(b, id.p, id.n);
	return buf_puts(b, "}}");
}

static bool put_answer(struct buf *b, const struct speech_ask *ask, const struct speech_decision *d) {
	speech_rpc_put_answer(b, JSONRPC_HEAD, ask);
	bool done = put_result(b, ask, d);
	buf_putc(b, '}');
	return done;
}

/* --- Lines -------------------------------------------------------------------------------------------------------- */

/* The uuid is the id of the request: its reply ends the turn. */
static enum plenum_result prompt(struct plenum *p, const char *text, size_t n, const char *uuid) {
	struct buf line = BUF_INIT(PLENUM_CLIENT_LINE_MAX);
	buf_printf(&line,
			   JSONRPC_HEAD "\"id\":\"%s\",\"method\":\"session/prompt\",\"params\":{\"prompt\":[{\"type\":\"text\",",
			   uuid);
	buf_puts(&line, "\"text\":");
	return speech_rpc_prompt(p, &line, text, n);
}

static enum plenum_result interrupt(struct plenum *p, const struct speech_turn *t) {
	(void)t;
	static const char line[] = JSONRPC_HEAD "\"method\":\"session/cancel\",\"params\":{}}";
	return plenum_send(p, line, sizeof line - 1);
}

static const char *setting(bool mode, const char *value, json_t **members) {
	*members = mode ? json_pack("{s:s}", "modeId", value) : json_pack("{s:s,s:s}", "configId", "model", "value", value);
	return mode ? "session/set_mode" : "session/set_config_option";
}

const struct speech speech_acp = {
	.dialect = "acp",
	.replays = true,
	.scan = scan,
	.notice = speech_rpc_notice,
	.next = next,
	.read_ask = read_ask,
	.read_error = speech_rpc_error,
	.ends = ends,
	.prompt = prompt,
	.interrupt = interrupt,
	.setting = setting,
	.put_answer = put_answer,
};
