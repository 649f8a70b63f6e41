/* SPDX-License-Identifier: MIT
 *
 * The control frame and the lines of Claude Code. Source: docs/protocol-facts.md 2, 4.2.
 */
#include "ctl/speech.h"

#include "base/macros.h"
#include "dialect/claude/claude.h"
#include "plenum/protocol.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- Facts -------------------------------------------------------------------------------------------------------- */

static struct span notice(const struct incoming *in) {
	bool ours = span_equals(in->e.type, "system") && span_equals(in->e.subtype, PLENUM_EVENT_SUBTYPE);
	return ours ? in->line : SPAN_NONE;
}

static bool read_stream(const struct incoming *in, struct speech_fact *f) {
	struct span event = span_member(in->line, "event"), type = span_member(event, "type");
	struct span block = span_member(span_member(event, "content_block"), "type"), delta = span_member(event, "delta");
	if (span_equals(type, "message_start")) {
		f->kind = SPEECH_MESSAGE;
		f->id = span_member(span_member(event, "message"), "id");
	} else if (span_equals(type, "content_block_start")) {
		bool thinks = span_equals(block, "thinking") || span_equals(block, "redacted_thinking");
		f->kind = thinks ? SPEECH_THINKS : SPEECH_WRITES;
	} else if (span_equals(type, "content_block_stop")) {
		f->kind = SPEECH_PAUSE;
	} else if (span_equals(type, "content_block_delta") && span_equals(span_member(delta, "type"), "text_delta")) {
		f->kind = SPEECH_PIECE;
		f->text = span_member(delta, "text");
	} else {
		return false;
	}
	return true;
}

/* Return the text of a content: a string, or its first text block. */
static struct span text_of(struct span content) {
	struct span block;
	size_t at = 0;
	if (!span_is_array(content)) return content;
	while (span_next(content, &at, &block))
		if (span_equals(span_member(block, "type"), "text")) return span_member(block, "text");
	return SPAN_NONE;
}

static bool read_block(struct span block, struct span message, struct speech_fact *f) {
	struct span type = span_member(block, "type");
	if (span_equals(type, "text")) {
		f->kind = SPEECH_TEXT;
		f->id = span_member(message, "id");
		f->text = span_member(block, "text");
	} else if (span_equals(type, "tool_use")) {
		f->kind = SPEECH_CALL;
		f->name = span_member(block, "name");
		f->input = span_member(block, "input");
	} else if (span_equals(type, "tool_result")) {
		f->kind = SPEECH_RESULT;
		f->text = text_of(span_member(block, "content"));
		f->bad = span_is_true(span_member(block, "is_error"));
	} else {
		return false;
	}
	return true;
}

/* results: of tools, else everything else. */
static bool read_blocks(const struct incoming *in, size_t *at, bool results, struct speech_fact *f) {
	struct span content = span_member(in->e.message, "content"), block;
	while (span_is_array(content) && span_next(content, at, &block))
		if (read_block(block, in->e.message, f) && (f->kind == SPEECH_RESULT) == results) return true;
	if (*at || results || !span_is_string(content)) return false;
	*at = 1;
	f->kind = SPEECH_TEXT;
	f->id = span_member(in->e.message, "id");
	f->text = content;
	return true;
}

static bool read_end(const struct incoming *in, struct speech_fact *f) {
	static const char *const inputs[] = {"input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"};
	struct span reason = span_member(in->line, "terminal_reason"), usage = span_member(in->line, "usage");
	struct span error = span_element(span_member(in->line, "errors"), 0),
				cost = span_member(in->line, "total_cost_usd");
	int64_t n;
	f->kind = SPEECH_END;
	f->name = in->e.subtype;
	f->text = error.p ? error : span_member(in->line, "result");
	f->bad = span_is_true(in->e.is_error);
	f->interrupted = f->bad && (span_equals(reason, "aborted_streaming") || span_equals(reason, "aborted_tools"));
	span_int(span_member(in->line, "duration_ms"), &f->ms);
	for (size_t i = 0; i < ARRAY_SIZE(inputs); i++)
		if (span_int(span_member(usage, inputs[i]), &n)) f->in += n;
	span_int(span_member(usage, "output_tokens"), &f->out);
	_cleanup_free_ char *number = cost.p ? strndup(cost.p, cost.n) : NULL;
	f->cost = number ? strtod(number, NULL) : 0;
	return true;
}

/* The reports that a person should see, and the member that holds their text. */
static const struct {
	const char *subtype, *member;
} told[] = {
	{"permission_denied", "message"}, {"informational", "content"},
	{"notification", "text"},         {"local_command_output", "content"},
	{"task_started", "description"},  {"task_notification", "summary"},
	{"api_retry", "error"},           {"session_title_changed", "title"},
};

/* Before the first init only the answer to an initialize has the commands. */
static bool read_commands(struct span list, struct speech_fact *f) {
	f->kind = SPEECH_COMMANDS;
	f->list = list;
	return span_is_array(list);
}

static bool read_system(const struct incoming *in, size_t n, struct speech_fact *f) {
	struct span subtype = in->e.subtype;
	if (span_equals(subtype, "init")) {
		f->kind = SPEECH_READY;
		return n == 0 || (n == 1 && read_commands(span_member(in->line, "slash_commands"), f));
	}
	if (n) return false;
	if (span_equals(subtype, "commands_changed")) return read_commands(span_member(in->line, "commands"), f);
	if (span_equals(subtype, "status")) {
		f->kind = SPEECH_COMPACTS;
		return span_equals(span_member(in->line, "status"), "compacting");
	}
	for (size_t i = 0; i < ARRAY_SIZE(told); i++) {
		if (!span_equals(subtype, told[i].subtype)) continue;
		f->kind = SPEECH_REPORT;
		f->name = subtype;
		f->text = span_member(in->line, told[i].member);
		return true;
	}
	return false;
}

static bool read_request(const struct incoming *in, enum speech_kind kind, struct speech_fact *f) {
	f->kind = kind;
	f->id = in->e.request_id;
	return true;
}

static bool next(const struct incoming *in, size_t *at, struct speech_fact *f) {
	const struct envelope *e = &in->e;
	f->nested = span_is_string(e->parent_tool_use_id);
	if (span_equals(e->type, "assistant")) return read_blocks(in, at, false, f);
	if (span_equals(e->type, "user") && !span_is_true(e->is_replay)) return read_blocks(in, at, true, f);
	size_t n = (*at)++;
	if (span_equals(e->type, "system")) return read_system(in, n, f);
	if (n) return false;
	if (span_equals(e->type, "stream_event")) return read_stream(in, f);
	if (span_equals(e->type, "user")) {
		f->kind = SPEECH_ECHO;
		f->id = e->uuid;
		f->text = text_of(span_member(e->message, "content"));
		return true;
	}
	if (span_equals(e->type, "result")) return read_end(in, f);
	if (span_equals(e->type, "control_request")) return read_request(in, SPEECH_ASK, f);
	if (span_equals(e->type, "control_cancel_request")) return read_request(in, SPEECH_WITHDRAW, f);
	if (span_equals(e->type, "control_response")) return read_commands(span_member(e->inner_response, "commands"), f);
	return false;
}

static void read_error(const struct incoming *in, struct span *code, struct span *text) {
	*code = span_member(in->e.response, "code");
	*text = span_member(in->e.response, "error");
}

/* --- Turns -------------------------------------------------------------------------------------------------------- */

/* The child names the uuids of a turn's prompts in `result` and in the turn's first lines. Prompts may be merged into
 * one turn and turns may start without a prompt, so lines are never matched by order. CLI 2.1.197 names none: there the
 * isReplay line of the prompt marks its turn. Source: docs/protocol-facts.md 2.3, 2.4; contract 8. */
enum names { NAMES_NONE, NAMES_OTHERS, NAMES_US };

static enum names names_in(const struct envelope *e, const char *uuid) {
	size_t at = 0, n = 0;
	struct span one;
	if (span_equals(e->user_message_uuid, uuid)) return NAMES_US;
	for (; span_is_array(e->user_message_uuids) && span_next(e->user_message_uuids, &at, &one); n++)
		if (span_equals(one, uuid)) return NAMES_US;
	if (n >= CLAUDE_NAMES_MAX) return NAMES_NONE; /* there was no room for all */
	return span_is_string(e->user_message_uuid) || at ? NAMES_OTHERS : NAMES_NONE;
}

static bool ends(struct speech_turn *t, const struct incoming *in) {
	const struct envelope *e = &in->e;
	enum names names = names_in(e, t->uuid);
	if (span_equals(e->type, "result")) {
		/* A turn that the child started by itself (the end of a background task) names no prompt; see `origin`. */
		struct span kind = span_member(span_member(in->line, "origin"), "kind");
		bool prompted = t->ours && (!span_is_string(kind) || span_equals(kind, "human"));
		t->ours = false;
		return names == NAMES_NONE ? prompted : names == NAMES_US;
	}
	if (span_equals(e->type, "user") && span_is_true(e->is_replay) && span_equals(e->uuid, t->uuid)) t->ours = true;
	if (names != NAMES_NONE) t->ours = names == NAMES_US;
	return false;
}

/* --- Questions ---------------------------------------------------------------------------------------------------- */

static void read_ask(const struct incoming *in, struct speech_ask *ask) {
	struct span body = in->e.request, list = span_member(body, "permission_suggestions"), subtype = in->e.inner_subtype;
	bool suppressed = span_is_true(span_member(body, "suppress_always_allow_rule"));
	ask->kind = span_equals(subtype, "can_use_tool")          ? SPEECH_ASKS_TOOL
				: span_equals(subtype, "elicitation")         ? SPEECH_ASKS_FORM
				: span_equals(subtype, "request_user_dialog") ? SPEECH_ASKS_DIALOG
															  : SPEECH_ASKS_OTHER;
	ask->id = in->e.request_id;
	ask->body = body;
	ask->name = subtype;
	ask->tool = span_member(body, "tool_name");
	ask->input = span_member(body, "input");
	ask->about = span_member(body, "description");
	ask->message = span_member(body, "message");
	ask->schema = span_member(body, "requested_schema");
	if (span_equals(ask->tool, "AskUserQuestion")) ask->questions = span_member(ask->input, "questions");
	ask->reason = span_member(body, "decision_reason");
	ask->path = span_member(body, "blocked_path");
	ask->agent = span_member(body, "agent_id");
	ask->ends_turn = true;
	ask->can_remember = !suppressed && span_is_array(list) && span_is_object(span_element(list, 0));
	if (ask->can_remember) ask->proposals = list;
}

#define NO_REASON "The user denied this."

static json_t *permission(const struct speech_ask *ask, const struct speech_decision *d) {
	json_t *body = d->allow
					   ? json_pack("{s:s}", "behavior", "allow")
					   : json_pack("{s:s,s:s}", "behavior", "deny", "message", d->message ? d->message : NO_REASON);
	if (!d->allow && d->interrupt) json_object_set_new(body, "interrupt", json_true());
	if (d->allow && d->input) json_object_set(body, "updatedInput", d->input);
	if (d->allow && d->always)
		json_object_set_new(body, "updatedPermissions",
							json_loadb(ask->proposals.p, ask->proposals.n, JSON_ALLOW_NUL, NULL));
	return body;
}

/* Each kind of request wants a body of its own (protocol-facts 4.2). */
static bool put_answer(struct buf *b, const struct speech_ask *ask, const struct speech_decision *d) {
	bool form = ask->kind == SPEECH_ASKS_FORM;
	json_t *body = NULL; /* a form has none, and other kinds of request none that we know */
	if (ask->kind == SPEECH_ASKS_TOOL) body = permission(ask, d);
	if (ask->kind == SPEECH_ASKS_DIALOG && !d->allow) body = json_pack("{s:s}", "behavior", "cancelled");
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	if (!form && !body) return false;
	json_decref(body);
	buf_printf(b,
			   "{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":%.*s,\"response\":",
			   (int)ask->id.n, ask->id.p);
	if (form)
		speech_put_form(b, ask, d);
	else
		buf_puts(b, text ? text : "");
	buf_puts(b, "}}");
	b->failed |= !form && !text;
	free(text);
	return true;
}

/* --- Lines -------------------------------------------------------------------------------------------------------- */

static enum plenum_result interrupt(struct plenum *p, const struct speech_turn *t) {
	(void)t;
	char id[PLENUM_ID_SIZE];
	return plenum_post(p, "interrupt", NULL, id);
}

static bool take_back(struct plenum *p, const char *uuid, int timeout_ms) {
	char object[PLENUM_UUID_SIZE + 32];
	struct plenum_answer a;
	snprintf(object, sizeof object, "{\"message_uuid\":\"%s\"}", uuid);
	bool answered = plenum_request(p, "cancel_async_message", object, timeout_ms, &a) == PLENUM_OK;
	bool done = answered && a.body && span_is_true(span_member((struct span){a.body, a.body_len}, "cancelled"));
	plenum_answer_free(&a);
	return done;
}

static enum plenum_result hello(struct plenum *p, char *id) {
	return plenum_post(p, "initialize", NULL, id);
}

static const char *setting(bool mode, const char *value, json_t **members) {
	*members = json_pack("{s:s}", mode ? "mode" : "model", value);
	return mode ? "set_permission_mode" : "set_model";
}

const struct speech speech_claude = {
	.dialect = "claude",
	.repeats = true,
	.keeps = true,
	.scan = scan_envelope,
	.notice = notice,
	.next = next,
	.read_ask = read_ask,
	.read_error = read_error,
	.ends = ends,
	.prompt = plenum_prompt_again,
	.interrupt = interrupt,
	.take_back = take_back,
	.hello = hello,
	.setting = setting,
	.put_answer = put_answer,
};
